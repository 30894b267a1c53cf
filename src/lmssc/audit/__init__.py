"""Measure whether the answers of any scikit-learn-style estimator depend on the order of the rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone

from lmssc.data.graph_view import Graph
from lmssc.data.labels import known_labels


@dataclass(frozen=True)
class OrderSensitivity:
    """Effect of permuted rows on the answers of an estimator; see `order_sensitivity`.

    Attributes
    ----------
    estimator : str
        Name of its class.
    n_unlabelled : int
        Number of unlabelled samples, whose answers are compared.
    changed : ndarray of shape (n_permutations,)
        For each permutation, the share of these samples whose label differs from that in the given order.
    largest_probability_change : float
        Largest change of any of their probabilities; NaN if the estimator has no probabilities.
    changed_by_seed : ndarray or None
        The same shares for the given order and other values of `random_state`; None if it has no such parameter.
    accuracies : ndarray of shape (1 + n_permutations,) or None
        Accuracy in the given order, then for each permutation; None without `y_true`.
    """

    estimator: str
    n_unlabelled: int
    changed: NDArray
    largest_probability_change: float
    changed_by_seed: NDArray | None = None
    accuracies: NDArray | None = None

    @property
    def mean_changed(self) -> float:
        """Mean of `changed`."""
        return float(self.changed.mean())

    @property
    def max_changed(self) -> float:
        """Largest of `changed`."""
        return float(self.changed.max())

    def __str__(self) -> str:
        lines = [
            f"{self.estimator}: {self.n_unlabelled} samples without a label, {len(self.changed)} permutations of rows",
            f"  labels that change   {100 * self.mean_changed:.1f} % on average, "
            f"{100 * self.max_changed:.1f} % at most",
        ]
        if not np.isnan(self.largest_probability_change):
            lines.append(f"  probabilities        change by {self.largest_probability_change:.2g} at most")
        if self.changed_by_seed is not None:
            seed = 100 * self.changed_by_seed
            lines.append(f"  other random starts  {seed.mean():.1f} % of the labels change on average, rows as given")
        if self.accuracies is not None:
            given, permuted = 100 * self.accuracies[0], 100 * self.accuracies[1:]
            lines.append(
                f"  accuracy             {given:.1f} % in the order given, {permuted.mean():.1f} % permuted "
                f"({permuted.min():.1f} to {permuted.max():.1f})"
            )
        return "\n".join(lines)


def order_sensitivity(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    y_true: ArrayLike | None = None,
    n_permutations: int = 10,
    random_state: int = 0,
) -> OrderSensitivity:
    """Fit an estimator to the rows as given and to permuted rows, and compare its answers sample by sample.

    The order of the rows carries no information about the samples. If it changes the answers, they depend on something
    that is not in the data, and in data sorted by class this can look like accuracy.

    All fits use the same `random_state`, if the estimator has one. Random numbers are assigned to rows by position, so
    a method that depends on its random start also changes under permutation. `changed_by_seed` measures how much other
    random starts alone change: an effect of the order that is no larger than that is no reason to worry.

    Parameters
    ----------
    estimator : classifier
        Anything with ``fit(X, y)`` that takes unlabelled rows. Its answers are ``transduction_`` if it has that, else
        ``predict(X)``; its probabilities ``label_distributions_`` or ``predict_proba(X)``. Each fit gets a clone.
    X : 2-D array, data frame or sparse matrix, or list or dict of such
        The data, or one table per view.
    y : array-like
        Labels; −1 (integers), None or NaN (other types) for unlabelled samples.
    y_true : array-like, optional
        True labels of all samples, to compare accuracies as well.
    n_permutations : int
        Number of random permutations; also the number of other random starts.
    random_state : int
        Seed of the permutations.

    Returns
    -------
    OrderSensitivity
        Print it for a summary.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> from lmssc.audit import order_sensitivity
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(100, labelled=0.2, random_state=0)
    >>> result = order_sensitivity(LMSSC(), data.views, data.y, n_permutations=3)
    >>> result.max_changed, result.largest_probability_change
    (0.0, 0.0)
    """
    labels, known = known_labels(y)
    n = len(labels)
    unlabelled = np.flatnonzero(~known)
    if labels.dtype == bool:  # bool has no value for "unlabelled"
        labels = labels.astype(object)
        labels[~known] = None
    truth = None if y_true is None else np.asarray(y_true)
    _check(X, n, len(unlabelled), truth, n_permutations)
    rng = np.random.default_rng(random_state)
    orders = [rng.permutation(n) for _ in range(n_permutations)]
    given = _answer(estimator, X, labels)
    permuted = [_answer(estimator, take_rows(X, order), labels[order]).put_back(order) for order in orders]

    def changed(answers: list[_Answer]) -> NDArray:
        return np.array([np.mean(answer.labels[unlabelled] != given.labels[unlabelled]) for answer in answers])

    changed_by_seed = None
    if "random_state" in _parameters(estimator):
        seeds = rng.integers(2**31 - 1, size=n_permutations)
        other = [clone(estimator, safe=False).set_params(random_state=int(seed)) for seed in seeds]
        changed_by_seed = changed([_answer(one, X, labels) for one in other])
    return OrderSensitivity(
        type(estimator).__name__,
        len(unlabelled),
        changed(permuted),
        _largest_change(given, permuted, unlabelled),
        changed_by_seed,
        None
        if truth is None
        else np.array([np.mean(answer.labels[unlabelled] == truth[unlabelled]) for answer in [given, *permuted]]),
    )


def take_rows(X: Any, order: NDArray) -> Any:
    """Take rows of `X`; of every view if it is a list or dict of views.

    Parameters
    ----------
    X : 2-D array, data frame or sparse matrix, or list or dict of such
        The data.
    order : ndarray of int
        Rows to take.

    Returns
    -------
    Same type as `X`
        The rows, in the order of `order`.

    Examples
    --------
    >>> take_rows({"a": np.array([[1], [2]])}, np.array([1, 0]))
    {'a': array([[2],
           [1]])}
    """
    if isinstance(X, Mapping):
        return {name: take_rows(view, order) for name, view in X.items()}
    if _is_views(X):
        return [take_rows(view, order) for view in X]
    if isinstance(X, Graph):  # links among these rows
        rows = take_rows(X.affinity, order)
        return Graph(rows.iloc[:, order] if hasattr(rows, "iloc") else rows[:, order])
    if sparse.issparse(X):
        return X.tocsr()[order]
    if hasattr(X, "iloc"):
        return X.iloc[order]
    if hasattr(X, "shape"):
        return X[order]
    return np.asarray(X)[order]


@dataclass(frozen=True)
class _Answer:
    """Labels of all samples, and their probabilities if the estimator has any."""

    labels: NDArray
    proba: NDArray | None

    def put_back(self, order: NDArray) -> "_Answer":
        """Return the answers for permuted rows in the original order."""
        back = np.argsort(order)
        return _Answer(self.labels[back], None if self.proba is None else self.proba[back])


def _answer(estimator: Any, X: Any, y: NDArray) -> _Answer:
    fitted = clone(estimator, safe=False)
    fitted.fit(X, y)
    labels = fitted.transduction_ if hasattr(fitted, "transduction_") else fitted.predict(X)
    if hasattr(fitted, "label_distributions_"):
        return _Answer(np.asarray(labels), np.asarray(fitted.label_distributions_))
    return _Answer(
        np.asarray(labels), np.asarray(fitted.predict_proba(X)) if hasattr(fitted, "predict_proba") else None
    )


def _largest_change(given: _Answer, permuted: list[_Answer], unlabelled: NDArray) -> float:
    changes = [
        # scikit-learn's propagation returns NaN where no label reaches; NaN twice is no change.
        np.abs(np.nan_to_num(answer.proba[unlabelled]) - np.nan_to_num(given.proba[unlabelled])).max()
        for answer in permuted
        if answer.proba is not None and given.proba is not None
    ]
    return float(max(changes)) if changes else float("nan")


def _parameters(estimator: Any) -> Mapping[str, Any]:
    return estimator.get_params() if hasattr(estimator, "get_params") else {}


def _is_views(X: Any) -> bool:
    """Whether X is a list of views, which are tables; a list of rows is one table."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(len(getattr(item, "shape", ())) == 2 for item in X)


def _check(X: Any, n_labels: int, n_unlabelled: int, truth: NDArray | None, n_permutations: int) -> None:
    tables = list(X.values()) if isinstance(X, Mapping) else X if _is_views(X) else [X]
    for table in tables:
        n_rows = table.shape[0] if hasattr(table, "shape") else len(table)
        if n_rows != n_labels:
            raise ValueError(f"X has {n_rows} rows, but y has {n_labels} labels")
    if not n_unlabelled:
        raise ValueError("y: every row has a label; use -1, None or NaN for unlabelled rows")
    if truth is not None and truth.shape != (n_labels,):
        raise ValueError(f"y_true must have one label for each of the {n_labels} rows, got shape {truth.shape}")
    if not isinstance(n_permutations, int | np.integer) or n_permutations < 1:
        raise ValueError(f"n_permutations must be an integer of at least 1, got {n_permutations!r}")
