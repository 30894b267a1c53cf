"""Accuracy and mean confidence of LMSSC on hard cases, over seeds: are they equal?

    python benchmarks/confidence.py

The cases are discrete features, views that new samples lack, samples far from those of fit, overlapping classes and
rare classes; and, as controls, data sets on which confidence was always right. "Labels" counts those that a row can be
calibrated by: of samples that lack as many views, or of the rare class if the row is about answers of that class.
Writes `confidence.csv` and `confidence.md` to results/confidence.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmssc import LMSSC
from lmssc.datasets import load, make_multiview
from lmssc.evaluation.splits import stratified_split
from lmssc.metrics import expected_calibration_error
from lmssc.persistence.atomic import open_atomically, write_csv

# A case holds if accuracy and mean confidence differ by at most MAX_DIFFERENCE; with fewer labels it is not judged.
MAX_DIFFERENCE, MIN_LABELS = 0.06, 30
COLUMNS = ("case", "samples", "labels", "answers", "right", "sure", "calibration_error", "holds")


class Outcome(NamedTuple):
    """Answers of one seed: samples, number of known labels, whether each answer is right, and its confidence."""

    samples: str
    labels: int
    right: NDArray
    sure: NDArray


def fitted(views, truth, rate, rng, at_least=1):
    """A fitted model and its labels: a random share, with a minimum for each class."""
    y = np.where(rng.random(len(truth)) < rate, truth, -1)
    for code in np.unique(truth):
        members = np.flatnonzero(truth == code)
        y[members[: max(0, at_least - int((y == code).sum()))]] = code
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LMSSC().fit(views, y), y


def of_fit(clf, y, truth, chosen=None, name="without a label"):
    """Answers for the unlabelled samples of fit."""
    rows = (y < 0) if chosen is None else (y < 0) & chosen
    right, sure = (clf.transduction_ == truth)[rows], clf.label_distributions_.max(axis=1)[rows]
    return Outcome(name, int((y >= 0).sum()), right, sure)


def of_new(clf, y, views, truth, name="new"):
    """Answers for new samples."""
    proba = clf.predict_proba(views)
    return Outcome(name, int((y >= 0).sum()), clf.classes_[proba.argmax(axis=1)] == truth, proba.max(axis=1))


def binary_features(seed) -> Iterator[Outcome]:
    """4 binary features; the first decides between p(class 1) = .1 and .7."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(3000, 4)).astype(float)
    truth = (rng.random(3000) < np.where(X[:, 0] == 1, 0.7, 0.1)).astype(int)
    clf, y = fitted([X[:1500]], truth[:1500], 0.3, rng)
    yield of_fit(clf, y, truth[:1500])
    yield of_new(clf, y, [X[1500:]], truth[1500:])


