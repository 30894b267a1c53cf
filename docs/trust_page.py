"""The table of the guide "How far to trust an answer", from the CSV files under ``results/trust``."""

import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from lmssc.paper.markdown import markdown_table

FOLDER = "results/trust"
NAMES = {"handwritten": "HW", "bbcsport": "BBCSport", "msrc": "MSRC-v5", "reuters": "Reuters", "leaves": "100Leaves"}

QUESTIONS = {
    "explain": "`explain` of 100 samples",
    "suspect_labels": "`suspect_labels`",
    "novelty": "`novelty_`",
    "predict_set": "`predict_set`",
}

Rows = list[dict[str, str]]


def trust_markdown(root: Path) -> str:
    """What was asked and what was measured, in Markdown."""
    sets, groups, novelty, noise, few = (
        _read(root / FOLDER / f"{part}.csv") for part in ("sets", "groups", "novelty", "noise", "few")
    )
    with_groups, without = (_coverages(groups, f"covered_{name}") for name in ("groups", "none"))
    lines = [
        ("`predict_set` at 80 / 90 / 95 %", f"{_coverages(sets, 'covered_lmssc')} contain the true class", sets),
        (
            "classes in these sets",
            f"{_sizes(sets, 'size_lmssc')}; MAPIE with logistic regression {_sizes(sets, 'size_mapie')}",
            sets,
        ),
        ("the same for sites without labels, simulated", f"{with_groups} with `groups=`, {without} without", groups),
        (
            "`novelty_`, each class left out in turn",
            f"AUROC {_mean(novelty, 'auroc_lmssc'):.2f}; largest probability "
            f"{_mean(novelty, 'auroc_largest_probability'):.2f}, distance to labelled samples "
            f"{_mean(novelty, 'auroc_knn'):.2f}",
            novelty,
        ),
        ("samples of labelled classes with p ≤ 0.05", f"{100 * _mean(novelty, 'false_alarm'):.1f} %", novelty),
        (
            "`suspect_labels`, 20 % of the labels wrong",
            f"AUROC {_mean(noise, 'auroc_lmssc'):.2f}; cleanlab "
            f"{_mean(noise, 'auroc_cleanlab_normalized_margin_adjusted'):.2f}",
            noise,
        ),
        ('`label_noise="auto"`, same labels', _won_back(noise), noise),
        ("one label per class: share right, and mean confidence", _confidences(few, "1"), few),
        ("two labels per class", _confidences(few, "2"), few),
    ]
    table = [[asked, found, _extent(rows)] for asked, found, rows in lines]
    table += _times(_read(root / FOLDER / "time.csv"))
    return markdown_table(["", "measured", "on"], table)


def _times(rows: Rows) -> list[list[str]]:
    """What the questions take, one line for each number of samples: the range over the shares of labels."""
    lines = []
    for n_samples in dict.fromkeys(row["samples"] for row in rows):
        own = [row for row in rows if row["samples"] == n_samples]
        parts = ", ".join(f"{label} {_range(own, name)}" for name, label in QUESTIONS.items())
        shares = " and ".join(f"{100 * float(row['labelled']):g} %" for row in own)
        asked = f"time of all questions, {int(n_samples):,} samples"
        lines.append([asked, f"{_range(own, 'all')} times the fit: {parts}", f"synthetic, {shares} labelled"])
    return lines


def _range(rows: Rows, column: str) -> str:
    """The least and the largest value of a column."""
    values = sorted(float(row[column]) for row in rows)
    least, largest = f"{values[0]:.1f}", f"{values[-1]:.1f}"
    return least if least == largest else f"{least} to {largest}"


def _coverages(rows: Rows, column: str) -> str:
    return " / ".join(f"{100 * mean:.1f}" for mean in _by_coverage(rows, column)) + " %"


def _sizes(rows: Rows, column: str) -> str:
    return " / ".join(f"{mean:.2f}" for mean in _by_coverage(rows, column))


def _by_coverage(rows: Rows, column: str) -> list[float]:
    """Means of a column, one for each coverage, in ascending order."""
    rows_of = defaultdict(list)
    for row in rows:
        rows_of[float(row["coverage"])].append(row)
    return [_mean(rows_of[key], column) for key in sorted(rows_of)]


def _won_back(rows: Rows) -> str:
    clean, clean_auto, noisy, noisy_auto = (
        _mean(rows, f"accuracy_{labels}_{noise}") for labels in ("clean", "noisy") for noise in ("0.0", "auto")
    )
    return (
        f"wins back {100 * (noisy_auto - noisy) / (clean - noisy):.0f} % of the accuracy that they cost; without wrong "
        f"labels it costs {100 * (clean - clean_auto):.2f} points"
    )


def _confidences(rows: Rows, n_labels: str) -> str:
    by_dataset = defaultdict(list)
    for row in rows:
        if row["labels_a_class"] == n_labels:
            by_dataset[row["dataset"]].append(row)
    return "; ".join(
        f"{NAMES.get(name, name)} {100 * _mean(own, 'right'):.0f} %, {100 * _mean(own, 'sure'):.0f} %"
        for name, own in by_dataset.items()
    )


def _extent(rows: Rows) -> str:
    """How many data sets and draws of labels a line is the mean of."""
    draws = defaultdict(set)
    for row in rows:
        draws[row["dataset"]].add(row["split"])
    counts = sorted({len(own) for own in draws.values()})
    numbers = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{len(draws)} {'set' if len(draws) == 1 else 'sets'}, {numbers} draws"


def _mean(rows: Rows, column: str) -> float:
    return fmean(float(row[column]) for row in rows)


def _read(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
