"""What the alternation starts from, or resumes from."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lmssc.core.confidence import StartConfidence
from lmssc.core.embedding import IDENTITY, Embedding
from lmssc.core.label_placement import LabelPlacement
from lmssc.core.label_regression import LabelRegressor
from lmssc.core.objective import IterationState, Objective
from lmssc.core.permutation import Permutation
from lmssc.core.second_opinion import SecondOpinion
from lmssc.core.targets import Targets


@dataclass(frozen=True)
class Start:
    """What the alternation starts from, or resumes from.

    Attributes
    ----------
    objective : Objective
        The problem, samples in the order of the fit.
    state : IterationState
        First state, in the same order; None after `without_state`.
    permutation : Permutation
        The order of the fit.
    embedding : Embedding
        That of the objective, in canonical order.
    regressor : LabelRegressor or None
        Predicts the expected scores P from Z.
    initially_disconnected : ndarray of bool of shape (n,), or None
        Samples without a label in their component of the first graph; None if there are no expected scores.
    confidence : StartConfidence
        Confidence of the warm start.
    second_opinion : SecondOpinion or None
        Predicts the scores Q of the objective; None without trust in it.
    view_weight : float
        Weight of the mean of the views' own graphs, which is then the links of the objective; 0 without it.
    history : list of dict
        Terms of J after the iterations that are done already.
    candidates : ndarray of int of shape (n, p), or None
        Nearest samples in Z at the beginning, which no label has seen, in the order of the fit, if there are so many
        samples that they come from an index.
    placement : LabelPlacement or None
        Where the labelled samples lie; None with a random start, or with very many classes.
    """

    objective: Objective
    state: IterationState
    permutation: Permutation = field(default_factory=Permutation)
    embedding: Embedding = IDENTITY
    regressor: LabelRegressor | None = None
    initially_disconnected: NDArray | None = None
    confidence: StartConfidence = field(default_factory=StartConfidence)
    second_opinion: SecondOpinion | None = None
    view_weight: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    candidates: NDArray | None = None
    placement: LabelPlacement | None = None

    @property
    def labels(self) -> Targets:
        """The labels that count, in canonical order."""
        return self.permutation.undo_targets(self.objective.targets)

    @property
    def mean_loss(self) -> float:
        """Mean loss of the held-out labels; 0 if there are none."""
        losses = self.confidence.losses
        return 0.0 if losses is None or not len(losses) else float(losses.mean())

    def is_better(self, other: "Start", n_errors: float = 1.0) -> bool:
        """Whether it finds held-out labels better than another start with the same folds.

        By more than so many standard errors of the mean difference of their losses.
        """
        ours, theirs = self.confidence.losses, other.confidence.losses
        if ours is None or theirs is None or len(ours) < 2 or len(ours) != len(theirs):
            return False  # labels of identical samples may count in one start and not in the other
        gain = theirs - ours
        return bool(gain.mean() > n_errors * gain.std(ddof=1) / np.sqrt(len(gain)))

    def without_state(self) -> "Start":
        """The same without the first state, which takes 400 bytes a sample and more."""
        return replace(self, state=None)  # type: ignore[arg-type]
