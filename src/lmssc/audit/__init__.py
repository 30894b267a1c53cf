"""Whether a method's answers depend on the order of the rows, for any estimator in the style of scikit-learn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone

from lmssc.data.labels import known_labels


@dataclass(frozen=True)
class OrderSensitivity:
    """What permuting the rows does to an estimator's answers; see `order_sensitivity`.

    Attributes
    ----------
    estimator : str
        What was measured.
    n_unlabelled : int
        Number of samples without a label, whose answers are compared.
    changed : ndarray of shape (n_permutations,)
        For each permutation the share of these samples that get another label than in the order given.
    largest_probability_change : float
        Largest change of a probability of any of them; NaN if the estimator has no probabilities.
    changed_by_seed : ndarray or None
        The same shares for the rows as given and other values of `random_state`; None if it has no such parameter.
    accuracies : ndarray of shape (1 + n_permutations,) or None
        Share of right answers in the order given, then for each permutation; None without `y_true`.
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
    """Fit an estimator to the rows as they are and to permuted rows, and compare its answers sample by sample.

    The order of the rows says nothing about the samples; where it changes the answers, they depend on something that
    is not in the data. In data sorted by class that can look like accuracy.

    An estimator with a `random_state` has the same one in all fits. Numbers drawn from it go to rows by position, so a
    method whose answer depends on its random start changes its answers under permutation too. `changed_by_seed` tells
    how much other random starts alone change: an order that matters no more than those is no reason to worry.

    Parameters
    ----------
    estimator : classifier
        Anything with ``fit(X, y)`` that takes unlabelled rows. Its answers are ``transduction_`` if it has that, else
        ``predict(X)``; its probabilities ``label_distributions_`` or ``predict_proba(X)``. Each fit gets a clone.
    X : 2-D array, data frame or sparse matrix, or list or dict of such
        The data, or one table a view.
    y : array-like
        Labels; −1 (integers), None or NaN (anything else) where there is none.
    y_true : array-like, optional
        Labels of all samples, to compare accuracies as well.
    n_permutations : int
        Number of random permutations; also the number of other random starts.
    random_state : int
        Decides the permutations.

    Returns
    -------
    OrderSensitivity
        It can be printed.

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
    hidden = np.flatnonzero(~known)
    if labels.dtype == bool:  # which has no value of its own for "not known"
        labels = labels.astype(object)
        labels[~known] = None
    truth = None if y_true is None else np.asarray(y_true)
    _check(X, n, len(hidden), truth, n_permutations)
    rng = np.random.default_rng(random_state)
    orders = [rng.permutation(n) for _ in range(n_permutations)]
    given = _answer(estimator, X, labels)
    permuted = [_answer(estimator, take_rows(X, order), labels[order]).put_back(order) for order in orders]

    def changed(answers: list[_Answer]) -> NDArray:
        return np.array([np.mean(answer.labels[hidden] != given.labels[hidden]) for answer in answers])

    changed_by_seed = None
    if "random_state" in _parameters(estimator):
        seeds = rng.integers(2**31 - 1, size=n_permutations)
        other = [clone(estimator, safe=False).set_params(random_state=int(seed)) for seed in seeds]
        changed_by_seed = changed([_answer(one, X, labels) for one in other])
    return OrderSensitivity(
        type(estimator).__name__,
        len(hidden),
        changed(permuted),
        _largest_change(given, permuted, hidden),
        changed_by_seed,
        None
        if truth is None
        else np.array([np.mean(answer.labels[hidden] == truth[hidden]) for answer in [given, *permuted]]),
    )


def take_rows(X: Any, order: NDArray) -> Any:
    """Rows of `X` in another order; of every view, if it is a list or dict of views.

    Parameters
    ----------
    X : 2-D array, data frame or sparse matrix, or list or dict of such
        The data.
    order : ndarray of int
        Rows to take.

    Returns
    -------
    The same kind of thing.

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
    if sparse.issparse(X):
        return X.tocsr()[order]
    if hasattr(X, "iloc"):
        return X.iloc[order]
    if hasattr(X, "shape"):
        return X[order]
    return np.asarray(X)[order]


@dataclass(frozen=True)
class _Answer:
    """Labels and, if there are any, probabilities of all samples."""

    labels: NDArray
    proba: NDArray | None

    def put_back(self, order: NDArray) -> "_Answer":
        """The answers to permuted rows in the order that the rows had before."""
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


def _largest_change(given: _Answer, permuted: list[_Answer], hidden: NDArray) -> float:
    changes = [
        # scikit-learn's propagation has NaN where no label reaches; NaN for NaN is no change.
        np.abs(np.nan_to_num(answer.proba[hidden]) - np.nan_to_num(given.proba[hidden])).max()
        for answer in permuted
        if answer.proba is not None and given.proba is not None
    ]
    return float(max(changes)) if changes else float("nan")


def _parameters(estimator: Any) -> Mapping[str, Any]:
    return estimator.get_params() if hasattr(estimator, "get_params") else {}


def _is_views(X: Any) -> bool:
    """A list whose items are tables is a list of views; a list of rows is one table."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(len(getattr(item, "shape", ())) == 2 for item in X)


def _check(X: Any, n_labels: int, n_hidden: int, truth: NDArray | None, n_permutations: int) -> None:
    tables = list(X.values()) if isinstance(X, Mapping) else X if _is_views(X) else [X]
    for table in tables:
        n_rows = table.shape[0] if hasattr(table, "shape") else len(table)
        if n_rows != n_labels:
            raise ValueError(f"X has {n_rows} rows and y {n_labels} labels; they must be as many")
    if not n_hidden:
        raise ValueError("y: every row has a label; put -1, None or NaN where the answer is to be found")
    if truth is not None and truth.shape != (n_labels,):
        raise ValueError(f"y_true must have one label for each of the {n_labels} rows, got shape {truth.shape}")
    if not isinstance(n_permutations, int | np.integer) or n_permutations < 1:
        raise ValueError(f"n_permutations must be an integer of at least 1, got {n_permutations!r}")