def few_values(seed) -> Iterator[Outcome]:
    """Three features of 2, 3 and 3 values; the first two decide between three classes."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(values, size=3000) for values in (2, 3, 3)]).astype(float)
    likeliest = (X[:, 0] + X[:, 1]).astype(int) % 3
    truth = np.where(rng.random(3000) < 0.6, likeliest, rng.integers(3, size=3000))
    clf, y = fitted([X[:1500]], truth[:1500], 0.3, rng)
    yield of_fit(clf, y, truth[:1500])
    yield of_new(clf, y, [X[1500:]], truth[1500:])


def views_absent(seed) -> Iterator[Outcome]:
    """Four views in fit; new samples have 4, 2 or 1 of them."""
    data = make_multiview(1500, n_views=4, n_classes=5, labelled=1.0, random_state=seed)
    clf, y = fitted([view[:500] for view in data.views], data.target[:500], 0.3, np.random.default_rng(seed))
    for kept in (4, 2, 1):
        new = [np.where(v < kept, view[500:], np.nan) for v, view in enumerate(data.views)]
        yield of_new(clf, y, new, data.target[500:], f"new, {kept} of 4 views")


def views_absent_in_fit(n_samples, seed) -> Iterator[Outcome]:
    """30 % of the sample-views are missing in fit."""
    data = make_multiview(n_samples, n_views=4, n_classes=5, missing=0.3, labelled=1.0, random_state=seed)
    clf, y = fitted(data.views, data.target, 0.3, np.random.default_rng(seed))
    count = sum((~np.isnan(view).all(axis=1)).astype(int) for view in data.views)
    for kept in (1, 2, 3):
        found = of_fit(clf, y, data.target, count == kept, f"without a label, {kept} of 4 views")
        yield found._replace(labels=int(((y >= 0) & (count == kept)).sum()))


def far_away(seed) -> Iterator[Outcome]:
    """New samples like those of fit, 30 standard deviations away, and in another unit."""
    data = make_multiview(1500, labelled=1.0, random_state=seed)
    rng = np.random.default_rng(seed)
    clf, y = fitted([view[:500] for view in data.views], data.target[:500], 0.3, rng)
    new, truth = [view[500:] for view in data.views], data.target[500:]
    yield of_new(clf, y, new, truth, "new, like those of fit")
    signs = [rng.choice([-1, 1], size=view.shape[1]) for view in new]
    shifted = [view + 30 * view.std(axis=0) * sign for view, sign in zip(new, signs, strict=True)]
    yield of_new(clf, y, shifted, truth, "new, 30 σ away")
    yield of_new(clf, y, [view * 1000 for view in new], truth, "new, times 1000")


def overlap(seed) -> Iterator[Outcome]:
    """Two Gaussians in 2-D at distance 0.5, 30 % labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=2000)
    X = rng.standard_normal((2000, 2)) + 0.5 * truth[:, None] * [1, 0]
    clf, y = fitted([X[:1000]], truth[:1000], 0.3, rng)
    yield of_fit(clf, y, truth[:1000])
    yield of_new(clf, y, [X[1000:]], truth[1000:])


def overlap_few(n_labels, seed) -> Iterator[Outcome]:
    """The same with few labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=1000)
    X = rng.standard_normal((1000, 2)) + 0.5 * truth[:, None] * [1, 0]
    y = np.full(1000, -1)
    known = rng.permutation(1000)[:n_labels]
    y[known] = truth[known]
    yield of_fit(LMSSC().fit([X], y), y, truth)


def sparse_amounts(seed) -> Iterator[Outcome]:
    """Two views of 300 columns, mostly zeros; the size of the other values depends on the class, and is noisy."""
    rng = np.random.default_rng(seed)
    truth = np.arange(300) % 2
    rates = np.array([5, 30])[truth][:, None]
    views = [(1 + rng.poisson(rates, size=(300, 300))) * (rng.random((300, 300)) < 0.15) for _ in range(2)]
    y = np.where(np.arange(300) < 30, truth, -1)
    yield of_fit(LMSSC().fit([view.astype(float) for view in views], y), y, truth)


def rare(n_samples, one_in, apart, rate, seed) -> Iterator[Outcome]:
    """Two Gaussians in 2-D, one with few samples: answers of the rare class, and all answers."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_samples) < 1 / one_in).astype(int)
    X = rng.standard_normal((n_samples, 2)) + apart * truth[:, None] * [1, 0]
    clf, y = fitted([X], truth, rate, rng)
    answered = of_fit(clf, y, truth, clf.transduction_ == 1, "answered as the rare class")
    yield answered._replace(labels=int((y == 1).sum()))
    yield of_fit(clf, y, truth, name="all without a label")


def control(name, rate, seed) -> Iterator[Outcome]:
    """A data set as control."""
    data = load(name)
    codes = np.unique(data.target, return_inverse=True)[1]
    order, given = stratified_split(codes, rate, seed)
    y = np.where(given, codes[order], -1)
    clf = LMSSC().fit([view[order] for view in data.views], y)
    yield of_fit(clf, y, codes[order])


def synthetic(seed) -> Iterator[Outcome]:
    """`make_multiview` with more noise than usual."""
    data = make_multiview(1000, noise=2.0, labelled=1.0, random_state=seed)
    clf, y = fitted(data.views, data.target, 0.2, np.random.default_rng(seed))
    yield of_fit(clf, y, data.target)


