"""The map of the learned graph on the page: where the samples lie, and what the model thinks of each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.estimators.unlabelled_fit import SampleGraph
from lmssc.numerics.graph_layout import graph_layout
from lmssc.report.charts import place_names
from lmssc.studio.live_answers import LiveAnswers

# Samples on the map.
MAX_DOTS = 100_000


class LiveMap:
    """A layout of one graph, turned so that it looks like the one before it.

    Parameters
    ----------
    graph : SampleGraph
        The graph.
    before : LiveMap, optional
        The map of the same samples before.

    Attributes
    ----------
    graph : SampleGraph
        The graph.
    version : int
        Number of layouts so far.

    Examples
    --------
    >>> from scipy import sparse
    >>> links = sparse.csr_array([[0, 1.0, 0], [1, 0, 1], [0, 1, 0]])
    >>> graph = SampleGraph(links, np.arange(3), np.arange(3), np.zeros((3, 1)))
    >>> drawn = LiveMap(graph).draw(MapDots(LiveAnswers(graph, ["a", "b"], {0: "a"})), since=0)
    >>> drawn["label"], drawn["given"], len(drawn["x"])
    ([0, 0, 0], [1, 0, 0], 3)
    """

    def __init__(self, graph: SampleGraph, before: "LiveMap | None" = None) -> None:
        self.graph, self.version = graph, 1
        self._positions = _scaled(graph_layout(graph.graph))[graph.nodes]
        if before is not None:
            self._positions, self.version = _aligned(self._positions, before._positions), before.version + 1

    def draw(self, dots: "MapDots", since: int) -> dict[str, Any]:
        """What the page draws; positions are left out if they are those of the version `since`."""
        rows = np.arange(len(self._positions))
        rows = rows[:: max(1, -(-len(rows) // MAX_DOTS))]
        labels = dots.labels[rows]
        found = {
            "version": self.version,
            "label": labels.tolist(),
            "sure": dots.percents[rows].tolist(),
            "given": dots.given[rows].tolist(),
            "names": place_names(self._positions[rows], labels, dots.classes) if dots.classes else [],
        }
        if since != self.version:
            x, y = self._positions[rows].T.tolist()
            found |= {"rows": rows.tolist(), "x": x, "y": y}
        return found


class MapDots:
    """What the map shows of each sample, as the answers are now: they may move on while it is drawn.

    Parameters
    ----------
    live : LiveAnswers
        The answers.

    Attributes
    ----------
    classes : list of str
        Names of the classes; none without labels.
    labels, percents, given : ndarray of int of shape (n,)
        Most likely class of each sample (−1 without labels), its probability in percent, and 1 if it has a label.
    """

    def __init__(self, live: LiveAnswers) -> None:
        nodes = live.graph.nodes
        self.classes = list(live.classes) if live.labels else []
        self.labels = live.predicted[nodes] if live.labels else np.full(len(nodes), -1)
        self.percents = np.rint(100 * live.probabilities.max(axis=1)).astype(int)[nodes]
        self.given = live.labelled.astype(int)[nodes]


def _scaled(positions: NDArray) -> NDArray:
    """Positions from 0 to 1000, proportions kept, the second coordinate downwards."""
    centred = positions - (positions.min(axis=0) + positions.max(axis=0)) / 2
    span = max(float(np.ptp(positions, axis=0).max()), 1e-9)
    return (centred * [1, -1] * (980 / span) + 500).round(1)


def _aligned(positions: NDArray, like: NDArray) -> NDArray:
    """Positions turned or mirrored to lie as near as possible to others (Procrustes)."""
    left, _, right = np.linalg.svd((positions - 500).T @ (like - 500))
    turned = (positions - 500) @ left @ right
    return (turned * min(490 / max(float(np.abs(turned).max()), 1.0), 1.0) + 500).round(1)
