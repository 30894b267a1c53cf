"""Mean of the views' kernels between samples and landmarks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

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

        def of_batch(batch: Views) -> NDArray:
            return np.sum(list(self.by_view(batch)), axis=0) / np.sqrt(self.totals(presence(batch)))[:, None]

        return map_batches(of_batch, views, self.landmarks[0].data.shape[0])

    def by_view(self, views: Views) -> Iterator[NDArray]:
        """Kernel of each view between samples and landmarks, times a_v and divided by √c_j of the landmark."""
        totals = np.sqrt(self.totals(presence(Views(self.landmarks))))
        for v, (view, landmarks) in enumerate(zip(views, self.landmarks, strict=True)):
            near = self._of_view(_points_like(view, landmarks), landmarks, v) * (self.shares[v] / totals)
            if landmarks.present is not None:
                near *= landmarks.present
            yield view.keep_present(near)

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

    def _of_view(self, points: Matrix, landmarks: View, v: int) -> NDArray:
        """k_v between rows and all landmarks."""
        spread = float(self.spreads[v])
        if self.linear:
            near = centred_products(points, landmarks.points(), _mean_row(landmarks)) / spread
            return np.clip(near, -MAX_LINEAR, MAX_LINEAR, out=near)
        if self.widths is None:
            return gaussian(points, landmarks.points(), spread)
        near = self.laplacian * laplacian(points, landmarks.points(), float(self.widths[v]))
        if self.laplacian < 1:
            near += (1 - self.laplacian) * gaussian(points, landmarks.points(), spread)
        return near


def _points_like(view: View, landmarks: View) -> Matrix:
    """The points of a view, shifted as those of the landmarks are: sparse views are not centred, dense ones are."""
    points = view.points()
    if (view.offset is None) == (landmarks.offset is None):
        return points
    shift = landmarks.offset if view.offset is None else -view.offset
    return (points.toarray() if sparse.issparse(points) else points) + shift


def gaussian(points: Matrix, landmarks: Matrix, spread: float) -> NDArray:
    """exp(−‖a − b‖² / 2s) between the rows of two arrays, dense or sparse.

    Examples
    --------
    >>> gaussian(np.array([[0.0], [1.0]]), np.array([[1.0]]), 0.5).round(3)
    array([[0.368],
           [1.   ]])
    """
    # In double precision: rows may be far from the origin, and close to each other.
    products = points.astype(np.float64, copy=False) @ landmarks.astype(np.float64, copy=False).T
    squares = -2 * (products if isinstance(products, np.ndarray) else products.toarray())
    squares += View(points).row_energies()[:, None]
    squares += View(landmarks).row_energies()
    np.maximum(squares, 0, out=squares)
    with np.errstate(over="ignore"):  # far away the exponent is −∞ and the result 0
        squares *= -1 / (2 * spread)
    return np.exp(squares, out=squares)


def laplacian(points: Matrix, landmarks: Matrix, width: float) -> NDArray:
    """exp(−‖a − b‖₁ / w) between the rows of two arrays, dense or sparse.

    Examples
    --------
    >>> laplacian(np.array([[0.0], [1.0]]), np.array([[1.0]]), 0.5).round(3)
    array([[0.135],
           [1.   ]])
    """
    distances = cdist(_dense(points), _dense(landmarks), "cityblock")
    with np.errstate(over="ignore"):  # far away the exponent is −∞ and the result 0
        distances *= -1 / width
    return np.exp(distances, out=distances)


def _dense(points: Matrix) -> NDArray:
    """The same numbers as an array in double precision."""
    return np.asarray(points.toarray() if sparse.issparse(points) else points, dtype=np.float64)


def centred_products(points: Matrix, landmarks: Matrix, centre: NDArray) -> NDArray:
    """(a − m)·(b − m) between the rows of two arrays, dense or sparse.

    Examples
    --------
    >>> centred_products(np.array([[0.0], [3.0]]), np.array([[2.0]]), np.array([1.0]))
    array([[-1.],
           [ 2.]])
    """
    points, landmarks = points.astype(np.float64, copy=False), landmarks.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):  # of samples that are extremely far away
        if not sparse.issparse(points) and not sparse.issparse(landmarks):
            landmarks = landmarks - centre
            products = points @ landmarks.T  # there may be many points: centred ones would be a large copy
            products -= landmarks @ centre
            return np.nan_to_num(products, copy=False)
        products = points @ landmarks.T
        dense = products.toarray() if sparse.issparse(products) else np.asarray(products)
        dense -= (points @ centre)[:, None]
        dense -= landmarks @ centre - centre @ centre
        return np.nan_to_num(dense)


def map_batches(function: Callable[[Views], NDArray], views: Views, n_landmarks: int) -> NDArray:
    """Rows that `function` makes of some samples at a time, which are read if they are on disk."""

    def of_rows(rows: slice) -> NDArray:
        return function(views.take(rows))

    return np.concatenate(threaded_map(of_rows, gen_batches(views.n_samples, max(1, BATCH_NUMBERS // n_landmarks))))


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
