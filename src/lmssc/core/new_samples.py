"""How reliable predictions for new samples are, measured on samples of fit that are treated as new."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.calibration import Calibration, fit_calibration
from lmssc.core.embed_views import embed_views, gram_of, squared_residuals
from lmssc.core.second_opinion import SecondOpinion
from lmssc.core.sparse_scores import calibrate_sparsely, fit_sparse_calibration, scale_rows
from lmssc.data.presence import presence_patterns
from lmssc.data.views import Views
from lmssc.numerics.matrices import pseudo_inverse


@dataclass(frozen=True)
class ProbeLimits:
    """How samples of fit are used to judge predictions for new samples."""

    max_samples: int = 300
    min_samples: int = 20
    """Size of the probe; fewer samples are not enough to judge by."""
    quantile: float = 0.99
    min_residual_share: float = 0.25
    """Distances and residuals of up to this quantile of the probe are usual, and residuals below this share of a
    sample's squared norm: the probe may have none at all."""
    free_factor: float = 2.0
    decay: float = 0.5
    """Confidence starts to fall at `free_factor` times the usual distance, as a Gaussian of width `decay`."""
    max_leverage: float = 0.9
    """Larger leverages count as this: residuals are divided by their distance from 1."""


PROBE = ProbeLimits()
# Least share of sparse scores that is kept far away from all samples: which is the largest is still known.
MIN_KEPT = 1e-9


class NeighborScores(NamedTuple):
    """Class scores of new samples, mean squared distances to their neighbours, and squared residuals.

    `reach` is the largest distance of their values from the median of a column, in units of that of the samples of fit.
    """

    scores: NDArray
    distances: NDArray
    residuals: NDArray
    reach: NDArray | float = 0.0


@dataclass(frozen=True)
class Trust:
    """Confidence of predictions for new samples that have certain views.

    Attributes
    ----------
    calibration : Calibration
        Their calibration if they are like those of fit.
    distance : float
        Largest usual mean distance to the neighbours.
    leftover : float
        Largest usual norm of the residual x − h·Wᵀ.

    Examples
    --------
    >>> trust = Trust(Calibration(), distance=1.0, leftover=1.0)
    >>> found = NeighborScores(np.array([[0.9, 0.1]] * 3), np.array([1.0, 9.0, 1e6]), np.zeros(3))
    >>> trust(found, frequencies=np.array([0.5, 0.5])).round(2)
    array([[0.9 , 0.1 ],
           [0.55, 0.45],
           [0.5 , 0.5 ]])
    """

    calibration: Calibration
    distance: float
    leftover: float

    def __call__(self, found: NeighborScores, frequencies: NDArray) -> NDArray:
        """Probabilities, which fall back to the class frequencies far away from the samples of fit."""
        kept = _decay(_ratios(found.distances, self.distance)) * _decay(_ratios(found.residuals, self.leftover))
        kept = kept * _decay(np.asarray(found.reach))
        if sparse.issparse(found.scores):  # the rest belongs to classes that are not listed
            return scale_rows(calibrate_sparsely(found.scores, self.calibration), np.maximum(kept, MIN_KEPT))
        kept = kept[:, None].astype(found.scores.dtype)
        return kept * self.calibration(found.scores) + (1 - kept) * frequencies.astype(found.scores.dtype)

    def remoteness(self, found: NeighborScores) -> NDArray:
        """How far samples are from those of fit, by neighbours or by residuals: up to 1 is usual.

        Examples
        --------
        >>> trust = Trust(Calibration(), distance=1.0, leftover=1.0)
        >>> trust.remoteness(NeighborScores(np.ones((3, 2)), np.array([1.0, 4.0, 9.0]), np.array([0.0, 25.0, 0.0])))
        array([1., 5., 3.])
        """
        return np.maximum(_ratios(found.distances, self.distance), _ratios(found.residuals, self.leftover))


