"""Cross-validation when only some samples have a label."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold

from lmssc.labels import encode_labels, known_labels
from lmssc.parameters import COUNT, Rule, check_parameters

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
        labels, _ = known_labels(y)
        codes = encode_labels(y, len(labels)).codes
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
