"""Word counts of raw text; the estimator scales them to tf-idf weights, in `fit` and in `predict`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# A word is any run of letters and digits, even a single one: some columns hold "A", "B", "C".
WORD = r"(?u)\b\w+\b"
MAX_WORDS = 20_000


def learn_words(texts: NDArray) -> list[str]:
    """Learn a vocabulary: words in at least two texts, at most the 20,000 most frequent; all if no two texts share one.

    Parameters
    ----------
    texts : ndarray of str or None
        One text per sample.

    Returns
    -------
    list of str
        In alphabetical order; empty if there are no words.

    Examples
    --------
    >>> learn_words(np.array(["red apple", "Red pear", None], dtype=object))
    ['red']
    """
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import

    known = [text for text in texts if text is not None]
    for least in (2, 1):
        counter = CountVectorizer(token_pattern=WORD, min_df=least, max_features=MAX_WORDS)
        try:
            return counter.fit(known).get_feature_names_out().tolist()
        except ValueError:  # no word is left
            continue
    return []


def count_words(texts: NDArray, words: Sequence[str]) -> tuple[sparse.csr_array, NDArray]:
    """Count the words in each text, and say which texts have any of them.

    Parameters
    ----------
    texts : ndarray of str or None
        One text per sample.
    words : sequence of str
        The vocabulary.

    Returns
    -------
    counts : csr_array of shape (n, len(words))
    present : ndarray of bool of shape (n,)

    Examples
    --------
    >>> counts, present = count_words(np.array(["red red pear", None], dtype=object), ["apple", "red"])
    >>> counts.toarray(), present
    (array([[0., 2.],
           [0., 0.]]), array([ True, False]))
    """
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import

    counter = CountVectorizer(token_pattern=WORD, vocabulary=list(words), dtype=np.float64)
    counts = sparse.csr_array(counter.transform(["" if text is None else text for text in texts]))
    return counts, np.diff(counts.indptr) > 0
