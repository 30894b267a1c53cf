"""Scores of the settings of a search, and the choice among them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Scores that differ by less are equal.
TIE = 1e-12
# Columns that are NaN if nothing could be held out.
NUMBERS = (
    "mean_test_score",
    "std_test_score",
    "mean_evidence",
    "evidence_error",
    "mean_fit_time",
    "std_fit_time",
)


@dataclass(frozen=True)
class FoldScores:
    """Scores of a fit on the rows of a fold, whose labels were held out.

    Attributes
    ----------
    row_scores : ndarray of shape (m,)
        The score of each row.
    row_evidence : ndarray of shape (m,)
        Log-likelihood of the label of each row, which is more informative than right or wrong.
    seconds : float
        Time of the fit.
    """

    row_scores: NDArray
    row_evidence: NDArray
    seconds: float


def score_rows(row_scores: NDArray, codes: NDArray, balanced: bool) -> float:
    """Mean over the rows, or over the class means.

    Examples
    --------
    >>> row_scores, codes = np.array([1.0, 1.0, 0.0]), np.array([0, 0, 1])
    >>> round(score_rows(row_scores, codes, balanced=False), 3), score_rows(row_scores, codes, balanced=True)
    (0.667, 0.5)
    """
    return float(np.average(row_scores, weights=row_weights(codes) if balanced else None))


def row_weights(codes: NDArray) -> NDArray:
    """Weights of the rows that give all classes the same total weight; their mean is 1.

    Examples
    --------
    >>> row_weights(np.array([0, 0, 0, 2]))
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return len(codes) / (len(counts) * counts[inverse])


def tabulate(
    settings: list[dict[str, Any]],
    answers: list[list[FoldScores]],
    folds: list[NDArray],
    codes: NDArray,
    place: NDArray,
    *,
    balanced: bool,
) -> dict[str, Any]:
    """`LMSSCCV.cv_results_`, from the scores of each setting on each fold.

    `place` is the position of each row in canonical order, in which rows are summed.
    """
    results = _parameter_columns(settings)
    if not folds:
        nothing = np.full(len(settings), np.nan)
        return results | dict.fromkeys(NUMBERS, nothing) | {"rank_test_score": np.ones(len(settings), dtype=int)}
    by_split = np.array(
        [
            [score_rows(one.row_scores, codes[fold], balanced) for one, fold in zip(row, folds, strict=True)]
            for row in answers
        ]
    )
    rows = np.concatenate(folds)
    held, position = np.unique(place[rows], return_inverse=True)
    weights = row_weights(codes[np.argsort(place)[held]]) if balanced else np.ones(len(held))

    def by_row(parts: list[NDArray]) -> NDArray:
        """Mean over the repeats for each row, weighted."""
        return np.bincount(position, np.concatenate(parts)) / np.bincount(position) * weights

    means = np.array([by_row([one.row_scores for one in row]).mean() for row in answers])
    evidence = np.array([by_row([one.row_evidence for one in row]) for row in answers])
    seconds = np.array([[one.seconds for one in row] for row in answers])
    return (
        results
        | {f"split{split}_test_score": column for split, column in enumerate(by_split.T)}
        | {
            "mean_test_score": means,
            "std_test_score": by_split.std(axis=1),
            "rank_test_score": 1 + (means[:, None] < means - TIE).sum(axis=1),
            "mean_evidence": (evidence - evidence[0]).mean(axis=1),
            "evidence_error": (evidence - evidence[0]).std(axis=1, ddof=1) / np.sqrt(len(held)),
            "mean_fit_time": seconds.mean(axis=1),
            "std_fit_time": seconds.std(axis=1),
        }
    )


def _parameter_columns(settings: list[dict[str, Any]]) -> dict[str, Any]:
    """The columns "params" and "param_<name>"; masked where a setting does not have the parameter."""
    columns: dict[str, Any] = {"params": settings}
    for name in sorted({name for setting in settings for name in setting}):
        given = np.array([name in setting for setting in settings])
        column = np.ma.MaskedArray(np.empty(len(settings), dtype=object), mask=~given)
        for number in np.flatnonzero(given):
            column[number] = settings[number][name]
        columns[f"param_{name}"] = column
    return columns


def choose(results: Mapping[str, Any], margin: float | None) -> int:
    """Index of the setting with the best score among those that are significantly better than the first; else 0.

    Examples
    --------
    >>> results = {
    ...     "mean_test_score": np.array([0.80, 0.84, 0.82]),
    ...     "mean_evidence": np.array([0.0, 0.02, 0.01]),
    ...     "evidence_error": np.array([0.0, 0.03, 0.005]),
    ... }
    >>> choose(results, margin=1.0), choose(results, margin=3.0), choose(results, margin=None)
    (2, 0, 1)
    """
    gain = np.nan_to_num(results["mean_test_score"] - results["mean_test_score"][0])
    if margin is not None:
        sure = results["mean_evidence"] > np.maximum(margin * results["evidence_error"], TIE)
        gain = np.where(sure, gain, 0.0)
    return int(np.argmax(gain >= gain.max() - TIE))
