"""Simple strong classifiers to compare with: of all views together, of each view, and on one graph of all rows."""

from abc import abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph
from sklearn.svm import SVC

from lmssc._optional import import_optional

# Probabilities of the ridge below this are raised to it, so that one wrong answer does not decide the log loss.
LEAST_PROBABILITY = 1e-3


class RidgeWithProbabilities(RidgeClassifierCV):
    """Ridge regression on targets of ±1, its penalty chosen by leave-one-out.

    Examples
    --------
    >>> clf = RidgeWithProbabilities(alphas=[1.0]).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> clf.predict_proba([[0.0], [1.0]]).round(2).tolist()
    [[0.5, 0.5], [0.23, 0.77]]
    """

    def predict_proba(self, X: Any) -> NDArray:
        """(1 + score) / 2, which estimates a probability, raised to at least 0.001 and normalised."""
        decision = self.decision_function(X)
        decision = np.column_stack([-decision, decision]) if decision.ndim == 1 else decision
        proba = np.maximum((1 + decision) / 2, LEAST_PROBABILITY)
        return proba / proba.sum(axis=1, keepdims=True)


class PerViewClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is given the scaled views one by one: lists of arrays, one per view, labelled rows only."""

    classes_: NDArray

    @abstractmethod
    def fit(self, views: Sequence[Any], y: NDArray) -> Self:
        """Fit to the labelled rows of all views."""

    @abstractmethod
    def predict_proba(self, views: Sequence[Any]) -> NDArray:
        """Distributions over `classes_` for the rows of all views."""


class LateFusion(PerViewClassifier):
    """The mean of the probabilities of one logistic regression for each view.

    Examples
    --------
    >>> views = [np.array([[-1.0], [1.0]]), np.array([[-1.0], [1.0]])]
    >>> LateFusion().fit(views, np.array([0, 1])).predict_proba(views).argmax(axis=1)
    array([0, 1])
    """

    def fit(self, views: Sequence[Any], y: NDArray) -> Self:
        """Fit one model to each view."""
        self.models_ = [LogisticRegression(max_iter=2000).fit(view, y) for view in views]
        self.classes_ = self.models_[0].classes_
        return self

    def predict_proba(self, views: Sequence[Any]) -> NDArray:
        """Mean over the views."""
        return np.mean([model.predict_proba(view) for model, view in zip(self.models_, views, strict=True)], axis=0)


class MeanKernelSVC(PerViewClassifier):
    """A support vector machine on the mean of the Gaussian kernels of the views.

    The width of each kernel is the mean squared distance of the view's labelled rows from their centre. For centred
    columns that is `gamma="scale"` of scikit-learn. Probabilities are the softmax of the decision function, as for
    the other support vector machines that are compared.

    Examples
    --------
    >>> views = [np.array([[-1.0], [1.0]]), np.array([[-1.0], [1.0]])]
    >>> MeanKernelSVC().fit(views, np.array([0, 1])).predict_proba(views).argmax(axis=1)
    array([0, 1])
    """

    def fit(self, views: Sequence[Any], y: NDArray) -> Self:
        """Fit to the mean kernel of the labelled rows."""
        self.views_ = list(views)
        self.gammas_ = [1 / spread if (spread := _spread(view)) > 0 else 1.0 for view in views]
        self.model_ = SVC(kernel="precomputed").fit(self.kernel(views), y)
        self.classes_ = self.model_.classes_
        return self

    def kernel(self, views: Sequence[Any]) -> NDArray:
        """Mean over the views of exp(−γ‖x − x'‖²), between rows and the rows of `fit`."""
        pairs = zip(views, self.views_, self.gammas_, strict=True)
        return np.mean([rbf_kernel(view, fitted, gamma=gamma) for view, fitted, gamma in pairs], axis=0)

    def predict_proba(self, views: Sequence[Any]) -> NDArray:
        """Softmax of the decision function."""
        decision = self.model_.decision_function(self.kernel(views))
        return softmax(np.column_stack([0 * decision, decision]) if decision.ndim == 1 else decision, axis=1)


def _spread(rows: Any) -> float:
    """Mean squared distance of the rows from their centre."""
    squares = rows.power(2) if sparse.issparse(rows) else np.square(rows)
    centre = np.asarray(rows.mean(axis=0)).ravel()
    return max(float(squares.sum() / rows.shape[0] - centre @ centre), 0.0)


class NeighborGraphClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of another library on a graph of the nearest neighbours of all rows.

    Parameters
    ----------
    n_neighbors : int
        Neighbours of each row; the graph is made symmetric.
    """

    label_distributions_: NDArray
    transduction_: NDArray
    classes_: NDArray

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: NDArray) -> Self:
        """Fit to all rows; −1 marks those without a label."""
        self.classes_, codes = np.unique(y[y >= 0], return_inverse=True)
        labels = np.full(len(y), -1)
        labels[y >= 0] = codes
        k = min(self.n_neighbors, len(y) - 1)
        self.label_distributions_ = self._distributions(kneighbors_graph(X, k, mode="distance"), labels)
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    @abstractmethod
    def _distributions(self, distances: sparse.csr_matrix, labels: NDArray) -> NDArray:
        """Scores of all rows, from the distances to their neighbours and their labels 0, 1, … or −1."""


class Diffusion(NeighborGraphClassifier):
    """`DiffusionClassifier` of scikit-network, which diffuses labels as heat, on a graph without weights."""

    def _distributions(self, distances: sparse.csr_matrix, labels: NDArray) -> NDArray:
        classification = import_optional("sknetwork.classification", purpose="diffusion", extra="peers")
        distances.data[:] = 1
        model = classification.DiffusionClassifier().fit(distances.maximum(distances.T).tocsr(), labels)
        return model.predict_proba()


class Poisson(NeighborGraphClassifier):
    """Poisson learning (Calder and others, 2020) of graphlearning, on a graph with Gaussian weights.

    The weight of a neighbour at distance d is exp(−4 d² / d_k²), with d_k the distance of the last neighbour, as in
    that library. Probabilities are the softmax of its scores in units of their standard deviation.
    """

    def _distributions(self, distances: sparse.csr_matrix, labels: NDArray) -> NDArray:
        ssl = import_optional("graphlearning.ssl", purpose="Poisson learning", extra="peers")
        rows = distances.data.reshape(distances.shape[0], -1)
        last = rows.max(axis=1, keepdims=True)
        distances.data = np.exp(-4 * (rows / np.where(last > 0, last, 1)) ** 2).ravel()
        known = np.flatnonzero(labels >= 0)
        scores = ssl.poisson((distances + distances.T).tocsr() / 2).fit(known, labels[known])
        return softmax(scores / max(scores.std(), np.finfo(float).tiny), axis=1)


# Methods that need a package that lmssc does not: name → module.
NEEDED_MODULES = {"Diffusion (scikit-network)": "sknetwork", "Poisson (graphlearning)": "graphlearning"}


def missing_package(method: str) -> str | None:
    """The package that a method needs and that is not installed, if any.

    Examples
    --------
    >>> missing_package("1-NN") is None
    True
    """
    module = NEEDED_MODULES.get(method)
    return None if module is None or find_spec(module) else method.partition("(")[2].rstrip(")")
