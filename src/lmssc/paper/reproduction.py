"""Reproduce the paper's tables: its data sets and methods, with fixed, cross-validated and best-by-test parameters."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from lmssc.datasets import load
from lmssc.evaluation.comparison import check_numbers
from lmssc.evaluation.methods import resolve_methods
from lmssc.evaluation.runs import Data, Run, do_runs
from lmssc.evaluation.selection import best_setting
from lmssc.evaluation.splits import stratified_split
from lmssc.evaluation.store import Store
from lmssc.paper.printed_tables import DATASETS
from lmssc.paper.tables import (
    COLUMNS,
    CONSTANT,
    RUN_COLUMNS,
    TABLE_COLUMNS,
    read_runs,
    summarise,
    tables_markdown,
)
from lmssc.persistence.atomic import open_atomically, write_csv
from lmssc.persistence.provenance import describe_machine

RATES = (0.1, 0.2, 0.3, 0.5)
PAPER_SETTINGS = "LMSSC (paper settings)"
SLOW = {(dataset, PAPER_SETTINGS) for dataset in ("bbc", "handwritten", "reuters")}
"""Ten seconds to a minute a fit: these use as many splits as the tuned columns do."""
METHODS = (
    "LMSSC",
    PAPER_SETTINGS,
    "GFHF (view v)",
    "GFHF (concatenated)",
    "AMGL",
    "MLAN",
    "LabelSpreading",
    "LogisticRegression",
    "SVC (RBF)",
    "SVC (linear)",
    "1-NN",
    CONSTANT,
)
"""Methods of the reproduction; "GFHF (view v)" stands for one a view, the paper's HFPF(v)."""

_NEIGHBORS = [{"n_neighbors": k} for k in (5, 10, 15)]
GRIDS: Mapping[str, list[dict[str, Any]]] = {
    # The grid of the paper's program, whose γ of 0.1, 1 and 10 are for unscaled positions. Here γ is in units of the
    # mean squared norm of the positions: 0.01 corresponds to the program's 1, and the default is below it.
    "LMSSC": [
        {"n_components": r, "beta": beta, "gamma": gamma}
        for r in (20, 50)
        for beta in (0.01, 0.1, 1.0)
        for gamma in (0.001, 0.01, 0.1)
    ],
    "AMGL": _NEIGHBORS,
    "GFHF": _NEIGHBORS,
    "MLAN": [{"n_neighbors": k, "label_weight": weight} for k, weight in ((5, 1.0), (9, 1.0), (15, 1.0), (9, 10.0))],
}
"""Settings by class of estimator. Best by test chooses among these, cross-validation among these and the defaults."""

INTRODUCTION = """\
# The paper's tables, and ours

Every method gets the same splits (seeds 0, 1, …) of shuffled rows, with a share of the labels of each class, and is
scored on the rows without a label. "In the paper" is its own mean ± standard deviation. Intervals and p-values are over
splits of the same data, which overlap: they tell how far the choice of labels matters, not what other data would give.

The defaults of LMSSC and MLAN's λ were picked with test labels of these data sets in view, before these runs.

Where parameters are chosen: LMSSC among r ∈ {20, 50}, β ∈ {0.01, 0.1, 1}, γ ∈ {0.001, 0.01, 0.1}, the grid of the
paper's program with γ in the units that it has here; GFHF and AMGL among k ∈ {5, 10, 15}; MLAN among
(k, λ) = (5, 1), (9, 1), (15, 1) and (9, 10); all else as by default.
Cross-validation, which may also keep the defaults, holds out a third of the given labels at a time (half, if a class
has two labels) and counts how many are found; with a single label in a class it has nothing to go by and keeps the
defaults. The best by test is what the paper's program reports: an **oracle**, because it needs the very labels that are
to be found. It is the best of the grid, which the defaults need not be in, so that it can be below them."""


