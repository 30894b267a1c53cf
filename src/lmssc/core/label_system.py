"""The linear system that the class scores solve at a fixed graph, and its solver for many right-hand sides."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.targets import Targets
from lmssc.numerics.blocked_cg import MIN_COLUMNS, BlockedMatrix, CoarseBlocks
from lmssc.numerics.conjugate_gradient import conjugate_gradient, solver_tolerance
from lmssc.numerics.sparse_ops import components_of, threaded_product
from lmssc.numerics.two_level_preconditioner import coarse_correction, coarse_level

# With so few right-hand sides plain products are several times faster: starting threads costs as much for one column as
# for ten.
MAX_PLAIN_COLUMNS = 2


@dataclass(frozen=True)
class LabelSystem:
    """What F minimises at a fixed graph: Tr(FᵀLF) + Σ_i μ_i‖f_i − y_i‖² + Σ_i a_i‖f_i − q_i‖².

    μ_i = ∞ clamps f_i to y_i, as propagation does with labels; μ_i = 0 is a sample without a label. The last term pulls
    samples towards an opinion that does not come from the graph, such as that of a regression.

    Attributes
    ----------
    laplacian : csr_array of shape (n, n)
        L.
    labels : ndarray of shape (n, c)
        Y; zeros without a label.
    trust : ndarray of shape (n,)
        μ.
    anchor : ndarray of shape (n,), or None
        a; None is 0 for all samples.
    opinion : ndarray of shape (n, c), or None
        Q.
    """

    laplacian: sparse.csr_array
    labels: NDArray
    trust: NDArray
    anchor: NDArray | None = None
    opinion: NDArray | None = None

    @classmethod
    def of(cls, laplacian: sparse.csr_array, targets: Targets) -> "LabelSystem":
        """The system of plain propagation, F_u = −L_uu⁻¹·L_ul·Y_l.

        Examples
        --------
        >>> L = sparse.csr_array([[1.0, -1.0], [-1.0, 1.0]])
        >>> LabelSystem.of(L, Targets.from_codes(np.array([0, -1]), 2)).trust
        array([inf,  0.])
        """
        return cls(laplacian, targets.matrix(laplacian.dtype), np.where(targets.labelled, np.inf, 0.0))

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.trust)

    @cached_property
    def labelled(self) -> NDArray:
        """Which samples have a label."""
        return self.trust > 0

    @cached_property
    def clamped(self) -> NDArray:
        """Which samples have the scores of their label, whatever their neighbours say."""
        return np.isinf(self.trust)

    @cached_property
    def shift(self) -> NDArray:
        """What is added to the diagonal of L: μ + a, without the clamped samples."""
        shift = np.where(self.clamped, 0.0, self.trust)
        return shift if self.anchor is None else shift + self.anchor

    @cached_property
    def component(self) -> NDArray:
        """Connected component of each sample."""
        return components_of(self.laplacian)[1]

    @cached_property
    def n_roots(self) -> NDArray:
        """Number of samples in each component that a label clamps, or a label or an opinion pulls."""
        return np.bincount(self.component, self.clamped | (self.shift > 0)).astype(np.intp)

    @property
    def reached(self) -> NDArray:
        """Which samples have a label or an opinion in their component; the others have no solution."""
        return self.n_roots[self.component] > 0

    @cached_property
    def constant(self) -> NDArray:
        """Right-hand side of the samples that are not clamped, without what clamped neighbours add: μ·Y + a·Q."""
        result = np.where(self.clamped, 0.0, self.trust)[:, None] * self.labels
        if self.anchor is not None and self.opinion is not None:
            result = result + self.anchor[:, None] * self.opinion
        return result.astype(self.laplacian.dtype, copy=False)

    def take(self, order: NDArray, dtype: np.dtype | type | None = None) -> "LabelSystem":
        """The system with its samples in another order, and L in another precision."""
        laplacian = self.laplacian if dtype is None else self.laplacian.astype(dtype)
        result = LabelSystem(
            laplacian[order][:, order].tocsr(),
            self.labels[order],
            self.trust[order],
            None if self.anchor is None else self.anchor[order],
            None if self.opinion is None else self.opinion[order],
        )
        vars(result)["component"] = self.component[order]  # as the cached property: they need not be found again
        return result


class LabelSolver:
    """Solves (L + diag(μ + a))·X = B over the samples that are not held, by conjugate gradients.

    Preconditioner and order are made once, for any number of solves.

    Parameters
    ----------
    system : LabelSystem
        The system.
    order : ndarray of int of shape (n,), optional
        Order in which samples that are close in space have close indices: the solver then has a coarse level, and its
        products are faster. See `lmssc.numerics.spatial_order`.
    tol : float
        Relative residual.
    dtype : dtype, optional
        Precision of the solves; that of L by default.

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> solver = LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, -1, 1]), 2)))
    >>> solver.solve(np.eye(3)[:, [1]]).ravel()
    array([0. , 0.5, 0. ])
    """

    def __init__(
        self,
        system: LabelSystem,
        order: NDArray | None = None,
        tol: float = 1e-12,
        dtype: np.dtype | type | None = None,
    ) -> None:
        self.original = system
        if order is not None:
            self.system = system.take(order, dtype)
        else:
            self.system = system if dtype is None else replace(system, laplacian=system.laplacian.astype(dtype))
        self.order = order
        self.tol = tol
        self._positions = None if order is None else np.argsort(order)
        self._held = self.system.clamped | ~self.system.reached
        # Opinions make the system well conditioned, and are not in the coarse level.
        self._has_coarse = order is not None and system.anchor is None

    @cached_property
    def _product(self) -> Callable[..., NDArray]:
        return threaded_product(self.system.laplacian)

    @cached_property
    def _diagonal(self) -> NDArray:
        diagonal = self.system.laplacian.diagonal() + self.system.shift
        diagonal[diagonal <= 0] = 1
        return diagonal

    @cached_property
    def _coarse(self) -> Callable[..., None] | None:
        return coarse_correction(self.system.laplacian, self._held) if self._has_coarse else None

    @cached_property
    def _free(self) -> NDArray:
        """Samples that are not held by default, in the order of the solver."""
        return np.flatnonzero(~self._held)

    @cached_property
    def _blocked(self) -> BlockedMatrix:
        """The system of the samples that are not held by default."""
        inner, free = self.system, self._free
        matrix = inner.laplacian[free][:, free].tocsr()
        shift = inner.shift[free].astype(matrix.dtype)
        if shift.any():
            matrix = (matrix + sparse.diags_array(shift)).tocsr()
        if not self._has_coarse:
            return BlockedMatrix(matrix)
        starts, factor = coarse_level(inner.laplacian, self._held)
        return BlockedMatrix(matrix, CoarseBlocks(np.searchsorted(free, starts), factor))

    def solve_outputs(self, outputs: sparse.csr_array, rows: sparse.csr_array) -> NDArray:
        """C·X for right-hand sides that are the rows of a sparse matrix; with many of them, X is never formed.

        Parameters
        ----------
        outputs : csr_array of shape (p, n)
            C.
        rows : csr_array of shape (m, n)
            Bᵀ.

        Returns
        -------
        ndarray of shape (p, m)
        """
        if self.order is None or rows.shape[0] < MIN_COLUMNS:
            X = self.solve(rows.toarray().T)
            return outputs.astype(X.dtype, copy=False) @ X
        dtype, samples = self.system.laplacian.dtype, self.order[self._free]
        place = np.full(rows.shape[1], -1)
        place[samples] = np.arange(len(samples))
        entries = rows.tocoo()
        free = place[entries.col] >= 0
        rhs = np.zeros((len(samples), rows.shape[0]), dtype=dtype)
        rhs[place[entries.col[free]], entries.row[free]] = entries.data[free]
        taken = outputs[:, samples].astype(dtype, copy=False)
        return self._blocked.solve(rhs, solver_tolerance(dtype, self.tol), taken)

    def solve(self, rhs: NDArray, held: NDArray | None = None, tol: float | None = None) -> NDArray:
        """X for a right-hand side B, zero where samples are held.

        Parameters
        ----------
        rhs : ndarray of shape (n, m)
            B; its rows of held samples do not count.
        held : ndarray of bool of shape (n,), optional
            Samples that are held; by default those that labels clamp, and those that nothing reaches.
        tol : float, optional
            Relative residual; that of the solver by default.

        Returns
        -------
        ndarray of shape (n, m)
        """
        if held is None:
            if self.order is not None and rhs.shape[1] >= MIN_COLUMNS:
                return self._solve_blocked(rhs, self.tol if tol is None else tol)
            held = self._held
        elif self.order is not None:
            held = held[self.order]
        fixed = np.flatnonzero(held)
        dtype = self.system.laplacian.dtype
        right = np.array(rhs if self.order is None else rhs[self.order], dtype=dtype, order="C")
        right[fixed] = 0
        few = right.shape[1] <= MAX_PLAIN_COLUMNS
        solution = conjugate_gradient(
            self._operator(fixed, few),
            right,
            np.zeros_like(right),
            self._preconditioner(fixed, right, few),
            tol=solver_tolerance(dtype, self.tol if tol is None else tol),
        )
        return solution if self._positions is None else solution[self._positions]

    def _solve_blocked(self, rhs: NDArray, tol: float) -> NDArray:
        """`solve` for many right-hand sides."""
        dtype, samples = self.system.laplacian.dtype, self.order[self._free]  # type: ignore[index]
        result = np.zeros(rhs.shape, dtype=dtype)
        right = np.array(rhs[samples], dtype=dtype, order="C")
        result[samples] = self._blocked.solve(right, solver_tolerance(dtype, tol))
        return result

    def _operator(self, fixed: NDArray, few: bool) -> Callable[[NDArray], NDArray]:
        product = self.system.laplacian.__matmul__ if few else self._product
        shift = self.system.shift.astype(self.system.laplacian.dtype, copy=False)[:, None]
        shifted = bool(shift.any())

        def operator(X: NDArray) -> NDArray:
            image = product(X)
            if shifted:
                image += shift * X
            image[fixed] = 0
            return image

        return operator

    def _preconditioner(self, fixed: NDArray, like: NDArray, few: bool) -> Callable[[NDArray], NDArray]:
        inverse = np.repeat((1 / self._diagonal).astype(like.dtype)[:, None], like.shape[1], axis=1)

        def precondition(residual: NDArray) -> NDArray:
            result = residual * inverse
            if self._coarse is not None:
                self._coarse(residual, result, plain=few)
            result[fixed] = 0
            return result

        return precondition
