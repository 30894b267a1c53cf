"""How far answers can be trusted: wrong labels, none of these, prediction sets, and confidence with one label a class.

    python benchmarks/trust.py --parts noise novelty sets few --datasets wine vehicle --splits 5

Needs cleanlab and MAPIE for the comparisons (pip install cleanlab mapie). Each part writes a file of its own to
results/trust, one line for each data set and split; lines of other data sets stay.

noise    20 % of the labels flipped: AUROC of `suspect_labels` and of cleanlab on the same out-of-fold probabilities;
         accuracy with and without `label_noise="auto"`, with and without noise
novelty  each class left out in turn: AUROC of `novelty_`, of the largest probability, and of three detectors on the
         scaled, concatenated views; share of samples of labelled classes with p ≤ 0.05
sets     coverage and mean size of `predict_set`, and of MAPIE's split conformal sets with logistic regression
few      accuracy and mean confidence with one and two labels a class
groups   samples fall into sites, each with a shift of its own, as of patients or instruments; labels are of some sites,
         and the answers are for the others: coverage and mean size of `predict_set` with and without `groups`. The data
         set "simulated" is for this part
time     CPU seconds of the fit to 20,000 and to 100,000 synthetic samples, and of each question in units of the fit. It
         needs no data set: --parts time
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from wheel_data import DATASETS

from lmssc import LMSSC
from lmssc.core.held_out_folds import fold_scores
from lmssc.datasets import load, make_multiview
from lmssc.estimators.trust_state import label_folds, latent_problem
from lmssc.persistence.atomic import write_csv

COLUMNS = {
    "cancer": (load_breast_cancer, {"mean": range(10), "error": range(10, 20), "worst": range(20, 30)}),
    "wine": (load_wine, {"acids": range(5), "phenols": range(5, 9), "colours": range(9, 13)}),
}
MIN_LABELS, MIN_RATE, MAX_RATE = 10, 0.05, 0.5
# Samples and shares of labels of the part "time", and samples to explain.
N_SAMPLES, LABEL_RATES, N_EXPLAINED = (20_000, 100_000), (0.01, 0.1), 100
COVERAGES = (0.8, 0.9, 0.95)
NOISE, REJECT = 0.2, 0.05
# Sites, how many of them have labels, share of their samples that are labelled, and shift in standard deviations.
N_SITES, N_LABELLED_SITES, SITE_RATE, SITE_SHIFT = 40, 25, 0.3, 1.1


def read(name, wheels):
    """Views by name, and class codes."""
    if name in COLUMNS:
        loader, columns = COLUMNS[name]
        data = loader()
        views, target = {view: data.data[:, list(part)] for view, part in columns.items()}, data.target
    elif name in DATASETS:
        views, target = DATASETS[name](wheels)
    elif name == "simulated":
        rng = np.random.default_rng(0)
        target = rng.integers(3, size=600)
        means = {"first": rng.standard_normal((3, 10)), "second": rng.standard_normal((3, 8))}
        views = {view: mean[target] + rng.standard_normal((600, mean.shape[1])) for view, mean in means.items()}
    else:
        data = load(name)
        views, target = dict(zip(data.view_names, data.views, strict=True)), data.target
    return views, np.unique(target, return_inverse=True)[1]


def draw(views, target, seed, n_labels=None):
    """Rows in random order; the labels that are given: the same share of each class, at least ten of the smallest."""
    order = np.random.default_rng(seed).permutation(len(target))
    truth, given = target[order], np.zeros(len(target), dtype=bool)
    rate = float(np.clip(MIN_LABELS / np.bincount(target).min(), MIN_RATE, MAX_RATE))
    for code in np.unique(truth):
        members = np.flatnonzero(truth == code)
        given[members[: n_labels or max(2, round(rate * len(members)))]] = True
    return {name: view[order] for name, view in views.items()}, truth, given


def fit(views, y, **parameters):
    """A fitted LMSSC, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LMSSC(**parameters).fit(views, y)


def concatenated(views):
    """The views standardised and side by side."""
    blocks = []
    for view in views.values():
        block = np.asarray(view.toarray() if sparse.issparse(view) else view, dtype=float)
        block = np.nan_to_num(block)
        spread = block.std(axis=0)
        blocks.append((block - block.mean(axis=0)) / np.where(spread > 0, spread, 1))
    return np.hstack(blocks)


