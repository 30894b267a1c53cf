"""One fair comparison: the same splits for every method, every finished run on disk at once."""

import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ttest_rel
from threadpoolctl import threadpool_limits

from lmssc._optional import import_optional
from lmssc.experiments.methods import fit_and_answer, resolve_methods, scaled_concatenation
from lmssc.experiments.scores import METRICS, PeakMemory, score
from lmssc.experiments.splits import stratified_split
from lmssc.inputs import make_raw_views, read_collection
from lmssc.io import open_atomically
from lmssc.labels import encode_labels
from lmssc.order import row_keys
from lmssc.views import RawView

COLUMNS = ("method", "rate", "repeat", *METRICS, "fit_seconds", "peak_megabytes", "error")


@dataclass(frozen=True)
class Run:
    """One method on one split."""

    method: str
    estimator: Any
    rate: float
    repeat: int
    seed: int

    def key(self, data_key: str) -> str:
        """What tells this run from any other; a run that is on disk under it need not be done again."""
        content = [data_key, self.method, repr(self.estimator.get_params()), self.rate, self.repeat, self.seed]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]


class Comparison:
    """Results of `compare`, one record for each method, rate and repeat.

    Attributes
    ----------
    records : list of dict
        The runs: method, rate, repeat, the metrics, seconds, memory, and the error if a run failed.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.records = records

    def to_frame(self) -> Any:
        """The runs as a pandas frame, one row a run."""
        pandas = import_optional("pandas", purpose="frames of results", extra="frames")
        return pandas.DataFrame(self.records, columns=list(COLUMNS))

    def to_csv(self, path: str | Path) -> None:
        """Write the runs as CSV.

        Parameters
        ----------
        path : str or Path
            Where to.
        """
        lines = [",".join(COLUMNS)]
        for record in self.records:
            lines.append(",".join(_cell(record[column]) for column in COLUMNS))
        with open_atomically(Path(path)) as file:
            file.write(("\n".join(lines) + "\n").encode())

    def summary(self, metric: str = "accuracy") -> list[dict[str, Any]]:
        """Mean, deviation and paired test for each rate and method.

        Parameters
        ----------
        metric : str
            One of the metrics.

        Returns
        -------
        list of dict
            rate, method, mean, std, n (runs that did not fail), best (whether it has the best mean), p_value (paired
            t-test against the best method on the same splits; NaN for the best itself).
        """
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {METRICS}, got {metric!r}")
        sign = -1 if metric in ("log_loss", "calibration_error") else 1
        rows: list[dict[str, Any]] = []
        for rate in _unique(record["rate"] for record in self.records):
            values = {
                method: {
                    record["repeat"]: record[metric]
                    for record in self.records
                    if record["method"] == method and record["rate"] == rate and not record["error"]
                }
                for method in _unique(record["method"] for record in self.records)
            }
            means = {method: sign * float(np.mean(list(one.values()))) for method, one in values.items() if one}
            best = max(means, key=means.__getitem__) if means else None
            for method, one in values.items():
                numbers = np.array(list(one.values()))
                rows.append(
                    {
                        "rate": rate,
                        "method": method,
                        "mean": float(numbers.mean()) if len(numbers) else float("nan"),
                        "std": float(numbers.std(ddof=1)) if len(numbers) > 1 else float("nan"),
                        "n": len(numbers),
                        "best": method == best,
                        "p_value": _paired(one, values[best]) if best not in (None, method) else float("nan"),
                    }
                )
        return rows

    def table(self, metric: str = "accuracy", *, markdown: bool = False) -> str:
        """Methods by rates as text: mean ± deviation, the best of a rate marked with a star.

        Parameters
        ----------
        metric : str
            One of the metrics; accuracies are in percent.
        markdown : bool
            As a Markdown table.

        Returns
        -------
        str
            A "~" marks methods that the paired test does not tell from the best (p ≥ 0.05).
        """
        rows = self.summary(metric)
        rates = _unique(row["rate"] for row in rows)
        scale = 1.0 if metric in ("log_loss", "calibration_error") else 100.0
        head = [
            f"{metric.replace('_', ' ')}{'' if scale == 1 else ' %'}",
            *(f"{100 * rate:g} % labels" for rate in rates),
        ]
        body = []
        for method in _unique(row["method"] for row in rows):
            cells = [
                _summary_cell(row, scale)
                for rate in rates
                for row in rows
                if (row["method"], row["rate"]) == (method, rate)
            ]
            body.append([method, *cells])
        if markdown:
            lines = [head, ["---"] * len(head), *body]
            return "\n".join("| " + " | ".join(line) + " |" for line in lines)
        widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
        return "\n".join(
            "  ".join(
                [
                    line[0].ljust(widths[0]),
                    *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
                ]
            )
            for line in [head, *body]
        )


def compare(
    views: Sequence[Any] | Mapping[str, Any],
    y: ArrayLike,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    rates: Sequence[float] = (0.1, 0.2, 0.3, 0.5),
    repeats: int = 20,
    random_state: int = 0,
    n_jobs: int | None = None,
    *,
    out: str | Path | None = None,
    progress: bool = False,
) -> Comparison:
    """Compare methods on the same splits: rows shuffled, labels stratified, scored on the rows without a label.

    Parameters
    ----------
    views : list or dict of 2-D arrays, data frames or sparse matrices
        The views; rows of NaN where a sample lacks one.
    y : array-like of shape (n,)
        All labels; a method sees those that a split gives.
    methods : list of names, or dict of name → classifier, optional
        Built-in names (all by default; see `lmssc.experiments.methods.NAMES`), or any scikit-learn classifier:
        semi-supervised ones see all rows, supervised ones the labelled rows of the scaled concatenation.
    rates : sequence of float
        Shares of each class whose labels are given.
    repeats : int
        Splits at each rate, with the seeds random_state, random_state + 1, …
    random_state : int
        First seed.
    n_jobs : int, optional
        Splits that run at the same time, through joblib.
    out : path, optional
        Folder where each finished run is written at once; what is there already is not done again. The runs are also
        written there as ``runs.csv``.
    progress : bool
        Show a bar, if tqdm is installed.

    Returns
    -------
    Comparison
        A method that fails on a split has a record that says so.

    Examples
    --------
    >>> from lmssc import compare
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(120, random_state=0)
    >>> result = compare(data.views, data.target, ["GFHF (concatenated)", "1-NN"], rates=[0.2], repeats=3)
    >>> len(result.records), [row["method"] for row in result.summary() if row["best"]]
    (6, ['GFHF (concatenated)'])
    """
    raws = make_raw_views(read_collection(views, min_samples=2), None)
    codes = encode_labels(y, raws[0].data.shape[0]).codes
    if (codes < 0).any():
        raise ValueError(f"y: row {np.flatnonzero(codes < 0)[0]} has no label; a comparison needs all labels to score")
    _check_numbers(rates, repeats, random_state)
    estimators = resolve_methods(methods, [raw.name for raw in raws], random_state)
    runs = [
        Run(name, estimator, float(rate), repeat, random_state + repeat)
        for rate in rates
        for repeat in range(repeats)
        for name, estimator in estimators.items()
    ]
    store = _Store(out, _data_key(raws, codes))
    missing = [run for run in runs if store.read(run) is None]
    with _bar(len(runs), len(runs) - len(missing), progress) as advance:
        batch = 2 * effective_n_jobs(n_jobs)
        for first in range(0, len(missing), batch):
            records = Parallel(n_jobs=n_jobs)(
                delayed(_do)(run, raws, codes, store) for run in missing[first : first + batch]
            )
            for run, record in zip(missing[first : first + batch], records, strict=True):
                store.remember(run, record)
                advance()
    result = Comparison([store.read(run) for run in runs])  # type: ignore[misc]
    if out is not None:
        result.to_csv(Path(out) / "runs.csv")
    return result


def _check_numbers(rates: Sequence[float], repeats: int, random_state: int) -> None:
    for rate in rates:
        if not 0 < rate < 1:
            raise ValueError(f"rates must be between 0 and 1, such as 0.1 for 10 %; got {rate!r}")
    if not len(rates) or repeats < 1:
        raise ValueError("at least one rate and one repeat are needed")
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be an integer of at least 0, got {random_state!r}")


def _do(run: Run, raws: list[RawView], codes: NDArray, store: "_Store") -> dict[str, Any]:
    """One run, on disk before it is returned; a failure is a record too."""
    record: dict[str, Any] = {"method": run.method, "rate": run.rate, "repeat": run.repeat}
    record |= dict.fromkeys([*METRICS, "fit_seconds", "peak_megabytes"], float("nan"))
    record["error"] = ""
    order, given = stratified_split(codes, run.rate, run.seed)
    shuffled = [raw.take(order) for raw in raws]
    truth = codes[order]
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        try:
            joined = scaled_concatenation(shuffled)
            began = time.perf_counter()
            with PeakMemory() as memory:
                proba, predicted = fit_and_answer(run.estimator, shuffled, np.where(given, truth, -1), joined)
            record["fit_seconds"] = time.perf_counter() - began
            record["peak_megabytes"] = memory.megabytes
            record |= score(truth[~given], proba, predicted)
        except Exception as error:
            record["error"] = f"{type(error).__name__}: {error}".replace("\n", " ")
    store.write(run, record)
    return record


class _Store:
    """Records of finished runs, in memory and, if there is a folder, in a file each."""

    def __init__(self, folder: str | Path | None, data_key: str) -> None:
        self.folder = None if folder is None else Path(folder) / "runs"
        self.data_key = data_key
        self._known: dict[str, dict[str, Any]] = {}
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, run: Run) -> dict[str, Any] | None:
        key = run.key(self.data_key)
        if key not in self._known and self.folder is not None and (self.folder / f"{key}.json").exists():
            self._known[key] = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        return self._known.get(key)

    def remember(self, run: Run, record: dict[str, Any]) -> None:
        self._known[run.key(self.data_key)] = record

    def write(self, run: Run, record: dict[str, Any]) -> None:
        if self.folder is not None:
            with open_atomically(self.folder / f"{run.key(self.data_key)}.json") as file:
                file.write(json.dumps(record).encode())


def _data_key(raws: Sequence[RawView], codes: NDArray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
    for raw in raws:
        digest.update(raw.name.encode() + row_keys(raw).tobytes())
    return digest.hexdigest()


class _bar:  # noqa: N801
    """Context that gives a function to call after each run; a bar on the terminal if wanted and possible."""

    def __init__(self, total: int, done: int, show: bool) -> None:
        self._tqdm = None
        if show:
            try:
                tqdm = import_optional("tqdm", purpose="progress bars", extra="progress").tqdm
                self._tqdm = tqdm(total=total, initial=done, unit="run")
            except ImportError:
                pass

    def __enter__(self) -> Any:
        return self._tqdm.update if self._tqdm is not None else lambda: None

    def __exit__(self, *_: object) -> None:
        if self._tqdm is not None:
            self._tqdm.close()


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def _paired(one: dict[int, float], best: dict[int, float]) -> float:
    """Paired t-test on the splits that both have; NaN with fewer than two."""
    common = [repeat for repeat in one if repeat in best]
    mine, its = (np.array([values[repeat] for repeat in common]) for values in (one, best))
    if len(common) < 2:
        return float("nan")
    if np.ptp(mine - its) == 0:
        return 0.0 if (mine != its).any() else 1.0
    return float(ttest_rel(mine, its).pvalue)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"') else text


def _summary_cell(row: dict[str, Any], scale: float) -> str:
    if not row["n"]:
        return "failed"
    digits = 1 if scale == 100 else 3
    mark = "*" if row["best"] else "~" if row["p_value"] >= 0.05 else " "
    spread = "" if np.isnan(row["std"]) else f" ± {scale * row['std']:.{digits}f}"
    return f"{scale * row['mean']:.{digits}f}{spread} {mark}"
