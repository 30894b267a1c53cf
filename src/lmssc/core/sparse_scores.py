"""Class scores of very many classes as sparse matrices: the largest of each sample.

What a row lacks of 1 belongs to classes that are not listed in it.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lmssc.core.calibration import Calibration, fit_calibration
from lmssc.core.calibration_loss import PRIOR
from lmssc.core.class_codes import label_matrix
from lmssc.core.prior_correction import class_weights
from lmssc.core.targets import Targets
from lmssc.data.warn_caller import warn_caller
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.sparse_ops import components_of

N_KEPT = 64
"""Classes that are listed for a sample, at most."""
# Rows whose products are in memory at a time.
BATCH_ROWS = 4096
# Propagation stops when scores change by less than this on average, in all, or after so many steps.
TOLERANCE, MAX_STEPS = 1e-7, 500
# A larger change in the last step is told of.
MAX_LAST_CHANGE = 1e-5


def largest_entries(matrix: sparse.csr_array, length: int = N_KEPT) -> sparse.csr_array:
    """The largest entries of each row; of equal ones the first.

    Examples
    --------
    >>> largest_entries(sparse.csr_array([[0.1, 0.5, 0.4], [0.2, 0.0, 0.2]]), 1).toarray()
    array([[0. , 0.5, 0. ],
           [0.2, 0. , 0. ]])
    """
    matrix.sort_indices()
    counts = np.diff(matrix.indptr)
    if counts.max(initial=0) <= length:
        return matrix
    row = np.repeat(np.arange(matrix.shape[0]), counts)
    order = np.lexsort((-matrix.data, row))
    kept = np.sort(order[np.arange(matrix.nnz) - matrix.indptr[row] < length])
    starts = np.concatenate([[0], np.cumsum(np.minimum(counts, length))])
    return sparse.csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def rename_columns(matrix: sparse.csr_array, names: NDArray) -> sparse.csr_array:
    """The matrix with column `names[j]` for column j.

    Examples
    --------
    >>> rename_columns(sparse.csr_array([[0.0, 1.0, 2.0]]), np.array([2, 0, 1])).toarray()
    array([[1., 2., 0.]])
    """
    columns = names.astype(matrix.indices.dtype)[matrix.indices]
    result = sparse.csr_array((matrix.data.copy(), columns, matrix.indptr), shape=matrix.shape)
    result.sort_indices()  # in place, so of a copy
    return result


def replace_rows(matrix: sparse.csr_array, rows: NDArray, values: sparse.csr_array) -> sparse.csr_array:
    """The matrix with other values in some rows.

    Examples
    --------
    >>> replace_rows(sparse.csr_array(np.eye(2)), np.array([1]), sparse.csr_array([[3.0, 4.0]])).toarray()
    array([[1., 0.],
           [3., 4.]])
    """
    if not len(rows):
        return matrix
    source = np.arange(matrix.shape[0])
    source[rows] = matrix.shape[0] + np.arange(len(rows))
    return sparse.vstack([matrix, values], format="csr")[source]


def scale_rows(matrix: sparse.csr_array, factors: NDArray) -> sparse.csr_array:
    """Each row times a factor."""
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr)).astype(matrix.dtype)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def propagate_sparsely(laplacian: sparse.csr_array, targets: Targets) -> tuple[sparse.csr_array, NDArray]:
    """F, as `propagate` explains, the largest scores of each row; and which samples no label reaches.

    Each unlabelled sample takes the mean of its neighbours, weighted by their edges, again and again. Mass that is cut
    off does not come back, so what a row lacks of 1 belongs to other classes.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n)
        L.
    targets : Targets
        Y, of certain labels.

    Returns
    -------
    scores : csr_array of shape (n, c)
        Samples that no label reaches have the largest class frequencies.
    unreached : ndarray of bool of shape (n,)

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> propagate_sparsely(L, Targets.from_codes(np.array([0, -1, 1]), 2))[0].toarray().round(2)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    known, labelled = label_matrix(targets), targets.labelled
    n_components, component = components_of(laplacian)
    has_label = np.zeros(n_components, dtype=bool)
    has_label[component[labelled]] = True
    unreached = ~has_label[component]
    unknown = np.flatnonzero(~labelled & ~unreached)
    frequencies = largest_entries(sparse.csr_array(targets.frequencies[None]))
    scores = replace_rows(known, np.flatnonzero(unreached), frequencies[np.zeros(int(unreached.sum()), dtype=np.intp)])
    if not len(unknown):
        return scores, unreached
    rows = laplacian[unknown]
    steps = scale_rows(rows, -1 / laplacian.diagonal()[unknown])
    steps.data[rows.data > 0] = 0  # the diagonal
    fixed, between = steps @ known, steps[:, unknown]
    found = largest_entries(fixed)
    for _ in range(MAX_STEPS):
        batches = gen_batches(len(unknown), BATCH_ROWS)
        parts = [largest_entries((fixed[batch] + between[batch] @ found).tocsr()) for batch in batches]
        new = sparse.vstack(parts, format="csr")
        change = float(np.abs((new - found).data).sum()) / len(unknown)
        found = new
        if change < TOLERANCE:
            break
    if change > MAX_LAST_CHANGE:
        warn_caller(
            f"scores of very many classes still changed by {change:.1e} after {MAX_STEPS} steps: those of samples "
            "far from all labels are not exact. Label more samples, or fit fewer classes",
            ConvergenceWarning,
        )
    return replace_rows(scores, unknown, found), unreached


