"""The fit of LMSSC in parts: the same result as `lmssc.core.fit`, with only some of the samples in memory at a time."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from lmssc.core.alternation import Alternation, alternate
from lmssc.core.confidence import StartConfidence
from lmssc.core.fit_config import CheckpointFile, FitConfig, FitContext, FitHooks
from lmssc.core.fit_result import FitResult
from lmssc.core.parts.executor import Executor, Part
from lmssc.core.parts.finish import finish
from lmssc.core.parts.neighbors import PartedKNN
from lmssc.core.parts.parted_objective import PartedObjective, PartedState
from lmssc.core.parts.parted_start import PartedStart, begin
from lmssc.core.permutation import Permutation
from lmssc.core.saving import History, Saver, field_values
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
        As for `lmssc.core.fit.fit`. All samples have all views, and all labels are certain. Other forms of
        measurements and graphs of single views are not tried.
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
        checkpoint = hooks.checkpoint
        saved = None if checkpoint is None else checkpoint.read()
        if checkpoint is None or saved is None:
            start = begin(views, targets, config, make)
        else:
            made.append(places.executor(saved["bounds"]))
            start = _resume(saved, views, config, made[-1], checkpoint)
        saver = _PartedSaver(start, hooks)
        if saved is None:
            saver.save(start.state, [])
        state, terms, converged = _iterate(start, config, hooks, context, saver)
        saver.close(state, terms, config, converged=converged)
        if not state.has_alpha:  # interrupted before the end of the first iteration
            _set_first_alpha(start.objective, state)
        return finish(start, targets, state, terms, converged, on_disk=on_disk)
    finally:
        for executor in made:
            executor.close()


def _iterate(
    start: PartedStart, config: FitConfig, hooks: FitHooks, context: FitContext, saver: "_PartedSaver"
) -> Alternation[PartedState]:
    """Lower J from the start, until it converges or is interrupted; the parts are then those of the last state."""
    steps = _Steps(start.objective)
    found = alternate(
        start.state,
        steps,
        start.objective.objective,
        max_iter=config.max_iter,
        tol=config.tol,
        callback=hooks.progress,
        history=start.history,
        save=saver.save_if_due,
        interruptible=context.interruptible,
    )
    steps.settle(found.state)
    return found


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
                f"memory_limit or client would divide the fit into parts, which does not support {what}: raise the "
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


def _folder(checkpoint: CheckpointFile) -> Path:
    """Where the arrays of the parts are saved, beside the checkpoint."""
    return checkpoint.path.with_name(checkpoint.path.name + ".parts")


class _PartedSaver(Saver[PartedStart, PartedState]):
    """Saves everything that `_resume` needs, to the checkpoint and to a folder beside it."""

    def _write(self, checkpoint: CheckpointFile, state: PartedState, history: History) -> None:
        folder, number = _folder(checkpoint), 0
        folder.mkdir(exist_ok=True)
        old = list(folder.iterdir())
        while (folder / str(number)) in old:
            number += 1
        start, objective = self.start, self.start.objective
        objective.executor.save(str(folder / str(number)))
        checkpoint.write(
            {
                "folder": str(number),
                "bounds": objective.executor.bounds,
                "order": start.permutation.order,
                "drawn": start.permutation.drawn,
                "objective": {name: getattr(objective, name) for name in _SAVED_OBJECTIVE},
                "start": {name: getattr(start, name) for name in _SAVED_START},
                "confidence": field_values(start.confidence),
                "state": field_values(state),
                "list_length": objective.search.list_length,
                "history": list(history),
            }
        )
        for earlier in old:
            shutil.rmtree(earlier, ignore_errors=True)

    def _remove(self, checkpoint: CheckpointFile) -> None:
        super()._remove(checkpoint)
        shutil.rmtree(_folder(checkpoint), ignore_errors=True)


def _resume(
    saved: dict[str, Any], views: Views, config: FitConfig, executor: Executor, checkpoint: CheckpointFile
) -> PartedStart:
    """What an interrupted fit to the same data with the same parameters continues from."""
    folder = _folder(checkpoint) / saved["folder"]
    if not folder.is_dir():
        raise ValueError(f"the folder {folder}, which belongs to the checkpoint, is missing; delete the checkpoint")
    executor.restore(str(folder))
    search = PartedKNN(executor, config.neighbor_recall)
    search.list_length = saved["list_length"]
    objective = PartedObjective(search, config, dtype=views.dtype, **saved["objective"])
    return PartedStart(
        objective,
        PartedState(**saved["state"]),
        Permutation(saved["order"], saved["drawn"]),
        confidence=StartConfidence(**saved["confidence"]),
        history=saved["history"],
        **saved["start"],
    )
