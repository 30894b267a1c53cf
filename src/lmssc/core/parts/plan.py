"""How many parts a fit needs, and where they live."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.core import view_graph
from lmssc.core.fit_config import FitConfig
from lmssc.core.initialization import wanted_components
from lmssc.core.parts.disk import DiskExecutor
from lmssc.core.parts.executor import Executor
from lmssc.core.parts.partition import part_bounds
from lmssc.data.memmap import MappedRows, stored_bytes
from lmssc.data.views import Views

UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}


@dataclass(frozen=True)
class MemoryModel:
    """Bytes that a fit holds in memory, on the safe side: with a limit of 1.5 GB, a million samples took 1.0 GB."""

    base: int = 400_000_000
    """Python and its libraries, and buffers that do not grow."""
    per_sample: int = 130
    """What every sample has, wherever its part is: its number in several orders, hash and label."""
    halo_factor: float = 3.0
    """Candidates of a neighbour search, relative to the samples of the part."""
    min_part: int = 1000
    """Smaller parts are almost nothing but halo."""

    def per_row(self, row_bytes: float, itemsize: int, r: int, c: int, k: int) -> float:
        """Bytes of each sample of the part that is in memory: the most of any step.

        Parameters
        ----------
        row_bytes : float
            Bytes of the row in all views, scaled.
        itemsize : int
            Bytes of a number.
        r, c, k : int
            Numbers of components, classes and neighbours.
        """
        coordinates, lists = r + 2 * c, 12 * 3 * (k + 1)
        edges = 3 * k * (4 + itemsize)
        latent = 2 * row_bytes + 7 * r * itemsize + edges
        search = coordinates * (itemsize + 4) + 8 * (coordinates + 2) * (1 + self.halo_factor) + 2 * lists
        graph = 4 * edges + lists
        scores = 8 * c * itemsize + 2 * edges
        return max(latent, search, graph, scores)

    def whole(self, row_bytes: float, itemsize: int, r: int, c: int, k: int) -> float:
        """Bytes of each sample of a fit that is not in parts: more than were ever measured."""
        lists, edges = 12 * 3 * (k + 1), 3 * k * (4 + itemsize)
        return row_bytes + 12 * r * itemsize + 16 * (r + 2 * c) + 2 * lists + 6 * edges + 14 * c * itemsize


MODEL = MemoryModel()


def parse_bytes(limit: str | int | float) -> int:
    """Bytes of a limit such as "8GB", "500 MB", or a number of bytes.

    Examples
    --------
    >>> parse_bytes("8GB"), parse_bytes("1.5 GiB"), parse_bytes(1000)
    (8000000000, 1610612736, 1000)
    """
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", limit.lower())
        if match is None or match[2] not in UNITS:
            raise ValueError(
                f"memory_limit={limit!r} is not a number of bytes: write it like '8GB', '500MB' or 8000000000"
            )
        return int(float(match[1]) * UNITS[match[2]])
    return int(limit)


@dataclass(frozen=True)
class Plan:
    """Where a fit in parts keeps them, and how much memory it may take.

    Attributes
    ----------
    memory_limit : int
        Bytes that the process may hold, besides data that were in memory before.
    folder : str or None
        Where to make the temporary folder; by default where the system has them.
    """

    memory_limit: int
    folder: str | None = None

    def count_parts(self, views: Views, config: FitConfig, n_components: int, n_classes: int) -> int:
        """Number of parts: a power of two.

        Examples
        --------
        >>> views = Views.from_arrays([np.zeros((1_000_000, 50), dtype=np.float32)])
        >>> [Plan(limit).count_parts(views, FitConfig(10), 10, 5) for limit in (8 * 10**9, 10**9)]
        [1, 4]
        """
        n_samples = views.n_samples
        row_bytes = sum(stored_bytes(view.data) for view in views) / n_samples
        per_row = MODEL.per_row(row_bytes, views.dtype.itemsize, n_components, n_classes, config.n_neighbors)
        left = self.memory_limit - MODEL.base - n_samples * MODEL.per_sample
        most = max(1, n_samples // MODEL.min_part)
        if left < n_samples * per_row / most:
            needed = MODEL.base + n_samples * MODEL.per_sample + n_samples * per_row / most
            raise ValueError(
                f"memory_limit is too small: {self.memory_limit / 1e6:,.0f} MB, but {n_samples:,} samples need at "
                f"least {np.ceil(needed / 1e6):,.0f} MB"
            )
        return 2 ** int(np.ceil(np.log2(max(1.0, n_samples * per_row / left))))

    def is_enough_for_all(self, views: Views, config: FitConfig, n_classes: int) -> bool:
        """Whether a fit that is not in parts takes less memory than the limit; a small one always does.

        A small fit may use other forms of measurements and graphs of single views, which a fit in parts never does.
        """
        if views.n_samples <= view_graph.MAX_SAMPLES:
            return True
        n_components = wanted_components(views, config)[0]
        in_memory = sum(stored_bytes(view.data) for view in views if not isinstance(view.data, MappedRows))
        shape = views.dtype.itemsize, n_components, n_classes, config.n_neighbors
        per_row = MODEL.per_sample + MODEL.whole(in_memory / views.n_samples, *shape)
        return MODEL.base + views.n_samples * per_row <= self.memory_limit

    def executor(self, bounds: NDArray) -> Executor:
        """New parts, in files."""
        return DiskExecutor(bounds, self.folder)

    def maker(self, views: Views, config: FitConfig, n_classes: int) -> Callable[[int], Executor]:
        """What makes the parts, given the number of components."""

        def make(n_components: int) -> Executor:
            n_parts = self.count_parts(views, config, n_components, n_classes)
            return self.executor(part_bounds(views.n_samples, n_parts))

        return make
