"""The fit of LMSSC in parts: the same result as `lmssc.core.fit`, with only some of the samples in memory at a time."""

import shutil
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from lmssc.core.alternation import alternate
from lmssc.core.confidence import StartConfidence
from lmssc.core.fit import FitResult
from lmssc.core.fit_config import FitConfig, FitContext, FitHooks
from lmssc.core.parts.executor import Executor, Part
from lmssc.core.parts.finish import finish
from lmssc.core.parts.neighbors import PartedKNN
from lmssc.core.parts.parted_objective import PartedObjective, PartedState
from lmssc.core.parts.parted_start import PartedStart, begin
from lmssc.core.permutation import Permutation
from lmssc.core.targets import Targets
from lmssc.data.views import Views


class Places(Protocol):
    """Where parts live: `lmssc.core.parts.plan.Plan`, or on a cluster."""

    def maker(self, views: Views, config: FitConfig, n_classes: int) -> Callable[[int], Executor]:
        """What makes the parts, given the number of components."""

    def executor(self, bounds: NDArray) -> Executor:
        """New parts with these bounds."""


def fit_in_parts(
    views: Views,
    targets: Targets,
    config: FitConfig,
    places: Places,
    hooks: FitHooks | None = None,
    context: FitContext | None = None,
    *,
    on_disk: bool = True,
) -> FitResult:
    """Learn latent positions, graph and class scores together, in parts.

    Parameters
    ----------
    views, targets, config, hooks, context
        As for `lmssc.core.fit.fit`. All samples have all views, and all labels are certain. The graphs of single views,
        which a fit to up to 5,000 samples tries, are not used.
    places : Places
        Where the parts live.
    on_disk : bool
        Whether arrays of the result that have a row for each sample are in temporary files.

    Returns
    -------
    FitResult

    Examples
    --------
    >>> import numpy as np
    >>> from lmssc.core.parts.plan import Plan
    >>> X = np.array([[0.0], [0.1], [0.3], [5.0], [5.1], [5.3]] * 400) + np.linspace(0, 0.5, 2400)[:, None]
    >>> targets = Targets.from_codes(np.where(np.arange(2400) < 60, np.arange(2400) % 6 // 3, -1), 2)
    >>> found = fit_in_parts(Views.from_arrays([X]), targets, FitConfig(n_neighbors=5), Plan(1 << 31))
    >>> found.scores.argmax(axis=1)[-6:]
    array([0, 0, 0, 1, 1, 1])
    """
    hooks = FitHooks() if hooks is None else hooks
    context = FitContext() if context is None else context
    refuse_unsupported(views, targets, config)
    made: list[Executor] = []

    def make(n_components: int) -> Executor:
        made.append(places.maker(views, config, targets.n_classes)(n_components))
        return made[-1]

    try:
        saved = None if hooks.checkpoint is None else hooks.checkpoint.read()
        if saved is None:
            start = begin(views, targets, config, make)
            _save(start, start.state, [], hooks)
        else:
            made.append(places.executor(saved["bounds"]))
            start = _resume(saved, views, config, made[-1], hooks)
        steps = _Steps(start.objective)
        state, terms, converged = alternate(
            start.state,
            steps,
            start.objective.objective,
            max_iter=config.max_iter,
            tol=config.tol,
            callback=hooks.progress,
            history=start.history,
            save=partial(_save_if_due, start, hooks=hooks),
            interruptible=context.interruptible,
        )
        steps.settle(state)
        n_iterations = len(next(iter(terms.values()), ()))
        if hooks.checkpoint is not None:
            if converged or n_iterations == config.max_iter:
                hooks.checkpoint.remove()
                shutil.rmtree(_folder(hooks), ignore_errors=True)
            else:
                records = [dict(zip(terms, map(float, row), strict=True)) for row in zip(*terms.values(), strict=True)]
                _save(start, state, records, hooks)
        if not state.has_alpha:  # interrupted before the end of the first iteration
            _set_first_alpha(start.objective, state)
        return finish(start, state, terms, converged, on_disk=on_disk)
    finally:
        for executor in made:
            executor.close()


