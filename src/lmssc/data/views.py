"""All views as the solver sees them: all work on the data goes through the two products XᵀH and XW."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from lmssc.data.memmap import MappedRows, stored_bytes
from lmssc.data.presence import presence_patterns
from lmssc.data.shared_files import have_same_rows, sum_rows
from lmssc.data.storage import smaller
from lmssc.data.view import MappedView, RawView, View
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.parallel import count_threads, threaded_map

# Bytes of the views times columns of the other factor from which on parallel products pay.
MIN_PARALLEL_WORK = 1 << 27


def _gram_dot(scales: Sequence[Callable[[RawView], View]], loadings: Sequence[NDArray], *blocks: Matrix) -> NDArray:
    """XᵀX·W of some rows of all views, stacked."""
    views = [scale(RawView("", block, None)) for scale, block in zip(scales, blocks, strict=True)]
    latent = reduce(np.add, [view.dot(loading) for view, loading in zip(views, loadings, strict=True)])
    return np.vstack([view.transpose_dot(latent) for view in views])


def _transpose_dot(latent: NDArray, view: View) -> NDArray:
    return view.transpose_dot(latent)


class Views(Sequence[View]):
    """All scaled views of the same samples.

    Examples
    --------
    >>> views = Views.from_arrays([np.ones((3, 2)), np.zeros((3, 1))])
    >>> views.n_samples, views.n_features, views.complete
    (3, 3, True)
    """

    def __init__(self, views: Sequence[View], order: NDArray | None = None) -> None:
        self._views = list(views)
        self._order = order
        self._positions = None if order is None else np.argsort(order)

    @classmethod
    def from_arrays(cls, arrays: Sequence[Matrix]) -> "Views":
        """Views that are used as they are."""
        return cls([View(array) for array in arrays])

    def renumbered(self, order: NDArray) -> "Views":
        """The same views with the samples in another order, for `dot`, `transpose_dot`, `take`; all must be complete.

        Examples
        --------
        >>> views = Views.from_arrays([np.array([[1.0], [2.0]])]).renumbered(np.array([1, 0]))
        >>> views.dot([np.array([[1.0]])]).ravel()
        array([2., 1.])
        """
        return Views(self._views, order if self._order is None else self._order[order])

    def astype(self, dtype: np.dtype) -> "Views":
        """The same views in another precision; none may be on disk.

        Examples
        --------
        >>> Views.from_arrays([np.ones((2, 1))]).astype(np.dtype(np.float32)).dtype
        dtype('float32')
        """
        return Views([view.astype(dtype) for view in self], self._order)

    def every(self, step: int) -> "Views":
        """Every `step`-th sample.

        Examples
        --------
        >>> Views.from_arrays([np.arange(5.0)[:, None]]).every(2)[0].data.ravel()
        array([0., 2., 4.])
        """
        if step == 1:
            return self
        rows = np.arange(0, self.n_samples, step)
        return Views(
            [
                replace(
                    view,
                    data=view.data.take(rows) if isinstance(view.data, MappedRows) else view.data[::step],
                    present=None if view.present is None else view.present[rows],
                )
                for view in self
            ]
        )

    def take(self, rows: NDArray | slice) -> "Views":
        """Some samples by their numbers in the present order, read if they are on disk; a slice copies nothing else.

        Examples
        --------
        >>> Views.from_arrays([np.arange(5.0)[:, None]]).take(np.array([1, 4]))[0].data.ravel()
        array([1., 4.])
        """
        taken = []
        rows = rows if self._order is None else self._order[rows]
        for view in self:
            present = None if view.present is None else view.present[rows]
            if isinstance(view, MappedView):
                taken.append(view.scale(RawView("", view.data[rows], present)))
            else:
                taken.append(View(view.data[rows], view.offset, present))
        return Views(taken)

    def __len__(self) -> int:
        return len(self._views)

    def __getitem__(self, index: int) -> View:  # type: ignore[override]
        return self._views[index]

    def __iter__(self) -> Iterator[View]:
        return iter(self._views)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self._views[0].data.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features of all views together."""
        return sum(view.data.shape[1] for view in self)

    @property
    def dtype(self) -> np.dtype:
        """float32 if every view is, else float64."""
        return np.result_type(*(view.data.dtype for view in self))

    @property
    def complete(self) -> bool:
        """Whether every sample has every view."""
        return all(view.present is None for view in self)

    def missing_counts(self) -> NDArray:
        """Number of views that each sample lacks.

        Examples
        --------
        >>> Views([View(np.ones((2, 1))), View(np.ones((2, 1)), present=np.array([True, False]))]).missing_counts()
        array([0, 1])
        """
        counts = np.zeros(self.n_samples, dtype=np.intp)
        for view in self:
            if view.present is not None:
                counts += ~view.present
        return counts

    def points(self, weights: ArrayLike | None = None) -> Matrix:
        """All views side by side, view v times √w_v, up to a shift; sparse if that takes less memory.

        Squared distances between rows are Σ_v w_v·‖x_i^v − x_j^v‖², with zeros for views that a sample lacks.
        """
        scales = np.sqrt(np.ones(len(self)) if weights is None else np.asarray(weights))
        blocks = [view.points() * self.dtype.type(scale) for view, scale in zip(self, scales, strict=True)]
        if not any(sparse.issparse(block) for block in blocks):
            return np.hstack(blocks)
        return smaller(sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr"))

    def patterns(self) -> list[tuple[NDArray, NDArray]]:
        """Samples that have the same views: their row numbers, and which views they have."""
        return presence_patterns([view.present for view in self], self.n_samples)

    def _map(self, multiply: Callable[[Any], NDArray], items: Sequence[Any], width: int) -> list[NDArray]:
        """Products of some views with a factor of `width` columns: in parallel if that pays and no view is on disk."""
        shared = self._shareable_bytes * width >= MIN_PARALLEL_WORK
        return threaded_map(multiply, items) if shared else list(map(multiply, items))

    @cached_property
    def _shareable_bytes(self) -> int:
        return 0 if any(isinstance(view, MappedView) for view in self) else sum(stored_bytes(v.data) for v in self)

    def gram(self) -> NDArray:
        """XᵀX of all features of all views, in float64."""
        ends = np.cumsum([view.data.shape[1] for view in self])
        starts = ends - [view.data.shape[1] for view in self]
        result = np.empty((ends[-1], ends[-1]))
        for v, view in enumerate(self):
            for strip, columns in view.columns():
                place = slice(starts[v] + strip.start, starts[v] + strip.stop)
                blocks = self._map(partial(_transpose_dot, columns), self._views[v:], columns.shape[1])
                for w, block in enumerate(blocks, v):
                    result[starts[w] : ends[w], place] = block
                    result[place, starts[w] : ends[w]] = block.T
        return result

    def sample_gram(self) -> NDArray:
        """Σ_v X^v·X^vᵀ, in float64; no view may be on disk.

        Examples
        --------
        >>> Views.from_arrays([np.array([[1.0], [2.0]]), np.eye(2)]).sample_gram()
        array([[2., 2.],
               [2., 5.]])
        """
        return reduce(np.add, [view.sample_gram() for view in self])

    def transpose_dot(self, latent: NDArray) -> list[NDArray]:
        """X^vᵀH of each view."""
        if self._positions is not None:
            latent = latent[self._positions]
        return self._map(partial(_transpose_dot, latent), self._views, latent.shape[1])

    def dot(self, loadings: Sequence[NDArray]) -> NDArray:
        """Σ X^v·W^v."""
        pairs = list(zip(self._views, loadings, strict=True))
        # Each product is as large as H, so at most one per thread is in memory.
        parts = gen_batches(len(pairs), count_threads())
        products = (self._map(lambda pair: pair[0].dot(pair[1]), pairs[some], loadings[0].shape[1]) for some in parts)
        total = reduce(np.add, chain.from_iterable(products))
        return total if self._order is None else total[self._order]

    def gram_dot(self, loadings: Sequence[NDArray]) -> NDArray:
        """XᵀX·W of all features of all views, in one pass over views that are on disk.

        Examples
        --------
        >>> Views.from_arrays([np.array([[1.0], [2.0]]), np.eye(2)]).gram_dot([np.ones((1, 1)), np.ones((2, 1))])
        array([[8.],
               [2.],
               [3.]])
        """
        if not self.is_read_together:
            return np.vstack(self.transpose_dot(self.dot(loadings)))
        scales = [view.scale for view in self]  # type: ignore[attr-defined]
        return sum_rows(partial(_gram_dot, scales, list(loadings)), *(view.data for view in self))

    @property
    def is_read_together(self) -> bool:
        """Whether all views are on disk, complete, with the same samples in the same rows."""
        mapped = self.complete and all(isinstance(view, MappedView) for view in self)
        return mapped and have_same_rows([view.data for view in self])

    def grams(self, latent: NDArray) -> list[NDArray]:
        """HᵀH for each view, over the samples that have it."""
        whole = latent.T @ latent
        kept = [None if view.present is None else latent[view.present] for view in self]
        return [whole if rows is None else rows.T @ rows for rows in kept]

    def reconstructed_XtH(
        self, XtH: Sequence[NDArray], latent: NDArray, loadings: Sequence[NDArray]
    ) -> Sequence[NDArray]:
        """X^vᵀH with each missing sample-view taken as its reconstruction H·W^vᵀ."""
        if self.complete:
            return XtH
        whole = latent.T @ latent
        return [
            cross + loading @ (whole - gram)
            for gram, cross, loading in zip(self.grams(latent), XtH, loadings, strict=True)
        ]

    def reconstructed_dot(self, latent: NDArray, loadings: Sequence[NDArray]) -> NDArray:
        """Σ X^v·W^v with each missing sample-view taken as its reconstruction H·W^vᵀ."""
        total = self.dot(loadings)
        for view, loading in zip(self, loadings, strict=True):
            reconstructed = latent @ (loading.T @ loading)
            total += reconstructed - view.keep_present(reconstructed)
        return total

    def split(self, stacked: NDArray) -> list[NDArray]:
        """Rows of an array over all features, cut into views."""
        return np.vsplit(stacked, np.cumsum([view.data.shape[1] for view in self])[:-1])

    def loss(self, latent: NDArray, loadings: Sequence[NDArray], XtH: Sequence[NDArray] | None = None) -> float:
        """Σ_v ‖X^v − H·W^vᵀ‖² over the sample-views that exist; `XtH` are X^vᵀH if known."""
        XtH = self.transpose_dot(latent) if XtH is None else XtH
        return loss_from_products(self.energies, loadings, XtH, self.grams(latent))

    @cached_property
    def energies(self) -> list[float]:
        """‖X^v‖² of each view."""
        return [view.squared_norm() for view in self]


def loss_from_products(
    energies: Sequence[float], loadings: Sequence[NDArray], XtH: Sequence[NDArray], grams: Sequence[NDArray]
) -> float:
    """Σ_v ‖X^v − H·W^vᵀ‖², from ‖X^v‖², W^v, X^vᵀH and HᵀH of the samples that have the view.

    Examples
    --------
    >>> loss_from_products([5.0], [np.array([[1.0]])], [np.array([[2.0]])], [np.array([[3.0]])])
    4.0
    """
    return sum(
        energy - 2 * float(np.vdot(cross, loading)) + float(np.vdot(gram, loading.T @ loading))
        for energy, loading, cross, gram in zip(energies, loadings, XtH, grams, strict=True)
    )
