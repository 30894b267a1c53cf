"""Halos: rows of other parts that a part needs, and how they get there.

A part numbers its own samples from 0 on, and then the samples of its halo, in their order. A halo has a name, because
a part has several: that of its neighbour lists, and that of the edges of its graph.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lmssc.core.parts.executor import Executor, Message, Part


def localise(part: Part, halo: str, samples: NDArray) -> NDArray:
    """Set a halo to the samples of other parts among `samples`; the local number of each of `samples`.

    Examples
    --------
    >>> part = Part(1, 10, 13)
    >>> localise(part, "edge", np.array([[11, 4], [20, 10]])), part["edge_halo"]
    (array([[1, 3],
           [4, 0]], dtype=int32), array([ 4, 20], dtype=int32))
    """
    inside = (samples >= part.start) & (samples < part.stop)
    outside, number = np.unique(samples[~inside], return_inverse=True)
    local = np.empty(samples.shape, dtype=np.int32)
    local[inside] = samples[inside] - part.start
    local[~inside] = len(part) + number
    part[f"{halo}_halo"] = outside.astype(np.int32)
    return local


def sample_numbers(part: Part, halo: str) -> NDArray:
    """The sample of each local number."""
    return np.concatenate([np.arange(part.start, part.stop, dtype=np.int32), part[f"{halo}_halo"]])


def connect(executor: Executor, halo: str) -> int:
    """Tell all parts which of their rows belong to the halos of others; the number of rows that this is in all."""
    return sum(executor.exchange(_ask, _remember, executor.bounds, halo))


def _ask(part: Part, bounds: NDArray, halo: str) -> Mapping[int, Message]:
    samples = part[f"{halo}_halo"]
    ends = np.searchsorted(samples, bounds)
    return {p: [samples[ends[p] : ends[p + 1]]] for p in range(len(bounds) - 1) if ends[p] < ends[p + 1]}


def _remember(part: Part, messages: Mapping[int, Message], bounds: NDArray, halo: str) -> int:
    counts = np.zeros(len(bounds), dtype=np.int64)
    rows = [np.empty(0, dtype=np.int32)]
    for source, (samples,) in messages.items():
        counts[source + 1] = len(samples)
        rows.append(samples - np.int32(part.start))
    part[f"{halo}_sent"] = np.concatenate(rows)
    part[f"{halo}_ends"] = np.cumsum(counts)
    return int(counts.sum())


def rows_for_others(part: Part, halo: str, *arrays: NDArray) -> dict[int, Message]:
    """The rows of some arrays that belong to the halos of other parts, as messages to these."""
    rows, ends = part[f"{halo}_sent"], part[f"{halo}_ends"]
    targets = np.flatnonzero(np.diff(ends))
    return {int(p): [array[rows[ends[p] : ends[p + 1]]] for array in arrays] for p in targets}


def with_halo(array: NDArray, messages: Mapping[int, Message], place: int = 0) -> NDArray:
    """The rows of a part, and then those of its halo: array number `place` of each message."""
    return np.concatenate([array, *(message[place] for message in messages.values())])
