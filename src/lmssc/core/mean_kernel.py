"""Mean of the views' kernels between samples and landmarks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from lmssc.data.view import View
from lmssc.data.views import Views
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.parallel import threaded_map

# A linear kernel is cut here: samples that are further away are not classified more surely.
MAX_LINEAR = 1e6
# Numbers of the kernel in one batch.
BATCH_NUMBERS = 1 << 20


@dataclass(frozen=True)
class MeanKernel:
    """Mean over the views of Gaussian, Laplacian or linear kernels between samples and landmarks.

    k(i, j) = Σ_v a_v·k_v(i, j) / √(c_i·c_j), over the views that both have; a_v is the weight of a view, by default 1,
    and c_i the sum of these over the views of sample i.
    Gaussian: k_v = exp(−‖x_i^v − x_j^v‖² / 2s_v), so that k is 1 for identical samples, whatever views are missing.
    Laplacian: k_v = exp(−‖x_i^v − x_j^v‖₁ / b_v), which sees the features one by one, as decision trees do.
    Linear: k_v = (x_i^v − m_v)·(x_j^v − m_v) / s_v, which is 1 on average. All are positive semi-definite.

    Attributes
    ----------
    landmarks : list of View
        Rows of each scaled view.
    spreads : ndarray of shape (V,)
        s_v: mean squared distance of the rows of a view from their mean m_v.
    linear : bool
        Whether the kernels are linear.
    laplacian : float
        Share of the Laplacian kernels; the rest is Gaussian.
    widths : ndarray of shape (V,), or None
        b_v: mean absolute distance between two rows of a view; None without Laplacian kernels.
    weights : ndarray of shape (V,), or None
        a_v, positive; None if all are 1.
    """

    landmarks: list[View]
    spreads: NDArray
    linear: bool = False
    laplacian: float = 0.0
    widths: NDArray | None = None
    weights: NDArray | None = None

    @classmethod
    def of(cls, landmarks: Views, *, linear: bool = False, laplacian: float = 0.0) -> "MeanKernel":
        """The kernel of some samples, with their own spreads.

        Examples
        --------
        >>> views = Views.from_arrays([np.array([[0.0], [2.0]]), np.array([[0.0], [2.0]])])
        >>> MeanKernel.of(views)(views).round(3)
        array([[1.   , 0.135],
               [0.135, 1.   ]])
        """
        tiny = np.finfo(np.float32).tiny
        spreads = np.maximum([_spread(view) for view in landmarks], tiny)
        widths = np.maximum([_width(view) for view in landmarks], tiny) if laplacian else None
        return cls(list(landmarks), spreads, linear, laplacian, widths)

    def __call__(self, views: Views) -> NDArray:
        """Kernel between samples and landmarks, of shape (n, m)."""
        return kernel_values([self], views)[0]

    def totals(self, has: NDArray) -> NDArray:
        """c_i of samples that have the views in their rows of `has`, (n, V); of a sample without any view, 1."""
        totals = has @ self.shares
        return np.where(totals > 0, totals, 1.0)

    def only(self, v: int, n_landmarks: int) -> "MeanKernel":
        """The kernel of one view, with the first of the landmarks."""
        widths = None if self.widths is None else self.widths[[v]]
        landmarks = Views([self.landmarks[v]]).take(slice(n_landmarks))
        return replace(self, landmarks=list(landmarks), spreads=self.spreads[[v]], widths=widths, weights=None)

    @property
    def shares(self) -> NDArray:
        """a_v of all views."""
        return np.ones(len(self.landmarks)) if self.weights is None else self.weights

    def of_view(self, pairs: "Pairs", v: int) -> NDArray:
        """k_v between the rows of view v and all landmarks."""
        spread = float(self.spreads[v])
        if self.linear:
            return np.clip(pairs.products / spread, -MAX_LINEAR, MAX_LINEAR)
        if self.widths is None:
            return falling(pairs.squares, 2 * spread)
        near = self.laplacian * falling(pairs.absolute, float(self.widths[v]))
        if self.laplacian < 1:
            near += (1 - self.laplacian) * falling(pairs.squares, 2 * spread)
        return near


@dataclass(frozen=True)
class Pairs:
    """Rows of a view and its landmarks, and what the kernels of these pairs are made of, computed when it is asked for.

    Attributes
    ----------
    points, landmarks : ndarray or sparse array
        The rows, in the same units.
    centre : ndarray of shape (d,)
        m, the mean of the landmarks.

    Examples
    --------
    >>> pairs = Pairs(np.array([[0.0], [3.0]]), np.array([[2.0]]), np.array([1.0]))
    >>> pairs.products, pairs.squares, pairs.absolute
    (array([[-1.],
           [ 2.]]), array([[4.],
           [1.]]), array([[2.],
           [1.]]))
    """

    points: Matrix
    landmarks: Matrix
    centre: NDArray

    @classmethod
    def of(cls, view: View, landmarks: View) -> "Pairs":
        """In double precision, because rows may be close to each other."""
        points, others = _points_like(view, landmarks), landmarks.points()
        points, others = points.astype(np.float64, copy=False), others.astype(np.float64, copy=False)
        return cls(points, others, _mean_row(landmarks))

    @cached_property
    def _is_dense(self) -> bool:
        return not sparse.issparse(self.points) and not sparse.issparse(self.landmarks)

    @cached_property
    def _others(self) -> Matrix:
        """Of dense landmarks, b − m; there may be many points, and a − m would be a large copy."""
        return self.landmarks - self.centre if self._is_dense else self.landmarks

    @cached_property
    def _products(self) -> NDArray:
        """a·(b − m), or a·b if they are sparse."""
        products = self.points @ self._others.T
        return products.toarray() if sparse.issparse(products) else np.asarray(products)

    @cached_property
    def products(self) -> NDArray:
        """(a − m)·(b − m)."""
        with np.errstate(over="ignore", invalid="ignore"):  # of samples that are extremely far away
            products = self._products - self._others @ self.centre
            if not self._is_dense:
                products -= (self.points @ self.centre)[:, None] - self.centre @ self.centre
        return np.nan_to_num(products, copy=False)

    @cached_property
    def squares(self) -> NDArray:
        """‖a − b‖²."""
        energies = View(self.points).row_energies()
        if self._is_dense:
            energies = energies - 2 * (self.points @ self.centre)
        squares = -2 * self._products
        squares += energies[:, None]
        squares += View(self.landmarks).row_energies()
        return np.maximum(squares, 0, out=squares)

    @cached_property
    def absolute(self) -> NDArray:
        """‖a − b‖₁."""
        return cdist(_dense(self.points), _dense(self.landmarks), "cityblock")


def falling(distances: NDArray, width: float) -> NDArray:
    """exp(−d / w).

    Examples
    --------
    >>> falling(np.array([0.0, 1.0]), 0.5).round(3)
    array([1.   , 0.135])
    """
    with np.errstate(over="ignore"):  # far away the exponent is −∞ and the result 0
        exponents = distances * (-1 / width)
    return np.exp(exponents, out=exponents)


def kernels_by_view(kernels: Sequence[MeanKernel], views: Views) -> Iterator[list[NDArray]]:
    """For each view, kernels with the same landmarks between samples and these: a_v·k_v / √c_j of the landmark.

    Parameters
    ----------
    kernels : sequence of MeanKernel
        They may differ in all but their landmarks; Gaussian and linear ones share their products.
    views : Views
        The samples.

    Yields
    ------
    list of ndarray of shape (n, m)
    """
    landmarks = kernels[0].landmarks
    has = presence(Views(landmarks))
    totals = [np.sqrt(kernel.totals(has)) for kernel in kernels]
    for v, (view, known) in enumerate(zip(views, landmarks, strict=True)):
        pairs, there = Pairs.of(view, known), 1 if known.present is None else known.present
        yield [
            view.keep_present(kernel.of_view(pairs, v) * (there * kernel.shares[v] / total))
            for kernel, total in zip(kernels, totals, strict=True)
        ]


def kernel_values(kernels: Sequence[MeanKernel], views: Views) -> NDArray:
    """Several kernels with the same landmarks between samples and these, of shape (M, n, m).

    Examples
    --------
    >>> views = Views.from_arrays([np.array([[0.0], [2.0]])])
    >>> kernel_values([MeanKernel.of(views), MeanKernel.of(views, linear=True)], views).round(3)
    array([[[ 1.   ,  0.135],
            [ 0.135,  1.   ]],
    <BLANKLINE>
           [[ 1.   , -1.   ],
            [-1.   ,  1.   ]]])
    """
    n_landmarks = kernels[0].landmarks[0].data.shape[0]

    def of_batch(batch: Views) -> NDArray:
        sums = np.zeros((len(kernels), batch.n_samples, n_landmarks))
        for values in kernels_by_view(kernels, batch):
            sums += values
        return sums / np.sqrt([kernel.totals(presence(batch)) for kernel in kernels])[:, :, None]

    return map_batches(of_batch, views, n_landmarks, axis=1)


def _points_like(view: View, landmarks: View) -> Matrix:
    """The points of a view, shifted as those of the landmarks are: sparse views are not centred, dense ones are."""
    points = view.points()
    if (view.offset is None) == (landmarks.offset is None):
        return points
    shift = landmarks.offset if view.offset is None else -view.offset
    return (points.toarray() if sparse.issparse(points) else points) + shift


def _dense(points: Matrix) -> NDArray:
    return np.asarray(points.toarray() if sparse.issparse(points) else points)


def map_batches(function: Callable[[Views], NDArray], views: Views, n_landmarks: int, axis: int = 0) -> NDArray:
    """What `function` makes of some samples at a time, read if they are on disk; `axis` is that of the samples."""

    def of_rows(rows: slice) -> NDArray:
        return function(views.take(rows))

    batches = gen_batches(views.n_samples, max(1, BATCH_NUMBERS // n_landmarks))
    return np.concatenate(threaded_map(of_rows, batches), axis=axis)


def presence(views: Views) -> NDArray:
    """Which views each sample has, of shape (n, V)."""
    everyone = np.ones(views.n_samples, dtype=bool)
    return np.stack([everyone if view.present is None else view.present for view in views], axis=1)


def _spread(view: View) -> float:
    """Mean squared distance of the rows that are present from their mean."""
    points, mean = View(view.points()), _mean_row(view)
    energies = points.row_energies() if view.present is None else points.row_energies()[view.present]
    return max(float(energies.mean()) - float(mean @ mean), 0.0) if len(energies) else 0.0


def _mean_row(view: View) -> NDArray:
    """Mean of the rows of `View.points` that are present."""
    present = np.ones(view.data.shape[0], dtype=bool) if view.present is None else view.present
    return View(view.points()).transpose_dot(present[:, None].astype(float))[:, 0] / max(int(present.sum()), 1)


def _width(view: View) -> float:
    """Mean absolute distance between two of the rows that are present."""
    points = view.points()
    points = np.sort(_dense(points if view.present is None else points[view.present]), axis=0)
    n_rows = len(points)
    # The k-th smallest value is added in the differences to smaller ones, and subtracted in those to larger ones.
    return float((2 * np.arange(n_rows) - n_rows + 1) @ points.sum(axis=1)) * 2 / max(n_rows * (n_rows - 1), 1)
