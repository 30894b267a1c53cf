"""What a report is about: a fitted model, and what was measured with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.model_selection.refit import HeldOut


@dataclass(frozen=True)
class Subject:
    """What the report is about.

    Attributes
    ----------
    clf : classifier of lmssc
        Fitted.
    ids : list of str
        Names of the samples.
    codes : ndarray of int of shape (n,)
        Given class of each sample as a number in `clf.classes_`, −1 without a label.
    widths : dict of str to int
        Features of each view.
    missing : dict of str to int, or None
        Samples that lack each view; None without the views.
    notes : list of str
        How the input was understood.
    doubts : list of str
        What speaks against the answers.
    command : str
        The command that repeats the run.
    first : list of int
        Samples to label next.
    shares : dict of str to float
        Share of each view according to the method.
    random_state : int
        Seed of all random draws.
    held_out : HeldOut or None
        Predictions for held-out labels; None without the views, which refits need.
    without : dict of str or None to HeldOut
        The same with few iterations, with all views (None) and without each; empty if none can be left out.
    n_refitted : int
        Samples in the refits behind `held_out`.
    n_compared : int
        Samples in the refits behind `without`.
    details : callable or None
        Row of a sample ↦ what to show of it, by name: texts, and paths of images.
    """

    clf: Any
    ids: Sequence[str]
    codes: NDArray
    widths: Mapping[str, int]
    missing: Mapping[str, int] | None
    notes: Sequence[str]
    doubts: Sequence[str]
    command: str
    first: Sequence[int]
    shares: Mapping[str, float]
    random_state: int
    held_out: HeldOut | None = None
    without: Mapping[str | None, HeldOut] = field(default_factory=dict)
    n_refitted: int = 0
    n_compared: int = 0
    details: Callable[[int], Mapping[str, str | Path]] | None = None

    @property
    def given(self) -> NDArray:
        """Samples whose label was given."""
        return self.codes >= 0

    @property
    def labels(self) -> list[str]:
        """Names of the classes."""
        return [str(label) for label in self.clf.classes_]

    @property
    def from_files(self) -> bool:
        """Whether `lmssc classify` fitted the model and wrote other files with it."""
        return hasattr(self.clf, "files_")

    @cached_property
    def predicted(self) -> NDArray:
        """Predicted class of each sample, as a number."""
        return np.searchsorted(self.clf.classes_, self.clf.transduction_)
