"""Conformal p-values: how strange a sample is, ranked among labelled samples whose labels were held out."""

import numpy as np
from numpy.typing import NDArray

MIN_KIND_LABELS = 20
"""Samples that lack the same views and links are ranked among themselves if at least this many are held out."""
MIN_KIND_SHARE, MIN_EXPECTED_LABELS = 0.25, 10
"""A kind of sample is scarce among the labels if it has less than this share of the labels that it would have if they
were given at random, and that many would be expected."""


def conformal_p_values(held_out: NDArray, strangeness: NDArray, n_never_held_out: int = 0) -> NDArray:
    """Share of the held-out samples that are at least as strange, the sample itself counted among them.

    If the sample and the held-out ones are exchangeable, p ≤ α with a probability of at most α, whatever the measure.
    So with few held-out samples p is never small: one of nine is 1/10.

    Parameters
    ----------
    held_out : ndarray of shape (m,)
        Strangeness of samples whose labels were held out, each by a fit without its label.
    strangeness : ndarray of any shape
        Strangeness of the samples in question.
    n_never_held_out : int
        Labelled samples that could not be held out; they count as stranger than any other.

    Returns
    -------
    ndarray of the shape of `strangeness`

    Examples
    --------
    >>> conformal_p_values(np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.25, 0.9]))
    array([1.  , 0.5 , 0.25])
    """
    ranked = np.sort(held_out)
    n_stranger = len(ranked) - np.searchsorted(ranked, strangeness, side="left") + n_never_held_out
    return (n_stranger + 1) / (len(ranked) + n_never_held_out + 1)


def interpolated_p_values(held_out: NDArray, strangeness: NDArray, n_never_held_out: int = 0) -> NDArray:
    """`conformal_p_values` that fall evenly from one held-out sample to the next, instead of in steps.

    A sample that is exchangeable with n held-out ones lies in each of the n + 1 gaps between them with equal
    probability. P-values in steps give each gap its largest value, so that with few labels sets are wider than was
    asked for. Here p falls over the gap; it is off by less than 1 / (n + 1) wherever in the gap the sample lies. Where
    strangenesses are equal or infinite, and beyond the strangest held-out sample, there is no gap, and nothing changes.

    Parameters
    ----------
    held_out, strangeness, n_never_held_out
        As for `conformal_p_values`.

    Returns
    -------
    ndarray of the shape of `strangeness`

    Examples
    --------
    >>> interpolated_p_values(np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.2, 0.25, 0.9]))
    array([1.   , 0.75 , 0.375, 0.25 ])
    """
    stepwise = conformal_p_values(held_out, strangeness, n_never_held_out)
    ranked = np.sort(held_out)
    above = np.searchsorted(ranked, strangeness, side="left")
    inside = (above > 0) & (above < len(ranked))
    low, high = (ranked[np.where(inside, above - shift, 0)] if len(ranked) else strangeness for shift in (1, 0))
    inside &= (strangeness < high) & np.isfinite(low) & np.isfinite(high)
    share = np.zeros(np.shape(strangeness))
    share[inside] = (strangeness[inside] - low[inside]) / (high[inside] - low[inside])
    return stepwise - share / (len(ranked) + n_never_held_out + 1)


def class_p_values(
    held_out_scores: NDArray,
    codes: NDArray,
    scores: NDArray,
    *,
    by_class: bool,
    kinds: tuple[NDArray, NDArray] | None = None,
) -> NDArray:
    """P-value of each class for each sample, by its score: the strangeness of a class is 1 minus its score.

    Parameters
    ----------
    held_out_scores : ndarray of shape (l, c)
        Scores of the labelled samples, each without its own label; NaN for those that were never held out.
    codes : ndarray of int of shape (l,)
        Their classes.
    scores : ndarray of shape (m, c)
        Scores of the samples in question, by fits of the same kind.
    by_class : bool
        Whether each class is ranked among the held-out samples of that class alone, so that the promise holds for each.
    kinds : tuple of ndarray of int of shape (l,) and (m,), optional
        Kind of each labelled sample, and of each sample in question. A sample is ranked among those of its kind alone
        if they are at least `MIN_KIND_LABELS`, so that the promise holds for each such kind; otherwise among all.

    Returns
    -------
    ndarray of shape (m, c)

    Examples
    --------
    >>> held_out = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    >>> class_p_values(held_out, np.array([0, 0, 1]), np.array([[0.85, 0.15]]), by_class=False)
    array([[0.625, 0.25 ]])
    """
    strange = 1 - held_out_scores[np.arange(len(codes)), codes]
    seen = ~np.isnan(strange)
    known, asked = (np.zeros(len(part), dtype=np.intp) for part in (codes, scores)) if kinds is None else kinds
    result = np.empty(scores.shape)
    for code in range(scores.shape[1]):
        base = codes == code if by_class else np.ones(len(codes), dtype=bool)
        for kind in np.unique(asked):
            rows, own = asked == kind, base & (known == kind)
            own = own if np.count_nonzero(own & seen) >= MIN_KIND_LABELS else base
            n_unseen = int((own & ~seen).sum())
            result[rows, code] = interpolated_p_values(strange[own & seen], 1 - scores[rows, code], n_unseen)
    return result


def count_of_scarce_kinds(known: NDArray, asked: NDArray) -> int:
    """Number of samples of kinds that are scarce among the labels, to which no promise can be made.

    Parameters
    ----------
    known, asked : ndarray of int
        Kind of each labelled sample, and of each sample in question.

    Examples
    --------
    >>> count_of_scarce_kinds(np.zeros(60), np.repeat([0, 1], [30, 70]))
    70
    >>> count_of_scarce_kinds(np.repeat([0, 1], [50, 10]), np.repeat([0, 1], [80, 20]))
    0
    """
    numbers, counts = np.unique(asked, return_counts=True)
    labels = (known[:, None] == numbers).sum(axis=0)
    expected = len(known) * counts / len(asked)
    return int(counts[(expected >= MIN_EXPECTED_LABELS) & (labels < MIN_KIND_SHARE * expected)].sum())
