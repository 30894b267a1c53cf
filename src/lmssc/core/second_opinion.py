"""A second opinion beside the graph: kernel ridge regressions of the labels on all features of all views, averaged."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from lmssc.core.kernel_ridge import CONSTANT, KernelRidge, fit_temperature
from lmssc.core.mean_kernel import MeanKernel, kernel_values, kernels_by_view, map_batches, presence
from lmssc.core.mixture_shares import mixture_shares
from lmssc.core.targets import Targets
from lmssc.data.views import Views

# Labelled samples whose kernel functions are the features (Nyström); with fewer labels the regressions are exact.
MAX_LANDMARKS = 1000
# The regressions are fitted to at most this many labelled samples: enough for a thousand coefficients.
MAX_FIT_SAMPLES = 20_000
# A Laplacian kernel is tried up to this many absolute differences of numbers, which take a quarter of a second.
MAX_ABSOLUTE_DIFFERENCES = 200_000_000
# The least share of the variance that a view is taken to explain, and labels that are enough to measure it.
MIN_EXPLAINED, MAX_WEIGHED = 0.01, 500
# Regressions with a smaller share of the mixture are left out, to save time.
MIN_SHARE = 0.05
# Largest trust: with more, labels would hardly travel over the graph.
MAX_TRUST = 0.99


@dataclass(frozen=True)
class Opinion:
    """The second opinion on the samples of a fit, as the objective sees it: J has the term γ·η·Σ_u ‖f_u − q_u‖².

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Q; rows sum to 1. That of a labelled sample does not use its own label, if the regressions are fitted to it.
    weight : float
        η, positive.
    """

    scores: NDArray
    weight: float

    def take(self, rows: Callable[[NDArray], NDArray]) -> "Opinion":
        """The same with the samples in another order; `rows` orders an array."""
        return Opinion(rows(self.scores), self.weight)


def anchor_weight(trust: float) -> float:
    """η of a trust t, from 0 to below 1: t is the share of Q in the scores of a sample that has one neighbour.

    Examples
    --------
    >>> anchor_weight(0.0), anchor_weight(0.5), anchor_weight(0.75)
    (0.0, 1.0, 3.0)
    """
    return trust / (1 - trust)


def base_kernels(landmarks: Views, *, laplacian: bool) -> Iterator[MeanKernel]:
    """The kernels of the regressions; all views weigh alike."""
    yield MeanKernel.of(landmarks)
    yield MeanKernel.of(landmarks, linear=True)
    if laplacian:
        yield MeanKernel.of(landmarks, laplacian=1.0)


def explained_variances(kernel: MeanKernel, rows: Views, targets: NDArray, weights: NDArray | None) -> NDArray:
    """Share of the variance of the labels that a regression on each view alone explains, by leave-one-out errors.

    Parameters
    ----------
    kernel : MeanKernel
        Its landmarks are the first of the rows.
    rows : Views
        The labelled samples.
    targets : ndarray of shape (l, c)
        Y of these.
    weights : ndarray of shape (l,), optional
        As for `KernelRidge`.

    Returns
    -------
    ndarray of shape (V,)
        At least `MIN_EXPLAINED`.
    """
    n_some = min(kernel.landmarks[0].data.shape[0], MAX_WEIGHED)
    some = rows.take(slice(n_some))
    targets, weights = targets[:n_some], None if weights is None else weights[:n_some]

    def left_out(one: MeanKernel, values: NDArray) -> float:
        fit = KernelRidge(one, values, targets, weights)
        return float(np.square(fit.errors * fit.roots).sum())

    alone = [kernel.only(v, n_some) for v in range(len(rows))]
    errors = np.array([left_out(one, one(Views([view]))) for one, view in zip(alone, some, strict=True)])
    nothing = left_out(alone[0], np.zeros((n_some, 1)))  # all that is left is a constant
    return np.maximum(1 - errors / max(nothing, np.finfo(float).tiny), MIN_EXPLAINED)


class OpinionRegression:
    """A mixture of ridge regressions of the labels, on kernels of several kinds between the labelled samples.

    The kernels are Gaussian, linear and, if the samples and features are few enough, Laplacian. In each, views weigh by
    the share of the variance of the labels that they explain alone. A regression is exact with up to `MAX_LANDMARKS`
    labels; with more, the kernel functions of some of them are the features. Its temperature has the largest
    leave-one-out likelihood, and the shares of the regressions that of the mixture: see `mixture_shares`.

    Parameters
    ----------
    views : Views
        All scaled views.
    targets : Targets
        Y. Labels that are not certain weigh less.
    order : ndarray of int of shape (n,), optional
        Random order of the samples, if their own is not random: the first labelled ones are the landmarks.
    laplacian : bool, default=False
        Whether a Laplacian kernel is tried.
    n_samples : int, optional
        Number of samples that it will answer for; by default those of the views.

    Attributes
    ----------
    fits : list of KernelRidge
        The regressions that have a share.
    temperatures, shares : ndarray of shape (M,)
        Of each.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [3.0], [3.2], [0.1]])
    >>> regression = OpinionRegression(Views.from_arrays([X]), Targets.from_codes(np.array([0, 0, 1, 1, -1]), 2))
    >>> regression.finish(trust=0.5)(Views.from_arrays([X])).argmax(axis=1)
    array([0, 0, 1, 1, 0])
    """

    def __init__(
        self,
        views: Views,
        targets: Targets,
        order: NDArray | None = None,
        *,
        laplacian: bool = False,
        n_samples: int | None = None,
    ) -> None:
        labelled = np.flatnonzero(targets.labelled) if order is None else order[targets.labelled[order]]
        self.rows = labelled[:MAX_FIT_SAMPLES]
        self.targets = targets.matrix(np.dtype(float))[self.rows]
        rows = views.take(self.rows)
        landmarks = rows.take(np.arange(min(len(self.rows), MAX_LANDMARKS)))
        weights = None if targets.trust is None else targets.weights[self.rows]
        n_differences = (n_samples or views.n_samples) * landmarks.n_samples * views.n_features
        kernels = list(base_kernels(landmarks, laplacian=laplacian and n_differences <= MAX_ABSOLUTE_DIFFERENCES))
        if len(rows) > 1:
            explained = [explained_variances(kernel, rows, self.targets, weights) for kernel in kernels]
            kernels = [replace(one, weights=own / own.mean()) for one, own in zip(kernels, explained, strict=True)]
        values = kernel_values(kernels, rows)
        self.fits = [KernelRidge(*one, self.targets, weights) for one in zip(kernels, values, strict=True)]
        self.temperatures = np.array(
            [fit_temperature(self.targets - fit.errors, self.targets * fit.roots**2) for fit in self.fits]
        )
        found = softmax(self._left_out() / self.temperatures[:, None, None], axis=2)
        shares = mixture_shares(np.einsum("mij,ij->mi", found, self.targets), weights)
        kept = np.flatnonzero(shares >= MIN_SHARE)
        self.fits, self.temperatures = [self.fits[m] for m in kept], self.temperatures[kept]
        self.shares = shares[kept] / shares[kept].sum()

    def _left_out(self) -> NDArray:
        return np.array([self.targets - fit.errors for fit in self.fits])

    @property
    def kernels(self) -> list[MeanKernel]:
        """The kernels of the regressions."""
        return [fit.kernel for fit in self.fits]

    def kernel(self, views: Views) -> NDArray:
        """The kernels between samples and the landmarks, of shape (M, n, m)."""
        return kernel_values(self.kernels, views)

    def _positions(self, samples: NDArray) -> NDArray:
        return np.flatnonzero(np.isin(self.rows, samples))

    def coefficients(self, held_out: NDArray | None = None) -> NDArray:
        """Coefficients of the landmarks, of shape (M, m, c), without the labels of some samples."""
        left_out = None if held_out is None else self._positions(held_out)
        return np.array([fit.coefficients(left_out) for fit in self.fits])

    def distributions(self, kernel: NDArray, coefficients: NDArray) -> NDArray:
        """Q of samples, given their kernels with the landmarks."""
        return self._mix(kernel @ coefficients + CONSTANT * coefficients.sum(axis=1, keepdims=True))

    def held_out_distributions(self, held_out: NDArray) -> NDArray:
        """Q of some of the labelled samples of the regressions, in their order, without the labels of these."""
        positions = self._positions(held_out)
        return self._mix(np.array([self.targets[positions] - fit.errors_without(positions) for fit in self.fits]))

    def left_out_distributions(self) -> NDArray:
        """Q of all labelled samples of the regressions, each without its own label."""
        return self._mix(self._left_out())

    def _mix(self, scores: NDArray) -> NDArray:
        return mixed(scores, self.temperatures, self.shares)

    def finish(self, trust: float) -> "SecondOpinion":
        """What predicts Q, fitted to all labels."""
        return SecondOpinion(self.kernels, self.coefficients(), self.temperatures, self.shares, trust)

    def opinion(self, views: Views, trust: float, kernel: NDArray | None = None) -> Opinion:
        """Q of all samples of fit, and η; `kernel` has the kernels between the samples and the landmarks, if known."""
        if kernel is None:
            scores = self.finish(trust)(views)
        else:
            scores = self.distributions(kernel, self.coefficients()).astype(views.dtype, copy=False)
        scores[self.rows] = self.left_out_distributions()
        return Opinion(scores, anchor_weight(trust))


def mixed(scores: NDArray, temperatures: NDArray, shares: NDArray) -> NDArray:
    """Distributions of a mixture, from the scores of its regressions, of shape (M, n, c).

    Examples
    --------
    >>> mixed(np.array([[[0.0, 0.0]], [[0.0, 9.0]]]), np.array([1.0, 0.1]), np.array([0.5, 0.5]))
    array([[0.25, 0.75]])
    """
    return np.tensordot(shares, softmax(scores / temperatures[:, None, None], axis=2), axes=1)


@dataclass(frozen=True)
class SecondOpinion:
    """Class distributions as a function of the views: a mixture of softmaxes of kernel ridge scores.

    Attributes
    ----------
    kernels : list of MeanKernel
        Kernels of the M regressions between samples and landmarks, views in canonical order.
    coefficients : ndarray of shape (M, m, c)
        Of the landmarks.
    temperatures : ndarray of shape (M,)
        T of each softmax.
    shares : ndarray of shape (M,)
        Share of each regression; they sum to 1.
    trust : float
        t: how much it counts beside the neighbours of a sample.
    """

    kernels: list[MeanKernel]
    coefficients: NDArray
    temperatures: NDArray
    shares: NDArray
    trust: float

    @staticmethod
    def upgraded(fields: dict[str, Any]) -> dict[str, Any]:
        """The fields, given those of earlier versions, which had a single regression.

        Examples
        --------
        >>> earlier = {"kernel": None, "coefficients": np.ones((5, 2)), "temperature": 0.1, "trust": 0.5}
        >>> SecondOpinion.upgraded(earlier)["coefficients"].shape
        (1, 5, 2)
        """
        if "kernel" not in fields:
            return fields
        return {
            "kernels": [fields["kernel"]],
            "coefficients": fields["coefficients"][None],
            "temperatures": np.array([fields["temperature"]]),
            "shares": np.ones(1),
            "trust": fields["trust"],
        }

    def __call__(self, views: Views) -> NDArray:
        """Q of samples, of shape (n, c)."""

        def of_batch(batch: Views) -> NDArray:
            return self.decide(self.by_view(batch), presence(batch)).astype(views.dtype, copy=False)

        return map_batches(of_batch, views, self.coefficients.shape[1])

    def by_view(self, views: Views) -> NDArray:
        """What each view contributes to the scores of each regression, of shape (M, V, n, c)."""
        parts = [
            [near @ own for near, own in zip(values, self.coefficients, strict=True)]
            for values in kernels_by_view(self.kernels, views)
        ]
        return np.swapaxes(np.array(parts), 0, 1)

    def decide(self, contributions: NDArray, has: NDArray) -> NDArray:
        """Q from the contributions of the views, of which each sample has those in its row of `has`, (n, V)."""
        scores = np.array(
            [
                np.einsum("vij,iv->ij", own, has.astype(float)) / np.sqrt(kernel.totals(has))[:, None]
                for own, kernel in zip(contributions, self.kernels, strict=True)
            ]
        )
        scores += CONSTANT * self.coefficients.sum(axis=1, keepdims=True)
        return mixed(scores, self.temperatures, self.shares)

    def log_correction(self, views: Views, contributions: NDArray, opinions: NDArray) -> NDArray:
        """What has to be added to the logarithms of `decide` for the Q that is known, of shape (n, c).

        That of a labelled sample of fit does not know its label, as that of a new sample never does; its contributions
        do.
        """
        tiny = np.finfo(np.float32).tiny
        logs = [np.log(np.maximum(part, tiny)) for part in (opinions, self.decide(contributions, presence(views)))]
        return logs[0] - logs[1]

    def blend(self, scores: NDArray, opinions: NDArray) -> NDArray:
        """Scores of samples from the averages over their neighbours, and Q: the update of F for a single node."""
        share = scores.dtype.type(self.trust)
        return (1 - share) * scores + share * opinions.astype(scores.dtype, copy=False)