CASES = {
    "2: binary features": binary_features,
    "2: features of few values": few_values,
    "8: views absent": views_absent,
    "7: sparse amounts": sparse_amounts,
    "8: views absent in fit": lambda seed: views_absent_in_fit(1000, seed),
    "8: views absent in fit, more samples": lambda seed: views_absent_in_fit(2500, seed),
    "11: far away": far_away,
    "12: classes that overlap": overlap,
    "12: classes that overlap, 30 labels": lambda seed: overlap_few(30, seed),
    "12: classes that overlap, 60 labels": lambda seed: overlap_few(60, seed),
    "12: classes that overlap, 100 labels": lambda seed: overlap_few(100, seed),
    "13: one in 3": lambda seed: rare(800, 3, 2.0, 0.25, seed),
    "13: one in 5": lambda seed: rare(1000, 5, 2.0, 0.25, seed),
    "13: one in 8": lambda seed: rare(1500, 8, 2.0, 0.25, seed),
    "13: one in 12": lambda seed: rare(1800, 12, 2.0, 0.3, seed),
    "13: one in 20": lambda seed: rare(2500, 20, 2.0, 0.3, seed),
    "13: one in 50": lambda seed: rare(6000, 50, 3.0, 0.4, seed),
    "13: one in 100": lambda seed: rare(10_000, 100, 3.0, 0.5, seed),
    "13: one in 100, few labels": lambda seed: rare(5000, 100, 3.0, 0.1, seed),
    "13: one in 1000": lambda seed: rare(20_000, 1000, 3.0, 0.3, seed),
    "13: one in 1000, further apart": lambda seed: rare(20_000, 1000, 5.0, 0.3, seed),
    "control: digits, 10 %": lambda seed: control("digits", 0.1, seed),
    "control: synthetic": synthetic,
    "control: sonar, 30 %": lambda seed: control("sonar", 0.3, seed),
    "control: reuters, 30 %": lambda seed: control("reuters", 0.3, seed),
}


def measure(case, seeds):
    """Rows of a case, with the seeds pooled."""
    runs = [list(CASES[case](seed)) for seed in range(seeds)]
    for outcomes in zip(*runs, strict=True):
        right, sure = (np.concatenate([getattr(one, part) for one in outcomes]) for part in ("right", "sure"))
        labels = min(one.labels for one in outcomes)
        line = dict.fromkeys(COLUMNS, "–")
        line |= {"case": case, "samples": outcomes[0].samples, "labels": labels, "answers": len(right)}
        if len(right):
            line |= {"right": round(float(right.mean()), 4), "sure": round(float(sure.mean()), 4)}
            line["calibration_error"] = round(expected_calibration_error(right, sure), 4)
            line["holds"] = verdict(labels, right, sure)
        yield line


def verdict(labels, right, sure):
    """Whether accuracy and mean confidence are close enough."""
    if labels < MIN_LABELS:
        return "too few labels"
    return "yes" if abs(right.mean() - sure.mean()) <= MAX_DIFFERENCE else "no"


def page(lines):
    """The table as Markdown."""
    head = "| case | samples | labels | answers | right | sure | calibration error | within 0.06 |\n|" + "---|" * 8
    rows = ["| " + " | ".join(str(line[column]) for column in COLUMNS) + " |" for line in lines]
    return "\n".join([head, *rows]) + "\n"


def main(arguments=None):
    """Run the requested cases; exit with 1 if one does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", default=[""], help="beginnings of the names of the cases")
    parser.add_argument("--out", type=Path, default=Path("results/confidence"))
    chosen = parser.parse_args(arguments)
    lines = []
    for case in CASES:
        if not case.startswith(tuple(chosen.cases)):
            continue
        try:
            found = list(measure(case, chosen.seeds))
        except OSError as error:  # data that are not there and cannot be fetched
            print(f"{case}: left out, {error}", file=sys.stderr)
            continue
        print(page(found).split("\n", 2)[2], end="", flush=True)
        lines += found
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_csv(chosen.out / "confidence.csv", COLUMNS, lines)
    with open_atomically(chosen.out / "confidence.md") as file:
        file.write(page(lines).encode())
    return int(any(line["holds"] == "no" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
