"""Answers that move at once: each label is a rank-one update of all class scores on a fixed graph."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmssc.core.active import uncertainties
from lmssc.core.calibration import Calibration
from lmssc.core.influence import leave_one_out, solve_scores
from lmssc.core.label_system import LabelSolver, LabelSystem
from lmssc.core.label_updater import LabelUpdater, LateColumn
from lmssc.core.laplacian import laplacian
from lmssc.core.prior_correction import balance
from lmssc.core.targets import Targets
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.unlabelled_fit import SampleGraph
from lmssc.numerics.scale import is_large
from lmssc.numerics.spatial_order import spatial_order
from lmssc.studio.agreement import consensus

# Relative residual of the solves, and of what each label moves: the scores are right to about 1e-7 after 50 labels.
TOLERANCE, COLUMN_TOLERANCE = 1e-9, 1e-8
# The same where no digits are shown.
OPINION_TOLERANCE = 1e-4
# Classes that may come up before all is solved again.
SPARE_CLASSES = 8
# Changes that can be taken back to the bit, and bytes that this may take.
MAX_UNDO, MAX_UNDO_BYTES = 50, 400_000_000

Calibrate = Callable[[NDArray, NDArray], NDArray]
"""(scores of the nodes, their class codes) ↦ probabilities."""


class LiveAnswers:
    """The answers about all samples on one graph, with the labels so far.

    Parameters
    ----------
    graph : SampleGraph
        The graph; identical samples are one node of it.
    classes : sequence of str
        Names of the classes, which may grow.
    labels : mapping of int to str
        Label of each labelled sample, by row.
    calibrate : callable, optional
        Makes probabilities of scores; by default the scores themselves are shown.

    Attributes
    ----------
    probabilities : ndarray of shape (m, c)
        Of each node.
    predicted : ndarray of int of shape (m,)
        Most likely class of each node.

    Examples
    --------
    >>> from scipy import sparse
    >>> links = sparse.csr_array([[0, 1.0, 0], [1, 0, 1], [0, 1, 0]])
    >>> graph = SampleGraph(links, np.arange(3), np.arange(3), np.zeros((3, 1)))
    >>> live = LiveAnswers(graph, ["a", "b"], {0: "a"})
    >>> live.set_label(2, "b"), live.of_sample(1)
    (0, array([0.5, 0.5]))
    >>> live.set_label(2, None), live.of_sample(1)
    (1, array([1., 0.]))
    """

    def __init__(
        self,
        graph: SampleGraph,
        classes: Sequence[str],
        labels: Mapping[int, str],
        calibrate: Calibrate | None = None,
    ) -> None:
        self.graph, self.classes, self.labels = graph, list(classes), dict(labels)
        self._calibrate = calibrate
        self._laplacian = laplacian(graph.graph.astype(np.float64)) if graph.laplacian is None else graph.laplacian
        self._order = spatial_order(graph.points) if is_large(len(graph.samples)) else None
        self._uncertainty: NDArray | None = None
        self._undo: deque[tuple[int, str | None, tuple, NDArray]] = deque(maxlen=MAX_UNDO)
        self._start()

    def _start(self) -> None:
        """Solve for the scores of all nodes with the labels so far."""
        codes = np.full(len(self.graph.samples), -1)
        for node in {int(self.graph.nodes[row]) for row in self.labels}:
            label = self._label_of_node(node)
            if label is not None:
                codes[node] = self.classes.index(label)
        solver = LabelSolver(self._system(codes, len(self.classes) + SPARE_CLASSES), self._order, tol=TOLERANCE)
        self._solver, self._codes = solver, codes
        self._updater = LabelUpdater(solver, solve_scores(solver), COLUMN_TOLERANCE)
        self._undo.clear()
        self._set_probabilities()

    @property
    def labelled(self) -> NDArray:
        """Which nodes have a label."""
        return self._codes >= 0

    @property
    def scores(self) -> NDArray:
        """F of the nodes."""
        return self._updater.scores[:, : max(len(self.classes), 1)]

    @property
    def uncertainty(self) -> NDArray:
        """Of each node: 1 minus the margin of its two most likely classes; 1 where no label reaches."""
        if self._uncertainty is None:
            few = len(self.classes) < 2
            self._uncertainty = (
                np.ones(len(self._reached)) if few else uncertainties(self.probabilities, ~self._reached)
            )
        return self._uncertainty

    def set_label(self, row: int, label: str | None) -> int:
        """Give a sample a label, or take its label away; return for how many samples the answer changes.

        Taking back the last change restores everything to the bit.
        """
        before = self.labels.get(row)
        if before == label:
            return 0
        predicted = self.predicted
        if self._undo and self._undo[-1][:2] == (row, label):
            _, _, state, self._codes = self._undo.pop()
            self._set_own(row, label)
            self._updater.restore(state)
            self._set_probabilities()
        else:
            self._remember(row, before)
            self._set_own(row, label)
            self._move(int(self.graph.nodes[row]))
        changed = predicted != self.predicted
        changed[self.labelled] = False
        return int(changed[self.graph.nodes].sum())

    def add_classes(self, classes: Sequence[str]) -> None:
        """Let the classes grow; their order stays."""
        self.classes = list(classes)
        if len(self.classes) > self._updater.scores.shape[1]:
            self._start()
        else:
            self._set_probabilities()

    def of_sample(self, row: int) -> NDArray:
        """Probability of each class for a sample."""
        return self.probabilities[self.graph.nodes[row]]

    def is_reached(self, row: int) -> bool:
        """Whether a label reaches a sample through the graph."""
        return bool(self._reached[self.graph.nodes[row]])

    def prepare(self, rows: Sequence[int]) -> None:
        """Solve beforehand what labels of these samples will need."""
        self._updater.prepare(np.array([self.graph.nodes[row] for row in rows], dtype=np.intp))

    def missing_columns(self, rows: Sequence[int]) -> list[int]:
        """Nodes of samples whose labels would still take a solve."""
        nodes = dict.fromkeys(int(self.graph.nodes[row]) for row in rows)
        return [node for node in nodes if self._codes[node] < 0 and not self._updater.is_prepared(node)]

    def column_solve(self, node: int) -> Callable[[], LateColumn]:
        """The solve that a label of a node needs, with the labels as they are; it may be called without a lock."""
        return self._updater.column_solve(node)

    def keep_column(self, column: LateColumn, rows: Sequence[int]) -> None:
        """Keep what `column_solve` gave, and forget all but these samples."""
        self._updater.keep_column(column, [int(self.graph.nodes[row]) for row in rows])

    def without_own(self, row: int) -> NDArray:
        """Probability of each class for a labelled sample without its own label; zeros if no other reaches it."""
        node = int(self.graph.nodes[row])
        opinion = self._updater.without_own(node)[0][: self.probabilities.shape[1]]
        if np.isnan(opinion).any():
            return np.zeros_like(opinion)
        scores, kept = self.scores.copy(), self._codes.copy()
        scores[node], kept[node] = np.maximum(opinion, 0), -1
        return self._calibrated(scores, self._codes, kept)[node]

    def reasons(self, row: int, n: int) -> list[tuple[int, float]]:
        """The labelled samples with most weight in the answer about a sample, and their weights; its own has none.

        The weights of all labels sum to 1, less the share of the second opinion of the fit.
        """
        node = int(self.graph.nodes[row])
        if not self.is_reached(row):
            return []
        own = self._codes[node] >= 0
        weights = self._updater.without_own(node)[1] if own else self._updater.weights(node)
        by_node: dict[int, list[int]] = {}
        for one in self.labels:
            by_node.setdefault(int(self.graph.nodes[one]), []).append(one)
        best = sorted(by_node, key=lambda one: (-weights[one], one))[:n]
        return [(by_node[one][0], float(weights[one])) for one in best if weights[one] > 0]

    def all_without_own(self) -> Callable[[], tuple[NDArray, NDArray]]:
        """The function that finds the labelled nodes and `without_own` of each, with the labels as they are.

        It takes one solve for each label, and may be called without a lock.
        """
        codes, scores = self._codes.copy(), self.scores.copy()
        system = self._system(codes, scores.shape[1])

        def solve() -> tuple[NDArray, NDArray]:
            nodes, opinions = leave_one_out(LabelSolver(system, self._order, tol=OPINION_TOLERANCE), scores)
            known = ~np.isnan(opinions).any(axis=1)
            scores[nodes[known]] = np.maximum(opinions[known], 0)
            probabilities = self._calibrated(scores, codes, np.full_like(codes, -1))
            return nodes, np.where(known[:, None], probabilities[nodes], 0)

        return solve

    def _system(self, codes: NDArray, n_classes: int) -> LabelSystem:
        """What the scores solve: propagation over the graph, with the second opinion of the fit if it has one."""
        system = LabelSystem.of(self._laplacian, Targets.from_codes(codes, n_classes))
        if self.graph.opinion is None:
            return system
        opinion = np.zeros((len(codes), n_classes))
        opinion[:, [self.classes.index(name) for name in self.graph.classes]] = self.graph.opinion.scores
        return replace(system, anchor=np.full(len(codes), self.graph.opinion.weight), opinion=opinion)

    def copy_labels(self) -> dict[int, str]:
        """The labels so far."""
        return dict(self.labels)

    def _set_own(self, row: int, label: str | None) -> None:
        if label is None:
            self.labels.pop(row, None)
        else:
            self.labels[row] = label

    def _label_of_node(self, node: int) -> str | None:
        """The label of identical samples: of the majority; none in a tie."""
        found = [label for row, label in self.labels.items() if self.graph.nodes[row] == node]
        return consensus(found)

    def _move(self, node: int) -> None:
        """Update all scores after the label of a node changed."""
        label = self._label_of_node(node)
        if label is None:
            if self._codes[node] >= 0:
                self._updater.remove(node)
        else:
            self._updater.add(node, self.classes.index(label))
        self._codes[node] = -1 if label is None else self.classes.index(label)
        self._set_probabilities()

    def _remember(self, row: int, before: str | None) -> None:
        state = self._updater.state()
        size = sum(part.nbytes for part in state[:3]) + sum(column.nbytes for column in state[3].values())
        while self._undo and (len(self._undo) + 1) * size > MAX_UNDO_BYTES:
            self._undo.popleft()
        self._undo.append((row, before, state, self._codes.copy()))

    def _set_probabilities(self) -> None:
        component = self._solver.original.component
        holds_label = np.zeros(component.max() + 1, dtype=bool)
        holds_label[component[self.labelled]] = True
        self._reached = holds_label[component]
        self.probabilities = self._calibrated(self.scores, self._codes, self._codes)
        self.predicted = self.probabilities.argmax(axis=1)
        self._uncertainty = None

    def _calibrated(self, scores: NDArray, codes: NDArray, kept: NDArray) -> NDArray:
        """Probabilities of the classes, given the scores of all nodes and their labels; those `kept` are certain."""
        labelled = codes >= 0
        used = np.unique(codes[labelled])
        if self._calibrate is None or len(used) < 2:
            result = scores.copy()
        else:
            ranks = np.full(len(codes), -1)
            ranks[labelled] = np.searchsorted(used, codes[labelled])
            calibrated = self._calibrate(scores[:, used], ranks)
            result = np.zeros_like(scores)
            result[:, used] = calibrated
            result[kept >= 0] = scores[kept >= 0]
        # The second opinion alone is not enough for an answer.
        counts = np.bincount(codes[labelled], minlength=scores.shape[1])
        result[~self._reached] = counts / max(counts.sum(), 1)
        return result


def calibration_of(clf: LMSSC) -> Calibrate:
    """How the last fit turned scores into probabilities."""
    calibration = Calibration(clf.temperature_, clf.doubt_)

    def calibrate(scores: NDArray, codes: NDArray) -> NDArray:
        return calibration(balance(scores, codes, clf.balance))

    return calibrate
