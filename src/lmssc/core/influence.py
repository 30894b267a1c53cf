"""What each label does to each answer, with the graph fixed: weights, leave-one-out, and one label more or less."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.label_system import LabelSolver, LabelSystem
from lmssc.numerics.batches import gen_batches

# Right-hand sides solved at a time, and entries of such a batch at most.
MAX_BATCH_COLUMNS, MAX_BATCH_ENTRIES = 128, 20_000_000
# Smaller weights are nothing but the solver's error.
MIN_WEIGHT = 1e-12


class Influence(NamedTuple):
    """Where the scores of some samples come from: F = `weights`·Y + `opinion`.

    Attributes
    ----------
    weights : csr_array of shape (m, n)
        Weight of each labelled sample, not negative; zero for samples without a label.
    anchor : ndarray of shape (m,)
        Weight of the opinions that do not come from labels over the graph. With the weights of the row it sums to 1,
        or to 0 for a sample that no label reaches.
    opinion : ndarray of shape (m, c)
        What these opinions contribute to the scores.
    """

    weights: sparse.csr_array
    anchor: NDArray
    opinion: NDArray


def label_weights(solver: LabelSolver, samples: NDArray | sparse.csr_array) -> Influence:
    """Weight of every label in the scores of some samples: rows of M = −L_uu⁻¹·L_ul, and beyond.

    With x = K⁻¹·e_i and K = L_uu + diag(μ + a), the weight of a clamped label j is −(L_lu·x)_j, that of a label with
    trust μ_j is μ_j·x_j, and that of the opinion about sample j is a_j·x_j. L is symmetric, so each sample takes one
    solve, and all labels come with it.

    Parameters
    ----------
    solver : LabelSolver
        Solver of the system.
    samples : ndarray of int of shape (m,), or csr_array of shape (m, n)
        The samples; or rows of weights that sum to 1, for new samples whose scores are means over samples.

    Returns
    -------
    Influence

    Examples
    --------
    >>> from lmssc.core.targets import Targets
    >>> L = sparse.csr_array([[1.0, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
    >>> solver = LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, -1, -1, 1]), 2)))
    >>> label_weights(solver, np.array([1, 3])).weights.toarray().round(4)
    array([[0.6667, 0.    , 0.    , 0.3333],
           [0.    , 0.    , 0.    , 1.    ]])
    """
    system = solver.original
    if isinstance(samples, np.ndarray):
        each = np.arange(len(samples) + 1)
        samples = sparse.csr_array((np.ones(len(samples)), samples, each), shape=(len(samples), system.n_samples))
    outputs = _outputs(system)
    parts = [_weights_of_batch(solver, outputs, samples[batch]) for batch in _batches(system, samples.shape[0])]
    if not parts:
        empty = sparse.csr_array((0, system.n_samples))
        return Influence(empty, np.empty(0), np.empty((0, system.labels.shape[1])))
    weights, anchor, opinion = zip(*parts, strict=True)
    return Influence(sparse.vstack(weights, format="csr"), np.concatenate(anchor), np.concatenate(opinion))


def _outputs(system: LabelSystem) -> sparse.csr_array:
    """C for which C·X has the weight of each labelled sample, then, with an anchor, Σ a_j·x_j and Σ a_j·q_j·x_j."""
    labelled = np.flatnonzero(system.labelled)
    clamped = system.clamped[labelled]
    finite = np.where(clamped, 0.0, system.trust[labelled])
    shape = len(labelled), system.n_samples
    own = sparse.csr_array((finite, (np.arange(len(labelled)), labelled)), shape=shape)
    weights = own - sparse.diags_array(clamped.astype(np.float64)) @ system.laplacian[labelled]
    if system.anchor is None:
        return weights.tocsr()
    shares = [system.anchor[None]]
    if system.opinion is not None:
        shares.append((system.anchor[:, None] * system.opinion).T)
    return sparse.vstack([weights, *map(sparse.csr_array, shares)], format="csr")


def _weights_of_batch(solver: LabelSolver, outputs: sparse.csr_array, rows: sparse.csr_array) -> Influence:
    system = solver.original
    labelled = np.flatnonzero(system.labelled)
    found = solver.solve_outputs(outputs, rows).astype(np.float64, copy=False)
    weights, shares = found[: len(labelled)], found[len(labelled) :]
    # A clamped sample has its own label.
    weights += system.clamped[labelled][:, None] * rows[:, labelled].toarray().T
    weights[weights < MIN_WEIGHT] = 0
    anchor = np.maximum(shares[0], 0) if len(shares) else np.zeros(rows.shape[0])
    # The sum is known: the share of the row that is reached. What the solver left over is shared out.
    known = rows @ system.reached.astype(np.float64)
    total = weights.sum(axis=0) + anchor
    factor = np.divide(known, total, out=np.zeros_like(total), where=total > 0)
    entries = sparse.coo_array((weights * factor).T)
    places = entries.row, labelled[entries.col]
    opinion = np.zeros((rows.shape[0], system.labels.shape[1]))
    if len(shares) > 1:
        opinion = (shares[1:] * factor).T
    return Influence(sparse.csr_array((entries.data, places), shape=rows.shape), anchor * factor, opinion)


def leave_one_out(solver: LabelSolver, scores: NDArray) -> tuple[NDArray, NDArray]:
    """Scores that each labelled sample would have without its own label, all others and the graph as they are.

    With Q = L_ll − L_lu·L_uu⁻¹·L_ul they are Y − (Q·Y)/diag(Q); Q·Y is the residual of the clamped rows at the
    solution, so only the diagonal takes solves, one for each label. The graph was learned with the label: for an honest
    judgement hold out labels and fit again.

    Parameters
    ----------
    solver : LabelSolver
        Solver of the system.
    scores : ndarray of shape (n, c)
        F, its solution.

    Returns
    -------
    samples : ndarray of int of shape (l,)
        The labelled samples.
    scores : ndarray of shape (l, c)
        Their scores; NaN where no other label reaches the sample.

    Examples
    --------
    >>> from lmssc.core.targets import Targets
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> solver = LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, 1, 0]), 2)))
    >>> leave_one_out(solver, np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))[1]
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    system = solver.original
    labelled = np.flatnonzero(system.labelled)
    result = np.full((len(labelled), scores.shape[1]), np.nan)
    for batch in _batches(system, len(labelled)):
        samples = labelled[batch]
        _, stiffness = responses(solver, samples, system.clamped, system.reached)
        trust = system.trust[samples]
        clamped = np.isinf(trust)
        spring = np.where(clamped, 0.0, trust)
        # A label with trust μ is a spring: without it the sample is less stiff by μ.
        stiffness = stiffness - spring
        pull = np.where(
            clamped[:, None],
            residuals(system, scores, samples),
            spring[:, None] * (system.labels[samples] - scores[samples]),
        )
        alone = (system.n_roots[system.component[samples]] == 1) & (system.shift[samples] == spring)
        stiffness[alone] = np.nan
        result[batch] = scores[samples] - pull / stiffness[:, None]
    return labelled, result


