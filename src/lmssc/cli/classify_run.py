"""The work of ``lmssc classify``: fit, then write predictions, what to label next, the model and the report."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lmssc
from lmssc.core.progress import Advance, iterations, progress_bar
from lmssc.io.errors import OutputError
from lmssc.io.labelled_files import LabelledFiles
from lmssc.io.options import Options
from lmssc.io.outputs import write_predictions, write_to_label
from lmssc.io.staging import staged_folder
from lmssc.io.table import counted
from lmssc.io.typed_labels import free_name
from lmssc.model_selection.intervals import wilson
from lmssc.persistence.atomic import open_atomically, readable

PREDICTIONS, TO_LABEL, MODEL, REPORT = "predictions.csv", "to_label.csv", "model.lmssc", "report.html"
# Labels with less confidence are counted as unsure.
SURE = 0.5
REFITS = "Hiding labels to see how many are found again"


@dataclass(frozen=True)
class SuggestionLimits:
    """How many samples `to_label.csv` suggests: fewer for large data, because each costs a solve.

    Attributes
    ----------
    most, fewest : int
        Samples for small and for very large data.
    large : int
        Above this many samples the number falls, in proportion.
    """

    most: int = 100
    fewest: int = 20
    large: int = 100_000

    def count(self, n_samples: int) -> int:
        """Number of suggestions.

        Examples
        --------
        >>> [SuggestionLimits().count(n) for n in (1000, 200_000, 10_000_000)]
        [100, 50, 20]
        """
        return min(self.most, max(self.fewest, self.most * self.large // n_samples))


@dataclass(frozen=True)
class Outcome:
    """Results of `classify`.

    Attributes
    ----------
    model : classifier
        Fitted.
    lines : list of str
        What to print.
    data : dict
        The same for programs.
    files : list of Path
        The files written.
    """

    model: Any
    lines: list[str]
    data: dict[str, Any]
    files: list[Path]


def classify(
    data: LabelledFiles,
    out: Path,
    *,
    options: Options,
    summary: Sequence[str],
    command: str,
    search: bool = False,
    seed: int = 0,
    jobs: int = 1,
    force: bool = False,
    report: bool = True,
    show: bool = False,
) -> Outcome:
    """Label every sample and write predictions, what to label next, the model and the report.

    Parameters
    ----------
    data : LabelledFiles
        Samples, views and labels.
    out : Path
        Folder for the files, which appear there together or not at all.
    options : Options
        How the files were read; the model keeps it for `predict`.
    summary : sequence of str
        What was understood of the files, for the report.
    command : str
        The command that runs this again, for the report.
    search : bool
        Whether to choose parameters by cross-validation on the labelled samples.
    seed : int
        Decides the folds of the search, and which labels are hidden for the report.
    jobs : int
        Number of fits in parallel.
    force : bool
        Whether existing results may be replaced.
    report : bool
        Whether to write the report, which takes refits.
    show : bool
        Whether to print what takes time and show progress bars.

    Returns
    -------
    Outcome
    """
    written = [out / name for name in (PREDICTIONS, TO_LABEL, MODEL, *([REPORT] if report else []))]
    for path in written:
        if path.is_dir():
            raise OutputError(f"{path} is a folder, but a file of that name has to be written; choose another --out")

    def name_to_label(stage: Path) -> None:
        """Spare a list into which labels were typed, even while this was running."""
        written[1] = out / free_name(out, TO_LABEL)
        (stage / TO_LABEL).rename(stage / written[1].name)

    with staged_folder(out, force=force, ready=name_to_label) as stage, warnings.catch_warnings():
        # The outcome mentions unreached samples.
        warnings.filterwarnings("ignore", message=".*parts of the graph without a label")
        model, notes = _fit(data, impute=options.impute, search=search, seed=seed, jobs=jobs, show=show)
        model.files_ = {
            "id_column": options.id_column,
            "label_column": options.label_column,
            "views": data.recipes,
            **data.reading,
        }
        suggestions = _write_results(stage, data, model, options, show=show)
        if report:
            _write_report(
                stage / REPORT,
                data,
                model,
                suggestions,
                title=readable(out.resolve().name),
                command=command,
                notes=[*summary, *notes],
                seed=seed,
                jobs=jobs,
                show=show,
            )
    outcome = _outcome(data, model, notes, written)
    if not report and (out / REPORT).exists():
        outcome.lines.append(f"{REPORT} in {out} is from an earlier run and does not describe these results.")
    return outcome


def _write_results(stage: Path, data: LabelledFiles, model: Any, options: Options, *, show: bool) -> NDArray:
    """Write predictions, list and model; return the rows suggested for labelling."""
    joined, known = data.joined, data.labels.known
    unreached = np.zeros(len(joined.ids), dtype=bool)
    unreached[model.unreached_] = True
    with progress_bar(PREDICTIONS, show=show) as advance, open_atomically(stage / PREDICTIONS) as file:
        write_predictions(
            file,
            joined.ids,
            model,
            model.label_distributions_,
            model.transduction_,
            {"given": known, "unreached": unreached},
            advance,
            joined.id_column,
        )
    with progress_bar(TO_LABEL, show=show):
        suggestions = _suggestions(model, known)
        write_to_label(
            stage / TO_LABEL,
            joined.ids,
            model,
            suggestions,
            id_column=joined.id_column,
            label_column=options.label_column,
        )
    with progress_bar(MODEL, show=show):
        model.save(stage / MODEL)
    return suggestions


def _write_report(
    path: Path,
    data: LabelledFiles,
    model: Any,
    suggestions: NDArray,
    *,
    title: str,
    command: str,
    notes: Sequence[str],
    seed: int,
    jobs: int,
    show: bool,
) -> None:
    from lmssc.report import write_report

    joined = data.joined
    if show:
        print(f"{REFITS}, for the report (--no-report skips this).", flush=True)
    with progress_bar(REFITS, show=show, unit="fits") as advance:
        write_report(
            path,
            model,
            data.views,
            data.labels.y,
            ids=joined.ids.tolist(),
            title=title,
            command=command,
            present=joined.sparse_masks,
            notes=notes,
            first=suggestions.tolist(),
            random_state=seed,
            n_jobs=jobs,
            progress=advance,
        )


def _fit(
    data: LabelledFiles, *, impute: str | None, search: bool, seed: int, jobs: int, show: bool
) -> tuple[Any, list[str]]:
    """Return the fitted model, and lines on how its parameters were chosen."""
    joined, y = data.joined, data.labels.y
    plain = lmssc.LMSSC(scaling=data.scaling, impute=impute, random_state=seed)
    if not search:
        with progress_bar("LMSSC", show=show) as advance:
            plain.callback = None if advance is None else iterations(advance)
            plain.fit(data.views, y, joined.sparse_masks)
        plain.callback = None
        return plain, []
    with progress_bar("choosing parameters", show=show) as advance:
        cv = lmssc.LMSSCCV(estimator=plain, n_jobs=jobs, random_state=seed, callback=_fits(advance))
        cv.fit(data.views, y, joined.sparse_masks)
    chosen = ", ".join(f"{name}={value}" for name, value in cv.best_params_.items()) or "the defaults"
    score = _say_score(cv.best_score_, y[data.labels.known])
    return cv.best_estimator_, [f"Parameters chosen by cross-validation: {chosen}{score}."]


def _say_score(score: float, labels: NDArray) -> str:
    """Accuracy on held-out labels with its interval; empty if no label could be held out."""
    if np.isnan(score):
        return ""
    counts = np.unique(labels.astype(str), return_counts=True)[1]
    n = int(counts[counts > 1].sum())  # the only label of a class is never held out
    low, high = wilson(score, n)
    interval = f"95 % interval with {counted(n, 'label')}: {100 * low:.1f} to {100 * high:.1f} %"
    return f"; accuracy on held-out labels {100 * score:.1f} % ({interval})"


def _fits(advance: Advance | None) -> Callable[[Any], None] | None:
    return None if advance is None else lambda record: advance(record.done, record.total, f"score {record.score:.3f}")


def _suggestions(model: Any, known: NDArray) -> NDArray:
    wanted = min(SuggestionLimits().count(len(known)), int((~known).sum()))
    return model.most_informative(wanted) if wanted else np.empty(0, dtype=int)


def _outcome(data: LabelledFiles, model: Any, notes: list[str], written: list[Path]) -> Outcome:
    found = ~data.labels.known
    confidence = model.label_distributions_.max(axis=1)[found]
    labels, counts = np.unique(model.transduction_[found].astype(str), return_counts=True)
    n_unsure, n_unreached = int((confidence < SURE).sum()), len(model.unreached_)
    lines = [*notes]
    if found.any():
        lines.append(
            f"{counted(int(found.sum()), 'label')} found, with a mean confidence of {100 * confidence.mean():.1f} %; "
            f"{n_unsure:,} below {100 * SURE:.0f} %."
        )
    else:
        lines.append("All samples already had a label; use the model to predict new ones.")
    if n_unreached:
        lines.append(
            f"No label reaches {counted(n_unreached, 'sample')}: they get the most frequent class and are marked as "
            f"unreached; label some of them ({written[1].name})."
        )
    if written[1].name != TO_LABEL:
        lines.append(f"Lists with typed labels are kept; the new list of samples to label is {written[1].name}.")
    facts = {
        "found": int(found.sum()),
        "found_per_class": dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        "mean_confidence": round(float(confidence.mean()), 6) if found.any() else None,
        "unsure": n_unsure,
        "unreached": n_unreached,
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "notes": notes,
    }
    return Outcome(model, lines, facts, written)
