"""The loop that every iterative method here shares: steps, stop rule, history, progress."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray


class HasScores(Protocol):
    """What the loop needs to know of a method's state."""

    @property
    def scores(self) -> NDArray:
        """Class scores F."""


State = TypeVar("State", bound=HasScores)


@dataclass(frozen=True)
class Progress:
    """What a callback hears after an iteration.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1.
    max_iter : int
        The most that there will be.
    objective : float
        J.
    change : float
        Relative change of the class scores F.
    seconds : float
        Time since the loop began.
    """

    iteration: int
    max_iter: int
    objective: float
    change: float
    seconds: float


class Alternation(NamedTuple, Generic[State]):
    """The last state, the terms of the objective after each iteration, and whether the stop rule was met."""

    state: State
    terms: dict[str, NDArray]
    converged: bool


def relative_change(new: NDArray, old: NDArray) -> float:
    """‖new − old‖ / ‖old‖, and 0 if both are zero.

    Examples
    --------
    >>> relative_change(np.array([3.0, 4.5]), np.array([3.0, 4.0]))
    0.1
    """
    difference = float(np.linalg.norm(new - old))
    return difference / max(float(np.linalg.norm(old)), np.finfo(float).tiny) if difference else 0.0


def alternate(
    state: State,
    step: Callable[[State], State],
    objective: Callable[[State], dict[str, float]],
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[Progress], object] | None = None,
    by_objective: bool = False,
) -> Alternation[State]:
    """Repeat `step` until it changes less than `tol`, at most `max_iter` times.

    Parameters
    ----------
    state : object with `scores`
        Where to start.
    step : callable
        One round of all updates: state ↦ new state.
    objective : callable
        The terms of J at a state, by name.
    max_iter : int
        Most rounds.
    tol : float
        Stop when ‖F_new − F‖ < tol·‖F‖.
    callback : callable, optional
        Called with a `Progress` after each round.
    by_objective : bool
        Stop when J − J_new < tol·J instead.

    Returns
    -------
    Alternation

    Examples
    --------
    >>> from types import SimpleNamespace as State
    >>> halve = lambda state: State(scores=state.scores / 2 + 1)
    >>> result = alternate(
    ...     State(scores=np.array([8.0])), halve, lambda s: {"J": float(s.scores[0])}, max_iter=50, tol=1e-3
    ... )
    >>> result.state.scores.round(2), len(result.terms["J"]), result.converged
    (array([2.]), 12, True)
    """
    began = time.perf_counter()
    history: list[dict[str, float]] = []
    converged = False
    total = np.inf
    for iteration in range(1, max_iter + 1):
        new = step(state)
        change = relative_change(new.scores, state.scores)
        state = new
        history.append(objective(state))
        before, total = total, sum(history[-1].values())
        if callback is not None:
            callback(Progress(iteration, max_iter, total, change, time.perf_counter() - began))
        if (before - total < tol * before) if by_objective else (change < tol):
            converged = True
            break
    terms = {name: np.array([record[name] for record in history]) for name in history[0]}
    return Alternation(state, terms, converged)