def residuals(system: LabelSystem, scores: NDArray, samples: NDArray) -> NDArray:
    """What pulls on samples at the scores F: rows of (L + diag(μ + a))·F − μ·Y − a·Q; 0 for free samples.

    Examples
    --------
    >>> from lmssc.core.targets import Targets
    >>> L = sparse.csr_array([[1.0, -1.0], [-1.0, 1.0]])
    >>> system = LabelSystem.of(L, Targets.from_codes(np.array([0, 1]), 2))
    >>> residuals(system, np.eye(2), np.array([0]))
    array([[ 1., -1.]])
    """
    rows = system.laplacian[samples] @ scores
    return rows + system.shift[samples, None] * scores[samples] - system.constant[samples]


def responses(
    solver: LabelSolver, samples: NDArray, clamped: NDArray, reached: NDArray, tol: float | None = None
) -> tuple[NDArray, NDArray]:
    """How the scores of all samples answer to a unit change of the score of each of some samples.

    For sample i it is K⁻¹·e_i / (K⁻¹)_ii with i free: 1 at i itself, 0 at clamped samples. The stiffness 1 / (K⁻¹)_ii
    is the force that the change takes.

    Parameters
    ----------
    solver : LabelSolver
        Solver of the system.
    samples : ndarray of int of shape (m,)
        Samples, each the only one that changes; clamped or not, in a component that something else holds.
    clamped, reached : ndarray of bool of shape (n,)
        Samples that are clamped, and that are in a component that something holds.
    tol : float, optional
        Relative residual.

    Returns
    -------
    responses : ndarray of shape (n, m)
    stiffness : ndarray of shape (m,)

    Examples
    --------
    >>> from lmssc.core.targets import Targets
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> solver = LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, -1, -1]), 2)))
    >>> system = solver.original
    >>> responses(solver, np.array([2]), system.clamped, system.reached)
    (array([[0. ],
           [0.5],
           [1. ]]), array([0.5]))
    """
    system = solver.original
    columns = np.arange(len(samples))
    # A clamped sample is held in its own column, and so is, implicitly, in all others.
    fixed = clamped[samples]
    rhs = np.zeros((system.n_samples, len(samples)))
    rhs[samples[~fixed], columns[~fixed]] = 1
    edges = system.laplacian[samples[fixed]].tocoo()
    rhs[edges.col, columns[fixed][edges.row]] = -edges.data
    X = solver.solve(rhs, clamped | ~reached, tol).astype(np.float64, copy=False)
    own = X[samples, columns]
    stiffness = np.empty(len(samples))
    with np.errstate(divide="ignore"):
        stiffness[~fixed] = 1 / own[~fixed]
    X[:, ~fixed] *= stiffness[~fixed]
    diagonal = system.laplacian.diagonal()[samples] + system.shift[samples]
    rows = system.laplacian[samples[fixed]]
    stiffness[fixed] = diagonal[fixed] + np.asarray(rows.multiply(X[:, fixed].T).sum(axis=1)).ravel()
    X[samples[fixed], columns[fixed]] = 1
    return X, stiffness


