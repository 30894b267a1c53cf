"""How far to trust the answers to new samples, by samples of fit that are taken for new ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.core.calibration import Calibration, fit_calibration
from lmssc.data.views import Views, presence_patterns

# Samples of fit that are taken for new ones, at most, and at least: of fewer nothing can be told.
MOST, FEWEST = 300, 20
# What is far or odd: more than all but this share of them.
USUAL_SHARE = 0.99
# Confidence begins to fall at so many times that; what is then this much further has lost 40 % of it.
FREE, FALL = 2.0, 0.5
# What the latent positions leave of a sample is not odd below half of the norm of a sample: there may be nothing left
# of those of fit.
LEFTOVER_SHARE = 0.25
# Share of a feature that is noise, at least.
LEAST_NOISE = 1e-3


class Answers(NamedTuple):
    """Class scores of new samples, how far their neighbours are, and what their positions do not explain; squared."""

    scores: NDArray
    distances: NDArray
    leftovers: NDArray


@dataclass(frozen=True)
class Trust:
    """What answers to new samples are worth that have certain views.

    Attributes
    ----------
    calibration : Calibration
        For samples like those of fit.
    distance : float
        Mean distance to the neighbours that is not unusual.
    leftover : float
        Norm of what is left of a sample beside its latent position that is not unusual.

    Examples
    --------
    >>> trust = Trust(Calibration(), distance=1.0, leftover=1.0)
    >>> answers = Answers(np.array([[0.9, 0.1]] * 3), np.array([1.0, 9.0, 1e6]), np.zeros(3))
    >>> trust(answers, frequencies=np.array([0.5, 0.5])).round(2)
    array([[0.9 , 0.1 ],
           [0.55, 0.45],
           [0.5 , 0.5 ]])
    """

    calibration: Calibration
    distance: float
    leftover: float

    def __call__(self, answers: Answers, frequencies: NDArray) -> NDArray:
        """Probabilities, which fall to the frequencies of the classes where a sample is far from all of fit."""
        kept = _fall(answers.distances, self.distance) * _fall(answers.leftovers, self.leftover)
        kept = kept[:, None].astype(answers.scores.dtype)
        return kept * self.calibration(answers.scores) + (1 - kept) * frequencies.astype(answers.scores.dtype)


def _fall(squares: NDArray, usual: float) -> NDArray:
    """From 1 to 0, as a length grows beyond what is usual."""
    ratios = np.sqrt(np.maximum(squares, 0)) / max(usual, float(np.finfo(float).tiny))
    with np.errstate(over="ignore"):
        return np.exp(-0.5 * (np.maximum(ratios - FREE, 0) / FALL) ** 2)


@dataclass(frozen=True)
class NewSampleProbe:
    """Samples of fit that can be placed again as if they were new, with some of their views hidden.

    Attributes
    ----------
    samples : ndarray of int of shape (m,)
        Their numbers by content.
    products : ndarray of shape (V, m, r)
        X^v·W^v, zero for a view that a sample lacks.
    energies : ndarray of shape (V, m)
        Squared norms of the rows of X^v.
    present : ndarray of bool of shape (V, m)
        Which view each has.
    ridge : ndarray of shape (r, r)
        σ²·C⁻¹, with σ² the noise of a feature and C the second moments of H: see `place`.
    """

    samples: NDArray
    products: NDArray
    energies: NDArray
    present: NDArray
    ridge: NDArray

    @classmethod
    def of(cls, views: Views, latent: NDArray, loadings: list[NDArray], samples: NDArray) -> "NewSampleProbe":
        """Some samples of the scaled views."""
        some = views.take(samples)
        products = np.array([view.dot(loading) for view, loading in zip(some, loadings, strict=True)])
        energies = np.array([view.row_energies() for view in some])
        patterns = presence_patterns([view.present for view in some], len(samples))
        left, n_numbers = 0.0, 0
        present = np.empty(energies.shape, dtype=bool)
        for rows, has in patterns:
            present[:, rows] = has[:, None]
            gram = gram_of(loadings, has)
            whole = products[:, rows].sum(axis=0)
            left += leftovers(energies[:, rows].sum(axis=0), place(whole, gram), whole, gram).sum()
            n_numbers += len(rows) * sum(len(loading) for loading, there in zip(loadings, has, strict=True) if there)
        noise = max(left, LEAST_NOISE * energies.sum()) / max(n_numbers, 1)
        moments = latent.T @ latent / latent.dtype.type(len(latent))
        return cls(samples, products, energies, present, noise * linalg.pinvh(moments))

    def trust(
        self,
        has: NDArray,
        loadings: list[NDArray],
        distributions: NDArray,
        answer: Callable[[NDArray, NDArray], tuple[NDArray, NDArray]],
    ) -> Trust | None:
        """What answers are worth to samples that have the views `has`; None if too few samples of fit have them.

        Parameters
        ----------
        has : ndarray of bool of shape (V,)
            Views of the new samples.
        loadings : list of ndarray of shape (d_v, r)
            W^v.
        distributions : ndarray of shape (n, c)
            Distributions of the samples of fit, by content.
        answer : callable
            (latent positions, numbers of the samples of fit that are at them) ↦ scores without the samples themselves,
            and squared distances to the neighbours.

        Returns
        -------
        Trust or None
        """
        known = self.present[has].all(axis=0)
        if known.sum() < FEWEST:
            return None
        products, energies = self.products[has][:, known].sum(axis=0), self.energies[has][:, known].sum(axis=0)
        gram = gram_of(loadings, has)
        positions = place(products, gram, None if has.all() else self.ridge)
        scores, distances = answer(positions, self.samples[known])
        answered = scores.sum(axis=1) > 0
        targets = distributions[self.samples[known]]
        calibration = fit_calibration(scores[answered], targets[answered], usual=1.0, cautious=False)
        left = leftovers(energies, positions, products, gram)
        unusual = max(np.quantile(left, USUAL_SHARE), LEFTOVER_SHARE * np.quantile(energies, USUAL_SHARE))
        return Trust(
            calibration, float(np.sqrt(np.quantile(distances[answered], USUAL_SHARE))), float(np.sqrt(unusual))
        )


def choose_probe(codes: NDArray, unreached: NDArray) -> NDArray:
    """Numbers of the samples that are taken for new ones: the first without a label, then the first with one.

    A sample without a label has an answer that does not come from itself.

    Examples
    --------
    >>> choose_probe(np.array([0, -1, 1, -1]), np.array([False, False, False, True]))
    array([0, 1, 2])
    """
    order = np.concatenate([np.flatnonzero((codes < 0) & ~unreached), np.flatnonzero(codes >= 0)])
    return np.sort(order[:MOST])


def gram_of(loadings: list[NDArray], has: NDArray) -> NDArray:
    """Σ W^vᵀ·W^v over some views.

    Examples
    --------
    >>> gram_of([np.array([[2.0]]), np.array([[5.0]])], has=np.array([True, False]))
    array([[4.]])
    """
    return np.sum([loading.T @ loading for loading, there in zip(loadings, has, strict=True) if there], axis=0)


def place(products: NDArray, gram: NDArray, ridge: NDArray | None = None) -> NDArray:
    """Latent positions from Σ X^v·W^v over the views that samples have, and Σ W^vᵀ·W^v over these.

    By least squares; or, with few views, which leave directions open in which least squares would only blow up noise,
    by what is expected of a sample like those of fit: least squares with the ridge σ²·C⁻¹.

    Examples
    --------
    >>> place(np.array([[8.0]]), np.array([[4.0]]))
    array([[2.]])
    >>> place(np.array([[8.0]]), np.array([[4.0]]), ridge=np.array([[4.0]]))
    array([[1.]])
    """
    return products @ linalg.pinvh(gram if ridge is None else gram + ridge.astype(gram.dtype))


def leftovers(energies: NDArray, positions: NDArray, products: NDArray, gram: NDArray) -> NDArray:
    """Squared norm of what the position of each sample does not explain.

    Examples
    --------
    >>> leftovers(np.array([25.0]), np.array([[2.0]]), products=np.array([[8.0]]), gram=np.array([[4.0]]))
    array([9.])
    """
    return np.maximum(energies - np.einsum("ij,ij->i", positions, 2 * products - positions @ gram), 0)


def mean_squared_distances(weights: sparse.csr_array, points: NDArray, queries: NDArray) -> NDArray:
    """Mean squared distance of each query to the points, by the weights in its row, which sum to 1.

    Examples
    --------
    >>> weights = sparse.csr_array([[0.5, 0.5]])
    >>> mean_squared_distances(weights, np.array([[0.0], [2.0]]), np.array([[4.0]]))
    array([10.])
    """
    means = weights @ points
    spread = weights @ np.einsum("ij,ij->i", points, points) - np.einsum("ij,ij->i", means, means)
    away = queries - means
    return np.einsum("ij,ij->i", away, away) + np.maximum(spread, 0)


def without_own(weights: sparse.csr_array, own: NDArray) -> sparse.csr_array:
    """Rows without their entry in the column `own`, made to sum to 1 again; zero if there is no other entry.

    Examples
    --------
    >>> without_own(sparse.csr_array([[0.5, 0.25, 0.25]]), np.array([0])).toarray()
    array([[0. , 0.5, 0.5]])
    """
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    values = np.where(weights.indices == own[rows], 0, weights.data)
    rest = sparse.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)
    sums = rest.sum(axis=1)
    rest.data /= np.where(sums > 0, sums, 1)[rows].astype(rest.dtype)
    return rest