def _ratios(squares: NDArray, usual: float) -> NDArray:
    """Lengths, given squared, in units of the usual one."""
    with np.errstate(over="ignore"):  # beyond all bounds is ∞
        return np.sqrt(np.maximum(squares, 0, dtype=np.float64)) / max(usual, float(np.finfo(float).tiny))


def _decay(ratios: NDArray) -> NDArray:
    """Weights that fall from 1 to 0 as lengths grow beyond the usual."""
    with np.errstate(over="ignore"):  # the weight of ∞ is 0
        return np.exp(-0.5 * (np.maximum(ratios - PROBE.free_factor, 0) / PROBE.decay) ** 2)


@dataclass(frozen=True)
class DistanceCriteria:
    """When many new samples are too far from those of fit, in units of the usual distance."""

    far: float = 2.5
    max_far_share: float = 0.1
    """More than this share is far away, but not one sample among others: hardly anything is kept of their answers."""
    beyond: float = 1.25
    min_samples: int = 10
    """Or more than half of so many samples are beyond this: of those of fit it is less than one in a hundred."""


DISTANCES = DistanceCriteria()


def find_distant(remoteness: NDArray) -> NDArray:
    """Which new samples are too far from those of fit, given how far each is; none if they are few.

    Examples
    --------
    >>> [int(find_distant(np.array([0.5] * near + [3, 3][: 11 - near])).sum()) for near in (9, 10)]
    [2, 0]
    >>> int(find_distant(np.array([0.5] * 4 + [1.5] * 6)).sum())
    6
    """
    n_samples, far, beyond = len(remoteness), remoteness > DISTANCES.far, remoteness > DISTANCES.beyond
    if n_samples >= DISTANCES.min_samples and beyond.sum() > n_samples / 2:
        return beyond
    told = far.all() or far.sum() > max(DISTANCES.max_far_share * n_samples, 1)
    return far if told else np.zeros(n_samples, dtype=bool)


