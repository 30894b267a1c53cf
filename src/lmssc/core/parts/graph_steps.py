"""Samples nearest to a few centres in steps over the graph, found part by part."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.parts.executor import Executor, Message, Part, forget, total
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.topk import concat_ranges

# Samples that the walks from all centres of a batch visit, but for the last step of each: about 16 bytes each, and each
# in its part alone. More batches would be more rounds of messages.
BATCH_VISITS = 1_000_000


def rank_labelled(
    executor: Executor, centres: NDArray, n_nearest: int, numbers: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Labelled samples among those nearest to each centre in steps; ties by number.

    Parameters
    ----------
    executor : Executor
        The parts, which have their "laplacian" and "labelled".
    centres : ndarray of int of shape (m,)
        Samples, in the order of the fit.
    n_nearest : int
        How many count as near, with the centre itself.
    numbers : ndarray of int of shape (n,)
        Number of each sample.

    Returns
    -------
    centre, number, rank : ndarray of int of shape (l,)
        For each labelled sample that is near to a centre: which of `centres`, its number, and its rank, of which that
        of the centre is 0 and left out.
    """
    each = [numbers[first:end] for first, end in pairwise(executor.bounds)]
    found = []
    for batch in gen_batches(len(centres), max(1, BATCH_VISITS // n_nearest)):
        n_steps = _walk(executor, centres[batch], n_nearest)
        places = np.concatenate(executor.map(_labelled_places, n_steps, len(numbers), each=each))
        centre, number = places // (n_steps * len(numbers)), places % len(numbers)
        starts = np.arange(len(centres[batch])) * (n_steps * len(numbers))
        counts = total(executor.map(_count_before, n_steps, len(numbers), np.concatenate([places, starts]), each=each))
        rank = counts[: len(places)] - counts[len(places) :][centre]
        executor.map(forget, ("inside", *map(_name, range(n_steps))))
        near = (rank > 0) & (rank < n_nearest)
        found.append((batch.start + centre[near], number[near], rank[near]))
    centre, number, rank = map(np.concatenate, zip(*found, strict=True))
    return centre, number, rank


def _walk(executor: Executor, centres: NDArray, n_nearest: int) -> int:
    """Go from each centre until enough samples are found, or all; the number of steps, with that at the centre.

    The part has "step0", "step1" … : the samples that so many steps reach, as centre · n + row of n.
    """
    executor.map(_begin_walk, centres)
    n_found, n_steps = np.ones(len(centres), dtype=np.int64), 1
    going = n_found < n_nearest
    while going.any():
        new = total(executor.exchange(_send_step, _take_step, executor.bounds, n_steps, going))
        n_found, n_steps = n_found + new, n_steps + 1
        going &= (new > 0) & (n_found < n_nearest)
    return n_steps


def _name(step: int) -> str:
    return f"step{step}"


def _begin_walk(part: Part, centres: NDArray) -> None:
    own = np.flatnonzero((centres >= part.start) & (centres < part.stop))
    part[_name(0)] = own * len(part) + (centres[own] - part.start)


def _send_step(part: Part, bounds: NDArray, step: int, going: NDArray) -> Mapping[int, Message]:
    """Go a step within the part, and send where it leads to other parts: centres and samples."""
    centre, row = np.divmod(part[_name(step - 1)], len(part))
    centre, row = centre[going[centre]], row[going[centre]]
    part["inside"] = np.empty(0, dtype=np.int64)
    if not len(row):
        return {}
    matrix: sparse.csr_array = part["laplacian"]
    lengths, ends = np.diff(matrix.indptr), np.searchsorted(centre, np.arange(len(going) + 1))
    found = [_ends_of_edges(matrix, lengths, row[first:last]) for first, last in pairwise(ends)]
    start, end = np.repeat(np.arange(len(going)), list(map(len, found))), np.concatenate(found)
    within = end < len(part)
    part["inside"] = start[within] * len(part) + end[within]
    start, sample = start[~within], part["edge_halo"][end[~within] - len(part)]
    owner = np.searchsorted(bounds, sample, side="right") - 1
    return {int(p): [start[owner == p], sample[owner == p]] for p in np.unique(owner)}


def _ends_of_edges(matrix: sparse.csr_array, lengths: NDArray, rows: NDArray) -> NDArray:
    """Columns of the entries of some rows that are not zero, ascending; `lengths` are those of all rows."""
    entries = concat_ranges(matrix.indptr[rows], lengths[rows])
    return _distinct(matrix.indices[entries[matrix.data[entries] != 0]], matrix.shape[1])


def _distinct(numbers: NDArray, end: int) -> NDArray:
    """The distinct ones of some numbers from 0 to before `end`, ascending."""
    if len(numbers) < end // 64:
        numbers = np.sort(numbers)
        return numbers[np.diff(numbers, prepend=-1) > 0]
    marked = np.zeros(end, dtype=bool)  # to mark many takes less time than to sort them
    marked[numbers] = True
    return np.flatnonzero(marked)


def _take_step(part: Part, messages: Mapping[int, Message], bounds: NDArray, step: int, going: NDArray) -> NDArray:
    """The samples that this step is the first to reach; their number for each centre."""
    received = (start * len(part) + (sample - part.start) for start, sample in messages.values())
    new = np.concatenate([part["inside"], *received])
    new = _distinct(new, len(going) * len(part))
    # Edges lead both ways, so what an earlier step than these two reached is not next to the last.
    for earlier in range(max(step - 2, 0), step):
        before = np.append(part[_name(earlier)], -1)  # ascending, and an end that nothing is equal to
        new = new[before[np.searchsorted(before[:-1], new)] != new]
    part[_name(step)] = new
    return np.bincount(new // len(part), minlength=len(going))


def _places(part: Part, n_steps: int, n_samples: int, numbers: NDArray, *, labelled: bool) -> NDArray:
    """What all reached samples of the part, or the labelled ones, are sorted by: centre, step and number in one."""
    found = []
    for step in range(n_steps):
        centre, row = np.divmod(part[_name(step)], len(part))
        if labelled:
            some = part["labelled"][row]
            centre, row = centre[some], row[some]
        found.append((centre * n_steps + step) * n_samples + numbers[row])
    return np.concatenate(found)


def _labelled_places(part: Part, n_steps: int, n_samples: int, numbers: NDArray) -> NDArray:
    return _places(part, n_steps, n_samples, numbers, labelled=True)


def _count_before(part: Part, n_steps: int, n_samples: int, places: NDArray, numbers: NDArray) -> NDArray:
    """How many samples of the part come before each place."""
    return np.searchsorted(np.sort(_places(part, n_steps, n_samples, numbers, labelled=False)), places)
