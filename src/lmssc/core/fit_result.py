"""What a fit finds: `FitResult`, and the final answers that it is made from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.calibration import GroupedCalibration
from lmssc.core.label_placement import LabelPlacement
from lmssc.core.linked_samples import LinkMemory
from lmssc.core.new_samples import NewSampleProbe, Trust
from lmssc.core.one_class_components import OneClassSamples
from lmssc.core.predict import NeighborAverage
from lmssc.core.second_opinion import Opinion, SecondOpinion
from lmssc.core.targets import Targets
from lmssc.data.kept_deviations import KeptDeviations
from lmssc.data.whitening import Whitening


@dataclass(frozen=True)
class FitResult:
    """Everything that a fit finds; samples and views in canonical order.

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Calibrated class scores.
    raw_scores : ndarray of shape (n, c), or None
        F, before prior correction and calibration; None if the fit was in parts.
    unreached : ndarray of bool of shape (n,)
        Samples without a label in their component of the graph.
    graph : csr_array of shape (n, n)
        S.
    latent : ndarray of shape (n, r)
        H.
    loadings : list of ndarray of shape (d_v, r)
        W^v.
    alpha : ndarray of shape (n,)
        α of each row of S.
    average : NeighborAverage
        Averages over the neighbours of new samples; has the coordinates of the samples and the embedding.
    second_opinion : SecondOpinion or None
        Predicts the second opinion on new samples; None without trust in it.
    opinion : Opinion or None
        Q and η of the samples of fit.
    ridge : ndarray of shape (r, r), or None
        R, with which new samples that lack views are embedded: that of the fit if samples of fit lack views, otherwise
        from its residuals. None with a random start, which has no ridge either.
    probe : NewSampleProbe or None
        Samples that judge predictions for new samples; None without calibration.
    trust : Trust or None
        Confidence of predictions for new samples that have all views; None without calibration.
    calibration : GroupedCalibration
        Calibration of the final scores.
    gamma : float
        γ in the units of the coordinates.
    kinds : ndarray of int of shape (n,)
        What each sample lacks: see `kinds_of`.
    terms : dict of str to ndarray
        Terms of J after each iteration.
    converged : bool
        Whether F changed by less than the tolerance at the end.
    neighbor_recall : float
        Measured recall of the last neighbour search; 1 if it is exact.
    links : LinkMemory or None
        How the graphs are used, and what new samples need of them; None if there is none, or none says anything.
    targets : Targets
        The labels, with the trust that the fit had in each; none in those that it dropped.
    order : ndarray of int of shape (n,), or None
        The canonical sample at each position of the order in which the fit worked, if it is another.
    link_laplacian : csr_array of shape (n, n), or None
        What links, or the mean of the views' own graphs, add to the Laplacian of S in the system that the scores solve.
    view_weight : float
        Weight of the mean of the views' own graphs; 0 without it.
    held_out : tuple of ndarray of int of shape (l,) and ndarray of shape (l, c), or None
        As of `StartConfidence`.
    one_class : OneClassSamples or None
        Samples in components of the graph whose labels are all of one class, if they are known.
    candidates, placement
        As of `Start`.
    changes : sequence of Whitening, KeptDeviations or None
        What changed the form of each scaled view.
    refused_links : ndarray of bool of shape (G,), or None
        As of `LinkChoice`.
    """

    scores: NDArray
    unreached: NDArray
    graph: sparse.csr_array
    latent: NDArray
    loadings: list[NDArray]
    alpha: NDArray
    average: NeighborAverage
    ridge: NDArray | None
    probe: NewSampleProbe | None
    trust: Trust | None
    calibration: GroupedCalibration
    gamma: float
    kinds: NDArray
    terms: dict[str, NDArray]
    converged: bool
    neighbor_recall: float
    targets: Targets
    raw_scores: NDArray | None = None
    second_opinion: SecondOpinion | None = None
    opinion: Opinion | None = None
    links: LinkMemory | None = None
    order: NDArray | None = None
    link_laplacian: sparse.csr_array | None = None
    view_weight: float = 0.0
    held_out: tuple[NDArray, NDArray] | None = None
    one_class: OneClassSamples | None = None
    candidates: NDArray | None = None
    changes: Sequence[Whitening | KeptDeviations | None] = ()
    placement: LabelPlacement | None = None
    refused_links: NDArray | None = None


@dataclass(frozen=True)
class Answers:
    """The final answers for the samples of fit, in canonical order.

    Attributes
    ----------
    scores : ndarray or csr_array of shape (n, c)
        Calibrated class scores.
    distributions : ndarray or csr_array of shape (n, c)
        The same with rows that sum to 1, or to less if not all classes are listed.
    unreached : ndarray of bool of shape (n,)
        Samples without a label in their component of the graph.
    calibration : GroupedCalibration
        Calibration of the scores.
    targets : Targets
        The labels.
    raw_scores : ndarray of shape (n, c), optional
        F, before prior correction and calibration.
    opinion : Opinion, optional
        Q and η.
    """

    scores: Any
    distributions: Any
    unreached: NDArray
    calibration: GroupedCalibration
    targets: Targets
    raw_scores: NDArray | None = None
    opinion: Opinion | None = None
