"""Leading singular vectors of the scaled views, by the method that suits their shape, and their noise level.

A Gram matrix for few features or few samples; Lanczos iteration for sparse views, hundreds of products with one column;
block Lanczos iteration for dense views, a few products with many columns. All converge to the same directions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from lmssc.data.memmap import BATCH_BYTES, MappedRows, memory_map, stored_bytes
from lmssc.data.views import Views
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.conjugate_gradient import solver_tolerance
from lmssc.numerics.eigensystem import Eigensystem
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class SVDLimits:
    """Sizes at which the method of the SVD changes."""

    max_gram_size: int = 1500
    """Largest number of features, or of samples, of a Gram matrix."""
    max_gram_entries: int = 20_000_000
    """Largest number of entries of views whose Gram matrix of the samples is computed."""
    min_samples: int = 30_000
    samples_per_feature: int = 20
    """The directions come from an even subset of the samples: at least so many, and so many for each feature."""
    noise_size: int = 700
    noise_length: int = 4000
    """Larger views have their noise measured on a random part: so many of the fewer of samples and features, and at
    most so many of the others."""
    n_lanczos: float = 1.5
    """Dimensions of the Lanczos basis for each wanted vector."""
    min_block: int = 16
    blocks_per_component: int = 5
    """A block of block Lanczos has `min_block` columns, and one more for `blocks_per_component` wanted vectors."""
    max_basis: int = 6
    """Dimensions of the basis of block Lanczos for each wanted vector; beyond, it restarts from the best of them."""
    min_single_share: float = 0.05
    """Block Lanczos multiplies in single precision if singular values below this share of the largest are not wanted:
    their squares have three digits fewer than that of the largest, and single precision has seven."""
    max_rounds: int = 100
    """Largest number of blocks; each takes one XᵀH and one XW."""
    min_single_tol: float = 1e-7
    """Nor does it with a smaller tolerance."""
    min_single_energy: float = 1e-20
    """Views whose sum of squares is below this, or above its inverse, are multiplied in double precision."""
    rows_per_product: int = 512
    """Rows of a dense matrix that are multiplied at a time."""
    max_image_bytes: int = 1 << 28
    """Largest product X·W of views on disk."""
    max_read_bytes: int = 1 << 25
    """Largest subset of the samples of views on disk that is read into memory."""


SVD = SVDLimits()
# Vectors below the noise threshold that are computed too: rounding may put their values above it.
N_SPARE = 2


class Spectrum(NamedTuple):
    """Leading right singular vectors (orthonormal, the largest entry of each positive) and singular values.

    Fewer than asked for if the others are not wanted, because they are noise.
    `median` is the median of all singular values, an estimate if the views are large; None if it was not asked for.
    """

    directions: NDArray
    values: NDArray
    median: float | None


def noise_threshold(median: float, n_samples: int, n_features: int) -> float:
    """Optimal hard threshold of singular values of Gavish and Donoho (2014), given the median of all.

    Examples
    --------
    >>> round(noise_threshold(1.0, 500, 500), 2)
    2.86
    """
    shape = min(n_samples, n_features) / max(n_samples, n_features)
    return (0.56 * shape**3 - 0.95 * shape**2 + 1.82 * shape + 1.43) * median


def leading_directions(
    views: Views,
    n_components: int,
    tol: float = 1e-6,
    *,
    measure_noise: bool = True,
    min_wanted: int | None = None,
) -> Spectrum:
    """Leading right singular vectors of the stacked views.

    Parameters
    ----------
    views : Views
        Scaled views; missing rows count as zeros.
    n_components : int
        Number of vectors, at most min(n, Σ d_v).
    tol : float
        Block Lanczos stops when no wanted singular value changes by more than this share of the largest.
    measure_noise : bool
        Whether to find the median singular value. Vectors below the noise threshold, but for the first `min_wanted`,
        are then not wanted, unless all are below it: block Lanczos does not wait for them to converge, and all but two
        of them are left out.
    min_wanted : int, optional
        Number of vectors that are wanted in any case; all by default.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> views = Views.from_arrays([np.array([[3.0, 0.0], [0.0, 1.0]])])
    >>> directions, values, median = leading_directions(views, 1)
    >>> directions.ravel().round(6) + 0.0, values.round(6), round(median, 6)
    (array([1., 0.]), array([3.]), 2.0)
    """
    n_samples, n_features = views.n_samples, views.n_features
    min_wanted = n_components if min_wanted is None else min_wanted
    if n_features <= min(n_samples, SVD.max_gram_size):
        return _of_features(views, n_components, measure_noise=measure_noise, min_wanted=min_wanted)
    if n_samples <= SVD.max_gram_size and n_samples * n_features <= SVD.max_gram_entries:
        return _of_samples(views, n_components, measure_noise=measure_noise, min_wanted=min_wanted)
    median = estimate_median(views) if measure_noise else None
    step, some = _even_subset(views)
    root = float(np.sqrt(step))
    cheap_columns = all(sparse.issparse(view.data) and memory_map(view.data) is None for view in some)
    if cheap_columns and SVD.n_lanczos * n_components < min(some.n_samples, n_features):
        try:
            found = _by_lanczos(some, n_components)
            return Spectrum(found.directions, found.values * views.dtype.type(root), median)
        except ArpackError:
            pass  # all views are zero, for example
    floor = 0.0 if median is None else noise_threshold(median, n_samples, n_features) / root
    found = _by_block_lanczos(some, n_components, tol, floor, min_wanted)
    return Spectrum(found.directions, found.values * views.dtype.type(root), median)


def _even_subset(views: Views) -> tuple[int, Views]:
    """Every how many-th sample decides the directions; and these samples, in memory if that is not too much."""
    step = max(1, views.n_samples // max(SVD.min_samples, SVD.samples_per_feature * views.n_features))
    some = views.every(step)
    on_disk = any(isinstance(view.data, MappedRows) for view in some)
    if on_disk and sum(stored_bytes(view.data) for view in some) <= SVD.max_read_bytes:
        some = some.take(np.arange(some.n_samples))
    return step, some


def estimate_median(views: Views) -> float:
    """Median singular value of large views, from a random part of the samples and features.

    In white noise the singular values of a part are those of the whole, scaled by the law of Marchenko and Pastur.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1500, 1200))
    >>> round(estimate_median(Views.from_arrays([X])) / float(np.median(linalg.svdvals(X))), 2)
    1.0
    """
    n_samples, n_features = views.n_samples, views.n_features
    share = min(1.0, SVD.noise_size / min(n_samples, n_features))
    sizes = [int(min(np.ceil(share * size), SVD.noise_length)) for size in (n_samples, n_features)]
    # Samples are in random order, features are not.
    columns = np.sort(np.random.default_rng(0).permutation(n_features)[: sizes[1]])
    part = _dense_part(views, sizes[0], columns)
    gram = part @ part.T if part.shape[0] <= part.shape[1] else part.T @ part
    median = float(np.sqrt(np.median(np.maximum(linalg.eigvalsh(gram), 0))))
    return median * _usual_median(n_samples, n_features) / _usual_median(*part.shape)


def _usual_median(n_samples: int, n_features: int) -> float:
    """Median singular value of white noise of unit variance, by the two forms of the optimal threshold."""
    shape = min(n_samples, n_features) / max(n_samples, n_features)
    threshold = np.sqrt(2 * (shape + 1) + 8 * shape / (shape + 1 + np.sqrt(shape**2 + 14 * shape + 1)))
    return float(np.sqrt(max(n_samples, n_features)) * threshold / noise_threshold(1.0, n_samples, n_features))


def _dense_part(views: Views, n_rows: int, columns: NDArray) -> NDArray:
    """The first rows of some columns of all views, dense and in float64."""
    ends = np.cumsum([view.data.shape[1] for view in views])
    parts = np.split(columns, np.searchsorted(columns, ends[:-1]))
    result = np.empty((n_rows, len(columns)))
    for rows in gen_batches(n_rows, max(1, int(BATCH_BYTES / (8 * views.n_features)))):
        some = views.take(rows)
        blocks = []
        for view, chosen, end in zip(some, parts, ends, strict=True):
            own = chosen - (end - view.data.shape[1])
            block = view.data[:, own]
            block = block.toarray() if sparse.issparse(block) else block
            if view.offset is not None:
                block = block - view.keep_present(np.broadcast_to(view.offset[own], block.shape))
            blocks.append(block)
        result[rows] = np.hstack(blocks)
    return result


def _of_features(views: Views, n_components: int, *, measure_noise: bool, min_wanted: int) -> Spectrum:
    """From the Gram matrix of the features, of a subset of very many samples."""
    step, some = _even_subset(views)
    eigen = Eigensystem(some.gram() * step)
    n_wanted, median = _count_wanted(eigen, views, n_components, min_wanted, measure_noise=measure_noise)
    leading = _with_positive_peaks(eigen.leading(n_wanted).astype(views.dtype))
    values = np.sqrt(np.maximum(eigen.values[::-1][:n_wanted], 0))
    return Spectrum(leading, values.astype(views.dtype), median)


def _of_samples(views: Views, n_components: int, *, measure_noise: bool, min_wanted: int) -> Spectrum:
    """From the Gram matrix of the samples."""
    eigen = Eigensystem(views.take(slice(views.n_samples)).sample_gram())
    n_wanted, median = _count_wanted(eigen, views, n_components, min_wanted, measure_noise=measure_noise)
    # An SVD within the subspace restores the digits that squaring lost.
    leading = eigen.leading(n_wanted).astype(views.dtype)
    q = linalg.qr(np.vstack(views.transpose_dot(leading)), mode="economic")[0]
    image = np.vstack(views.transpose_dot(views.dot(views.split(q.astype(views.dtype)))))
    left, values, _ = linalg.svd(q.T @ image)
    return Spectrum(_with_positive_peaks((q @ left).astype(views.dtype)), np.sqrt(values).astype(views.dtype), median)


def _count_wanted(
    eigen: Eigensystem, views: Views, n_components: int, min_wanted: int, *, measure_noise: bool
) -> tuple[int, float | None]:
    """How many vectors of a Gram matrix to compute, and the median singular value; all of them if all are noise."""
    if not measure_noise:
        return n_components, None
    values = np.sqrt(np.maximum(eigen.values, 0))
    median = float(np.median(values))
    above = int((values > noise_threshold(median, views.n_samples, views.n_features)).sum())
    return min(n_components, max(above + N_SPARE, min_wanted)) if above else n_components, median


def _by_lanczos(views: Views, n_components: int) -> Spectrum:
    """By Lanczos iteration on the side of the samples or of the features, whichever are fewer."""
    by_samples = views.n_samples <= views.n_features
    size = min(views.n_samples, views.n_features)
    vectors = eigsh(
        LinearOperator((size, size), matvec=_squared_operator(views, by_samples=by_samples), dtype=views.dtype),
        n_components,
        v0=np.random.default_rng(0).standard_normal(size).astype(views.dtype),
        ncv=min(size, max(int(SVD.n_lanczos * n_components), 20)),
        tol=solver_tolerance(views.dtype, 1e-8),
    )[1]
    return _restored(views, vectors, by_samples=by_samples)


def _squared_operator(views: Views, *, by_samples: bool) -> Callable[[NDArray], NDArray]:
    """Column ↦ X·Xᵀ or Xᵀ·X times it, for sparse views; stacked, which saves most of the overhead of short products."""
    data = sparse.hstack([view.data for view in views], format="csr")
    transposed = data.T.tocsr()
    if all(view.offset is None for view in views):
        first, then = (transposed, data) if by_samples else (data, transposed)
        return lambda column: then @ (first @ column.ravel())
    offsets = [np.zeros(view.data.shape[1], views.dtype) if view.offset is None else view.offset for view in views]
    masks = [np.ones(views.n_samples, views.dtype) if v.present is None else v.present for v in views]
    shift = sparse.block_diag([offset[:, None] for offset in offsets], format="csr").astype(views.dtype)
    present = np.stack(masks, axis=1).astype(views.dtype)

    def down(column: NDArray) -> NDArray:
        return transposed @ column - shift @ (present.T @ column)

    def across(column: NDArray) -> NDArray:
        return data @ column - present @ (shift.T @ column)

    def multiply(column: NDArray) -> NDArray:
        column = column.ravel()
        return across(down(column)) if by_samples else down(across(column))

    return multiply


def _by_block_lanczos(views: Views, n_components: int, tol: float, floor: float, min_wanted: int) -> Spectrum:
    """By block Lanczos iteration on the smaller side, with full reorthogonalisation and thick restarts."""
    by_samples = views.n_samples <= views.n_features
    size = min(views.n_samples, views.n_features)
    width = min(SVD.min_block + n_components // SVD.blocks_per_component, size)
    block = np.random.default_rng(0).standard_normal((size, width)).astype(views.dtype)
    first = block = linalg.qr(block, mode="economic")[0]
    basis, projected = block[:, :0], np.zeros((0, 0))
    previous, n_wanted = np.zeros(n_components), n_components
    factor = _in_single_precision(views) if floor and tol >= SVD.min_single_tol else views
    for _ in range(SVD.max_rounds):
        basis = np.hstack([basis, block])
        image = _squared_dot(factor, block, by_samples=by_samples)
        projected = _bordered(projected, basis.T @ image)
        values = np.sqrt(np.maximum(linalg.eigvalsh(projected)[::-1][:n_components], 0))
        if factor is not views and floor < SVD.min_single_share * values[0]:
            factor, block, basis, projected = views, first, basis[:, :0], projected[:0, :0]
            continue
        if len(values) == n_components:
            above, before = (int((each > floor).sum()) for each in (values, previous))
            change = np.abs(values - previous)[: max(above, min_wanted)].max()
            if above == before and change <= tol * values[0]:
                n_wanted = min(n_components, max(above + N_SPARE, min_wanted)) if above else n_components
                break
            previous = values
        width = min(width, size - basis.shape[1])
        if not width:
            break
        block = _orthonormal_to(basis, image[:, :width])
        if basis.shape[1] + width > max(SVD.max_basis * n_components, 4 * width):
            squares, vectors = linalg.eigh(projected)
            kept = vectors[:, ::-1][:, : n_components + width]
            basis = basis @ kept.astype(basis.dtype)
            projected = np.diag(squares[::-1][: kept.shape[1]])
    leading = linalg.eigh(projected)[1][:, ::-1][:, :n_wanted].astype(basis.dtype)
    return _restored(views, basis @ leading, by_samples=by_samples)


def _in_single_precision(views: Views) -> Views | NDArray:
    """Dense views in memory side by side, in single precision: products take half of the time. Others as they are."""
    if any(type(view.data) is not np.ndarray or view.offset is not None for view in views):
        return views
    single = np.empty((views.n_samples, views.n_features), dtype=np.float32)
    for view, columns in zip(views, views.split(single.T), strict=True):
        columns.T[:] = view.data
    energy = float(np.vdot(single, single))
    return single if SVD.min_single_energy < energy < 1 / SVD.min_single_energy else views


def _squared_dot(factor: Views | NDArray, block: NDArray, *, by_samples: bool) -> NDArray:
    """X·Xᵀ or XᵀX times a block of columns, in the precision of the block."""
    if isinstance(factor, np.ndarray):
        return _dense_squared_dot(factor.T if by_samples else factor, block.astype(factor.dtype)).astype(block.dtype)
    columns = block.astype(factor.dtype, copy=False)
    image = factor.dot(factor.transpose_dot(columns)) if by_samples else _gram_dot(factor, columns)
    return image.astype(block.dtype, copy=False)


def _dense_squared_dot(matrix: NDArray, block: NDArray) -> NDArray:
    """MᵀM times a block of columns, a few rows of M at a time: they are still in the cache for the second product."""

    def of_rows(rows: slice) -> NDArray:
        return (matrix[rows] @ block).T @ matrix[rows]

    return reduce(np.add, threaded_map(of_rows, gen_batches(len(matrix), SVD.rows_per_product))).T


def _bordered(square: NDArray, columns: NDArray) -> NDArray:
    """A symmetric matrix with further columns, and the same further rows."""
    size, width = columns.shape
    result = np.zeros((size, size))
    result[: len(square), : len(square)] = square
    result[:, size - width :] = columns
    result[size - width :] = columns.T
    result[size - width :, size - width :] = (columns[size - width :] + columns[size - width :].T) / 2
    return result


def _orthonormal_to(basis: NDArray, block: NDArray) -> NDArray:
    """The block made orthonormal, and orthogonal to the basis."""
    for _ in range(2):
        block = linalg.qr(block - basis @ (basis.T @ block), mode="economic")[0]
    return block


def _restored(views: Views, vectors: NDArray, *, by_samples: bool) -> Spectrum:
    """Spectrum within a subspace of the samples or of the features; an SVD restores the digits that squaring lost."""
    if not by_samples and _is_too_large(views, vectors.shape[1]):
        return _restored_by_gram(views, vectors)
    image = vectors if by_samples else linalg.qr(views.dot(views.split(vectors)), mode="economic")[0]
    left, values, _ = linalg.svd(np.vstack(views.transpose_dot(image)), full_matrices=False)
    return Spectrum(_with_positive_peaks(left), values, None)


def _is_too_large(views: Views, n_columns: int) -> bool:
    """Whether X·W with so many columns should not be in memory: only if X is not in memory either."""
    size = views.n_samples * n_columns * views.dtype.itemsize
    return size > SVD.max_image_bytes and any(isinstance(view.data, MappedRows) for view in views)


def _gram_dot(views: Views, block: NDArray) -> NDArray:
    """XᵀX times a block of columns; some columns at a time if X·W would not fit into memory."""
    width = block.shape[1]
    if _is_too_large(views, width) and not views.is_read_together:
        width = max(1, SVD.max_image_bytes // (views.n_samples * views.dtype.itemsize))
    batches = gen_batches(block.shape[1], width)
    return np.hstack([views.gram_dot(views.split(block[:, some])) for some in batches])


def _restored_by_gram(views: Views, vectors: NDArray) -> Spectrum:
    """`_restored` of features without X·V: if G = VᵀXᵀXV = UΛUᵀ, the columns of X·V·UΛ^−½ are orthonormal."""
    image = _gram_dot(views, vectors)
    squares, basis = linalg.eigh((vectors.T @ image).astype(np.float64))
    kept = squares > squares[-1] * len(squares) * np.finfo(views.dtype).eps
    left, values, _ = linalg.svd(image @ (basis[:, kept] / np.sqrt(squares[kept])), full_matrices=False)
    return Spectrum(_with_positive_peaks(left.astype(views.dtype)), values.astype(views.dtype), None)


def _with_positive_peaks(directions: NDArray) -> NDArray:
    """Directions with signs that make the largest entry of each positive."""
    peaks = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return directions * np.where(peaks < 0, -1, 1).astype(directions.dtype)
