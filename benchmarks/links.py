"""What links add, and what links of noise cost: Cora and ACM, links as `Graph`, as features, shuffled, at random.

Writes `results/accuracy/links.csv`, a line per fit. Fits that are there already are not repeated.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.graph_view import Graph, LinkRows
from lmssc.data.view import RawView
from lmssc.datasets import load
from lmssc.estimators.lmssc import LMSSC
from lmssc.evaluation.methods import BUILT_IN, fit_and_answer, scaled_concatenation
from lmssc.evaluation.splits import stratified_split
from lmssc.metrics import score

OUT = Path(__file__).parents[1] / "results" / "accuracy" / "links.csv"
FIELDS = ["data", "rate", "seed", "variant", "accuracy", "calibration_error", "weights", "cpu_seconds"]
RATES = {"cora": (0.05, 0.1), "acm": (0.05, 0.1, 0.3)}


def shuffled(links: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """The links of other samples: rows and columns in another order than those of the views."""
    order = rng.permutation(links.shape[0])
    return links[order][:, order].tocsr()


def at_random(links: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """Links with the same numbers of links of each sample, to samples at random."""
    pairs = sparse.triu(links + links.T, k=1).tocoo()
    ends = sparse.coo_array((np.ones(pairs.nnz), (pairs.row, rng.permutation(pairs.col))), shape=links.shape)
    return sparse.csr_array(ends)


def plain(links: sparse.csr_array, _: np.random.Generator) -> sparse.csr_array:
    """The links as they are."""
    return links


VARIANTS: dict[str, Callable[[sparse.csr_array, np.random.Generator], sparse.csr_array] | None] = {
    "LMSSC, links as Graph": plain,
    "LMSSC, no links": None,
    "LMSSC, links shuffled": shuffled,
    "LMSSC, links at random": at_random,
    "LMSSC, links as features": plain,
    "LogisticRegression (late fusion)": plain,
}


def run(name: str, rate: float, seed: int, variant: str) -> dict[str, object]:
    """One fit."""
    data = load(name)
    order, given = stratified_split(data.target, rate, seed)
    truth = data.target[order]
    labels = np.where(given, truth, -1)
    change, rng = VARIANTS[variant], np.random.default_rng(seed)
    views = [
        view
        for view in (_view(one, view, order) for one, view in zip(data.view_names, data.views, strict=True))
        if change is not None or not isinstance(view, LinkRows)
    ]
    views = [LinkRows(v.name, change(v.data, rng), None) if change and isinstance(v, LinkRows) else v for v in views]
    if variant == "LMSSC, links as features":
        views = [RawView(view.name, view.data, None) for view in views]
    began = time.process_time()
    weights = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # links of noise are reported
        if variant.startswith("LMSSC"):
            named = {view.name: Graph(view.data) if isinstance(view, LinkRows) else view.data for view in views}
            clf = LMSSC().fit(named, labels)
            proba, predicted = clf.label_distributions_[~given], clf.transduction_[~given]
            weights = " ".join(f"{graph}={weight:.4f}" for graph, weight in clf.link_weights_.items())
        else:
            proba, predicted = fit_and_answer(BUILT_IN[variant](seed), views, labels, scaled_concatenation(views))
    scores = score(truth[~given], proba, predicted)
    return {
        "data": name,
        "rate": rate,
        "seed": seed,
        "variant": variant,
        "accuracy": round(100 * scores["accuracy"], 3),
        "calibration_error": round(scores["calibration_error"], 4),
        "weights": weights,
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def _view(name: str, view: object, order: NDArray) -> RawView:
    if isinstance(view, Graph):
        return LinkRows(name, view.affinity, None).take(order)
    return RawView(name, view, None).take(order)  # type: ignore[arg-type]


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(RATES))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    args = parser.parse_args()
    done = set()
    if OUT.exists():
        with open(OUT, encoding="utf-8") as file:
            done = {(row["data"], float(row["rate"]), int(row["seed"]), row["variant"]) for row in csv.DictReader(file)}
    else:
        OUT.write_text(",".join(FIELDS) + "\n", encoding="utf-8")
    for seed in range(args.splits):
        for variant in args.variants:
            for name in args.data:
                for rate in RATES[name]:
                    if (name, rate, seed, variant) not in done:
                        record = run(name, rate, seed, variant)
                        with open(OUT, "a", newline="", encoding="utf-8") as file:
                            csv.DictWriter(file, FIELDS).writerow(record)
                        print(*record.values(), flush=True)


if __name__ == "__main__":
    main()