def run_noise(views, truth, given, seed):
    """One line: AUROC of the suspects, and accuracy."""
    from cleanlab.rank import get_label_quality_scores

    rng = np.random.default_rng(seed)
    n_classes = int(truth.max()) + 1
    labels = truth.copy()
    flipped = given & (rng.random(len(truth)) < NOISE)
    labels[flipped] = (labels[flipped] + rng.integers(1, n_classes, int(flipped.sum()))) % n_classes
    result = {"labels": int(given.sum()), "flipped": int(flipped.sum())}
    models = {}
    for name, known in (("clean", truth), ("noisy", labels)):
        for noise in (0.0, "auto"):
            clf = models[name, noise] = fit(views, np.where(given, known, -1), label_noise=noise)
            result[f"accuracy_{name}_{noise}"] = (clf.transduction_ == truth)[~given].mean()
    clf = models["noisy", 0.0]
    found = clf.suspect_labels()
    result["estimated_noise"] = found.noise
    rank = np.empty(len(truth))
    rank[found.rows] = -np.arange(len(found.rows))
    scores = fold_scores(latent_problem(clf), clf._targets, label_folds(clf))[clf._nodes]
    probabilities = np.empty_like(scores)
    probabilities[:, clf._class_order] = scores
    rows = np.flatnonzero(given & ~np.isnan(scores).any(axis=1))
    probabilities = probabilities[rows] / probabilities[rows].sum(axis=1, keepdims=True)
    result["auroc_lmssc"] = roc_auc_score(flipped[rows], rank[rows])
    for method, adjusted in (("self_confidence", False), ("normalized_margin", False), ("normalized_margin", True)):
        quality = get_label_quality_scores(labels[rows], probabilities, method=method, adjust_pred_probs=adjusted)
        name = f"auroc_cleanlab_{method}{'_adjusted' if adjusted else ''}"
        result[name] = roc_auc_score(flipped[rows], -quality)
    yield result


def run_novelty(views, truth, given, seed):
    """One line for each class that is left out."""
    X = concatenated(views)
    for left in np.unique(truth):
        known = given & (truth != left)
        if len(np.unique(truth[known])) < 2:
            continue
        clf = fit(views, np.where(known, truth, -1))
        asked = ~known
        novel = (truth == left)[asked]
        detectors = {
            "lmssc": -clf.novelty_,
            "largest_probability": -clf.label_distributions_.max(axis=1),
            "knn": NearestNeighbors(n_neighbors=5).fit(X[known]).kneighbors(X)[0].mean(axis=1),
            "lof": -LocalOutlierFactor(min(20, int(known.sum()) - 1), novelty=True).fit(X[known]).score_samples(X),
            "isolation_forest": -IsolationForest(random_state=seed).fit(X[known]).score_samples(X),
        }
        result = {f"auroc_{name}": roc_auc_score(novel, score[asked]) for name, score in detectors.items()}
        alarm = (clf.novelty_ <= REJECT)[asked]
        yield {"left_out": int(left), **result, "false_alarm": alarm[~novel].mean(), "found": alarm[novel].mean()}