class Reproduction(NamedTuple):
    """`records` are the rows of ``runs.csv``, `rows` those of ``tables.csv``."""

    records: list[dict[str, Any]]
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One method on one split of one data set, for all requested columns."""

    dataset: str
    data: Data
    method: str
    estimator: Any
    rate: float
    repeat: int
    columns: Sequence[str]

    @cached_property
    def grid(self) -> list[dict[str, Any]]:
        """Settings among which the best by test accuracy is chosen."""
        most = min(len(self.data.codes), sum(raw.data.shape[1] for raw in self.data.raws))
        capped = [
            {name: min(value, most) if name == "n_components" else value for name, value in setting.items()}
            for setting in GRIDS[type(self.estimator).__name__]
        ]
        return [setting for number, setting in enumerate(capped) if setting not in capped[:number]]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Settings among which cross-validation chooses: the defaults first, so that a tie keeps them."""
        return [{}, *self.grid]

    @cached_property
    def can_choose(self) -> bool:
        """Whether each class has enough labels for cross-validation."""
        order, given = stratified_split(self.data.codes, self.rate, self.repeat)
        return int(np.bincount(self.data.codes[order][given]).min()) > 1

    def run(self, setting: Mapping[str, Any], *, held_out: bool = False) -> Run:
        """The run of a setting; all columns share it."""
        estimator = clone(self.estimator).set_params(**setting)
        if (setting or held_out) and "calibrate" in estimator.get_params():
            estimator.set_params(calibrate=False)  # calibration takes time and hardly changes a label
        return Run(self.data, self.method, estimator, self.rate, self.repeat, self.repeat, held_out)

    def runs(self) -> list[Run]:
        """The runs to do before a setting can be chosen."""
        wanted = [self.run({})] if "fixed" in self.columns else []
        if "cv" in self.columns and self.can_choose:
            wanted += [self.run(setting, held_out=True) for setting in self.settings]
        if "best-by-test" in self.columns:
            wanted += [self.run(setting) for setting in self.grid]
        return wanted

    def chosen(self, store: Store) -> dict[str, Any]:
        """The setting chosen by cross-validation."""
        if not self.can_choose:
            return {}
        found = [_read(store, self.run(setting, held_out=True)) for setting in self.settings]
        return self.settings[best_setting([record["accuracy"] for record in found])]

    def records(self, store: Store) -> list[dict[str, Any]]:
        """One record per column, with the setting used."""
        return [getattr(self, f"_{COLUMNS[column]}")(store) | {"column": column} for column in self.columns]

    def _fixed(self, store: Store) -> dict[str, Any]:
        return self._record(store, {}, "paper settings" if self.method == PAPER_SETTINGS else "defaults")

    def _cv(self, store: Store) -> dict[str, Any]:
        setting = self.chosen(store)
        record = self._record(store, setting, _in_words(setting))
        if not self.can_choose:
            return record | {"setting": "defaults, too few labels"}
        search = [_read(store, self.run(setting, held_out=True))["fit_seconds"] for setting in self.settings]
        return record | {"fit_seconds": record["fit_seconds"] + sum(search)}

    def _best_by_test(self, store: Store) -> dict[str, Any]:
        found = [_read(store, self.run(setting))["accuracy"] for setting in self.grid]
        best = self.grid[best_setting(found)]
        return self._record(store, best, _in_words(best))

    def _record(self, store: Store, setting: Mapping[str, Any], words: str) -> dict[str, Any]:
        return {**_read(store, self.run(setting)), "dataset": self.dataset, "setting": words}


def _read(store: Store, run: Run) -> dict[str, Any]:
    record = store.read(run.key)
    assert record is not None, "the run should have been done by now"
    return record


def _in_words(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in setting.items()) or "defaults"


