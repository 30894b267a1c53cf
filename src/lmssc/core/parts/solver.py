"""Conjugate gradients in parts: vectors stay with the parts, and a step exchanges the halo of the directions."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.core.parts.executor import Executor, Message, Part, total
from lmssc.core.parts.halo import rows_for_others, with_halo
from lmssc.numerics.conjugate_gradient import Columns, iterate, rounding_of
from lmssc.numerics.sparse_ops import threaded_product
from lmssc.numerics.two_level_preconditioner import block_starts, coarse_factor, coarse_rows


class LinearSystem(Protocol):
    """The matrix M of a linear system over the edges of the graph, as a part sees it."""

    def outgoing(self, part: Part, rows: NDArray) -> NDArray:
        """What the neighbours of the samples of a part need of their rows."""

    def apply(self, part: Part, rows: NDArray, messages: Mapping[int, Message]) -> NDArray:
        """The rows of M·X of a part, from its own rows of X and what others sent."""

    def diagonal(self, part: Part) -> NDArray:
        """Diagonal of M, of shape (n, 1) or (n, m)."""


class CoarseLevel(NamedTuple):
    """The coarse level of `two_level_preconditioner`: factor of its matrix, and the first sample of each block."""

    factor: NDArray
    starts: NDArray

    def solve(self, sums: NDArray) -> NDArray:
        """Correction of each block, from the residual summed over its samples."""
        return linalg.cho_solve((self.factor, True), sums.astype(self.factor.dtype), check_finite=False)


class PartedSystem:
    """M·X = B, where each part has its rows of B as "cg_r" and of the first guess of X as "cg_x".

    Parameters
    ----------
    executor : Executor
        The parts.
    system : LinearSystem
        M.
    coarse : CoarseLevel, optional
        Added to the diagonal preconditioner, but for samples whose scores are "known".
    bound_rounding : bool
        Whether a column stops when its curvature is no more than rounding.
    """

    def __init__(
        self,
        executor: Executor,
        system: LinearSystem,
        coarse: CoarseLevel | None = None,
        *,
        bound_rounding: bool = False,
    ) -> None:
        self._executor, self._system, self._coarse = executor, system, coarse
        self._bound_rounding = bound_rounding
        self._ratio: NDArray | None = None
        self._correction: NDArray | None = None

    def begin(self) -> tuple[NDArray, NDArray, NDArray]:
        """⟨b, b⟩, ⟨r, z⟩ and ⟨r, r⟩ of each column."""
        size = total(self._executor.map(_sizes))
        found = self._executor.exchange(_send_guess, _begin, self._system, self._starts, size > 0)
        return size, *self._with_coarse(found)

    @property
    def _starts(self) -> NDArray | None:
        return None if self._coarse is None else self._coarse.starts

    def _with_coarse(self, found: list[tuple[NDArray, NDArray, NDArray]]) -> tuple[NDArray, NDArray]:
        """⟨r, z⟩ and ⟨r, r⟩, from those without the coarse level and the residual summed over blocks."""
        residual, left = total([part[:2] for part in found])
        if self._coarse is not None:
            sums = np.zeros((len(self._coarse.starts), len(residual)))
            for (first, _), (_, _, own) in zip(self._spans(), found, strict=True):
                sums[first : first + len(own)] += own
            self._correction = self._coarse.solve(sums)
            residual = residual + np.einsum("ij,ij->j", sums, self._correction)
        return residual, left

    def _spans(self) -> list[tuple[int, int]]:
        bounds, starts = self._executor.bounds, self._coarse.starts  # type: ignore[union-attr]
        return [_block_span(starts, int(first), int(end)) for first, end in pairwise(bounds)]

    def curvature(self) -> tuple[NDArray, NDArray]:
        """⟨p, Mp⟩ of each direction p, and how much of it is no more than rounding."""
        arguments = self._system, self._starts, self._correction, self._ratio, self._bound_rounding
        curvature, rounding = total(self._executor.exchange(_send_direction, _apply, *arguments))
        return curvature, rounding

    def advance(self, step: NDArray) -> tuple[NDArray, NDArray]:
        """⟨r, z⟩ and ⟨r, r⟩ after X has moved by `step` along the directions."""
        return self._with_coarse(self._executor.map(_advance, self._system, self._starts, step))

    def turn(self, ratio: NDArray) -> None:
        """The next directions: z, plus `ratio` times the last ones."""
        self._ratio = ratio


def solve(system: PartedSystem, tol: float, max_iter: int = 5000) -> None:
    """Solve a system; the parts have the solution as "cg_x"."""
    iterate(system, tol, max_iter)


def _sizes(part: Part) -> NDArray:
    rhs = part["cg_r"]
    return Columns(rhs.shape).dots((rhs, rhs))[0]


def _send_guess(part: Part, system: LinearSystem, starts: NDArray | None, used: NDArray) -> Mapping[int, Message]:
    guess = np.ascontiguousarray(np.where(used, part["cg_x"], part["cg_r"].dtype.type(0)))
    part["cg_x"] = guess
    return rows_for_others(part, "edge", system.outgoing(part, guess))


def _begin(
    part: Part, messages: Mapping[int, Message], system: LinearSystem, starts: NDArray | None, used: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    residual = np.ascontiguousarray(part["cg_r"] - system.apply(part, part["cg_x"], messages))
    part["cg_r"] = residual
    return _products(part, system, starts, residual)


def _products(
    part: Part, system: LinearSystem, starts: NDArray | None, residual: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """⟨r, D⁻¹r⟩ and ⟨r, r⟩ of each column, and r summed over the blocks that the part has samples of."""
    preconditioned = residual / system.diagonal(part)
    by_diagonal, left = Columns(residual.shape).dots((residual, preconditioned), (residual, residual))
    sums = np.empty((0, residual.shape[1]))
    if starts is not None:
        sums = np.add.reduceat(residual, _local_starts(part, starts), axis=0)
    return by_diagonal, left, sums


def _block_span(starts: NDArray, first: int, end: int) -> tuple[int, int]:
    """The first of the blocks that some consecutive samples are in, and the one after the last."""
    return int(np.searchsorted(starts, first, side="right")) - 1, int(np.searchsorted(starts, end))


def _local_starts(part: Part, starts: NDArray) -> NDArray:
    first, end = _block_span(starts, part.start, part.stop)
    return np.maximum(starts[first:end] - part.start, 0)


def _send_direction(
    part: Part,
    system: LinearSystem,
    starts: NDArray | None,
    correction: NDArray | None,
    ratio: NDArray | None,
    bound_rounding: bool,
) -> Mapping[int, Message]:
    """Turn, and send the new directions."""
    direction = part["cg_r"] / system.diagonal(part)
    if correction is not None and starts is not None:
        first, end = _block_span(starts, part.start, part.stop)
        sizes = np.diff(_local_starts(part, starts), append=len(part))
        spread = np.repeat(correction[first:end].astype(direction.dtype), sizes, axis=0)
        spread[part["known"]] = 0
        direction += spread
    if ratio is not None:
        direction += part["cg_p"] * ratio.astype(direction.dtype)
    part["cg_p"] = direction
    return rows_for_others(part, "edge", system.outgoing(part, direction))


def _apply(
    part: Part,
    messages: Mapping[int, Message],
    system: LinearSystem,
    starts: NDArray | None,
    correction: NDArray | None,
    ratio: NDArray | None,
    bound_rounding: bool,
) -> tuple[NDArray, NDArray]:
    direction = part["cg_p"]
    image = system.apply(part, direction, messages)
    part["cg_image"] = image
    columns = Columns(direction.shape)
    (curvature,) = columns.dots((direction, image))
    if not bound_rounding:
        return curvature, np.zeros_like(curvature)
    return curvature, columns.squares(direction, rounding_of(system.diagonal(part)[:, 0], direction.dtype))


def _advance(
    part: Part, system: LinearSystem, starts: NDArray | None, step: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    direction, image = part["cg_p"], part["cg_image"]
    step = step.astype(direction.dtype)
    part["cg_x"] = part["cg_x"] + step * direction
    residual = part["cg_r"] - step * image
    part["cg_r"] = residual
    return _products(part, system, starts, residual)


def coarse_level(executor: Executor, dtype: np.dtype) -> CoarseLevel:
    """The coarse level of the unknown scores, those that are not "known"."""
    starts = block_starts(int(executor.bounds[-1]))
    rows = np.zeros((len(starts), len(starts) + 1))
    found = executor.exchange(_send_known, _coarse_rows, starts)
    for first, own in found:
        rows[first : first + len(own)] += own
    return CoarseLevel(coarse_factor(rows, dtype), starts)


def _send_known(part: Part, _: NDArray) -> Mapping[int, Message]:
    return rows_for_others(part, "edge", part["known"])


def _coarse_rows(part: Part, messages: Mapping[int, Message], starts: NDArray) -> tuple[int, NDArray]:
    known = with_halo(part["known"], messages)
    samples = np.concatenate([np.arange(part.start, part.stop), part["edge_halo"]])
    block = np.searchsorted(starts, samples, side="right") - 1
    block[known] = len(starts)
    rows: sparse.csr_array = part["laplacian"]
    blocks = block.astype(rows.indices.dtype)[rows.indices]
    first = _block_span(starts, part.start, part.stop)[0]
    return first, coarse_rows(rows, part["known"], blocks, _local_starts(part, starts), len(starts))


def product(part: Part, rows: NDArray, messages: Mapping[int, Message]) -> NDArray:
    """The rows of L·X of a part."""
    return threaded_product(part["laplacian"])(with_halo(rows, messages))