def balance_sparsely(scores: sparse.csr_array, codes: NDArray, power: float) -> sparse.csr_array:
    """`balance` of sparse scores: reweighed by class, rows normalised to sum to 1.

    Examples
    --------
    >>> F = sparse.csr_array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.4]])
    >>> balance_sparsely(F, np.array([0, 1, -1]), power=0.5).toarray().round(2)[2]
    array([0.57, 0.43])
    """
    masses = np.asarray(scores.sum(axis=0)).ravel() / scores.shape[0]
    weights = class_weights(codes, masses, power)
    weighted = sparse.csr_array(
        (scores.data * weights[scores.indices], scores.indices, scores.indptr), shape=scores.shape
    )
    return scale_rows(weighted, 1 / np.maximum(np.asarray(weighted.sum(axis=1)).ravel(), np.finfo(float).tiny))


def calibrate_sparsely(scores: sparse.csr_array, calibration: Calibration) -> sparse.csr_array:
    """`Calibration` of the listed scores; the classes that are not listed share the rest of the doubt.

    Examples
    --------
    >>> calibrate_sparsely(sparse.csr_array([[0.75, 0.25, 0, 0]]), Calibration(0.5, doubt=0.2)).toarray().round(2)
    array([[0.77, 0.13, 0.  , 0.  ]])
    """
    counts = np.diff(scores.indptr)
    largest = np.repeat(np.asarray(scores.max(axis=1).toarray()).ravel(), counts)
    powers = (scores.data / np.maximum(largest, np.finfo(float).tiny)) ** (1 / calibration.temperature)
    tempered = sparse.csr_array((powers, scores.indices, scores.indptr), shape=scores.shape)
    result = scale_rows(
        tempered, (1 - calibration.doubt) / np.maximum(np.asarray(tempered.sum(axis=1)).ravel(), 1e-300)
    )
    result.data += calibration.doubt / scores.shape[1]
    return result


def fit_sparse_calibration(
    scores: sparse.csr_array,
    targets: sparse.csr_array,
    prior_temperature: float = PRIOR.temperature,
    *,
    penalise: bool = True,
) -> Calibration:
    """`fit_calibration` of sparse scores and classes: the columns that matter in no row are one.

    Examples
    --------
    >>> sure, right = np.array([[0.9, 0.1, 0], [0.1, 0.9, 0]] * 50), np.array([[0.9, 0.1, 0], [0.1, 0.9, 0]] * 50)
    >>> one = fit_sparse_calibration(*map(sparse.csr_array, (sure, right)), prior_temperature=1.0)
    >>> round(one.temperature, 2), round(fit_calibration(sure, right, prior_temperature=1.0).temperature, 2)
    (1.0, 1.0)
    """
    n_rows, n_classes = scores.shape
    parts = [matrix.tocoo() for matrix in (scores, targets)]
    keys = [part.row.astype(np.int64) * n_classes + part.col for part in parts]
    union = np.unique(np.concatenate(keys))
    row = union // n_classes
    position = np.arange(len(union)) - np.searchsorted(row, row)
    width = min(int(position.max(initial=0)) + 2, n_classes)
    compact, known = np.zeros((2, n_rows, width))
    for matrix, part, own in zip((compact, known), parts, keys, strict=True):
        matrix[part.row, position[np.searchsorted(union, own)]] = part.data
    return fit_calibration(compact, known, prior_temperature=prior_temperature, penalise=penalise, n_classes=n_classes)