def reproduce(
    out: str | Path,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    rates: Sequence[float] = RATES,
    repeats: int = 20,
    *,
    tuned_repeats: int = 5,
    columns: Sequence[str] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Reproduction:
    """Run the paper's comparison on shuffled rows, and write its tables beside ours.

    Parameters
    ----------
    out : path
        Folder for ``runs.csv`` (every split), ``tables.csv`` (means, beside the paper's), ``tables.md`` (the same to
        read) and ``machine.json``. Each finished run is kept there at once: a second start does only what is missing.
    datasets : sequence of str, optional
        Of ``"bbc"``, ``"sonar"``, ``"handwritten"`` and ``"reuters"``; all by default.
    methods : sequence of str, optional
        Of `METHODS`; all by default.
    rates : sequence of float
        Shares of each class whose labels are given.
    repeats : int
        Splits at each rate, with the seeds 0, 1, …
    tuned_repeats : int
        How many of these, the first ones, are used where parameters are chosen, which takes many fits.
    columns : sequence of str, optional
        Of ``"fixed"`` (the defaults), ``"cv"`` (parameters chosen by cross-validation on the labelled rows) and
        ``"best-by-test"`` (the best of a grid by test accuracy, an oracle); all by default.
    n_jobs : int, optional
        Number of parallel runs, through joblib.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Reproduction
        The rows of the files.
    """
    datasets = _check_names("datasets", datasets, DATASETS)
    methods = _check_names("methods", methods, METHODS)
    columns = _check_names("columns", columns, COLUMNS)
    check_numbers(rates, repeats)
    if tuned_repeats < 1:
        raise ValueError(f"tuned_repeats must be at least 1, got {tuned_repeats}")
    data = {name: _load(name) for name in datasets}
    cases = [
        case
        for name in datasets
        for rate in dict.fromkeys(map(float, rates))
        for repeat in range(repeats)
        for case in _cases(name, data[name], methods, rate, repeat, columns, tuned=repeat < tuned_repeats)
    ]
    if not cases:
        raise ValueError("columns: none of these methods has parameters to choose; name 'fixed' too")
    store = Store(out)
    do_runs([run for case in cases for run in case.runs()], store, n_jobs, progress=progress)
    # Most of these runs are done already, for the other columns.
    refits = [case.run(case.chosen(store)) for case in cases if "cv" in case.columns]
    do_runs(refits, store, n_jobs, progress=progress)
    records = _with_earlier(Path(out), [record for case in cases for record in case.records(store)])
    names = {record["dataset"]: None for record in records}
    data |= {name: _load(name) for name in names if name not in data}
    rows = summarise(records, {(name, ours): theirs for name in data for ours, theirs in _paper_names(data[name])})
    _write(Path(out), records, rows, {"rates": list(rates), "seeds": list(range(repeats)), "tuned": tuned_repeats})
    return Reproduction(records, rows)


def _with_earlier(out: Path, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the records of earlier calls of the same version, from ``runs.csv``, that this call did not make."""
    try:
        made_with = json.loads((out / "machine.json").read_text(encoding="utf-8"))["lmssc"]
        earlier = read_runs(out / "runs.csv") if made_with == describe_machine()["lmssc"] else []
    except (OSError, ValueError, KeyError):
        earlier = []

    def place(record: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(record[name] for name in ("dataset", "rate", "method", "column", "repeat"))

    made = {place(record) for record in records}
    merged = records + [record for record in earlier if place(record) not in made]
    order = list(DATASETS)
    return sorted(merged, key=lambda record: (order.index(record["dataset"]), record["rate"]))


def _check_names(argument: str, given: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """Return the requested names, all by default; raise an error that lists the known ones."""
    known = list(known)
    names = known if given is None else list(dict.fromkeys(given))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        problem = f"{unknown[0]!r} is not known" if unknown else "name at least one"
        raise ValueError(f"{argument}: {problem}; there are {', '.join(map(repr, known))}")
    return names


def _load(name: str) -> Data:
    bunch = load(name)
    return Data.read(dict(zip(bunch.view_names, bunch.views, strict=True)), bunch.target)


def _cases(
    dataset: str,
    data: Data,
    methods: Sequence[str],
    rate: float,
    repeat: int,
    columns: Sequence[str],
    *,
    tuned: bool,
) -> list[Case]:
    """All methods on one split, each with the columns that apply to it."""
    wanted = {name: DummyClassifier(strategy="prior") if name == CONSTANT else None for name in methods}
    cases = []
    for name, estimator in resolve_methods(wanted, [raw.name for raw in data.raws], repeat).items():
        tunable = tuned and type(estimator).__name__ in GRIDS and name != PAPER_SETTINGS
        fixed = tuned or (dataset, name) not in SLOW
        mine = [column for column in columns if (fixed if column == "fixed" else tunable)]
        if mine:
            cases.append(Case(dataset, data, name, estimator, rate, repeat, mine))
    return cases


def _paper_names(data: Data) -> list[tuple[str, str]]:
    """Pairs of a method's name here and in the paper. The views are in the same order."""
    views = [(f"GFHF (view {raw.name})", f"HFPF({number})") for number, raw in enumerate(data.raws, start=1)]
    return [("LMSSC", "LMSSC"), (PAPER_SETTINGS, "LMSSC"), ("AMGL", "AMGL"), ("MLAN", "MLAN"), *views]


def _write(
    folder: Path, records: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], call: Mapping[str, Any]
) -> None:
    machine = describe_machine()
    words = (value if name in ("machine", "date") else f"{name} {value}" for name, value in machine.items())
    write_csv(folder / "runs.csv", RUN_COLUMNS, records)
    write_csv(folder / "tables.csv", TABLE_COLUMNS, rows)
    with open_atomically(folder / "tables.md") as file:
        file.write(f"{INTRODUCTION}\n\nMade with {', '.join(words)}.\n\n{tables_markdown(rows)}\n".encode())
    with open_atomically(folder / "machine.json") as file:
        file.write((json.dumps({**machine, **call}, indent=2) + "\n").encode())
