"""Ablation study of LMSSC: the default model, and the same without one part, on the same splits.

First the model against its own first propagation, on all data sets and rates, then the parts, on some, then parameters
chosen by the labels, on all. Tables go into ``results/accuracy``. Finished runs are kept; a second call resumes.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accuracy_page import CHOSEN, parts_markdown

from lmssc import LMSSC, LMSSCCV, compare
from lmssc.core.begin import begin
from lmssc.datasets import load
from lmssc.estimators.problem import Problem, Solution
from lmssc.evaluation.comparison import Comparison
from lmssc.persistence.atomic import write_csv

RATES = {
    "bbc": (0.1, 0.2, 0.3, 0.5),
    "sonar": (0.1, 0.2, 0.3, 0.5),
    "handwritten": (0.1, 0.2, 0.3, 0.5),
    "reuters": (0.1, 0.2, 0.3, 0.5),
    "msrc": (0.05, 0.1, 0.3),
    "bbcsport": (0.05, 0.1, 0.3),
    "leaves": (0.05, 0.1, 0.3),
    "digits": (0.01, 0.05, 0.1),
}
TABLES = ("alternation", "ablation", "chosen")
# The parts are compared at two of these rates.
SOME = {name: (rates[0], rates[2]) for name, rates in RATES.items()}


class FirstPropagation(LMSSC):
    """Labels propagated once over the initial graph, before anything is learned."""

    def __init__(self, views: Any = None, *, compare_by: str = "auto") -> None:
        super().__init__(views, compare_by=compare_by, label_weight=0.0, balance=0.0, calibrate=False)

    def _fit_method(self, problem: Problem) -> Solution:
        views = self._fit_scalings(problem)
        start = begin(views, problem.targets, self._config(views, problem))
        undo, state = start.permutation.undo, start.state
        return Solution(undo(state.scores), start.permutation.undo_graph(state.graph), undo(state.unreached))


METHODS = {
    "LMSSC": LMSSC(),
    "its first propagation": FirstPropagation(),
    "parameters by the labels (LMSSCCV)": LMSSCCV(),
    "one iteration": LMSSC(max_iter=1),
    "without expected scores": LMSSC(label_weight=0.0),
    "expected scores only weakly (0.5)": LMSSC(label_weight=0.5),
    "expected scores strongly (4)": LMSSC(label_weight=4.0),
    "by position": LMSSC(compare_by="position"),
    "by direction": LMSSC(compare_by="direction"),
    "without balance": LMSSC(balance=0.0),
    "20 components": LMSSC(n_components=20),
    "5 neighbours": LMSSC(n_neighbors=5),
    "20 neighbours": LMSSC(n_neighbors=20),
    "beta 0.1": LMSSC(beta=0.1),
    "gamma 0.01": LMSSC(gamma=0.01),
}


def compared(name: str, methods: Mapping[str, Any], rates: Sequence[float], repeats: int, folder: Path) -> Comparison:
    """Methods on the same splits of a data set."""
    data = load(name)
    return compare(data.views, data.target, methods, rates, repeats, out=folder / "runs" / name, progress=True)


def tabulate_means(title: str, comparisons: Mapping[str, Comparison], folder: Path) -> None:
    """Mean accuracy of each method at each rate of each data set."""
    columns = ("dataset", "rate", "method", "mean", "std", "n")
    lines = [{"dataset": name, **row} for name, comparison in comparisons.items() for row in comparison.summary()]
    write_csv(folder / f"{title}.csv", columns, [{column: line[column] for column in columns} for line in lines])
    print(parts_markdown(folder / f"{title}.csv"))


def run(names: list[str], tables: list[str], repeats: int, some_repeats: int, folder: Path) -> None:
    """All runs of some data sets, and the tables of all results so far."""
    if "alternation" in tables:
        main = {name: METHODS[name] for name in ("LMSSC", "its first propagation")}
        found = {name: compared(name, main, RATES[name], repeats, folder) for name in names}
        tabulate_means("alternation", found, folder)
    if "ablation" in tables:
        found = {name: compared(name, METHODS, SOME[name], some_repeats, folder) for name in names}
        tabulate_means("ablation", found, folder)
    if "chosen" in tables:
        methods = {"LMSSC": METHODS["LMSSC"], CHOSEN: METHODS["parameters by the labels (LMSSCCV)"]}
        found = {name: compared(name, methods, RATES[name], some_repeats, folder) for name in names}
        columns = ("dataset", "rate", "repeat", "method", "accuracy")
        lines = [{"dataset": name, **record} for name in found for record in found[name].records]
        write_csv(folder / "chosen.csv", columns, [{column: line[column] for column in columns} for line in lines])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=list(RATES))
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--repeats", type=int, default=20, help="splits of the model and its first propagation")
    parser.add_argument("--some-repeats", type=int, default=3, help="splits of the parts and of LMSSCCV")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy"))
    arguments = parser.parse_args()
    run(arguments.datasets, arguments.tables, arguments.repeats, arguments.some_repeats, arguments.out)
