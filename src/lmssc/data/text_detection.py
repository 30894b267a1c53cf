"""Detection of text: whether the rows of a view should be compared by direction.

Normalising rows to length 1 keeps the topic of a text and drops its length. Where magnitude is informative (amounts,
event counts, measurements that are often zero), that would lose everything. So a view counts as text only if it passes
every test that needs no labels.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.present_rows import distinct_rows
from lmssc.data.view import RawView


@dataclass(frozen=True)
class TextCriteria:
    """Thresholds of `looks_like_words`."""

    max_rows: int = 5000
    min_rows: int = 100
    """Distinct rows that are examined, and rows needed to test whether words occur together: with fewer the test is
    skipped."""
    min_words: int = 100
    """Size of the vocabulary. In narrower views, shares of a total look like words that avoid each other."""
    max_length_spread: float = 0.05
    """Standard deviation of the log row norms up to which all rows have the same length, so that normalising them loses
    nothing."""
    min_share_of_ones: float = 0.5
    """Share of ones among the non-zero counts."""
    max_count_spread: float = 0.75
    max_weight_spread: float = 0.3
    """Standard deviation of the log row sizes, for counts and for weights such as tf-idf."""
    max_log_count_spread: float = 0.25
    """The same for the logarithms of counts, which is how counted words are scaled."""
    n_common_words: int = 100
    min_occurrences: int = 5
    """Most frequent words that are tested for occurring together, and rows in which each of them must occur."""
    min_ratio_to_chance: float = 1.1
    """Mean squared correlation of these words, as a multiple of its value for independent words."""
    min_correlation: float = 0.02
    """Root of the part of the mean squared correlation that exceeds chance."""
    min_standard_errors: float = 20
    """By how many standard errors the ratio to chance must exceed 1 for `has_topics`."""


CRITERIA = TextCriteria()


def looks_like_words(raw: RawView, *, counts: bool) -> bool:
    """Whether a sparse, non-negative view is text, or loses nothing if it is treated as text.

    Text has a large vocabulary, magnitudes that carry little information (most counts are 1; weights are similar in
    all rows), and topics: some words occur together. `counts` says that all values are whole numbers.

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
    texts = _distinct_texts(raw)
    if not texts.nnz:
        return True
    lengths = _row_norms(texts)
    if np.log(lengths).std() <= CRITERIA.max_length_spread:
        return True
    if len(np.unique(texts.indices)) < CRITERIA.min_words:
        return False
    if counts and (texts.data == 1).mean() < CRITERIA.min_share_of_ones:
        return False
    if _size_spread(texts, lengths) > (CRITERIA.max_count_spread if counts else CRITERIA.max_weight_spread):
        return False
    if counts and _size_spread(logs := _log_counts(texts), _row_norms(logs)) > CRITERIA.max_log_count_spread:
        return False
    return texts.shape[0] < CRITERIA.min_rows or _occur_together(texts)


def _distinct_texts(raw: RawView) -> sparse.csr_array:
    """Distinct rows that are not empty, in float64."""
    blocks = [sparse.csr_array(block) for block in distinct_rows(raw, CRITERIA.max_rows)]
    texts = sparse.vstack(blocks, format="csr").astype(np.float64)
    texts.eliminate_zeros()
    return texts[np.diff(texts.indptr) > 0]


def _log_counts(texts: sparse.csr_array) -> sparse.csr_array:
    """ln(1 + x)."""
    return sparse.csr_array((np.log1p(texts.data), texts.indices, texts.indptr), shape=texts.shape)


def idf_ratio(raw: RawView) -> float:
    """By what factor idf weights lower the similarity of unrelated rows of counts.

    The similarity is the mean cosine of the logarithms of two rows, ‖Σ_i u_i‖² / n² with u_i the rows at length 1.
    Frequent words that most rows contain, such as "the", raise it, and idf lowers their weight. Where they were
    removed, the factor is small, and idf would only raise words that are rare.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> topical = (rng.random((50, 200)) < 0.05).astype(float)
    >>> idf_ratio(RawView("a", topical, None)) < 1.2
    True
    >>> idf_ratio(RawView("a", np.hstack([np.ones((50, 5)), topical]), None)) > 2
    True
    """
    texts = _log_counts(_distinct_texts(raw))
    if not texts.nnz:
        return 1.0
    frequency = np.bincount(texts.indices, minlength=texts.shape[1])
    idf = np.log((1 + texts.shape[0]) / (1 + frequency)) + 1
    weighted = sparse.csr_array((texts.data * idf[texts.indices], texts.indices, texts.indptr), shape=texts.shape)
    return _mean_cosine(texts) / _mean_cosine(weighted)