@dataclass(frozen=True)
class NewSampleProbe:
    """Samples of fit that can be embedded again as if they were new, with some of their views left out.

    Attributes
    ----------
    samples : ndarray of int of shape (m,)
        Their indices, in canonical order.
    products : ndarray of shape (V, m, r)
        X^v·W^v; zero for a view that a sample lacks.
    energies : ndarray of shape (V, m)
        Squared norms of the rows of X^v.
    present : ndarray of bool of shape (V, m)
        Which views each sample has.
    ridge : ndarray of shape (r, r)
        R, with which samples that lack views are embedded: see `embed_views`.
    opinions : ndarray of shape (M, V, m, c), or None
        What each view contributes to the regressions of the second opinion on the samples; None without one.
    corrections : ndarray of shape (m, c), or None
        What is added to the logarithms of that opinion on a sample with all its views: see `SecondOpinion`.
    leverages : ndarray of shape (m,), or None
        Leverage of each sample in H: the loadings were fitted to it, too, so that its residual is too small by about
        this share.
    held_out : ndarray of shape (m, c), or None
        Probabilities of labelled samples, found without their labels; rows of other samples are zero. The labels
        themselves flatter the probe: P, by which its neighbours are found, was fitted to them.
    """

    samples: NDArray
    products: NDArray
    energies: NDArray
    present: NDArray
    ridge: NDArray
    opinions: NDArray | None = None
    held_out: NDArray | None = None
    corrections: NDArray | None = None
    leverages: NDArray | None = None

    @staticmethod
    def upgraded(fields: dict[str, Any]) -> dict[str, Any]:
        """The fields, given those of earlier versions, whose second opinion had a single regression.

        Examples
        --------
        >>> NewSampleProbe.upgraded({"opinions": np.ones((2, 5, 3))})["opinions"].shape
        (1, 2, 5, 3)
        """
        opinions = fields.get("opinions")
        if opinions is None or opinions.ndim > 3:  # regressions, views, samples, classes
            return fields
        return {**fields, "opinions": opinions[None]}

    @classmethod
    def of(
        cls,
        views: Views,
        loadings: list[NDArray],
        samples: NDArray,
        ridge: NDArray,
        second_opinion: SecondOpinion | None = None,
        opinions: NDArray | None = None,
    ) -> "NewSampleProbe":
        """The probe of the given samples of the scaled views; `opinions` are Q of all samples of fit."""
        some = views.take(samples)
        products = np.array([view.dot(loading) for view, loading in zip(some, loadings, strict=True)])
        energies = np.array([view.row_energies() for view in some])
        present = np.empty(energies.shape, dtype=bool)
        for rows, has in some.patterns():
            present[:, rows] = has[:, None]
        parts = corrections = None
        if second_opinion is not None and opinions is not None:
            parts = second_opinion.by_view(some)
            corrections = second_opinion.log_correction(some, parts, opinions[samples])
        return cls(samples, products, energies, present, ridge, parts, corrections=corrections)

    def with_leverages(self, latent: NDArray, gram: NDArray) -> "NewSampleProbe":
        """The probe with the leverages of its samples, given their latent positions, and HᵀH of all samples of fit."""
        found = np.einsum("ij,jk,ik->i", latent, pseudo_inverse(gram), latent, dtype=np.float64)
        return replace(self, leverages=np.clip(found, 0, PROBE.max_leverage))

    def judged_by(self, held_out: tuple[NDArray, NDArray] | None) -> "NewSampleProbe":
        """The probe with the held-out probabilities of its labelled samples, given as for `StartConfidence`."""
        if held_out is None:
            return self
        rows, probabilities = held_out
        own = np.zeros((len(self.samples), probabilities.shape[1]), dtype=probabilities.dtype)
        _, place, found = np.intersect1d(self.samples, rows, assume_unique=True, return_indices=True)
        own[place] = probabilities[found]
        return replace(self, held_out=own)

    def trust(
        self,
        has: NDArray,
        loadings: list[NDArray],
        distributions: NDArray,
        predict: Callable[[NDArray, NDArray], tuple[NDArray, NDArray]],
        second_opinion: SecondOpinion | None = None,
    ) -> Trust:
        """Confidence for new samples that have the views `has`.

        Measured on the samples of the probe that have these views. If they are too few, on those that have most of
        these views, with only these shown; if they are still too few, the scores are not calibrated, and each sample
        of the probe shows what it has of these views, so that confidence still falls far away from all samples.

        Parameters
        ----------
        has : ndarray of bool of shape (V,)
            Views of the new samples.
        loadings : list of ndarray of shape (d_v, r)
            W^v.
        distributions : ndarray of shape (n, c)
            Distributions of the samples of fit, in canonical order.
        predict : callable
            Latent positions, and indices of the samples of fit that they are of ↦ scores by the neighbours other than
            the sample itself, and mean squared distances to these.
        second_opinion : SecondOpinion, optional
            Blended with these scores.

        Returns
        -------
        Trust
        """
        shown = self._measurable_views(has)
        if shown is not None:
            probed = self._embed(np.flatnonzero(self.present[shown].all(axis=0)), shown, has, loadings)
        else:
            present = self.present & has[:, None]
            present = np.where(present.any(axis=0), present, self.present)
            patterns = presence_patterns(list(present), len(self.samples))
            parts = [self._embed(rows, own, has, loadings) for rows, own in patterns]
            probed = _Probed(*map(np.concatenate, zip(*parts, strict=True)))
        samples = self.samples[probed.rows]
        scores, distances = predict(probed.latent, samples)
        predicted = scores.sum(axis=1) > 0
        if second_opinion is not None and self.opinions is not None:
            opinions = second_opinion.decide(self.opinions[:, :, probed.rows], probed.shown)
            scores = second_opinion.blend(scores, self._corrected(opinions, probed))
        calibration = Calibration()
        if shown is not None:
            fit = fit_sparse_calibration if sparse.issparse(scores) else fit_calibration
            targets = self._targets(distributions, probed.rows)
            calibration = fit(scores[predicted], targets[predicted], prior_temperature=1.0, penalise=False)
        residuals = probed.residuals
        if self.leverages is not None:
            residuals = residuals / (1 - self.leverages[probed.rows]) ** 2
        largest = max(
            np.quantile(residuals, PROBE.quantile),
            PROBE.min_residual_share * np.quantile(probed.energies, PROBE.quantile),
        )
        # If no sample has another one as neighbour, the distances are those to the origin.
        usual = np.quantile(distances[predicted] if predicted.any() else distances, PROBE.quantile)
        return Trust(calibration, float(np.sqrt(usual)), float(np.sqrt(largest)))

    def _corrected(self, opinions: NDArray, probed: "_Probed") -> NDArray:
        """Q of samples of the probe by the views that are shown; with fewer views it knows less of a sample's label."""
        if self.corrections is None:
            return opinions
        share = np.sqrt(probed.shown.sum(axis=1) / self.present[:, probed.rows].sum(axis=0))
        corrected = opinions * np.exp(self.corrections[probed.rows] * share[:, None])
        return corrected / corrected.sum(axis=1, keepdims=True)

    def _targets(self, distributions: NDArray, rows: NDArray) -> NDArray:
        """What is known about some samples of the probe: held-out probabilities, else the distributions of fit."""
        known = distributions[self.samples[rows]]
        if self.held_out is None or sparse.issparse(known):
            return known
        own = self.held_out[rows]
        return np.where(own.any(axis=1)[:, None], own, known).astype(known.dtype, copy=False)

    def _measurable_views(self, has: NDArray) -> NDArray | None:
        """The largest set of the views `has` that enough samples of the probe have; None if no view has enough.

        Among equally many views those that most samples have, then the first. Candidates are the views that a sample
        has, those that two samples share, and single views: all subsets would be too many.
        """
        if self.present[has].all(axis=0).sum() >= PROBE.min_samples:
            return has
        own = np.unique((self.present & has[:, None]).T, axis=0)
        shared = (own[:, None] & own[None]).reshape(-1, len(has))
        candidates = np.unique(np.vstack([shared, np.diag(has)]), axis=0)
        sizes = candidates.sum(axis=1)
        counts = (candidates.astype(np.float32) @ self.present == sizes[:, None]).sum(axis=1)
        measurable = np.flatnonzero((sizes > 0) & (counts >= PROBE.min_samples))
        if not len(measurable):
            return None
        best = np.lexsort((-measurable, counts[measurable], sizes[measurable]))[-1]
        return candidates[measurable[best]]

    def _embed(self, rows: NDArray, shown: NDArray, has: NDArray, loadings: list[NDArray]) -> "_Probed":
        """Some samples of the probe, embedded by the views `shown`, with energies as of the views `has`."""
        products, energies = self.products[shown][:, rows].sum(axis=0), self.energies[shown][:, rows].sum(axis=0)
        gram = gram_of(loadings, shown)
        latent = embed_views(products, gram, None if shown.all() else self.ridge)
        residuals = squared_residuals(energies, latent, products, gram)
        factor = float(has.sum() / shown.sum())  # scaled views have equal mean energies
        return _Probed(rows, latent, residuals * factor, energies * factor, np.tile(shown, (len(rows), 1)))


class _Probed(NamedTuple):
    """Samples of the probe by their positions in it, embedded as if they were new."""

    rows: NDArray
    latent: NDArray
    residuals: NDArray
    energies: NDArray
    shown: NDArray


def choose_probe(codes: NDArray, left_out: NDArray, order: NDArray) -> NDArray:
    """Indices of the samples that are treated as new: the first without a label, then the first with one.

    The scores of an unlabelled sample do not come from itself, so it is the better probe. Unlabelled samples that are
    `left_out` do not count. `order` is a random order of the samples.

    Examples
    --------
    >>> choose_probe(np.array([0, -1, 1, -1]), np.array([False, False, False, True]), np.arange(4))
    array([0, 1, 2])
    """
    known = codes[order] >= 0
    chosen = np.concatenate([order[~known & ~left_out[order]], order[known]])
    return np.sort(chosen[: PROBE.max_samples])
