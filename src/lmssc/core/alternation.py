"""The loop that every iterative method here shares: steps, stop rule, history, progress."""

import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmssc.core.progress import IterationProgress
from lmssc.data.warn_caller import warn_caller


class HasChange(Protocol):
    """A state that knows how much the last step changed the class scores F."""

    @property
    def change(self) -> float:
        """‖F_new − F‖ / ‖F‖."""


State = TypeVar("State", bound=HasChange)


class Alternation(NamedTuple, Generic[State]):
    """The last state, the terms of the objective after each iteration, and whether the loop converged."""

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
    callback: Callable[[IterationProgress], object] | None = None,
    by_objective: bool = False,
    history: Sequence[dict[str, float]] = (),
    save: Callable[[State, list[dict[str, float]]], object] | None = None,
    interruptible: bool = False,
) -> Alternation[State]:
    """Repeat `step` until it changes less than `tol`, at most `max_iter` times.

    Parameters
    ----------
    state : object with `change`
        Initial state.
    step : callable
        One iteration of all updates: state ↦ new state.
    objective : callable
        The terms of J at a state, by name.
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when ‖F_new − F‖ < tol·‖F‖.
    callback : callable, optional
        Called with an `IterationProgress` after each iteration.
    by_objective : bool
        Stop when J − J_new < tol·J instead.
    history : sequence of dict
        Terms of J after earlier iterations, if the loop resumes.
    save : callable, optional
        Called with the state and the history after each iteration but the last.
    interruptible : bool
        Whether Ctrl-C ends the loop with the last state and a warning, instead of an exception.

    Returns
    -------
    Alternation

    Examples
    --------
    >>> from types import SimpleNamespace as State
    >>> halve = lambda state: State(x=state.x / 2 + 1, change=abs(1 / state.x - 1 / 2))
    >>> result = alternate(State(x=8.0, change=1.0), halve, lambda state: {"J": state.x}, max_iter=50, tol=1e-3)
    >>> round(result.state.x, 2), len(result.terms["J"]), result.converged
    (2.0, 12, True)
    """
    began = time.perf_counter()
    records = list(history)
    converged = False
    total = sum(records[-1].values()) if records else np.inf
    changes: list[float] = []
    try:
        for iteration in range(len(records) + 1, max_iter + 1):
            new = step(state)
            record = objective(new)
            state = new
            records.append(record)
            changes.append(state.change)
            before, total = total, sum(record.values())
            if callback is not None:
                seconds = time.perf_counter() - began
                left = seconds / len(changes) * _rounds_left(changes, tol, max_iter - iteration)
                callback(IterationProgress(iteration, max_iter, total, state.change, seconds, left))
            if (before - total < tol * before) if by_objective else (state.change < tol):
                converged = True
                break
            if save is not None and iteration < max_iter:
                save(state, records)
    except KeyboardInterrupt:
        if not interruptible:
            raise
        warn_caller(
            f"interrupted after {len(records)} iterations: the model is the result so far and has not converged",
        )
    terms = {name: np.array([record[name] for record in records]) for name in (records[0] if records else {})}
    return Alternation(state, terms, converged)


def _rounds_left(changes: Sequence[float], tol: float, most: int) -> float:
    """Iterations until the change is below `tol`, if it keeps falling at its mean rate; NaN after one iteration.

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
