"""New samples with links: their smoothed views, from their own features and those of the samples that they link to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.links import (
    LinkWeights,
    count_without_links,
    join_new_walks,
    join_walks,
    kinds_of,
    scale_view,
    smooth_twice,
)
from lmssc.core.new_samples import NewSampleProbe, Trust
from lmssc.core.predict import NeighborAverage, NewKind, ViewEncoder
from lmssc.core.second_opinion import SecondOpinion
from lmssc.data.scaling import scale_views
from lmssc.data.view import RawView, View
from lmssc.data.views import Views


@dataclass(frozen=True)
class LinkMemory:
    """What the smoothed views of new samples need of the samples of fit, in canonical order.

    Attributes
    ----------
    weights : LinkWeights
        How the graphs are combined.
    loadings : list of ndarray of shape (d_v, r)
        W of the smoothed views; empty if the views were not smoothed.
    views, once : list of View
        Scaled views of the samples of fit, and the same smoothed once.
    factors : ndarray of shape (V,)
        What views that are smoothed twice are multiplied by, for the energy that they had before.
    probe : NewSampleProbe or None
        Samples of fit whose links are hidden, which judge predictions for new samples without links.
    trust : Trust or None
        Confidence of predictions for new samples that have all views and no links.
    """

    weights: LinkWeights
    loadings: list[NDArray]
    views: list[View]
    once: list[View]
    factors: NDArray
    probe: NewSampleProbe | None = None
    trust: Trust | None = None

    @classmethod
    def of(
        cls, views: Views, graphs: Sequence[sparse.csr_array], weights: LinkWeights
    ) -> tuple["LinkMemory", list[View]]:
        """The memory of a fit, but for the loadings; and the smoothed views."""
        step = join_walks(graphs, weights)
        once, twice, factors = zip(*(smooth_twice(view, step) for view in views), strict=True)
        return cls(weights, [], list(views), list(once), np.array(factors)), list(twice)

    def smooth_new(self, views: Views, links: Sequence[sparse.csr_array] | None) -> list[View]:
        """The smoothed views of new samples.

        Parameters
        ----------
        views : Views
            Scaled views of m new samples.
        links : sequence of csr_array of shape (m, n), optional
            Their links to the samples of fit. A sample without links is its own mean.

        Returns
        -------
        list of View
        """
        n_new = views.n_samples
        if links:
            others, own = join_new_walks(links, self.weights)
        else:
            others, own = sparse.csr_array((n_new, self.views[0].data.shape[0])), np.ones(n_new)
        parts = zip(views, self.views, self.once, self.factors, strict=True)
        return [_smooth_twice(new, fitted, once, others, own, factor) for new, fitted, once, factor in parts]

    def judge_unlinked(
        self,
        views: Views,
        samples: NDArray,
        loadings: list[NDArray],
        ridge: NDArray,
        average: NeighborAverage,
        distributions: NDArray,
        second_opinion: SecondOpinion | None = None,
        held_out: tuple[NDArray, NDArray] | None = None,
    ) -> "LinkMemory":
        """The memory with the confidence for new samples without links, measured on samples whose links are hidden.

        Parameters
        ----------
        views : Views
            Scaled views of the samples of fit, without the smoothed ones.
        samples : ndarray of int of shape (m,)
            Samples that are treated as new.
        loadings : list of ndarray of shape (d_v, r)
            W of the views and of the smoothed views.
        ridge, average, distributions, second_opinion, held_out
            As for `NewSampleProbe` and `NeighborAverage.trust`.

        Returns
        -------
        LinkMemory
        """
        some = views.take(samples)
        alone = Views([*some, *self.smooth_new(some, None)])
        probe = replace(NewSampleProbe.of(alone, loadings, np.arange(len(samples)), ridge), samples=samples)
        if second_opinion is not None:
            probe = replace(probe, opinions=second_opinion.by_view(alone))
        probe = probe.judged_by(held_out)
        everything = np.ones(len(alone), dtype=bool)
        return replace(
            self, probe=probe, trust=average.trust(probe, everything, loadings, distributions, second_opinion)
        )


def _smooth_twice(new: View, fitted: View, once: View, others: sparse.csr_array, own: NDArray, factor: float) -> View:
    """One view of new samples, smoothed twice over the sample itself and the samples of fit."""
    first = _mean(new, fitted, others, own)
    second = _mean(first, once, others, own)
    return scale_view(second, factor)


def _mean(new: View, fitted: View, others: sparse.csr_array, own: NDArray) -> View:
    """Weighted mean of a view of new samples and of samples of fit, over those that have it."""
    dtype = np.result_type(new.data.dtype, fitted.data.dtype)
    has_new = np.ones(len(own)) if new.present is None else new.present.astype(np.float64)
    has_fitted = np.ones(others.shape[1]) if fitted.present is None else fitted.present.astype(np.float64)
    mass = own * has_new + others @ has_fitted
    scale = np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0)
    mine = sparse.diags_array((scale * own * has_new).astype(dtype)) @ new.data
    theirs = (sparse.diags_array(scale) @ others).astype(dtype) @ fitted.data
    if sparse.issparse(mine) != sparse.issparse(theirs):
        mine, theirs = (part.toarray() if sparse.issparse(part) else part for part in (mine, theirs))
    data = mine + theirs
    present = mass > 0
    return View(
        sparse.csr_array(data) if sparse.issparse(data) else data, fitted.offset, None if present.all() else present
    )


@dataclass(frozen=True)
class LinkedEncoder(ViewEncoder):
    """Embeds new samples by their views and the smoothed views; `loadings` has those of both.

    Attributes
    ----------
    memory : LinkMemory
        What the smoothed views need of the samples of fit.
    links : list of csr_array of shape (m, n), or None
        Links of the new samples to those of fit.
    """

    memory: LinkMemory = field(kw_only=True)
    links: list[sparse.csr_array] | None = None

    def scaled(self, raws: list[RawView], rows: slice) -> Views:
        """The scaled views of some rows, and the smoothed ones beside them."""
        views = scale_views([raw.take(rows) for raw in raws], self.scalings)
        if not self.memory.loadings:
            return views
        links = None if self.links is None else [one[rows] for one in self.links]
        return Views([*views, *self.memory.smooth_new(views, links)])

    def presence(self, raws: list[RawView]) -> list[NDArray | None]:
        """Which samples have the view of each of the loadings; None if all have it."""
        own = super().presence(raws)
        if not self.memory.loadings:
            return own
        return [
            *own,
            *(self._has_smoothed(present, fitted) for present, fitted in zip(own, self.memory.once, strict=True)),
        ]

    def kinds(self, raws: list[RawView], probe: NewSampleProbe, trust: Trust | None) -> Iterator[NewKind]:
        """Kinds of new samples: those without any link are judged by samples of fit whose links are hidden."""
        unlinked = self._count_without(raws[0].data.shape[0]) == self._n_used
        for kind in super().kinds(raws, probe, trust):
            if self.memory.probe is None or not unlinked[kind.rows].any():
                yield kind
                continue
            alone, linked = kind.rows[unlinked[kind.rows]], kind.rows[~unlinked[kind.rows]]
            yield NewKind(alone, kind.has, self.memory.probe, self.memory.trust if kind.has.all() else None)
            if len(linked):
                yield kind._replace(rows=linked)

    def sample_kinds(self, raws: list[RawView]) -> NDArray:
        """What each new sample lacks, as one number: see `kinds_of`."""
        n_without = self._count_without(raws[0].data.shape[0])
        return kinds_of(super().sample_kinds(raws), n_without, len(self.loadings))

    def _count_without(self, n_new: int) -> NDArray:
        """Number of used graphs in which each new sample has no link."""
        if not self.links:
            return np.full(n_new, self._n_used)
        return count_without_links([np.diff(one.indptr) for one in self.links], self.memory.weights)

    @property
    def _n_used(self) -> int:
        return int(np.count_nonzero(self.memory.weights.shares > 0))

    def _has_smoothed(self, present: NDArray | None, once: View) -> NDArray | None:
        """Which new samples have a smoothed view: those that have the view, or a link to one that has."""
        if present is None or not self.links:
            return present
        there = np.ones(self.links[0].shape[1]) if once.present is None else once.present.astype(np.float64)
        result = present | (join_new_walks(self.links, self.memory.weights)[0] @ there > 0)
        return None if result.all() else result