def _mean_cosine(texts: sparse.csr_array) -> float:
    """Mean cosine of two rows, each also with itself."""
    mean = (1 / _row_norms(texts)) @ texts / texts.shape[0]
    return float(mean @ mean)


def has_topics(raw: RawView) -> bool:
    """Whether columns are non-zero together far more or less often than by chance.

    With m pairs of columns, the standard error of the ratio to chance is √(2/m).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> has_topics(RawView("a", (rng.random((200, 20)) < 0.2).astype(float), None))
    False
    >>> has_topics(RawView("a", (rng.random((200, 10)) < 0.2).repeat(2, axis=1).astype(float), None))
    True
    """
    texts = _distinct_texts(raw)
    found = _co_occurrence(texts) if texts.shape[0] >= CRITERIA.min_rows else None
    return found is not None and (found.ratio - 1) * (found.n_pairs / 2) ** 0.5 >= CRITERIA.min_standard_errors


def _row_norms(texts: sparse.csr_array) -> NDArray:
    return np.sqrt(np.add.reduceat(texts.data**2, texts.indptr[:-1]))


def _size_spread(texts: sparse.csr_array, lengths: NDArray) -> float:
    """Spread of the row sizes, as they are or relative to what the words of each row predict, whichever is less.

    The first is small for weights with unit rows, the second for counts and for weights without normalisation.
    """
    occurrences = np.bincount(texts.indices, minlength=texts.shape[1])
    typical = np.bincount(texts.indices, weights=texts.data, minlength=texts.shape[1]) / np.maximum(occurrences, 1)
    expected = np.sqrt(np.add.reduceat(typical[texts.indices] ** 2, texts.indptr[:-1]))
    return float(min(np.log(lengths).std(), np.log(lengths / expected).std()))


class CoOccurrence(NamedTuple):
    """Mean squared correlation of frequent words: relative to chance, beyond chance, and over how many pairs."""

    ratio: float
    excess: float
    n_pairs: int


def _occur_together(texts: sparse.csr_array) -> bool:
    """Whether some of the most frequent words occur together more or less often than the row lengths explain."""
    found = _co_occurrence(texts)
    if found is None:
        return False
    return bool(found.ratio >= CRITERIA.min_ratio_to_chance and found.excess >= CRITERIA.min_correlation**2)


def _co_occurrence(texts: sparse.csr_array) -> CoOccurrence | None:
    """How strongly the most frequent words occur together; None if fewer than two are frequent.

    Without topics, word j occurs in a row of r words with probability r·f_j / Σf, independent of the other words. The
    residuals of the occurrences are then uncorrelated up to chance, whose variance is known.
    """
    frequency = np.bincount(texts.indices, minlength=texts.shape[1])
    common = np.argsort(-frequency, kind="stable")[: CRITERIA.n_common_words]
    common = common[frequency[common] >= CRITERIA.min_occurrences]
    if len(common) < 2:
        return None
    n_words = np.diff(texts.indptr)
    expected = np.minimum(np.outer(n_words, frequency[common] / texts.nnz), 0.95)
    rest = (texts[:, common].toarray() != 0) - expected
    products = rest.T @ rest
    variance = expected * (1 - expected)
    pairs = ~np.eye(len(common), dtype=bool)
    above = (products**2 / (variance.T @ variance))[pairs].mean()
    power = np.diag(products)
    correlation = (products**2 / np.outer(power, power))[pairs].mean()
    return CoOccurrence(float(above), float(correlation * (1 - 1 / above)), len(common) * (len(common) - 1) // 2)
