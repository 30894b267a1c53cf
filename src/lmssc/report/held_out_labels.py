"""Accuracy and calibration on labels that were held out, and what so many labels allow one to say."""

from typing import Any

import numpy as np

from lmssc.metrics import expected_calibration_error
from lmssc.model_selection.intervals import gap_by_chance, judge_confidence, labels_that_tell, wilson
from lmssc.model_selection.refit import HeldOut
from lmssc.plotting.reliability import reliability
from lmssc.report.charts import calibration_chart
from lmssc.report.rendering import between, percent
from lmssc.report.subject import Subject

BINS = 10
# A confusion matrix of more classes is too wide to read; "mistaken for" in the table of classes says the most of it.
MAX_CONFUSED = 40


def held_out_labels(subject: Subject) -> dict[str, Any] | None:
    """Accuracy on held-out labels, by class and by confidence; None without views, empty if none can be held out."""
    found = subject.held_out
    if found is None or not len(found.rows):
        return None if found is None else {}
    return {
        **_accuracy(subject, found),
        "by_class": _by_class(subject, found),
        "confusion": confusion(subject, found),
        **_calibration(found),
    }


def say_confidence(claimed: float, rate: float, n: int) -> str:
    """What `n` held-out labels say about the confidence, in a sentence or two.

    Parameters
    ----------
    claimed : float
        Mean confidence.
    rate : float
        Share of right answers.
    n : int
        Number of answers.

    Returns
    -------
    str

    Examples
    --------
    >>> print(say_confidence(0.428, 0.568, 44))
    44 held-out labels are too few to tell whether that fits: the true accuracy may lie anywhere from 42.2 % to 70.3 \
%. About 374 labels would tell it to ±5 points.
    >>> print(say_confidence(0.56, 0.568, 440))
    That fits: the accuracy is known to ±5 points.
    """
    verdict = judge_confidence(claimed, rate, n)
    if verdict == "too sure":
        return "It is too sure: the answers are right less often than it says."
    if verdict == "too modest":
        return "It is too modest: the answers are right more often than it says."
    if verdict == "fits":
        return "That fits: the accuracy is known to ±5 points."
    return (
        f"{_labels(n)} {'is' if n == 1 else 'are'} too few to tell whether that fits: the true accuracy may lie "
        f"anywhere from {between(rate, n)}. About {labels_that_tell(rate):,} labels would tell it to ±5 points."
    )


def _labels(n: int) -> str:
    return f"{n:,} held-out label{'' if n == 1 else 's'}"


def _accuracy(subject: Subject, found: HeldOut) -> dict[str, Any]:
    n, right = len(found.rows), int(found.right.sum())
    counts = np.bincount(found.codes, minlength=len(subject.labels))
    constant = counts.max() / n
    n_given = int(subject.given.sum())
    return {
        "n": f"{n:,}",
        "which": f"All {n:,} given labels" if n == n_given else f"{n:,} of the {n_given:,} given labels",
        "labels": _labels(n),
        "n_right": f"{right:,}",
        "accuracy": percent(right / n),
        "interval": between(right / n, n),
        "largest_class": subject.labels[int(counts.argmax())],
        "constant": percent(constant),
        "beats_constant": wilson(right / n, n)[0] > constant,
        "n_refitted": f"{subject.n_refitted:,}" if subject.n_refitted < len(subject.codes) else "",
        "tuned": hasattr(subject.clf, "best_estimator_"),
    }


def _by_class(subject: Subject, found: HeldOut) -> list[list[Any]]:
    answers = found.distributions.argmax(axis=1)
    rows: list[list[Any]] = []
    for code, label in enumerate(subject.labels):
        mine = found.codes == code
        if not mine.any():
            rows.append([label, "0", "–", "", "–", "–", "–", "only one label: could not be held out"])
            continue
        wrong = np.bincount(answers[mine & ~found.right], minlength=len(subject.labels))
        taken = [f"{subject.labels[other]} ({wrong[other]})" for other in np.argsort(-wrong, kind="stable")[:3]]
        share, n = float(found.right[mine].mean()), int(mine.sum())
        mistakes = ", ".join(taken[: np.count_nonzero(wrong)]) or "–"
        # Of the answers that name the class: how sure they are, and how often they are right.
        named = answers == code
        sure, hit = (float(part[named].mean()) if named.any() else 0.0 for part in (found.confidence, found.right))
        claims = [percent(sure), f"{percent(hit)} ({between(hit, int(named.sum()))})"] if named.any() else ["–", "–"]
        rows.append([label, f"{n:,}", percent(share), share, between(share, n), *claims, mistakes])
    return rows


def confusion(subject: Subject, found: HeldOut) -> dict[str, Any]:
    """Held-out labels by true class and answer: counts, and the share of the true class, for the shade of the cell."""
    n_classes = len(subject.labels)
    if not 2 <= n_classes <= MAX_CONFUSED:
        return {}
    answered = found.answered
    counts = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(counts, (found.codes[answered], found.distributions[answered].argmax(axis=1)), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = []
    for code, label in enumerate(subject.labels):
        cells = [
            {"count": int(n), "shade": round(4 * float(share)), "right": code == other}
            for other, (n, share) in enumerate(zip(counts[code], shares[code], strict=True))
        ]
        rows.append({"label": label, "cells": cells})
    return {"labels": subject.labels, "rows": rows}


def _calibration(found: HeldOut) -> dict[str, Any]:
    n, rate, claimed = len(found.rows), found.accuracy, float(found.confidence.mean())
    bins = reliability(found.right, found.confidence, BINS)
    gap = 100 * expected_calibration_error(found.right, found.confidence, BINS)
    chance = 100 * gap_by_chance(found.confidence, BINS)
    return {
        "claimed": percent(claimed),
        "verdict": say_confidence(claimed, rate, n),
        "gap": f"{gap:.1f}",
        "gap_by_chance": f"{chance:.1f}",
        "miscalibrated": gap > chance,
        "chart": calibration_chart(bins),
        "by_confidence": [
            [
                f"{100 * one['bin'] // BINS} to {100 * (one['bin'] + 1) // BINS} %",
                f"{one['n']:,}",
                percent(one["confidence"]),
                percent(one["accuracy"]),
                between(one["accuracy"], one["n"]),
                judge_confidence(one["confidence"], one["accuracy"], one["n"]).replace("too few", "too few to tell"),
            ]
            for one in bins
        ],
    }
