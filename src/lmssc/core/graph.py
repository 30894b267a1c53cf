"""The neighbour graph S: nearest neighbours, simplex rows, and the weight α."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.approximate import TARGET, has_index, nearest_by_index
from lmssc.numerics.knn.exact import Neighbors, Search, nearest_neighbors, other_neighbors
from lmssc.numerics.knn.repeated import ExactKNN
from lmssc.numerics.knn.topk import concat_ranges
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.parallel import threaded_map
from lmssc.numerics.sparse_ops import ROWS_PER_THREAD, consecutive_rows

# Longer rows of S, which only hundreds of near-duplicates of one sample make, are cut.
MAX_NEIGHBORS = 1000
# An index is built for new samples if there are at least this many queries per point.
MIN_QUERIES_PER_POINT = 0.05
# Batch size of the simplex projection: fits into the cache.
BATCH_ROWS = 4096
# Rows whose differences from their neighbours are in memory at a time: they fit into the cache.
MEASURED_ROWS = 64
# Share of samples that are in the tightest clusters: where neighbours are much closer than the median, F alone would
# decide who is one, and a class could draw in another, sample by sample.
TIGHT_SHARE = 0.1


def usual_neighbors(n_samples: int, n_labels: int, n_classes: int) -> int:
    """Default number of neighbours k: the square root of the samples per class, from 10 to 15.

    With fewer than k/5 labels per class, or none at all, it is 10, and never more than half of the samples per class,
    or 5.

    Examples
    --------
    >>> [usual_neighbors(10 * size, 1000, 10) for size in (100, 200, 10_000, 16, 6)]
    [10, 14, 15, 8, 5]
    >>> usual_neighbors(2000, 20, 10), usual_neighbors(2000, 0, 0)
    (10, 10)
    """
    n_classes = max(n_classes, 1)
    size = n_samples / n_classes
    return round(min(max(min(size**0.5, 5 * n_labels / n_classes, 15), 10), max(size / 2, 5)))


def adaptive_alpha(squared_distances: NDArray, n_neighbors: int, beta: float) -> NDArray:
    """For each sample the largest α_i for which row i of S has at most k non-zeros.

    α_i = ( k·d_{i,k+1} − Σ_{j≤k} d_ij ) / (4β), distances sorted, self excluded; d has the weights β and γ in it. Where
    there are only k others, d_{i,k} replaces d_{i,k+1}. Every graph uses it: those of LMSSC, GFHF, AMGL and MLAN, and
    the edges of new samples. When LMSSC sets α, and whether it keeps it, is decided in `Objective.update_graph`, and
    for fits in parts in `parts.parted_graph`.

    Examples
    --------
    >>> adaptive_alpha(np.array([[1.0, 2.0, 4.0]]), 2, beta=0.25)
    array([5.])
    """
    beyond = squared_distances[:, min(n_neighbors, squared_distances.shape[1] - 1)]
    return (n_neighbors * beyond - squared_distances[:, :n_neighbors].sum(axis=1)) / (4 * beta)


def simplex_rows(squared_distances: NDArray, width: NDArray) -> tuple[NDArray, NDArray]:
    """Project each row of −d/width onto the simplex; the rows of d are sorted, smallest first.

    s_j = (φ − d_j/width)₊ with φ such that the row sums to 1. With width = 0 the nearest share the weight equally.

    Parameters
    ----------
    squared_distances : ndarray of shape (n, m)
        d.
    width : ndarray of shape (n,)
        Width of each row, not negative.

    Returns
    -------
    weights : ndarray of shape (n, m)
    support : ndarray of int of shape (n,)
        Number of positive entries of each row.

    Examples
    --------
    >>> simplex_rows(np.array([[0.0, 1.0, 4.0]]), width=np.array([2.0]))
    (array([[0.75, 0.25, 0.  ]]), array([2]))
    """
    n_rows = len(squared_distances)
    weights = np.empty(squared_distances.shape, dtype=np.result_type(squared_distances, np.float32))
    support = np.empty(n_rows, dtype=np.intp)
    width = np.broadcast_to(width, n_rows)
    for block in gen_batches(n_rows, BATCH_ROWS):
        weights[block], support[block] = _simplex_block(squared_distances[block], width[block])
    return weights, support


def _simplex_block(squared_distances: NDArray, width: NDArray) -> tuple[NDArray, NDArray]:
    """`simplex_rows` of one batch."""
    # Subtracting the smallest distance changes nothing in exact arithmetic and reduces rounding.
    excess = squared_distances - squared_distances[:, :1]
    excess = excess.astype(np.result_type(excess, np.float32), copy=False)
    width = np.asarray(width, dtype=excess.dtype)[:, None]
    counts = np.arange(1, excess.shape[1] + 1, dtype=excess.dtype)
    sums = np.cumsum(excess, axis=1)
    support = ((excess == 0) | (width + sums > counts * excess)).sum(axis=1)
    height = (width + np.take_along_axis(sums, (support - 1)[:, None], 1)) / support[:, None].astype(excess.dtype)
    weights = np.where(width > 0, np.maximum(height - excess, 0), 1) * (counts <= support[:, None])
    weights /= weights.sum(axis=1, keepdims=True)
    # Weights that are nothing but rounding would join components of the graph that are separate.
    return np.where(weights > 16 * np.finfo(weights.dtype).eps, weights, 0), support


def simplex_graph(
    search: Callable[[NDArray, int], Neighbors],
    first: Neighbors,
    n_points: int,
    width: NDArray,
) -> sparse.csr_array:
    """Exact simplex rows from neighbour lists that grow until they are long enough.

    Only nearest neighbours can have weight, so a list that is longer than a row's support gives the exact row. Where
    the support reaches the end of the list, a list of twice the length is fetched.

    Parameters
    ----------
    search : callable
        Rows and a length ↦ the `Neighbors` of these rows.
    first : Neighbors
        Initial lists of all rows. After an infinite distance, which ends a list, there may be more neighbours.
    n_points : int
        Number of columns of the result.
    width : ndarray of shape (n_rows,)
        Row i is the simplex projection of −d_i/width_i.

    Returns
    -------
    csr_array of shape (n_rows, n_points)
    """
    found, pending = first, np.arange(len(first.indices))
    length = found.indices.shape[1]
    n_rows, most = len(pending), max(length, min(MAX_NEIGHBORS, n_points - 1))
    parts: list[Rows] = []
    while True:
        done, pending = project_rows(found, pending, width, last=length >= most)
        parts += done
        if not len(pending):
            break
        length = min(2 * length, most)
        found = search(pending, length)
    return join_rows(parts, n_rows, n_points)


Rows = tuple[NDArray, NDArray, NDArray, NDArray]
"""Some rows of a graph: their numbers, the length of each, all columns, and all weights."""


def join_rows(parts: Sequence[Rows], n_rows: int, n_points: int) -> sparse.csr_array:
    """The graph of some rows; others are empty."""
    filled = np.zeros(n_rows, dtype=np.intp)
    for numbers, counts, _, _ in parts:
        filled[numbers] = counts
    ends = np.cumsum(filled)
    index_type = np.int32 if max(ends[-1], n_points) < np.iinfo(np.int32).max else np.int64
    indices, values = np.empty(ends[-1], dtype=index_type), np.empty(ends[-1], dtype=parts[0][3].dtype)

    def put(numbers: NDArray, counts: NDArray, chosen: NDArray, kept: NDArray) -> None:
        if not len(numbers):
            return
        if numbers[-1] - numbers[0] == len(numbers) - 1:
            where: slice | NDArray = slice(ends[numbers[0]] - counts[0], ends[numbers[-1]])
        else:
            where = concat_ranges(ends[numbers] - counts, counts)
        indices[where], values[where] = chosen, kept

    threaded_map(put, *zip(*parts, strict=True))
    entries = (values, indices, np.concatenate([[0], ends]).astype(index_type))
    graph = sparse.csr_array(entries, shape=(n_rows, n_points))
    # In place: each part is a view of the graph.
    threaded_map(lambda rows: consecutive_rows(graph, rows).sort_indices(), gen_batches(n_rows, ROWS_PER_THREAD))
    graph.has_sorted_indices = True
    return graph


def project_rows(found: Neighbors, pending: NDArray, width: NDArray, *, last: bool) -> tuple[list[Rows], NDArray]:
    """Simplex rows of the samples `pending`, from their lists; and the samples whose list is too short."""
    project = partial(_project, found, pending, width, last)
    results = threaded_map(project, gen_batches(len(pending), BATCH_ROWS))
    return [result[:4] for result in results], np.concatenate([pending[:0], *(result[4] for result in results)])


def _project(
    found: Neighbors, pending: NDArray, width: NDArray, last: bool, block: slice
) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """A batch of the pending rows: indices of the finished ones, their lengths, columns and weights; and the rest."""
    distances, numbers = found.squared_distances[block], pending[block]
    weights, support = _simplex_block(distances, width[numbers])
    done = (support < np.isfinite(distances).sum(axis=1)) | last
    columns = slice(int(support[done].max(initial=0)))
    weights = weights[done, columns]
    taken = weights > 0
    # `compress` is several times faster than indexing by booleans.
    chosen = np.compress(taken.ravel(), found.indices[block][done, columns].ravel())
    return numbers[done], taken.sum(axis=1), chosen, np.compress(taken.ravel(), weights.ravel()), numbers[~done]


def learn_graph(
    points: Matrix,
    n_neighbors: int,
    beta: float,
    alpha: NDArray | None = None,
    *,
    shared_alpha: bool = False,
    search: Search | None = None,
) -> tuple[sparse.csr_array, NDArray]:
    """Update of S: each row is the simplex projection of −d_i/(4·α_i·β), d_ij = ‖x_i − x_j‖² of the points x.

    Row i minimises ½Σ_j d_ij·s_ij + α_i·β‖s_i‖² over the simplex, self excluded.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n, r + c)
        [√β·Z, √β·P, √γ·F], P and F where they are used; for other methods, the features that samples are compared by.
    n_neighbors : int
        k, from which α is set if it is not given.
    beta : float
        β.
    alpha : ndarray of shape (n,), optional
        α of each row; by default the largest that gives the row at most k neighbours.
    shared_alpha : bool
        Whether all rows get the mean α, if α is not given.
    search : ExactKNN or ApproximateKNN, optional
        Neighbour search, with what it knows of earlier positions of the same samples; exact by default.

    Returns
    -------
    graph : csr_array of shape (n, n)
        S: non-negative, rows sum to 1, no self-loops.
    alpha : ndarray of shape (n,)

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0], [3.5]])
    >>> graph, alpha = learn_graph(points, n_neighbors=1, beta=1.0, shared_alpha=True)
    >>> graph.toarray().round(2)
    array([[0.  , 1.  , 0.  , 0.  ],
           [0.79, 0.  , 0.21, 0.  ],
           [0.  , 0.14, 0.  , 0.86],
           [0.  , 0.  , 1.  , 0.  ]])
    """
    n_points = points.shape[0]
    own_alpha = alpha is None and not shared_alpha  # rows have at most k neighbours
    # An approximate search keeps the longer lists for the next one.
    exact = search is None or isinstance(search, ExactKNN)
    length = min(n_neighbors + 2 if own_alpha and exact else 2 * n_neighbors + 2, n_points - 1)
    first = other_neighbors(points, length) if search is None else search.search(points, n_neighbors + 1, length)
    if alpha is None:
        alpha = adaptive_alpha(first.squared_distances, n_neighbors, beta)
        if shared_alpha:
            alpha = np.full_like(alpha, alpha.mean())
        elif not exact:
            first = Neighbors(*(part[:, : n_neighbors + 2] for part in first))

    def fetch(rows: NDArray, length: int) -> Neighbors:
        return other_neighbors(points, length, rows) if search is None else search.search_more(points, rows, length)

    return simplex_graph(fetch, first, n_points, 4 * beta * alpha), alpha


def connect_new(
    points: Matrix, queries: Matrix, n_neighbors: int, alpha: float | None = None, recall: float = TARGET
) -> sparse.csr_array:
    """Simplex rows from new samples to known ones: row i is the projection of −‖q_i − p_j‖²/(4α), with β = 1.

    Without α each row has its own, the largest that gives it at most k neighbours. Among many points an index finds the
    nearest, with the given recall.

    Examples
    --------
    >>> connect_new(np.array([[0.0], [1.0], [9.0]]), np.array([[0.4]]), 1, alpha=0.25).toarray().round(2)
    array([[0.6, 0.4, 0. ]])
    """
    n_points = points.shape[0]
    length = min(new_list_length(n_neighbors, alpha), n_points)
    # Building an index does not pay for a few queries.
    many = queries.shape[0] >= n_points * MIN_QUERIES_PER_POINT
    if many and has_index(n_points, recall) and not sparse.issparse(points):
        first = nearest_by_index(points, queries, n_neighbors + 1, length, recall)
    else:
        first = nearest_neighbors(points, queries, length)

    def search(rows: NDArray, length: int) -> Neighbors:
        return nearest_neighbors(points, queries[rows], length)

    return new_rows(search, first, n_points, n_neighbors, alpha)


def new_list_length(n_neighbors: int, alpha: float | None) -> int:
    """Length of the first lists of new samples: rows with an α of their own have at most k neighbours.

    Examples
    --------
    >>> new_list_length(10, None), new_list_length(10, 0.5)
    (12, 22)
    """
    return n_neighbors + 2 if alpha is None else 2 * n_neighbors + 2


def new_rows(
    search: Callable[[NDArray, int], Neighbors], first: Neighbors, n_points: int, n_neighbors: int, alpha: float | None
) -> sparse.csr_array:
    """Simplex rows of new samples, as `connect_new` explains, from their first lists and a search for longer ones."""
    own = adaptive_alpha(first.squared_distances, n_neighbors, beta=1.0)
    return simplex_graph(search, first, n_points, 4 * (own if alpha is None else np.full_like(own, alpha)))


def without_own(weights: sparse.csr_array, own: NDArray) -> sparse.csr_array:
    """Rows without their entry in the column `own`, rescaled to sum to 1; zero if there is no other entry.

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


