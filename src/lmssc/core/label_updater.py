"""The scores of all samples while labels are given and taken back, with the graph fixed."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lmssc.core.influence import residuals, responses, solve_scores
from lmssc.core.label_system import LabelSolver


class LabelUpdater:
    """Keeps the scores of all samples up to date while labels are given and taken back, one at a time.

    Each change is a rank-one update along one column of K⁻¹, at a fixed graph. `prepare` solves for the columns of the
    samples that are asked about next; a change of one of these then takes no solve at all.

    Parameters
    ----------
    solver : LabelSolver
        Solver of the system, for large data with a spatial order.
    scores : ndarray of shape (n, c), optional
        F, the solution of the system; computed if it is not given.
    tol : float, optional
        Relative residual of the columns; that of the solver by default. 1e-4 is more than a display can show.

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        F with all changes so far; samples that no label reaches have the frequencies of the labelled classes.

    Examples
    --------
    >>> from scipy import sparse
    >>> from lmssc.core.label_system import LabelSystem
    >>> from lmssc.core.targets import Targets
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> updater = LabelUpdater(LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, -1, -1]), 2))))
    >>> updater.add(2, 1).round(2)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    >>> updater.remove(2).round(2)
    array([[1., 0.],
           [1., 0.],
           [1., 0.]])
    """

    def __init__(self, solver: LabelSolver, scores: NDArray | None = None, tol: float | None = None) -> None:
        system = solver.original
        self._solver, self._tol = solver, tol
        self._clamped, self._n_roots = system.clamped.copy(), system.n_roots.copy()
        self._labels = np.where(system.labelled[:, None], system.labels, 0).astype(np.float64)
        self._columns: dict[int, NDArray] = {}  # K⁻¹·e_i of prepared samples
        self._last: tuple[int, NDArray, float] | None = None  # the last label given, its response and stiffness
        self.scores = solve_scores(solver) if scores is None else scores.astype(np.float64)
        self._set_frequencies()

    @property
    def clamped(self) -> NDArray:
        """Which samples have a label that clamps their scores."""
        return self._clamped

    @property
    def reached(self) -> NDArray:
        """Which samples have a label in their component."""
        return self._n_roots[self._solver.original.component] > 0

    def prepare(self, samples: NDArray) -> None:
        """Solve for the columns of samples that may be labelled next, all together; others are forgotten."""
        wanted = [int(i) for i in samples if not self._clamped[i] and self.reached[i]]
        missing = np.array([i for i in wanted if i not in self._columns], dtype=np.intp)
        found = {i: self._columns[i] for i in wanted if i in self._columns}
        if len(missing):
            X, stiffness = responses(self._solver, missing, self._clamped, self.reached, self._tol)
            found |= {int(i): X[:, j] / stiffness[j] for j, i in enumerate(missing)}
        self._columns = found

    def add(self, sample: int, code: int) -> NDArray:
        """Give a sample the class `code`, whether it had a label or not.

        Parameters
        ----------
        sample : int
            The sample.
        code : int
            Index of its class.

        Returns
        -------
        ndarray of shape (n, c)
            `scores`.
        """
        target = np.zeros(self.scores.shape[1])
        target[code] = 1
        response, stiffness = self._response(sample)
        self.scores += response[:, None] * (target - self.scores[sample])
        self.scores[sample] = target
        if not self._clamped[sample]:
            for other, column in self._columns.items():
                if other != sample:
                    column -= response * column[sample]
            self._columns.pop(sample, None)
            system = self._solver.original
            self._n_roots[system.component[sample]] += system.shift[sample] == 0
            self._clamped[sample] = True
        self._labels[sample] = target
        self._last = (sample, response, stiffness)
        self._set_frequencies()
        return self.scores

    def remove(self, sample: int) -> NDArray:
        """Take back the label of a sample, one that was given to `add` or one of the system.

        Parameters
        ----------
        sample : int
            The sample; its label must clamp it.

        Returns
        -------
        ndarray of shape (n, c)
            `scores`.
        """
        if not self._clamped[sample]:
            raise ValueError(f"sample {sample} has no label to take back")
        system = self._solver.original
        response, stiffness = self._response(sample)
        if stiffness > 0:
            force = residuals(system, self.scores, np.array([sample]))[0]
            self.scores -= response[:, None] * (force / stiffness)
            for other, column in self._columns.items():
                column += response * (response[other] / stiffness)
        self._clamped[sample] = False
        self._n_roots[system.component[sample]] -= system.shift[sample] == 0
        self._columns = {other: column for other, column in self._columns.items() if self.reached[other]}
        self._labels[sample] = system.labels[sample] if 0 < system.trust[sample] < np.inf else 0
        self._last = None
        self._set_frequencies()
        return self.scores

    def is_prepared(self, sample: int) -> bool:
        """Whether a label of this sample takes no solve."""
        return sample in self._columns or not self.reached[sample]

    def column(self, sample: int) -> NDArray:
        """K⁻¹·e_i of a free sample that is reached, with the labels as they are; changes nothing."""
        X, stiffness = responses(self._solver, np.array([sample]), self._clamped.copy(), self.reached, self._tol)
        return X[:, 0] / stiffness[0]

    def keep_columns(self, columns: dict[int, NDArray], wanted: Iterable[int]) -> None:
        """Add columns that `column` gave for the present labels, and forget those of samples that are not wanted."""
        known = {**self._columns, **columns}
        self._columns = {sample: known[sample] for sample in wanted if sample in known and not self._clamped[sample]}

    def weights(self, sample: int) -> NDArray:
        """Weight of each clamping label, as it is now, in the scores of a sample; see `label_weights`.

        Examples
        --------
        >>> from scipy import sparse
        >>> from lmssc.core.label_system import LabelSystem
        >>> from lmssc.core.targets import Targets
        >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
        >>> updater = LabelUpdater(LabelSolver(LabelSystem.of(L, Targets.from_codes(np.array([0, -1, -1]), 2))))
        >>> _ = updater.add(2, 1)
        >>> updater.weights(1)
        array([0.5, 0. , 0.5])
        """
        result = np.zeros(len(self._clamped))
        if self._clamped[sample] or not self.reached[sample]:
            result[sample] = self._clamped[sample]
            return result
        response, stiffness = self._response(sample)
        labelled = np.flatnonzero(self._clamped)
        result[labelled] = np.maximum(-(self._solver.original.laplacian[labelled] @ response) / stiffness, 0)
        return result

    def state(self) -> tuple:
        """Everything that `add`, `remove` and `prepare` change, for `restore`."""
        columns = {sample: column.copy() for sample, column in self._columns.items()}
        return self.scores.copy(), self._clamped.copy(), self._n_roots.copy(), self._labels.copy(), columns, self._last

    def restore(self, state: tuple) -> None:
        """Go back to an earlier `state`, to the bit; it can be restored once."""
        self.scores, self._clamped, self._n_roots, self._labels, self._columns, self._last = state

    def _response(self, sample: int) -> tuple[NDArray, float]:
        """`responses` of one sample; stiffness 0 if nothing else holds its component."""
        system = self._solver.original
        own = system.component[sample]
        if self._n_roots[own] == (self._clamped[sample] and system.shift[sample] == 0):
            return (system.component == own).astype(np.float64), 0.0
        if self._last is not None and self._last[0] == sample:
            return self._last[1:]
        if sample in self._columns:
            column = self._columns[sample]
            return column / column[sample], float(1 / column[sample])
        X, stiffness = responses(self._solver, np.array([sample]), self._clamped, self.reached, self._tol)
        return X[:, 0], float(stiffness[0])

    def _set_frequencies(self) -> None:
        """Samples that no label reaches have the frequencies of the labelled classes."""
        unreached = ~self.reached
        if unreached.any():
            counts = self._labels.sum(axis=0)
            self.scores[unreached] = counts / max(counts.sum(), 1)
