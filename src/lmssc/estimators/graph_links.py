"""Graphs of an estimator: what `fit` stores of them, and the links of samples given later."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.conformal import count_of_scarce_kinds
from lmssc.core.label_links import has_links_from_labels, without_links_among
from lmssc.data.canonical_order import sample_keys
from lmssc.data.dataset import Dataset
from lmssc.data.link_order import drop_own_links, link_keys, merge_columns
from lmssc.data.link_reading import read_new_graphs, split_graphs
from lmssc.data.validation import is_view_collection
from lmssc.data.view import RawView
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.problem import Numbering, Problem


class GraphLinksMixin:
    """Checks the graphs of `fit`, and reads the links of other samples to those of `fit`."""

    # Whether `_fit_method` uses links between the samples; `_predict_linked` then scores new samples that have links.
    _takes_graphs = False
    graph_names_: list[str]
    _graph_order: list[int]
    _link_columns: dict[str, list[str]]
    _link_keys: NDArray | None
    _nodes: NDArray

    def _check_graphs(self, dataset: Dataset) -> None:
        """Store the names of the graphs; refuse them if the method has no use for them."""
        self.graph_names_ = dataset.graph_names
        self._link_columns = {graph.name: graph.columns for graph in dataset.graphs if graph.columns is not None}
        if dataset.graphs and not self._takes_graphs:
            raise ValueError(
                f"{type(self).__name__} takes views of features only, but {', '.join(map(repr, dataset.graph_names))} "
                "is a Graph: leave it out, or use LMSSC, AMGL or GFHF"
            )

    def _set_graphs(self, problem: Problem, numbering: Numbering) -> None:
        """Store the order of the graphs, and what recognises the samples of `fit` by features and links."""
        self._graph_order, self._link_keys = numbering.graph_order, None
        if problem.graphs:
            self._link_keys = link_keys(sample_keys(problem.views), [graph.links for graph in problem.graphs])

    def _warn_of_unlinked(self, kinds: NDArray, n_views: int, labelled: NDArray) -> None:
        """Warn of samples without links if nearly all labelled ones have links; `kinds` are those of `kinds_of`."""
        n_without = kinds // (n_views + 1)
        if n_without.any() and not labelled.all():
            count = count_of_scarce_kinds(n_without[labelled], n_without[~labelled])
            if count:
                warn_caller(
                    f"{count} unlabelled samples have no links, or in other graphs than nearly all labelled: their "
                    "confidence is measured on samples that have what they lack, and may be too high. Label some of "
                    "them",
                )

    def _by_graph(self, values: NDArray) -> dict[str, Any]:
        """Values of the graphs in canonical order, by name in the order of the input."""
        names = [self.graph_names_[g] for g in self._graph_order]
        named = dict(zip(names, values.tolist(), strict=True))
        return {name: named[name] for name in self.graph_names_}

    def _informative_links(self, problem: Problem) -> list[sparse.csr_array]:
        """The links of the graphs, without those among labelled samples if some seem to be made from the labels.

        Such links find every held-out label. Links among labelled samples do not change the labels of others.
        """
        doubtful = np.array([has_links_from_labels(graph.links, problem.targets) for graph in problem.graphs], bool)
        if doubtful.any():
            names = [name for name, doubt in self._by_graph(doubtful).items() if doubt]
            warn_caller(
                f"the links of {', '.join(map(repr, names))} among labelled samples are not used: labelled samples are "
                "linked among themselves far more often than to others, as if links were made from the labels",
            )
        return [
            without_links_among(graph.links, problem.targets.labelled) if doubt else graph.links
            for graph, doubt in zip(problem.graphs, doubtful, strict=True)
        ]

    def _read_links(self, X: Any, raws: list[RawView]) -> list[sparse.csr_array]:
        """Links of samples to the distinct samples of `fit`, graphs in canonical order; a missing graph has none.

        `raws` are the views of the samples in canonical order. Links of a sample of `fit` to itself are left out.
        """
        if not self.graph_names_:
            return []
        n_new = raws[0].data.shape[0]
        graphs = split_graphs(X)[1] if is_view_collection(X) else {}
        absent = [name for name in self.graph_names_ if name not in graphs]
        if absent:
            warn_caller(
                f"X does not have the graph{'s' * (len(absent) > 1)} {', '.join(map(repr, absent))}: samples are "
                "treated as without links",
            )
        views = {view.name: view for view in read_new_graphs(graphs, n_new, len(self._nodes), self._link_columns)}
        nothing = sparse.csr_array((n_new, len(self._nodes)))
        links = [views[name].links if name in views else nothing for name in self.graph_names_]
        merged = [merge_columns(links[g], self._nodes) for g in self._graph_order]
        if self._link_keys is None or not any(one.nnz for one in merged):
            return merged
        return drop_own_links(sample_keys(raws), merged, self._link_keys)

    def _predict_linked(self, raws: list[RawView], links: list[sparse.csr_array]) -> NDArray:
        """`_predict_new` of a method that takes graphs: `links` has a column for each distinct sample of `fit`."""
        raise NotImplementedError