def run_sets(views, truth, given, seed):
    """One line for each coverage."""
    from mapie.classification import SplitConformalClassifier

    clf = fit(views, np.where(given, truth, -1))
    X, asked = concatenated(views), np.flatnonzero(~given)
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(given))
    by_class = np.argsort(truth[rows], kind="stable")
    train, calibrate = rows[by_class[::2]], rows[by_class[1::2]]
    model = LogisticRegression(max_iter=500).fit(X[train], truth[train])
    for coverage in COVERAGES:
        sets = clf.predict_set(coverage=coverage)[asked]
        theirs = np.ones(sets.shape, dtype=bool)
        if len(calibrate) > 1 / (1 - coverage):  # with fewer MAPIE refuses; only the set of all classes is valid
            peer = SplitConformalClassifier(model, confidence_level=coverage, prefit=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = peer.conformalize(X[calibrate], truth[calibrate]).predict_set(X[asked])[1][:, :, 0]
        yield {
            "coverage": coverage,
            "covered_lmssc": sets[np.arange(len(asked)), truth[asked]].mean(),
            "size_lmssc": sets.sum(axis=1).mean(),
            "covered_mapie": theirs[np.arange(len(asked)), truth[asked]].mean(),
            "size_mapie": theirs.sum(axis=1).mean(),
        }


def run_few(views, truth, given, seed):
    """One line for one and for two labels a class."""
    for n_labels in (1, 2):
        own_views, own_truth, own_given = draw(views, truth, 1000 + seed, n_labels)
        clf = fit(own_views, np.where(own_given, own_truth, -1))
        yield {
            "labels_a_class": n_labels,
            "right": (clf.transduction_ == own_truth)[~own_given].mean(),
            "sure": clf.label_distributions_.max(axis=1)[~own_given].mean(),
        }


def run_groups(views, truth, given, seed):
    """One line for each coverage, of samples of sites without a label."""
    rng = np.random.default_rng(seed)
    site = rng.integers(N_SITES, size=len(truth))
    shifted = {}
    for name in views:
        block = concatenated({name: views[name]})
        shifted[name] = block + SITE_SHIFT * rng.standard_normal((N_SITES, block.shape[1]))[site]
    known = (site < N_LABELLED_SITES) & (rng.random(len(truth)) < SITE_RATE)
    clf = fit(shifted, np.where(known, truth, -1))
    asked = np.flatnonzero(site >= N_LABELLED_SITES)
    for coverage in COVERAGES:
        result = {"coverage": coverage}
        for name, groups in (("groups", site), ("none", None)):
            sets = clf.predict_set(coverage=coverage, groups=groups)[asked]
            result[f"covered_{name}"] = sets[np.arange(len(asked)), truth[asked]].mean()
            result[f"size_{name}"] = sets.sum(axis=1).mean()
        yield result


def run_time():
    """One line for each number of samples and share of labels: CPU seconds, of questions in units of the fit."""
    for n_samples in N_SAMPLES:
        for rate in LABEL_RATES:
            data = make_multiview(n_samples, labelled=rate, random_state=0)
            clf, seconds = _timed(lambda data=data: fit(data.views, data.y))
            rows = np.flatnonzero(data.y < 0)
            line = {"samples": n_samples, "labelled": rate, "fit": seconds}
            questions = {
                "explain": lambda clf=clf, rows=rows: clf.explain(rows[:N_EXPLAINED]),
                "suspect_labels": lambda clf=clf: clf.suspect_labels(),
                "novelty": lambda clf=clf: clf.novelty_,
                "predict_set": lambda clf=clf: clf.predict_set(),
            }
            found = {}
            for name, ask in questions.items():
                found[name], own = _timed(ask)
                line[name] = own / seconds
            line["all"] = sum(line[name] for name in questions)
            line["covered"] = found["predict_set"][rows, data.target[rows]].mean()
            line["false_alarm"] = (found["novelty"][rows] <= REJECT).mean()
            print(line, flush=True)
            yield line


def _timed(run):
    """The result, and seconds of CPU."""
    start = time.process_time()
    result = run()
    return result, time.process_time() - start


PARTS = {"noise": run_noise, "novelty": run_novelty, "sets": run_sets, "few": run_few, "groups": run_groups}


def main():
    """Run the requested parts on the requested data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, "time"], default=list(PARTS))
    parser.add_argument("--datasets", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--wheels", type=Path, default=Path("~/.cache/lmssc/wheels").expanduser())
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "trust")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if "time" in args.parts:
        lines = list(run_time())
        write_csv(args.out / "time.csv", list(lines[0]), lines)
    for name in args.datasets:
        views, target = read(name, args.wheels)
        for part in (part for part in args.parts if part in PARTS):
            lines = []
            for split in range(args.splits):
                drawn = draw(views, target, split)
                lines += [{"dataset": name, "split": split, **line} for line in PARTS[part](*drawn, split)]
            if not lines:  # of two classes none can be left out
                continue
            path = args.out / f"{part}.csv"
            kept = list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.exists() else []
            write_csv(path, list(lines[0]), [line for line in kept if line["dataset"] != name] + lines)
            numbers = [key for key, value in lines[0].items() if isinstance(value, float | np.floating)]
            print(
                name,
                part,
                {key: round(float(np.mean([line[key] for line in lines])), 3) for key in numbers},
                flush=True,
            )


if __name__ == "__main__":
    main()