def refuse_unsupported(views: Views, targets: Targets, config: FitConfig) -> None:
    """Raise an error for what a fit in parts cannot do."""
    for wrong, what in (
        (not views.complete, "samples that lack views"),
        (len(targets.uncertain) > 0, "sample_weight, or other labels that are not certain"),
        (config.label_noise != 0, "label_noise other than 0"),
        (config.random_start, "init='random'"),
    ):
        if wrong:
            raise ValueError(
                f"with this memory_limit or client the fit would be in parts, which does not support {what}: raise the "
                "limit, or leave both out"
            )


class _Steps:
    """Iterations after which parts and state belong together, whenever Ctrl-C or an error comes."""

    def __init__(self, objective: PartedObjective) -> None:
        self.objective = objective
        self._reached: PartedState | None = None

    def __call__(self, state: PartedState) -> PartedState:
        self.objective.executor.mark()
        self._reached = state
        try:
            new = self.objective.step(state)
        except BaseException:
            self.objective.executor.rollback()
            raise
        self._reached = new
        return new

    def settle(self, state: PartedState) -> None:
        """Go back to the parts of `state`, if the last iteration does not count because J was not computed."""
        if self._reached is not None and self._reached is not state:
            self.objective.executor.rollback()


def _set_first_alpha(objective: PartedObjective, state: PartedState) -> None:
    """Set α as the first iteration would; the graph stays as it is."""
    executor = objective.executor
    executor.mark()
    objective.update_graph(state)
    alphas = executor.map(_alpha)
    executor.rollback()
    executor.map(_put_alpha, each=alphas)


def _alpha(part: Part) -> NDArray:
    return part["alpha"]


def _put_alpha(part: Part, alpha: NDArray) -> None:
    part["alpha"] = alpha


# What a start has besides the parts, and the confidence of which the fields are saved.
_SAVED_START = ("embedding", "regressor", "second_opinion")
_SAVED_OBJECTIVE = ("targets", "energies", "stretch", "gamma", "opinion_weight")


def _parts(record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _folder(hooks: FitHooks) -> Path:
    """Where the arrays of the parts are saved, beside the checkpoint."""
    path = hooks.checkpoint.path  # type: ignore[union-attr]
    return path.with_name(path.name + ".parts")


def _save(start: PartedStart, state: PartedState, history: list[dict[str, float]], hooks: FitHooks) -> None:
    """Write to the checkpoint, and to a folder beside it, everything that `_resume` needs."""
    if hooks.checkpoint is None:
        return
    folder, number = _folder(hooks), 0
    folder.mkdir(exist_ok=True)
    old = list(folder.iterdir())
    while (folder / str(number)) in old:
        number += 1
    objective = start.objective
    objective.executor.save(str(folder / str(number)))
    hooks.checkpoint.write(
        {
            "folder": str(number),
            "bounds": objective.executor.bounds,
            "order": start.permutation.order,
            "objective": {name: getattr(objective, name) for name in _SAVED_OBJECTIVE},
            "start": {name: getattr(start, name) for name in _SAVED_START},
            "confidence": _parts(start.confidence),
            "state": _parts(state),
            "list_length": objective.search.list_length,
            "history": list(history),
        }
    )
    for earlier in old:
        shutil.rmtree(earlier, ignore_errors=True)


def _save_if_due(start: PartedStart, state: PartedState, history: list[dict[str, float]], *, hooks: FitHooks) -> None:
    if hooks.checkpoint is not None and hooks.checkpoint.due():
        _save(start, state, history, hooks)


def _resume(saved: dict[str, Any], views: Views, config: FitConfig, executor: Executor, hooks: FitHooks) -> PartedStart:
    """What an interrupted fit to the same data with the same parameters continues from."""
    folder = _folder(hooks) / saved["folder"]
    if not folder.is_dir():
        raise ValueError(f"the folder {folder}, which belongs to the checkpoint, is missing; delete the checkpoint")
    executor.restore(str(folder))
    search = PartedKNN(executor, config.neighbor_recall)
    search.list_length = saved["list_length"]
    objective = PartedObjective(search, config, dtype=views.dtype, **saved["objective"])
    return PartedStart(
        objective,
        PartedState(**saved["state"]),
        Permutation(saved["order"]),
        confidence=StartConfidence(**saved["confidence"]),
        history=saved["history"],
        **saved["start"],
    )
