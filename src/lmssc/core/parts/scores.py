"""The class scores F in parts: labels propagated over the graph, as `lmssc.core.propagation` does."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.parts.executor import Executor, Message, Part, gather, total
from lmssc.core.parts.halo import rows_for_others, with_halo
from lmssc.core.parts.parted_graph import subgraph
from lmssc.core.parts.solver import PartedSystem, coarse_level, product, solve
from lmssc.core.weak_components import WEAK_EDGE, WeakComponents
from lmssc.numerics.conjugate_gradient import solver_tolerance
from lmssc.numerics.scale import is_large


@dataclass(frozen=True)
class ScoreSystem:
    """L_uu + ηI, over all samples; rows of samples whose scores are known are zero."""

    weight: float = 0.0

    def outgoing(self, part: Part, rows: NDArray) -> NDArray:
        """The rows themselves."""
        return rows

    def apply(self, part: Part, rows: NDArray, messages: Mapping[int, Message]) -> NDArray:
        """(L + ηI)·X, zero where scores are known."""
        image = product(part, rows, messages)
        if self.weight:
            image += rows.dtype.type(self.weight) * rows
        image[part["known"]] = 0
        return image

    def diagonal(self, part: Part) -> NDArray:
        """Diagonal of L + ηI; 1 where scores are known."""
        diagonal = part["diagonal"]
        return np.where(part["known"], diagonal.dtype.type(1), diagonal + diagonal.dtype.type(self.weight))[:, None]


def propagate(executor: Executor, frequencies: NDArray, tol: float, opinion_weight: float = 0.0) -> float:
    """Update of F: the "scores" of all parts, on their "laplacian"; the relative change of F.

    Parts have "labels" Y, "labelled", and with a second opinion Q as "opinion". Where they have "scores" already, the
    solver starts there. They get "unreached": the samples that no path joins to a label.

    Parameters
    ----------
    executor : Executor
        The parts.
    frequencies : ndarray of shape (c,)
        Share of each class among the labels: the scores of samples that no label reaches.
    tol : float
        Relative residual of the solver.
    opinion_weight : float
        η.

    Returns
    -------
    float
        ‖F_new − F‖ / ‖F‖; 1 for the first scores.
    """
    weak = _reach(executor)
    unreached = np.empty(0, dtype=np.intp) if weak is None else weak.unreached_samples
    unknown = executor.map(_set_known, np.sort(unreached), frequencies, opinion_weight)
    least, most, n_unknown, dtypes = zip(*unknown, strict=True)
    if sum(n_unknown):
        # A sample whose edges are all next to zero hardly adds to the residual, however wrong its scores are.
        uneven = min(1.0, 1e3 * min(least) / max(most))
        dtype = dtypes[0]
        coarse = coarse_level(executor, dtype) if is_large(int(executor.bounds[-1])) and not opinion_weight else None
        system = PartedSystem(executor, ScoreSystem(opinion_weight), coarse, bound_rounding=True)
        solve(system, uneven * solver_tolerance(dtype, tol))
    if weak is not None and not opinion_weight:
        executor.map(_fill_known)
        scores = gather(executor, "cg_x", weak.samples)
        before = scores.copy()
        weak.components.correct_component_means(scores)
        executor.map(_shift, weak.samples, scores - before)
    difference, size = total(executor.map(_finish))
    return float(np.sqrt(difference / max(size, np.finfo(float).tiny))) if size else 1.0


@dataclass(frozen=True)
class _Weak:
    """Components that only weak edges tie to labels, on the samples that matter for them alone."""

    components: WeakComponents
    samples: NDArray
    members: NDArray

    @property
    def unreached_samples(self) -> NDArray:
        return self.samples[self.components.unreached_samples(len(self.samples))]


def _reach(executor: Executor) -> _Weak | None:
    """Prepare the right-hand sides, and find the samples that no strong edges join to a label."""
    left = sum(executor.exchange(_send_labels, _prepare))
    while left:
        before, left = left, sum(executor.exchange(_send_reached, _reach_on))
        if left == before:
            break
    if not left:
        return None
    members = np.concatenate(executor.map(_not_reached))
    matrix, samples = subgraph(executor, "laplacian", members)
    diagonal = gather(executor, "diagonal", samples)
    outside = ~np.isin(samples, members)
    # All other samples are joined to a label by strong edges, so they count as labelled.
    complete = (matrix + sparse.diags_array(np.where(outside, diagonal, 0).astype(matrix.dtype))).tocsr()
    return _Weak(WeakComponents.of(complete, outside), samples, members)


def _send_labels(part: Part) -> Mapping[int, Message]:
    return rows_for_others(part, "edge", part["labels"], part["labelled"], part["diagonal"])


def _prepare(part: Part, messages: Mapping[int, Message]) -> int:
    """Right-hand side −L·Y, which edges are strong, and how far labels get over them within the part."""
    part["cg_r"] = -product(part, part["labels"], messages)
    matrix: sparse.csr_array = part["laplacian"]
    least = WEAK_EDGE * with_halo(part["diagonal"], messages, 2)
    own = np.repeat(least[: len(part)], np.diff(matrix.indptr))
    part["strong"] = -matrix.data > np.maximum(own, least[matrix.indices])
    part["reached"] = part["labelled"]
    return _spread(part, with_halo(part["labelled"], messages, 1))


def _send_reached(part: Part) -> Mapping[int, Message]:
    return rows_for_others(part, "edge", part["reached"])


def _reach_on(part: Part, messages: Mapping[int, Message]) -> int:
    return _spread(part, with_halo(part["reached"], messages))


def _spread(part: Part, reached: NDArray) -> int:
    """Go along strong edges as long as new samples are reached; the number of those that are not."""
    matrix: sparse.csr_array = part["laplacian"]
    edges = sparse.csr_array((part["strong"].astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    n_own = len(part)
    left = n_own - int(np.count_nonzero(reached[:n_own]))
    while left:
        reached[:n_own] |= (edges @ reached.astype(np.float32)) > 0
        before, left = left, n_own - int(np.count_nonzero(reached[:n_own]))
        if left == before:
            break
    part["reached"] = reached[:n_own].copy()
    return left


def _not_reached(part: Part) -> NDArray:
    return part.start + np.flatnonzero(~part["reached"])


def _set_known(
    part: Part, unreached: NDArray, frequencies: NDArray, opinion_weight: float
) -> tuple[float, float, int, np.dtype]:
    """Set which scores are known, what they are, and the first guess of the others.

    Returns the least and the largest diagonal of the system of the others, their number, and the type of the scores.
    """
    labels, rhs = part["labels"], part["cg_r"]
    lost = np.isin(np.arange(part.start, part.stop), unreached, assume_unique=True)
    known = part["labelled"] if opinion_weight else part["labelled"] | lost
    fixed = np.where(lost[:, None], frequencies.astype(labels.dtype), labels)
    guess = part.get("scores")
    guess = np.tile(frequencies.astype(labels.dtype), (len(part), 1)) if guess is None else guess.copy()
    if opinion_weight:
        rhs = rhs + rhs.dtype.type(opinion_weight) * part["opinion"].astype(rhs.dtype, copy=False)
    guess[known] = 0
    part["unreached"], part["known"], part["fixed"] = lost, known, fixed
    part["cg_r"], part["cg_x"] = np.where(known[:, None], rhs.dtype.type(0), rhs), guess
    diagonal = part["diagonal"][~known] + opinion_weight
    return float(diagonal.min(initial=np.inf)), float(diagonal.max(initial=0)), len(diagonal), labels.dtype


def _fill_known(part: Part) -> None:
    part["cg_x"] = np.where(part["known"][:, None], part["fixed"], part["cg_x"])


def _shift(part: Part, samples: NDArray, change: NDArray) -> None:
    """Add to the scores of some samples."""
    own = np.flatnonzero((samples >= part.start) & (samples < part.stop))
    solution = part["cg_x"].copy()
    solution[samples[own] - part.start] += change[own]
    part["cg_x"] = solution


def _finish(part: Part) -> tuple[float, float]:
    """New scores; squared norms of their change and of the old ones."""
    _fill_known(part)
    scores = part["cg_x"]
    old = part.get("scores")
    part["scores"] = scores
    if old is None:
        return 0.0, 0.0
    return float(np.linalg.norm(scores - old)) ** 2, float(np.linalg.norm(old)) ** 2
