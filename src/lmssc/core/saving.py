"""What a fit does with its checkpoint: save while it runs, remove at the end, keep what an interruption left."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from lmssc.core.fit_config import CheckpointFile, FitConfig, FitHooks

State = TypeVar("State")
Start = TypeVar("Start")
History = list[dict[str, float]]


class Saver(Generic[Start, State]):
    """Saves a fit to its checkpoint, if it has one.

    Parameters
    ----------
    start : object
        What the iterations started from.
    hooks : FitHooks
        Has the checkpoint.
    """

    def __init__(self, start: Start, hooks: FitHooks) -> None:
        self.start, self.checkpoint = start, hooks.checkpoint

    def save(self, state: State, history: History) -> None:
        """Write everything that the fit can be resumed from."""
        if self.checkpoint is not None:
            self._write(self.checkpoint, state, history)

    def save_if_due(self, state: State, history: History) -> None:
        """Save, unless the last time was a short while ago."""
        if self.checkpoint is not None and self.checkpoint.due():
            self._write(self.checkpoint, state, history)

    def close(self, state: State, terms: Mapping[str, NDArray], config: FitConfig, *, converged: bool) -> None:
        """Remove the checkpoint of a finished fit; save an interrupted one."""
        if self.checkpoint is None:
            return
        history = [dict(zip(terms, map(float, row), strict=True)) for row in zip(*terms.values(), strict=True)]
        if converged or len(history) == config.max_iter:
            self._remove(self.checkpoint)
        else:
            self._write(self.checkpoint, state, history)

    def _write(self, checkpoint: CheckpointFile, state: State, history: History) -> None:
        raise NotImplementedError

    def _remove(self, checkpoint: CheckpointFile) -> None:
        checkpoint.remove()


def field_values(record: Any) -> dict[str, Any]:
    """The fields of a dataclass by name.

    Examples
    --------
    >>> from lmssc.core.fit_config import FitHooks
    >>> field_values(FitHooks())
    {'progress': None, 'checkpoint': None}
    """
    return {part.name: getattr(record, part.name) for part in fields(record)}
