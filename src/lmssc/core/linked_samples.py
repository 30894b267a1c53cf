"""New samples with links: their smoothed views, from their own features and those of the samples that they link to."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.links import LinkWeights, join_new_walks, join_walks, scale_view, smooth_twice
from lmssc.core.predict import ViewEncoder
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
    """

    weights: LinkWeights
    loadings: list[NDArray]
    views: list[View]
    once: list[View]
    factors: NDArray

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

    def _has_smoothed(self, present: NDArray | None, once: View) -> NDArray | None:
        """Which new samples have a smoothed view: those that have the view, or a link to one that has."""
        if present is None or not self.links:
            return present
        there = np.ones(self.links[0].shape[1]) if once.present is None else once.present.astype(np.float64)
        result = present | (join_new_walks(self.links, self.memory.weights)[0] @ there > 0)
        return None if result.all() else result
