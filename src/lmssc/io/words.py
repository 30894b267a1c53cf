"""Raw text as counts of words; their tf-idf weights are the estimator's scaling, which predict applies again."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

# Any run of letters and digits, single ones too: some columns hold "A", "B", "C".
WORD = r"(?u)\b\w+\b"
MOST_WORDS = 20_000


def learn_words(texts: NDArray) -> list[str]:
    """The words that at least two texts have, at most the 20,000 most frequent; all if no two texts share one.

    Parameters
    ----------
    texts : ndarray of str or None
        A text a sample.

    Returns
    -------
    list of str
        In alphabetical order; empty if there is none.

    Examples
    --------
    >>> learn_words(np.array(["red apple", "Red pear", None], dtype=object))
    ['red']
    """
    known = [text for text in texts if text is not None]
    for least in (2, 1):
        counter = CountVectorizer(token_pattern=WORD, min_df=least, max_features=MOST_WORDS)
        try:
            return counter.fit(known).get_feature_names_out().tolist()
        except ValueError:  # no word is left
            continue
    return []


def count_words(texts: NDArray, words: Sequence[str]) -> tuple[sparse.csr_array, NDArray]:
    """How often each text has each word, and which texts have any.

    Parameters
    ----------
    texts : ndarray of str or None
        A text a sample.
    words : sequence of str
        What to count.

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
    counter = CountVectorizer(token_pattern=WORD, vocabulary=list(words), dtype=np.float64)
    counts = sparse.csr_array(counter.transform(["" if text is None else text for text in texts]))
    return counts, np.diff(counts.indptr) > 0
