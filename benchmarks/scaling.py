"""What each rule of `scaling="auto"` is worth on each set, and when its threshold was chosen without that set.

Each rule has a statistic of the views, without labels, and a threshold (lmssc.data.view_kinds). For every set that a
rule could touch, LMSSC is fitted with the scaling that the rule takes and with the one that it replaces, on the same
splits. For the column "gain_without" the threshold is the one, of those tried, with the largest mean gain on all other
sets of the rule.

results/accuracy/scaling_runs.csv has the runs, results/accuracy/scaling.csv the table. Finished runs are kept; a second
call resumes. LMSSC is fitted without calibration, which changes confidences and next to no answers, to save time.
"""

import argparse
import csv
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from development import WHEELS, load_views
from scipy import sparse

from lmssc import LMSSC
from lmssc.data.scaling import WORDS
from lmssc.data.text_detection import CRITERIA as TEXT
from lmssc.data.text_detection import _row_norms, _size_spread, has_topics, idf_ratio
from lmssc.data.view import RawView
from lmssc.data.view_kinds import CRITERIA, _share_a_unit, choose_scalings, least_correlation
from lmssc.evaluation.splits import stratified_split
from lmssc.persistence.atomic import write_csv

RATES = (0.05, 0.1, 0.3)
RUNS = ("dataset", "scalings", "rate", "repeat", "accuracy")
TABLE = ("rule", "dataset", "statistic", "applies", "rate", "before", "after", "gain", "error", "n", "gain_without")


@dataclass(frozen=True)
class Rule:
    """A rule, what it replaces, and the thresholds to choose from.

    `statistic` maps a view to a number, NaN where the rule cannot apply; the rule takes `after` where the number is
    below the threshold. `joint` rules look at the largest number of all views.
    """

    name: str
    before: str
    after: str
    statistic: object
    threshold: float
    tried: tuple
    sets: tuple
    joint: bool = False


def density(raw):
    """Share of non-zeros of a view that may be amounts but for that share."""
    values = raw.data.data if sparse.issparse(raw.data) else raw.data
    if (values < 0).any() or choose_scalings([raw])[0].kind in WORDS or not (_share_a_unit(raw) and has_topics(raw)):
        return np.nan
    return np.count_nonzero(values) / np.prod(raw.data.shape)


def frequent_words(raw):
    """By what factor idf lowers the similarity of unrelated rows of counted words."""
    return idf_ratio(raw) if choose_scalings([raw])[0].kind in ("log", "logidf") else np.nan


def counted_words(raw):
    """0 for counted words: the rule has no threshold."""
    return 0.0 if choose_scalings([raw])[0].kind in ("log", "logidf") else np.nan


def sizes(raw):
    """Spread of the sizes of rows of counts."""
    texts = sparse.csr_array(raw.data)
    return _size_spread(texts, _row_norms(texts))


def correlation(raw):
    """p-value of as little correlation as there is."""
    return least_correlation(raw)


COUNTS = ("3sources", "bbc", "movies", "books", "opinions", "r8", "r52", "ng20", "cora")
RULES = (
    Rule("components keep their variances", "zscore", "center", correlation, CRITERIA.max_p_value,
         (1e-6, 1e-3, 0.5, 1.1),
         ("msrc_pca", "mnist_pca", "handwritten_pca", "msrc", "wine", "sonar", "cancer", "mnist")),
    Rule("roots of amounts that are mostly zero", "zscore", "sqrt", density, CRITERIA.max_amount_density,
         (0.2, 0.35, 0.5, 0.65, 0.8), ("mnist", "spambase", "books", "digits", "leaves", "heart")),
    Rule("words whose counts differ more", "zscore", "logidf", sizes, TEXT.max_count_spread,
         (0.5, 0.55, 0.6, 0.75), ("r52", "ng20")),
    Rule("logarithms of counted words", "tfidf", "logidf", counted_words, 1.0, (1.0,), COUNTS),
    Rule("no idf where frequent words were removed", "logidf", "log", frequent_words, CRITERIA.min_idf_ratio,
         (1.0, 1.5, 2.0, 2.5, 3.0, 4.0), COUNTS, joint=True),
)  # fmt: skip


