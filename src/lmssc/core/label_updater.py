"""The scores of all samples while labels are given and taken back, with the graph fixed."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmssc.core.influence import residuals, responses, solve_scores
from lmssc.core.label_system import LabelSolver

# Changes that are remembered, to bring columns up to date whose solve began before them.
MAX_LATE_CHANGES = 4


class LateColumn(NamedTuple):
    """K⁻¹·e_i of a sample, with the labels that there were when it was asked for.

    Attributes
    ----------
    sample : int
        i.
    column : ndarray of shape (n,)
        The column.
    since : int
        Number of labels that had been given and taken back.
    """

    sample: int
    column: NDArray
    since: int


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
    >>> updater.weights(1)
    array([0.5, 0. , 0.5])
    >>> updater.without_own(2)
    (array([1., 0.]), array([1., 0., 0.]))
    >>> updater.remove(2).round(2)
    array([[1., 0.],
           [1., 0.],
           [1., 0.]])

    A solve that began before a label was given is not lost:

    >>> solve = updater.column_solve(1)
    >>> _ = updater.add(2, 1)
    >>> updater.keep_column(solve(), [1])
    >>> updater.is_prepared(1), updater.weights(1)
    (True, array([0.5, 0. , 0.5]))
    """

    def __init__(self, solver: LabelSolver, scores: NDArray | None = None, tol: float | None = None) -> None:
        system = solver.original
        self._solver, self._tol = solver, tol
        self._clamped, self._n_roots = system.clamped.copy(), system.n_roots.copy()
        self._changed_labels: dict[int, NDArray] = {}  # of samples whose label is not that of the system
        self._totals = system.labels[system.labelled].sum(axis=0, dtype=np.float64)  # of the labels, by class
        self._late: deque[tuple[int, NDArray, float]] = deque(maxlen=MAX_LATE_CHANGES)
        self._n_changes = 0
        self._columns: dict[int, NDArray] = {}  # K⁻¹·e_i of prepared samples
        self._last: tuple[int, NDArray, float] | None = None  # the sample asked for last, its response and stiffness
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
            self._columns.pop(sample, None)
            for column in self._columns.values():
                column -= response * column[sample]
            system = self._solver.original
            self._n_roots[system.component[sample]] += system.shift[sample] == 0
            self._clamped[sample] = True
            self._late.append((sample, response, 0.0))
            self._n_changes += 1
        self._set_label(sample, target)
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
        self._late.append((sample, response, stiffness))
        if stiffness == 0:  # nothing holds its component now
            self._late.clear()
        self._n_changes += 1
        trusted = 0 < system.trust[sample] < np.inf
        self._set_label(sample, system.labels[sample] if trusted else np.zeros(self.scores.shape[1]))
        self._last = None
        self._set_frequencies()
        return self.scores

    def is_prepared(self, sample: int) -> bool:
        """Whether a label of this sample takes no solve."""
        return sample in self._columns or not self.reached[sample]

    def column_solve(self, sample: int) -> Callable[[], LateColumn]:
        """The solve for the column of a free sample that is reached, to be called at any time, in any thread."""
        clamped, reached, since = self._clamped.copy(), self.reached, self._n_changes

        def solve() -> LateColumn:
            X, stiffness = responses(self._solver, np.array([sample]), clamped, reached, self._tol)
            return LateColumn(sample, X[:, 0] / stiffness[0], since)

        return solve

    def keep_column(self, late: LateColumn, wanted: Iterable[int]) -> None:
        """Keep a column for a later `add`, and forget those of samples that are not wanted.

        Parameters
        ----------
        late : LateColumn
            What `column_solve` gave. Labels that were given or taken back since then are brought in; if there were too
            many, it is dropped.
        wanted : iterable of int
            Samples whose columns are kept.
        """
        sample, column, since = late
        known = dict(self._columns)
        n_late = self._n_changes - since
        if n_late <= len(self._late) and not self._clamped[sample] and self.reached[sample]:
            for other, response, stiffness in list(self._late)[len(self._late) - n_late :]:
                # A label clamps `other`; without it `other` moves by its response.
                column += response * (response[sample] / stiffness if stiffness else -column[other])
            known[sample] = column
        self._columns = {one: known[one] for one in wanted if one in known}

    def weights(self, sample: int) -> NDArray:
        """Weight of each clamping label, as it is now, in the scores of a sample; see `label_weights`."""
        result = np.zeros(len(self._clamped))
        if self._clamped[sample] or not self.reached[sample]:
            result[sample] = self._clamped[sample]
            return result
        return self._weights(*self._response(sample))

    def without_own(self, sample: int) -> tuple[NDArray, NDArray]:
        """Scores that a clamped sample would have without its label, and the weight of each other label in them.

        Parameters
        ----------
        sample : int
            A sample that a label clamps.

        Returns
        -------
        scores : ndarray of shape (c,)
            NaN if nothing else reaches the sample.
        weights : ndarray of shape (n,)
        """
        response, stiffness = self._response(sample)
        if stiffness == 0:
            return np.full(self.scores.shape[1], np.nan), np.zeros(len(self._clamped))
        force = residuals(self._solver.original, self.scores, np.array([sample]))[0]
        return self.scores[sample] - force / stiffness, self._weights(response, stiffness)

    def _weights(self, response: NDArray, stiffness: float) -> NDArray:
        """Weights of the clamping labels in the scores of the sample with this response; its own label has none."""
        result = np.zeros(len(self._clamped))
        labelled = np.flatnonzero(self._clamped)
        result[labelled] = np.maximum(-(self._solver.original.laplacian[labelled] @ response) / stiffness, 0)
        return result

    def state(self) -> tuple:
        """Everything that `add`, `remove` and `prepare` change, for `restore`."""
        columns = {sample: column.copy() for sample, column in self._columns.items()}
        labels = dict(self._changed_labels), self._totals.copy()
        return self.scores.copy(), self._clamped.copy(), self._n_roots.copy(), columns, labels, self._last

    def restore(self, state: tuple) -> None:
        """Go back to an earlier `state`, to the bit; it can be restored once."""
        self.scores, self._clamped, self._n_roots, self._columns, labels, self._last = state
        self._changed_labels, self._totals = labels
        self._late.clear()  # columns that are being solved for are too late
        self._n_changes += 1

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
        self._last = (sample, X[:, 0], float(stiffness[0]))
        return self._last[1:]

    def _set_frequencies(self) -> None:
        """Samples that no label reaches have the frequencies of the labelled classes."""
        unreached = ~self.reached
        if unreached.any():
            self.scores[unreached] = self._totals / max(self._totals.sum(), 1)

    def _set_label(self, sample: int, label: NDArray) -> None:
        """Note the label of a sample, a distribution over the classes or zeros."""
        system = self._solver.original
        given = system.labels[sample] if system.labelled[sample] else np.zeros(len(label))
        self._totals = self._totals + label - self._changed_labels.get(sample, given)
        self._changed_labels[sample] = label
