"""The loop that every iterative method here shares: steps, stop rule, history, progress."""

import time
import warnings
from collections.abc import Callable, Sequence
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
    seconds_left : float
        Time until the stop rule is likely to be met, as F has come to rest so far; NaN after one iteration.
    """

    iteration: int
    max_iter: int
    objective: float
    change: float
    seconds: float
    seconds_left: float = float("nan")


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
    history: Sequence[dict[str, float]] = (),
    keep: Callable[[State, list[dict[str, float]]], object] | None = None,
    interruptible: bool = False,
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
    history : sequence of dict
        Terms of J after the rounds that were done before, if the loop goes on where it was stopped.
    keep : callable, optional
        Called with the state and the history after each round but the last.
    interruptible : bool
        Ctrl-C ends the loop with the last state, and a warning.

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
    records = list(history)
    converged = False
    total = sum(records[-1].values()) if records else np.inf
    changes: list[float] = []
    try:
        for iteration in range(len(records) + 1, max_iter + 1):
            new = step(state)
            change = relative_change(new.scores, state.scores)
            record = objective(new)
            state = new
            records.append(record)
            changes.append(change)
            before, total = total, sum(record.values())
            if callback is not None:
                seconds = time.perf_counter() - began
                left = seconds / len(changes) * _rounds_left(changes, tol, max_iter - iteration)
                callback(Progress(iteration, max_iter, total, change, seconds, left))
            if (before - total < tol * before) if by_objective else (change < tol):
                converged = True
                break
            if keep is not None and iteration < max_iter:
                keep(state, records)
    except KeyboardInterrupt:
        if not interruptible:
            raise
        warnings.warn(
            f"interrupted after {len(records)} iterations: the model is what they have found, and not converged",
            UserWarning,
            stacklevel=2,
        )
    terms = {name: np.array([record[name] for record in records]) for name in (records[0] if records else {})}
    return Alternation(state, terms, converged)


def _rounds_left(changes: Sequence[float], tol: float, most: int) -> float:
    """Rounds until the change is below `tol`, if it goes on to fall at the mean rate; NaN if that is not known.

    Examples
    --------
    >>> round(_rounds_left([0.1, 0.01], tol=1e-4, most=30), 6), _rounds_left([0.1, 0.1], tol=1e-4, most=30)
    (2.0, 30.0)
    """
    if changes[-1] < tol or not most:
        return 0.0
    if len(changes) < 2:
        return float("nan")
    if not (tol > 0 and changes[0] > 0 and changes[-1] > 0):
        return float(most)
    rate = np.log(changes[-1] / changes[0]) / (len(changes) - 1)
    needed = np.log(tol / changes[-1]) / rate if rate < 0 else np.inf
    return float(min(needed, most))
