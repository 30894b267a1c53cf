"""A model of samples without any label: their graph, from which the first samples to label are chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from lmssc.core.fit_config import FitContext
from lmssc.core.second_opinion import Opinion
from lmssc.core.unlabelled import unlabelled_graph
from lmssc.data.dataset import Dataset
from lmssc.data.view_groups import connected_views, group_of_samples
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.problem import make_problem
from lmssc.estimators.trust_state import label_system


@dataclass(frozen=True)
class SampleGraph:
    """A graph of the distinct samples.

    Attributes
    ----------
    graph : csr_array of shape (m, m)
        S of the distinct samples.
    nodes : ndarray of int of shape (n,)
        The distinct sample that each sample is a copy of.
    samples : ndarray of int of shape (m,)
        A row for each distinct sample.
    points : ndarray of shape (m, r)
        Positions of the distinct samples, for an order in space.
    opinion : Opinion or None
        The second opinion on the distinct samples, columns as in `classes`; None without one.
    classes : list of str
        Classes of the model; none without labels.
    laplacian : csr_array of shape (m, m), or None
        L of the system that the scores of the fit solve, with the links between samples; None is that of `graph`.
    """

    graph: sparse.csr_array
    nodes: NDArray
    samples: NDArray
    points: NDArray
    opinion: Opinion | None = None
    classes: Sequence[str] = ()
    laplacian: sparse.csr_array | None = None

    @classmethod
    def of(cls, clf: LMSSC) -> "SampleGraph":
        """The graph that a fitted model learned."""
        samples, opinion = clf._order.samples, clf._opinion
        if opinion is not None:  # its columns are in canonical order
            opinion = opinion.take(lambda rows: rows[samples][:, np.argsort(clf._class_order)])
        graph = clf.graph_[samples][:, samples].tocsr()
        names = [str(name) for name in clf.classes_]
        return cls(graph, clf._nodes, samples, clf.latent_[samples], opinion, names, label_system(clf).laplacian)


def graph_without_labels(clf: LMSSC, dataset: Dataset, context: FitContext | None = None) -> SampleGraph:
    """The graph that a fit of `clf` starts from, which needs no label.

    Parameters
    ----------
    clf : LMSSC
        Its parameters count; it is not changed.
    dataset : Dataset
        The samples; its labels do not count.
    context : FitContext, optional
        Work shared with later fits.

    Returns
    -------
    SampleGraph

    Examples
    --------
    >>> from lmssc.data.dataset import validate
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, random_state=0)
    >>> graph_without_labels(LMSSC(), validate(data.views, data.target)).graph.shape
    (60, 60)
    """
    context = FitContext() if context is None else context
    copy = clone(clf)
    dataset = dataset.with_labels(np.empty(0, dtype=object), np.full(dataset.n_samples, -1))
    with copy._fitting():
        copy._set_input(dataset)
        dataset = copy._impute(dataset)
        problem, numbering = make_problem(dataset, copy._select_rows, context)
        copy._order, copy._nodes = numbering.order, numbering.nodes
        views = copy._fit_scalings(problem)
        config = copy._config(views, problem)
        linked = connected_views(problem.views)
        graph, points = unlabelled_graph(
            views,
            config,
            context.for_data(copy.impute, *copy.scalings_.items()),
            group_of_samples(problem.views, linked) if linked.any() else None,
        )
    return SampleGraph(graph, numbering.nodes, numbering.order.samples, points)