def solve_scores(solver: LabelSolver) -> NDArray:
    """F, the solution of the system; class frequencies where nothing reaches a sample.

    Examples
    --------
    >>> from lmssc.core.targets import Targets
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> solve_scores(LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, -1, 1]), 2))))
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    system = solver.original
    fixed = np.where(system.clamped[:, None], system.labels, 0)
    scores = solver.solve(system.constant - system.laplacian @ fixed).astype(np.float64) + fixed
    labels = system.labels[system.labelled].sum(axis=0, dtype=np.float64)
    scores[~system.reached] = labels / max(labels.sum(), 1)
    return scores


def _batches(system: LabelSystem, n: int) -> Iterator[slice]:
    size = int(np.clip(MAX_BATCH_ENTRIES // max(system.n_samples, 1), 1, MAX_BATCH_COLUMNS))
    return gen_batches(n, size) if n else iter(())


def strongest_labels(solver: LabelSolver, n: int, tol: float | None = None) -> tuple[NDArray, NDArray]:
    """The n labelled samples with most weight in the scores of every sample, and these weights.

    One solve for each label instead of one for each sample: columns of M = −L_uu⁻¹·L_ul.

    Parameters
    ----------
    solver : LabelSolver
        Solver of the system.
    n : int
        Number of labelled samples.
    tol : float, optional
        Relative residual; that of the solver by default.

    Returns
    -------
    samples : ndarray of int of shape (n_samples, n)
        The strongest first; −1 where there are fewer.
    weights : ndarray of shape (n_samples, n)

    Examples
    --------
    >>> from lmssc.core.targets import Targets
    >>> L = sparse.csr_array([[1.0, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
    >>> solver = LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, -1, -1, 1]), 2)))
    >>> strongest_labels(solver, 1)[0].ravel()
    array([0, 0, 3, 3])
    """
    system = solver.original
    labelled = np.flatnonzero(system.labelled)
    best = np.full((system.n_samples, n), -1)
    weights = np.zeros((system.n_samples, n))
    for batch in _batches(system, len(labelled)):
        samples = labelled[batch]
        clamped = system.clamped[samples]
        rhs = -system.laplacian[:, samples].toarray()
        rhs[:, ~clamped] = 0
        rhs[samples[~clamped], np.flatnonzero(~clamped)] = system.trust[samples[~clamped]]
        found = solver.solve(rhs, tol=tol).astype(np.float64, copy=False)
        found[samples[clamped], np.flatnonzero(clamped)] = 1
        joined = np.hstack([weights, np.where(found > MIN_WEIGHT, found, 0)])
        names = np.hstack([best, np.broadcast_to(samples, found.shape)])
        order = np.argsort(-joined, axis=1, kind="stable")[:, :n]
        weights, best = np.take_along_axis(joined, order, 1), np.take_along_axis(names, order, 1)
    best[weights <= 0] = -1
    return best, weights
