"""Whether the rows of a view are to be compared by direction, as texts are: what speaks for it in the numbers.

Rows of length 1 keep what a text is about and lose how long it is. Where size is what tells samples apart (amounts,
numbers of events, measurements that are often zero), nothing would be left. So a view must look like words in all
that can be seen without labels.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.present_rows import distinct_rows
from lmssc.data.views import RawView

# Different rows that are looked at, and how many there must be to tell whether words occur together.
MOST_ROWS = 5000
FEWEST_ROWS = 100
# A vocabulary has more columns than this; with fewer, shares of a whole look like words that avoid each other.
FEWEST_WORDS = 100
# Deviation of the log lengths of the rows up to which they are the same: nothing is lost.
SAME_LENGTH = 0.05
# Share of ones among counts of words, at least.
FEWEST_ONES = 0.5
# Deviation of log sizes between rows, at most: counts, and weights such as tf-idf.
SPREAD_OF_COUNTS, SPREAD_OF_WEIGHTS = 0.5, 0.3
# How many of the commonest words are looked at for those that occur together; each in so many rows at least.
COMMONEST, FEWEST_OCCURRENCES = 100, 5
# Their mean squared correlation must be so many times that of chance, and the part beyond chance this large.
ABOVE_CHANCE, CORRELATION = 1.1, 0.02


def looks_like_words(raw: RawView, *, counts: bool) -> bool:
    """Whether a view with many zeros and nothing negative is one of words, or loses nothing if it is taken for one.

    Words have a large vocabulary, sizes that say little (most counts are 1; weights are alike in all rows), and
    subjects: some occur together. `counts` says that all numbers are whole.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> subject = rng.integers(2, size=300)
    >>> shares = rng.dirichlet(np.full(500, 0.1), size=2)[subject]
    >>> texts = np.array([rng.multinomial(length, row) for length, row in zip(rng.integers(20, 90, 300), shares)])
    >>> looks_like_words(RawView("a", texts.astype(float), None), counts=True)
    True
    >>> amounts = rng.poisson(9 + 30 * subject[:, None], size=(300, 500)) * (rng.random((300, 500)) < 0.1)
    >>> looks_like_words(RawView("a", amounts.astype(float), None), counts=True)
    False
    """
    blocks = [sparse.csr_array(block) for block in distinct_rows(raw, MOST_ROWS)]
    texts = sparse.vstack(blocks, format="csr").astype(np.float64)
    texts.eliminate_zeros()
    texts = texts[np.diff(texts.indptr) > 0]
    if not texts.nnz:
        return True
    lengths = _row_norms(texts)
    if np.log(lengths).std() <= SAME_LENGTH:
        return True
    if len(np.unique(texts.indices)) < FEWEST_WORDS:
        return False
    if counts and (texts.data == 1).mean() < FEWEST_ONES:
        return False
    if _size_spread(texts, lengths) > (SPREAD_OF_COUNTS if counts else SPREAD_OF_WEIGHTS):
        return False
    return texts.shape[0] < FEWEST_ROWS or _occur_together(texts)


def _row_norms(texts: sparse.csr_array) -> NDArray:
    return np.sqrt(np.add.reduceat(texts.data**2, texts.indptr[:-1]))


def _size_spread(texts: sparse.csr_array, lengths: NDArray) -> float:
    """How much rows differ in size: as they are, or by more than the words that each has, whichever is less.

    The first is small for weights that were made unit rows, the second for counts and weights that were not.
    """
    occurrences = np.bincount(texts.indices, minlength=texts.shape[1])
    typical = np.bincount(texts.indices, weights=texts.data, minlength=texts.shape[1]) / np.maximum(occurrences, 1)
    expected = np.sqrt(np.add.reduceat(typical[texts.indices] ** 2, texts.indptr[:-1]))
    return float(min(np.log(lengths).std(), np.log(lengths / expected).std()))


def _occur_together(texts: sparse.csr_array) -> bool:
    """Whether some of the commonest words occur together more often, or less, than the lengths of the rows explain.

    Without subjects the word j is in a row of r words with probability r·f_j / Σf, whatever else is in the row. What
    is left of the occurrences then is uncorrelated, up to chance, whose size is known.
    """
    frequency = np.bincount(texts.indices, minlength=texts.shape[1])
    common = np.argsort(-frequency, kind="stable")[:COMMONEST]
    common = common[frequency[common] >= FEWEST_OCCURRENCES]
    if len(common) < 2:
        return False
    n_words = np.diff(texts.indptr)
    expected = np.minimum(np.outer(n_words, frequency[common] / texts.nnz), 0.95)
    rest = (texts[:, common].toarray() != 0) - expected
    products = rest.T @ rest
    variance = expected * (1 - expected)
    pairs = ~np.eye(len(common), dtype=bool)
    above = (products**2 / (variance.T @ variance))[pairs].mean()
    power = np.diag(products)
    correlation = (products**2 / np.outer(power, power))[pairs].mean()
    return bool(above >= ABOVE_CHANCE and correlation * (1 - 1 / above) >= CORRELATION**2)
