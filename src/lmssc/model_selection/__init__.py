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
    """Stratified folds of the labelled samples; unlabelled ones are in every training set and in no test set.

    scikit-learn's own splitters take the mark of an unlabelled sample for a class and score it. The samples of a test
    set are not in training, so what is scored is `predict` for samples never seen.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2; fewer are made where a class has fewer labels. The label of a class that has only
        one is in every training set.
    shuffle : bool
        Shuffle the labelled samples first; the rows of most data are sorted in some way.
    random_state : int, RandomState or None
        For the shuffle.

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
        """Row numbers for training (with all unlabelled rows) and for testing (labelled rows only).

        Parameters
        ----------
        X : any
            Not used.
        y : array-like of shape (n,)
            Labels; −1 (integers), None or NaN (anything else) is unlabelled.
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
        """Class codes, the rows that are scored in some fold, and the number of folds."""
        codes = encode_labels(y).codes
        counts = np.bincount(codes[codes >= 0])
        several = np.append(counts >= 2, False)  # the last is for −1
        if not several.any():
            raise ValueError(
                "no class has 2 labelled samples: none can be both trained on and scored. Label more samples"
            )
        return codes, np.flatnonzero(several[codes]), min(self.n_splits, int(counts[counts >= 2].min()))

    def get_n_splits(self, X: Any = None, y: ArrayLike | None = None, groups: Any = None) -> int:
        """Number of folds: `n_splits`, or as many as the smallest class with 2 labels or more can fill.

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
    """A scorer of scikit-learn that looks at labelled samples only; made by `labelled_scorer`."""

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        self._scorer: Callable[..., float] = _neg_log_loss if scoring == "neg_log_loss" else get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score of a fitted estimator for the samples of X that have a label in y."""
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
    """Make a scorer that leaves unlabelled samples out, for `cross_val_score`, `GridSearchCV` and the like.

    scikit-learn's own scorers take the mark of an unlabelled sample for a class that no answer can be, and count it as
    wrong.

    Parameters
    ----------
    scoring : str or callable
        A name of scikit-learn, such as "accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss" or "roc_auc_ovr"
        (`sklearn.metrics.get_scorer_names` has all), or a scorer, called with an estimator, X and y.

    Returns
    -------
    callable
        To be passed as `scoring`.

    See Also
    --------
    LabelledKFold : Folds without unlabelled samples in the test sets, for which any scorer will do.

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
    """As scikit-learn's, which fails where the samples do not have all classes."""
    return -log_loss(y, estimator.predict_proba(X), labels=estimator.classes_, sample_weight=sample_weight)
