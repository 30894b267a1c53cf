"""Cross-validation when only some samples have a label."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold

from lmssc.data.labels import encode_labels, known_labels
from lmssc.data.parameters import COUNT, Rule, check_parameters
from lmssc.data.select_rows import take_rows
from lmssc.data.validation import check_rows

FOLDS = Rule(lambda v: COUNT.accepts(v) and v >= 2, "an integer of at least 2")


class LabelledKFold(BaseCrossValidator):
    """Stratified folds of the labelled samples; unlabelled samples are in every training set and in no test set.

    The splitters of scikit-learn treat the marker of unlabelled samples as a class and score it. Test samples are not
    in the training set, so the score is that of `predict` on unseen samples.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2. If a class has fewer labels, but at least 2, there are only as many folds as that.
        The label of a class with only one is in every training set.
    shuffle : bool
        Whether to shuffle the labelled samples first; the rows of most data are sorted in some way.
    random_state : int, RandomState or None
        Seed of the shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> from lmssc.model_selection import LabelledKFold
    >>> y = np.array([0, 0, 1, 1, -1, -1])
    >>> for train, test in LabelledKFold(2, random_state=0).split(np.zeros((6, 1)), y):
    ...     print(train, test)
    [0 3 4 5] [1 2]
    [1 2 4 5] [0 3]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: Any, y: ArrayLike, groups: Any = None) -> Iterator[tuple[NDArray, NDArray]]:
        """Indices of the rows for training (with all unlabelled rows) and for testing (labelled rows only).

        Parameters
        ----------
        X : any
            Not used.
        y : array-like of shape (n,)
            Labels; −1 (integers), None or NaN (other types) for unlabelled samples.
        groups : any
            Not used.

        Yields
        ------
        train, test : ndarray of int
        """
        check_parameters(self, {"n_splits": FOLDS})
        codes, scored, n_splits = self._plan(y)
        folds = StratifiedKFold(
            n_splits, shuffle=self.shuffle, random_state=self.random_state if self.shuffle else None
        )
        everything = np.arange(len(codes))
        for _, test in folds.split(scored, codes[scored]):
            yield np.setdiff1d(everything, scored[test]), scored[test]

    def _plan(self, y: ArrayLike) -> tuple[NDArray, NDArray, int]:
        """Class codes, the rows that are in a test set, and the number of folds."""
        codes = encode_labels(y).codes
        counts = np.bincount(codes[codes >= 0])
        several = np.append(counts >= 2, False)  # index −1: unlabelled
        if not several.any():
            raise ValueError("no class has 2 labelled samples, one to train on and one to score. Label more samples")
        return codes, np.flatnonzero(several[codes]), min(self.n_splits, int(counts[counts >= 2].min()))

    def get_n_splits(self, X: Any = None, y: ArrayLike | None = None, groups: Any = None) -> int:
        """Number of folds: `n_splits`, or the number of labels of the smallest class with at least 2, if less.

        Parameters
        ----------
        X, groups : any
            Not used.
        y : array-like of shape (n,), optional
            Labels, as in `split`.

        Returns
        -------
        int
        """
        return self.n_splits if y is None else self._plan(y)[2]


class LabelledScorer:
    """A scorer of scikit-learn for labelled samples only; made by `labelled_scorer`."""

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        self._scorer: Callable[..., float] = _neg_log_loss if scoring == "neg_log_loss" else get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score a fitted estimator on the samples of X that have a label in y."""
        check_rows(X, y)
        labels, known = known_labels(y)
        if not known.any():
            raise ValueError(
                "y has no labelled sample to score; LabelledKFold puts labelled samples into every test set"
            )
        rows = np.flatnonzero(known)
        weight = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)[rows]}
        return self._scorer(estimator, take_rows(X, rows), labels[rows], **weight)

    def __repr__(self) -> str:
        return f"labelled_scorer({self.scoring!r})"


def labelled_scorer(scoring: str | Callable[..., float] = "accuracy") -> LabelledScorer:
    """Make a scorer that ignores unlabelled samples, for `cross_val_score`, `GridSearchCV` and the like.

    The scorers of scikit-learn treat the marker of unlabelled samples as a class and count every answer for them as
    wrong.

    Parameters
    ----------
    scoring : str or callable
        A scorer name of scikit-learn, such as "accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss" or
        "roc_auc_ovr" (`sklearn.metrics.get_scorer_names` lists all), or a callable of an estimator, X and y.

    Returns
    -------
    callable
        To be passed as `scoring`.

    See Also
    --------
    LabelledKFold : Folds whose test sets have labelled samples only, for use with any scorer.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from lmssc import LMSSC, stack_views
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(150, labelled=0.2, random_state=0)
    >>> X, views = stack_views(data.views)
    >>> clf = LMSSC(views=views, max_iter=1, calibrate=False)
    >>> scores = cross_val_score(clf, X, data.y, cv=3, scoring=labelled_scorer("balanced_accuracy"))
    >>> bool(scores.mean() > 0.8)
    True
    """
    return LabelledScorer(scoring)


def _neg_log_loss(estimator: Any, X: Any, y: NDArray, sample_weight: NDArray | None = None) -> float:
    """Negative log loss. That of scikit-learn fails if a class is missing among the samples."""
    return -log_loss(y, estimator.predict_proba(X), labels=estimator.classes_, sample_weight=sample_weight)
