"""How right and how sure the answers are for labels that were hidden, and what so many labels allow one to say."""

from html import escape

import numpy as np

from lmssc.metrics import expected_calibration_error
from lmssc.model_selection.intervals import gap_by_chance, judge_confidence, labels_that_tell, wilson
from lmssc.model_selection.refit import HeldOut
from lmssc.plotting.reliability import reliability
from lmssc.report.charts import calibration_chart
from lmssc.report.html import bar, between, percent, table
from lmssc.report.subject import Subject

BINS = 10


def hidden_labels(subject: Subject) -> str:
    """Accuracy on hidden labels, by class and by confidence."""
    found = subject.held_out
    if found is None:
        return (
            "<p><strong>Not checked:</strong> this page was made from the model alone, without the views. With "
            "<code>clf.report(path, X, y)</code>, where X and y are those of <code>fit</code>, labels are hidden and "
            "the model has to find them again.</p>"
        )
    if not len(found.rows):
        return (
            "<p><strong>Nothing could be checked:</strong> every class has one label only, and a label cannot be "
            "hidden and learned from at once. Give each class at least two labels to see how right the answers are.</p>"
        )
    return (
        f"<h3>Labels that were hidden</h3>{_accuracy(subject, found)}{_by_class(subject, found)}"
        f"<h3>Is the confidence deserved?</h3>{_calibration(found)}"
    )


def say_confidence(claimed: float, rate: float, n: int) -> str:
    """What `n` hidden labels say about the confidence, in a sentence or two.

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
    44 hidden labels are too few to tell whether that fits: the true accuracy may lie anywhere from 42.2 % to 70.3 %. \
About 374 labels would tell it to ±5 points.
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
    return f"{n:,} hidden label{'' if n == 1 else 's'}"


def _accuracy(subject: Subject, found: HeldOut) -> str:
    n, right = len(found.rows), int(found.right.sum())
    counts = np.bincount(found.codes, minlength=len(subject.labels))
    most = int(counts.argmax())
    constant = counts[most] / n
    doubt = ""
    if wilson(right / n, n)[0] <= constant:
        doubt = ", and these labels do not show that the model is better than that"
    sampled = ""
    if subject.n_refitted < len(subject.codes):
        sampled = (
            f" To save time this was done on {subject.n_refitted:,} of the {len(subject.codes):,} samples, drawn "
            "at random with as large a share of labels; with all samples the answers tend to be better."
        )
    chosen = ""
    if hasattr(subject.clf, "best_estimator_"):
        chosen = " The parameters had been chosen with these labels in view, which makes the number a little too good."
    n_given = int(subject.given.sum())
    which = f"All {n:,} given labels" if n == n_given else f"{n:,} of the {n_given:,} given labels"
    return (
        f'<p class="big">{which} were hidden, some at a time, and the model had to find them again: '
        f"<strong>{right:,} of {n:,} were found, {percent(right / n)}</strong>.</p>"
        f"<p>With {_labels(n)} this means an accuracy of {between(right / n, n)} (95 % interval) for samples like "
        "the labelled ones; it may be lower for samples of another kind. "
        f"Always answering “{escape(subject.labels[most])}”, the most frequent class, would be right for "
        f"{percent(constant)}{doubt}.{sampled}{chosen}</p>"
    )


def _by_class(subject: Subject, found: HeldOut) -> str:
    answers = found.distributions.argmax(axis=1)
    rows = []
    for code, label in enumerate(subject.labels):
        mine = found.codes == code
        if not mine.any():
            rows.append([escape(label), "0", "–", "", "–", "only one label: could not be hidden"])
            continue
        wrong = np.bincount(answers[mine & ~found.right], minlength=len(subject.labels))
        taken = [f"{escape(subject.labels[other])} ({wrong[other]})" for other in np.argsort(-wrong, kind="stable")[:3]]
        share = float(found.right[mine].mean())
        n = int(mine.sum())
        mistakes = ", ".join(taken[: np.count_nonzero(wrong)]) or "–"
        rows.append([escape(label), f"{n:,}", percent(share), bar(share), between(share, n), mistakes])
    return table(
        "by-class",
        "Hidden labels by class",
        ["class", "hidden", "found again", "", "95 % interval", "mistaken for (how often)"],
        rows,
    )


def _calibration(found: HeldOut) -> str:
    n, rate, claimed = len(found.rows), found.accuracy, float(found.confidence.mean())
    bins = reliability(found.right, found.confidence, BINS)
    rows = [
        [
            f"{100 * one['bin'] // BINS} to {100 * (one['bin'] + 1) // BINS} %",
            f"{one['n']:,}",
            percent(one["confidence"]),
            percent(one["accuracy"]),
            between(one["accuracy"], one["n"]),
            judge_confidence(one["confidence"], one["accuracy"], one["n"]).replace("too few", "too few to tell"),
        ]
        for one in bins
    ]
    error = 100 * expected_calibration_error(found.right, found.confidence, BINS)
    chance = 100 * gap_by_chance(found.confidence, BINS)
    wrong = " It is more here: the confidence is probably wrong at some levels." if error > chance else ""
    return (
        f"<p>For the hidden labels the mean confidence was {percent(claimed)}, and {percent(rate)} of the answers were "
        f"right. {say_confidence(claimed, rate, n)}</p>"
        f"<p>On average over the levels in the table below, confidence and accuracy are {error:.1f} points apart. With "
        f"{_labels(n)}, chance alone makes that up to {chance:.1f} points even if every confidence is "
        f"deserved.{wrong}</p>"
        f'<figure><div class="card" role="group" aria-label="Calibration" tabindex="0">{calibration_chart(bins)}</div>'
        "<figcaption>On the dashed line the answers are right as often as the confidence says; below it, the model is "
        "too sure. A vertical line is a 95 % interval: where it crosses the dashed line, these labels show no "
        "difference. The larger a dot, the more answers.</figcaption></figure>"
        + table(
            "calibration",
            "Hidden labels by confidence",
            ["confidence", "answers", "mean confidence", "right", "95 % interval", "in words"],
            rows,
        )
    )