class Runs:
    """Accuracies of finished runs, in a CSV file."""

    def __init__(self, path, wheels, finished=False):
        self.path, self.wheels, self.finished, self.data = path, wheels, finished, {}
        self.known = {}
        if path.exists():
            for row in csv.DictReader(path.read_text("utf-8").splitlines()):
                key = (row["dataset"], row["scalings"], float(row["rate"]), int(row["repeat"]))
                self.known[key] = float(row["accuracy"])

    def views(self, name):
        """Views and classes, loaded once."""
        if name not in self.data:
            views, target = load_views(name, self.wheels)
            views = {view: data.astype(float) for view, data in views.items()}
            self.data = {name: (views, np.unique(target, return_inverse=True)[1])}
        return self.data[name]

    def accuracy(self, name, kinds, rate, repeat):
        """Of LMSSC with these scalings on one split, in percent; NaN if only finished runs count and it is none."""
        key = (name, "+".join(kinds), rate, repeat)
        if key not in self.known:
            if self.finished:
                return np.nan
            views, codes = self.views(name)
            order, given = stratified_split(codes, rate, repeat)
            labels = np.where(given, codes[order], -1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = LMSSC(scaling=list(kinds), calibrate=False).fit([view[order] for view in views.values()], labels)
            self.known[key] = 100 * float(np.mean((clf.transduction_ == codes[order])[~given]))
            rows = [dict(zip(RUNS, (*key, accuracy), strict=True)) for key, accuracy in self.known.items()]
            write_csv(self.path, RUNS, rows)
        return self.known[key]


def kinds_of(rule, numbers, chosen, threshold):
    """The scalings of all views with the rule at a threshold; `before` where it does not apply."""
    largest = np.nanmax(numbers) if np.isfinite(numbers).any() else np.nan
    values = [largest if rule.joint and np.isfinite(number) else number for number in numbers]
    return [
        kind if np.isnan(value) else rule.after if value < threshold else rule.before
        for kind, value in zip(chosen, values, strict=True)
    ]


def gains(runs, rule, name, numbers, chosen, threshold, repeats, rate):
    """Accuracy of each split without the rule, and with it at a threshold; only of splits that are finished."""
    with_rule = kinds_of(rule, numbers, chosen, threshold)
    without = kinds_of(rule, numbers, chosen, -np.inf)
    pairs = [
        (runs.accuracy(name, without, rate, repeat), runs.accuracy(name, with_rule, rate, repeat))
        for repeat in range(repeats)
    ]
    return np.array([pair for pair in pairs if not np.isnan(pair).any()]).reshape(-1, 2)


def table_of(runs, rule, names, repeats):
    """The lines of a rule."""
    views = {name: [RawView(view, data, None) for view, data in runs.views(name)[0].items()] for name in names}
    numbers = {name: [rule.statistic(raw) for raw in raws] for name, raws in views.items()}
    chosen = {name: [choice.kind for choice in choose_scalings(raws)] for name, raws in views.items()}
    found = {
        (name, threshold, rate): gains(
            runs, rule, name, numbers[name], chosen[name], threshold, repeats.get(name, repeats["*"]), rate
        )
        for name in names
        for threshold in dict.fromkeys((*rule.tried, rule.threshold))
        for rate in RATES
    }
    names = [name for name in names if all(len(pairs) for (one, *_), pairs in found.items() if one == name)]
    mean = {
        (name, threshold): np.mean([np.diff(found[name, threshold, rate]).mean() for rate in RATES])
        for name, threshold, _ in found
        if name in names
    }
    lines = []
    for name in names:
        others = [sum(mean[other, one] for other in names if other != name) for one in rule.tried]
        best = rule.tried[int(np.argmax(np.round(others, 6)))]
        for rate in RATES:
            pairs = found[name, rule.threshold, rate]
            gain = np.diff(pairs).ravel()
            lines.append(
                {
                    "rule": rule.name,
                    "dataset": name,
                    "statistic": " ".join(f"{number:.3g}" for number in numbers[name]),
                    "applies": rule.after in kinds_of(rule, numbers[name], chosen[name], rule.threshold),
                    "rate": rate,
                    "before": pairs[:, 0].mean(),
                    "after": pairs[:, 1].mean(),
                    "gain": gain.mean(),
                    "error": gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan,
                    "n": len(gain),
                    "gain_without": np.diff(found[name, best, rate]).mean(),
                }
            )
    return lines


def main():
    """Run the rules and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="NAME", help="sets that are not run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slow-repeats", type=int, default=5, help="of the large texts")
    parser.add_argument("--finished", action="store_true", help="run nothing, make the table of the finished runs")
    parser.add_argument("--wheels", type=Path, default=WHEELS)
    parser.add_argument("--out", type=Path, default=Path("results/accuracy"))
    arguments = parser.parse_args()
    runs = Runs(arguments.out / "scaling_runs.csv", arguments.wheels, arguments.finished)
    slow = dict.fromkeys(("opinions", "r8", "r52", "ng20", "cora"), arguments.slow_repeats)
    lines = []
    for rule in RULES:
        names = [name for name in rule.sets if name not in arguments.leave_out]
        lines += table_of(runs, rule, names, {"*": arguments.repeats, **slow})
        write_csv(arguments.out / "scaling.csv", TABLE, lines)
        print(rule.name, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
