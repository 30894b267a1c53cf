"""One fair comparison: the same splits for every method, every finished run on disk at once."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from lmssc._optional import import_optional
from lmssc.core.progress import in_notebook
from lmssc.data.graph_view import LinkRows
from lmssc.evaluation.methods import resolve_methods
from lmssc.evaluation.runs import RECORD, Data, Run, do_runs
from lmssc.evaluation.store import Store
from lmssc.metrics import METRICS, paired_p_value
from lmssc.persistence.atomic import write_csv


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
        """The runs as a pandas frame, one row per run."""
        pandas = import_optional("pandas", purpose="frames of results", extra="frames")
        return pandas.DataFrame(self.records, columns=list(RECORD))

    def to_csv(self, path: str | Path) -> None:
        """Write the runs as CSV.

        Parameters
        ----------
        path : str or Path
            Where to.
        """
        write_csv(Path(path), RECORD, self.records)

    def summary(self, metric: str = "accuracy") -> list[dict[str, Any]]:
        """Mean, deviation and paired test for each rate and method.

        Parameters
        ----------
        metric : str
            One of the metrics.

        Returns
        -------
        list of dict
            rate, method, mean and std (over the runs that did not fail), n (number of these), n_failed, best (whether
            it has the best mean), p_value (paired t-test against the best method on the splits where neither failed;
            NaN for the best itself).
        """
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {METRICS}, got {metric!r}")
        sign = -1 if metric in ("log_loss", "calibration_error") else 1
        rows: list[dict[str, Any]] = []
        failed = Counter((record["method"], record["rate"]) for record in self.records if record["error"])
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
                        "n_failed": failed[method, rate],
                        "best": method == best,
                        "p_value": paired_p_value(one, values[best]) if best not in (None, method) else float("nan"),
                    }
                )
        return rows

    def table(self, metric: str = "accuracy", *, markdown: bool = False) -> str:
        """Methods by rates as text: mean ± standard deviation.

        Parameters
        ----------
        metric : str
            One of the metrics; accuracies are in percent.
        markdown : bool
            As a Markdown table.

        Returns
        -------
        str
            A star marks the best mean, a "~" methods that do not differ from it significantly (p ≥ 0.05). "(2 of 3)"
            in front of a mean: only 2 of 3 runs count, the others failed.
        """
        head, body = self._cells(metric)
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

    def _repr_html_(self) -> str:
        """The table of accuracies, for a notebook."""
        head, body = self._cells("accuracy")
        cell = Markup("<{0} style='text-align: {1}'>{2}</{0}>").format
        lines = [
            Markup("").join(cell(tag, "right" if i else "left", text) for i, text in enumerate(line))
            for tag, line in [("th", head), *(("td", line) for line in body)]
        ]
        rows = Markup("").join(Markup("<tr>{}</tr>").format(line) for line in lines)
        note = "* best mean, ~ not significantly different from it (p ≥ 0.05)"
        return str(Markup("<table>{}</table><p>{}</p>").format(rows, note))

    def _cells(self, metric: str) -> tuple[list[str], list[list[str]]]:
        """Head and lines of the table."""
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
        return head, body


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
    progress: bool | None = None,
) -> Comparison:
    """Compare methods on the same splits: rows shuffled, labels stratified, scored on the rows without a label.

    Parameters
    ----------
    views : list or dict of 2-D arrays, data frames or sparse matrices
        The views; rows of NaN where a sample lacks one. A method that takes no `Graph` sees its rows as features.
    y : array-like of shape (n,)
        Labels of all rows; each split holds out most of them.
    methods : list of names, or dict of name → classifier, optional
        Built-in names (see `lmssc.evaluation.methods.METHOD_NAMES`; by default all, but those of scikit-network and
        graphlearning only if these are installed), or any scikit-learn classifier. Estimators of this library see the
        views. Subclasses of LabelPropagation, LabelSpreading and
        SelfTrainingClassifier, and pipelines that end in one, see all rows of the scaled, concatenated views. Any other
        classifier sees the labelled rows of these, and needs `predict_proba`, or a `decision_function` with one column
        per class.
    rates : sequence of float
        Shares of each class whose labels are given.
    repeats : int
        Splits at each rate, with the seeds random_state, random_state + 1, …
    random_state : int
        First seed.
    n_jobs : int, optional
        Number of parallel runs, through joblib.
    out : path, optional
        Folder where each finished run is saved at once, and ``runs.csv`` with all runs. A run that is there already is
        not repeated, unless the parameters or the source code of its class have changed, or the version of lmssc.
    progress : bool, optional
        Whether to show the number of finished runs and the remaining time: as a bar in a notebook, or on a terminal if
        tqdm is installed, otherwise as a line on stderr now and then. By default in a notebook only.

    Returns
    -------
    Comparison
        A run that failed has its error in its record, and the others continue.

    Examples
    --------
    >>> from lmssc import compare
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(120, random_state=0)
    >>> result = compare(data.views, data.target, ["GFHF (concatenated)", "1-NN"], rates=[0.2], repeats=3)
    >>> len(result.records), [row["method"] for row in result.summary() if row["best"]]
    (6, ['GFHF (concatenated)'])
    """
    data = Data.read(views, y)
    check_numbers(rates, repeats, random_state)
    features = [raw.name for raw in data.raws if not isinstance(raw, LinkRows)]
    estimators = resolve_methods(methods, features, random_state)
    runs = [
        Run(data, name, estimator, float(rate), repeat, random_state + repeat)
        for rate in rates
        for repeat in range(repeats)
        for name, estimator in estimators.items()
    ]
    store = Store(out)
    do_runs(runs, store, n_jobs, progress=in_notebook() if progress is None else progress)
    result = Comparison([store.read(run.key) for run in runs])  # type: ignore[misc]
    if out is not None:
        result.to_csv(Path(out) / "runs.csv")
    return result


def check_numbers(rates: Sequence[float], repeats: int, random_state: int = 0) -> None:
    """Raise a ValueError if rates, the number of repeats or the seed are out of range."""
    for rate in rates:
        if not 0 < rate < 1:
            raise ValueError(f"rates must be between 0 and 1, such as 0.1 for 10 %; got {rate!r}")
    if not len(rates) or repeats < 1:
        raise ValueError("at least one rate and one repeat are needed")
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be an integer of at least 0, got {random_state!r}")


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def _summary_cell(row: dict[str, Any], scale: float) -> str:
    if not row["n"]:
        return "failed"
    digits = 1 if scale == 100 else 3
    mark = "*" if row["best"] else "~" if row["p_value"] >= 0.05 else " "
    spread = "" if np.isnan(row["std"]) else f" ± {scale * row['std']:.{digits}f}"
    counted = f"({row['n']} of {row['n'] + row['n_failed']}) " if row["n_failed"] else ""
    return f"{counted}{scale * row['mean']:.{digits}f}{spread} {mark}"