def mean_squared_distances(weights: sparse.csr_array, points: NDArray, queries: NDArray) -> NDArray:
    """Mean squared distance of each query to the points, with the weights in its row, which sum to 1.

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


def graph_among_all(graph: sparse.csr_array, rows: NDArray, n_samples: int) -> sparse.csr_array:
    """A graph of some samples, with a row and a column for each of all samples.

    Examples
    --------
    >>> graph_among_all(sparse.csr_array([[0.0, 1.0], [2.0, 0.0]]), np.array([0, 2]), 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [2., 0., 0.]])
    """
    found = graph.tocoo()
    return sparse.csr_array((found.data, (rows[found.row], rows[found.col])), shape=(n_samples, n_samples))


def separate_groups(*parts: tuple[NDArray, NDArray]) -> list[NDArray]:
    """Points with one more coordinate that puts points of different groups further apart than any of the same group.

    Parameters
    ----------
    *parts : pairs (points of shape (n, d), groups of shape (n,))
        Sets of points that share the groups, and the group of each point.

    Returns
    -------
    list of ndarray of shape (n, d + 1)

    Examples
    --------
    >>> separate_groups((np.array([[3.0], [4.0]]), np.array([0, 1])))
    [array([[ 3.,  0.],
           [ 4., 40.]])]
    """
    far = 10 * max(float(np.sqrt(np.einsum("ij,ij->i", points, points).max())) for points, _ in parts)
    return [np.hstack([points, (far * groups[:, None]).astype(points.dtype)]) for points, groups in parts]


def graph_from_rows(indices: NDArray, weights: NDArray, n_points: int) -> sparse.csr_array:
    """Sparse graph from the columns and the weights of each row; zero weights are dropped.

    Examples
    --------
    >>> graph_from_rows(np.array([[1, 2], [0, 2]]), np.array([[0.5, 0.5], [1.0, 0.0]]), 3).toarray()
    array([[0. , 0.5, 0.5],
           [1. , 0. , 0. ]])
    """
    starts = np.arange(0, indices.size + 1, indices.shape[1])
    entries = (weights.ravel().copy(), indices.ravel().copy(), starts)  # zeros are removed in place
    graph = sparse.csr_array(entries, shape=(len(indices), n_points))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def neighbor_distance(graph: sparse.csr_array, points: NDArray, rows: NDArray) -> float:
    """Mean squared distance to the neighbours, Σ_j s_ij·‖z_i − z_j‖², that a tenth of the given rows of S fall below.

    Examples
    --------
    >>> S = sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> neighbor_distance(S, np.array([[0.0], [1.0], [3.0]]), np.arange(3))
    1.0
    """
    means = np.empty(len(rows))
    for batch in gen_batches(len(rows), MEASURED_ROWS):
        some = graph[rows[batch]]
        row = np.repeat(np.arange(some.shape[0]), np.diff(some.indptr))
        differences = points[rows[batch]][row] - points[some.indices]
        squares = np.einsum("ij,ij->i", differences, differences, dtype=np.float64)
        means[batch] = np.bincount(row, some.data * squares, some.shape[0])
    return float(np.quantile(means, TIGHT_SHARE))


def stack_coordinates(parts: Sequence[tuple[NDArray, float]], dtype: np.dtype) -> NDArray:
    """Blocks of coordinates side by side, each times a factor.

    Examples
    --------
    >>> stack_coordinates([(np.ones((2, 1)), 3.0), (np.eye(2), 0.5)], np.dtype(float))
    array([[3. , 0.5, 0. ],
           [3. , 0. , 0.5]])
    """
    ends = np.cumsum([part.shape[1] for part, _ in parts])
    points = np.empty((len(parts[0][0]), ends[-1]), dtype=dtype)
    for columns, (part, factor) in zip(np.split(points, ends[:-1], axis=1), parts, strict=True):
        np.multiply(part, points.dtype.type(factor), out=columns, casting="same_kind")
    return points
