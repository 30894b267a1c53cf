"""Predictions for new samples: embed them by the loadings, average their neighbours, adjust the confidence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.embed_views import embed_views, gram_of, squared_residuals
from lmssc.core.embedding import Embedding
from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import connect_new, mean_squared_distances, separate_groups, without_own
from lmssc.core.label_regression import LabelRegressor
from lmssc.core.new_samples import NeighborScores, NewSampleProbe, Trust
from lmssc.core.second_opinion import SecondOpinion
from lmssc.core.sparse_scores import largest_entries, replace_rows
from lmssc.data.memmap import release, slices, stored_bytes
from lmssc.data.presence import presence_patterns
from lmssc.data.scaling import ViewScaling, scale_views
from lmssc.data.view import RawView
from lmssc.data.views import Views


@dataclass(frozen=True)
class NeighborAverage:
    """Averages over the nearest samples of fit, all in canonical order.

    Attributes
    ----------
    points : ndarray of shape (n, q)
        Coordinates of the samples of fit: Z, and the expected scores P beside it if there is a regressor.
    embedding : Embedding
        Maps latent positions to Z.
    regressor : LabelRegressor or None
        Predicts P from Z.
    n_neighbors : int
        k.
    alpha : float or None
        α that all rows share; None if each row has its own.
    recall : float
        Recall of the neighbour search.
    groups : ndarray of int of shape (n,), or None
        Group of connected views of each sample of fit, if there is more than one group.
    """

    points: NDArray
    embedding: Embedding
    regressor: LabelRegressor | None
    n_neighbors: int
    alpha: float | None
    recall: float
    groups: NDArray | None

    @classmethod
    def of(
        cls,
        points: NDArray,
        embedding: Embedding,
        regressor: LabelRegressor | None,
        config: FitConfig,
        alpha: NDArray,
        groups: NDArray | None = None,
    ) -> "NeighborAverage":
        """The averages that a fit with these parameters leaves; `alpha` is that of each row of its graph."""
        shared = float(alpha[0]) if config.shared_alpha else None
        return cls(points, embedding, regressor, config.n_neighbors, shared, config.neighbor_recall, groups)

    def __call__(
        self, latent: NDArray, values: NDArray, groups: NDArray | None = None, own: NDArray | None = None
    ) -> tuple[NDArray, NDArray]:
        """Average `values` of the samples of fit over the neighbours of new samples.

        Parameters
        ----------
        latent : ndarray of shape (m, r)
            Latent positions of the new samples.
        values : ndarray of shape (n, d)
            Values of the samples of fit.
        groups : ndarray of int of shape (m,), optional
            Groups of connected views of the new samples; needed if the samples of fit have groups.
        own : ndarray of int of shape (m,), optional
            Indices in fit of the "new" samples, if they are from there; they are not their own neighbours.

        Returns
        -------
        averages : ndarray of shape (m, d)
        distances : ndarray of shape (m,)
            Mean squared distance of each sample to its neighbours.
        """
        weights, distances = self.connect(latent, groups, own)
        return weights @ values, distances

    def connect(
        self, latent: NDArray, groups: NDArray | None = None, own: NDArray | None = None
    ) -> tuple[sparse.csr_array, NDArray]:
        """Weights of the samples of fit in the average of each new sample, and mean squared distances to them."""
        points, queries = self.points, self.queries(latent)
        if groups is not None and self.groups is not None:
            points, queries = separate_groups((points, self.groups), (queries, groups))
        n_neighbors = self.n_neighbors if own is None else min(self.n_neighbors + 1, len(points) - 1)
        weights = connect_new(points, queries, n_neighbors, alpha=self.alpha, recall=self.recall)
        if own is not None:
            weights = without_own(weights, own)
        return weights, mean_squared_distances(weights, points, queries)

    def queries(self, latent: NDArray) -> NDArray:
        """Coordinates of new samples, given their latent positions."""
        queries = self.embedding.embed_new(latent)
        return queries if self.regressor is None else np.hstack([queries, self.regressor(queries)])

    def trust(
        self,
        probe: NewSampleProbe,
        has: NDArray,
        loadings: list[NDArray],
        distributions: NDArray,
        second_opinion: SecondOpinion | None = None,
    ) -> Trust:
        """Confidence of predictions for new samples that have the views `has`, judged by the probe."""

        def predict(latent: NDArray, own: NDArray) -> tuple[NDArray, NDArray]:
            return self(latent, distributions, None if self.groups is None else self.groups[own], own)

        return probe.trust(has, loadings, distributions, predict, second_opinion)


@dataclass(frozen=True)
class FittedSamples:
    """What the samples of fit say about their neighbours, all in canonical order.

    Attributes
    ----------
    distributions : ndarray of shape (n, c)
        Class distributions.
    unreached : ndarray of bool of shape (n,)
        Samples without a label in their component.
    label_counts : ndarray of int of shape (n,)
        Number of labels of each distinct sample.
    """

    distributions: NDArray
    unreached: NDArray
    label_counts: NDArray

    @property
    def frequencies(self) -> NDArray:
        """Class frequencies of the labelled samples."""
        if sparse.issparse(self.distributions):
            return np.asarray(self.distributions.T @ self.label_counts).ravel() / self.label_counts.sum()
        return (self.distributions * self.label_counts[:, None]).sum(axis=0) / self.label_counts.sum()


class NewScores(NamedTuple):
    """Class scores of new samples, and how far each is from the samples of fit: up to 1 is usual."""

    scores: NDArray
    remoteness: NDArray


class NewKind(NamedTuple):
    """New samples that lack the same: their rows, the views that they have, and what judges predictions for them.

    Their trust is None if it is to be measured on the probe.
    """

    rows: NDArray
    has: NDArray
    probe: NewSampleProbe
    trust: Trust | None


@dataclass(frozen=True)
class ViewEncoder:
    """Embeds the views of new samples: scalings and loadings of each view, in canonical order.

    Attributes
    ----------
    scalings : sequence of ViewScaling
        Learned in fit.
    loadings : list of ndarray of shape (d_v, r)
        W^v.
    ridge : ndarray of shape (r, r), or None
        Ridge for samples that lack views; None is least squares.
    second_opinion : SecondOpinion or None
        Predicts class scores from the scaled views.
    """

    scalings: Sequence[ViewScaling]
    loadings: list[NDArray]
    ridge: NDArray | None
    second_opinion: SecondOpinion | None = None

    def __call__(self, raws: list[RawView]) -> tuple[NDArray, NDArray, NDArray | None]:
        """Latent positions of samples over the views that each has, squared residuals, and Q; in batches.

        Parameters
        ----------
        raws : list of RawView
            Views, not scaled.

        Returns
        -------
        latent : ndarray of shape (n, r)
        residuals : ndarray of shape (n,)
            ‖x − h·Wᵀ‖².
        opinions : ndarray of shape (n, c), or None
            Q; None without a second opinion.
        """
        n_samples = raws[0].data.shape[0]
        dtype = np.result_type(self.loadings[0].dtype, *(raw.data.dtype for raw in raws))
        latent = np.empty((n_samples, self.loadings[0].shape[1]), dtype=dtype)
        residuals, opinions = np.empty(n_samples), []
        for rows in slices(n_samples, sum(stored_bytes(raw.data) for raw in raws) / n_samples):
            views = self.scaled(raws, rows)
            latent[rows], residuals[rows] = self._encode_batch(views)
            if self.second_opinion is not None:
                opinions.append(self.second_opinion(views))
            for raw in raws:
                release(raw.data)
        return latent, residuals, None if self.second_opinion is None else np.concatenate(opinions)

    def scaled(self, raws: list[RawView], rows: slice) -> Views:
        """The scaled views of some rows."""
        return scale_views([raw.take(rows) for raw in raws], self.scalings)

    def presence(self, raws: list[RawView]) -> list[NDArray | None]:
        """Which samples have the view of each of the loadings; None if all have it."""
        return [raw.present for raw in raws]

    def kinds(self, raws: list[RawView], probe: NewSampleProbe, trust: Trust | None) -> Iterator["NewKind"]:
        """New samples that have the same views, and what judges predictions for them; `trust` is for all views."""
        for rows, has in presence_patterns(self.presence(raws), raws[0].data.shape[0]):
            yield NewKind(rows, has, probe, trust if has.all() else None)

    def sample_kinds(self, raws: list[RawView]) -> NDArray:
        """What each new sample lacks, as one number: see `kinds_of`."""
        counts = np.zeros(raws[0].data.shape[0], dtype=np.intp)
        for present in self.presence(raws):
            if present is not None:
                counts += ~present
        return counts

    def _encode_batch(self, views: Views) -> tuple[NDArray, NDArray]:
        products = views.dot(self.loadings)
        energies = np.sum([view.row_energies() for view in views], axis=0)
        latent, residuals = np.empty_like(products), np.empty_like(energies)
        for rows, has in views.patterns():
            gram = gram_of(self.loadings, has)
            latent[rows] = embed_views(products[rows], gram, None if has.all() else self.ridge)
            residuals[rows] = squared_residuals(energies[rows], latent[rows], products[rows], gram)
        return latent, residuals


def predict_new(
    raws: list[RawView],
    encoder: ViewEncoder,
    average: NeighborAverage,
    fitted: FittedSamples,
    groups: NDArray | None = None,
    probe: NewSampleProbe | None = None,
    trust: Trust | None = None,
    reach: NDArray | None = None,
) -> NewScores:
    """Class scores of new samples, views and classes in canonical order.

    Parameters
    ----------
    raws : list of RawView
        Views of the new samples, not scaled.
    encoder : ViewEncoder
        Embeds them.
    average : NeighborAverage
        Finds their neighbours.
    fitted : FittedSamples
        Distributions of the samples of fit.
    groups : ndarray of int of shape (m,), optional
        Groups of connected views of the new samples.
    probe : NewSampleProbe, optional
        Judges predictions for samples that lack views. Without it the scores are not adjusted.
    trust : Trust, optional
        Confidence for samples that have all views; measured on the probe if it is not given.
    reach : ndarray of shape (m,), optional
        As in `NeighborScores`.

    Returns
    -------
    scores : ndarray of shape (m, c)
    remoteness : ndarray of shape (m,)
        How far each sample is from those of fit, up to 1 is usual; zeros without a probe.
    """
    reach = np.zeros(raws[0].data.shape[0]) if reach is None else reach
    latent, residuals, opinions = encoder(raws)
    trusts = _trusts(raws, encoder, average, fitted, probe, trust)
    if sparse.issparse(fitted.distributions):
        return _predict_sparsely(latent, residuals, reach, average, fitted, groups, trusts)
    unreached = fitted.unreached[:, None].astype(fitted.distributions.dtype)
    found, distances = average(latent, np.hstack([fitted.distributions, unreached]), groups)
    scores, unknown = found[:, :-1], found[:, -1:]
    if encoder.second_opinion is not None and opinions is not None:
        scores = np.where(unknown > 0.5, scores, encoder.second_opinion.blend(scores, opinions))
    remoteness = np.zeros(len(scores))
    if probe is None:
        return NewScores(scores, remoteness)
    frequencies = fitted.frequencies
    for rows, own in trusts:
        own_scores = NeighborScores(scores[rows], distances[rows], residuals[rows], reach[rows])
        adjusted, remoteness[rows] = own(own_scores, frequencies), own.remoteness(own_scores)
        # Neighbours without a label in their component have no say: there the scores stay as they are.
        scores[rows] = np.where(unknown[rows] > 0.5, scores[rows], adjusted)
    if average.embedding.stretch is not None:  # a text without a known word has no direction
        scores[~latent.any(axis=1)] = frequencies
    return NewScores(scores, remoteness)


def _trusts(
    raws: list[RawView],
    encoder: ViewEncoder,
    average: NeighborAverage,
    fitted: FittedSamples,
    probe: NewSampleProbe | None,
    trust: Trust | None,
) -> Iterator[tuple[NDArray, Trust]]:
    """Rows of new samples that lack the same, and the confidence of their predictions; nothing without a probe."""
    for rows, has, own_probe, own in encoder.kinds(raws, probe, trust) if probe is not None else ():
        if own is None:
            own = average.trust(own_probe, has, encoder.loadings, fitted.distributions, encoder.second_opinion)
        yield rows, own


def _predict_sparsely(
    latent: NDArray,
    residuals: NDArray,
    reach: NDArray,
    average: NeighborAverage,
    fitted: FittedSamples,
    groups: NDArray | None,
    trusts: Iterator[tuple[NDArray, Trust]],
) -> NewScores:
    """`predict_new` of very many classes: the largest scores of each sample."""
    weights, distances = average.connect(latent, groups)
    scores = largest_entries((weights @ fitted.distributions).tocsr())
    frequencies = fitted.frequencies
    known = weights @ fitted.unreached.astype(float) <= 0.5
    remoteness = np.zeros(scores.shape[0])
    for rows, own in trusts:
        rows = rows[known[rows]]
        own_scores = NeighborScores(scores[rows], distances[rows], residuals[rows], reach[rows])
        remoteness[rows] = own.remoteness(own_scores)
        scores = replace_rows(scores, rows, own(own_scores, frequencies))
    if average.embedding.stretch is not None:  # a text without a known word has no direction
        lost = np.flatnonzero(~latent.any(axis=1))
        usual = largest_entries(sparse.csr_array(frequencies[None]))
        scores = replace_rows(scores, lost, usual[np.zeros(len(lost), dtype=np.intp)])
    return NewScores(scores, remoteness)
