"""Answers that move at once: each label is a rank-one update of all class scores on a fixed graph."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmssc.core.active import uncertainties
from lmssc.core.graph import laplacian
from lmssc.core.influence import leave_one_out, solve_scores
from lmssc.core.label_system import LabelSolver, LabelSystem
from lmssc.core.label_updater import LabelUpdater
from lmssc.core.targets import Targets
from lmssc.estimators.unlabelled_fit import SampleGraph
from lmssc.numerics.scale import is_large
from lmssc.numerics.spatial_order import spatial_order
from lmssc.studio.agreement import consensus

# Relative residual of the solves: the scores are right to about 1e-8.
TOLERANCE = 1e-9
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
        self._updater = LabelUpdater(solver, solve_scores(solver))
        self._undo.clear()
        self._set_probabilities()

    @property
    def _reached(self) -> NDArray:
        """Which nodes a label reaches through the graph."""
        component = self._solver.original.component
        return np.isin(component, component[self.labelled])

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
        unreached = ~self._reached
        if len(self.classes) < 2:
            return np.ones(len(unreached))
        return uncertainties(self.probabilities, unreached)

    def set_label(self, row: int, label: str | None) -> int:
        """Give a sample a label, or take its label away; return for how many samples the answer changes.

        Taking back the last change restores everything to the bit.
        """
        before = self.labels.get(row)
        if before == label:
            return 0
        predicted = self._predicted()
        if self._undo and self._undo[-1][:2] == (row, label):
            _, _, state, self._codes = self._undo.pop()
            self._set_own(row, label)
            self._updater.restore(state)
            self._set_probabilities()
        else:
            self._remember(row, before)
            self._set_own(row, label)
            self._move(int(self.graph.nodes[row]))
        changed = predicted != self._predicted()
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

    def solve_column(self, node: int) -> NDArray:
        """What a label of a node needs, with the labels as they are; may be called without a lock."""
        return self._updater.column(node)

    def keep_columns(self, columns: dict[int, NDArray], rows: Sequence[int]) -> None:
        """Keep what `solve_column` gave for the present labels, and forget all but these samples."""
        self._updater.keep_columns(columns, [int(self.graph.nodes[row]) for row in rows])

    def reasons(self, row: int, n: int) -> list[tuple[int, float]]:
        """The labelled samples with most weight in the answer about a sample, and their weights.

        The weights of all labels sum to 1, less the share of the second opinion of the fit.
        """
        node = int(self.graph.nodes[row])
        if self._codes[node] >= 0 or not self.is_reached(row):
            return []
        weights = self._updater.weights(node)
        by_node: dict[int, list[int]] = {}
        for one in self.labels:
            by_node.setdefault(int(self.graph.nodes[one]), []).append(one)
        best = sorted(by_node, key=lambda one: (-weights[one], one))[:n]
        return [(by_node[one][0], float(weights[one])) for one in best if weights[one] > 0]

    def opinions_without_own(self) -> tuple[NDArray, NDArray]:
        """Labelled nodes, and the scores that each would have without its own label; see `leave_one_out`."""
        system = self._system(self._codes, len(self.classes))
        return leave_one_out(LabelSolver(system, self._order, tol=TOLERANCE), self.scores)

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
        size = sum(part.nbytes for part in state[:4]) + sum(column.nbytes for column in state[4].values())
        while self._undo and (len(self._undo) + 1) * size > MAX_UNDO_BYTES:
            self._undo.popleft()
        self._undo.append((row, before, state, self._codes.copy()))

    def _predicted(self) -> NDArray:
        return self.probabilities.argmax(axis=1)

    def _set_probabilities(self) -> None:
        self.probabilities = self.scores.copy()
        reached = self._reached
        # The second opinion alone is not enough for an answer.
        counts = np.bincount(self._codes[self.labelled], minlength=self.scores.shape[1])
        self.probabilities[~reached] = counts / max(counts.sum(), 1)
        free = ~self.labelled & reached
        used = np.unique(self._codes[self.labelled])
        if self._calibrate is not None and len(used) > 1:
            codes = np.where(self.labelled, np.searchsorted(used, self._codes), -1)
            calibrated = self._calibrate(self.scores[:, used], codes)
            self.probabilities[np.ix_(free, used)] = calibrated[free]
