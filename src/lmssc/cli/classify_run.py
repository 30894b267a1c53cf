"""The work of ``lmssc classify``: fit, then write predictions, what to label next, the model and the report."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lmssc
from lmssc.core.chance import CRITERIA
from lmssc.core.many_classes import has_many_classes
from lmssc.core.progress import Advance, iterations, progress_bar
from lmssc.data.memmap import memory_map
from lmssc.estimators.explain import strongest_ids
from lmssc.estimators.suspects import Suspects
from lmssc.io.errors import CommandError, OutputError
from lmssc.io.in_place import TargetFile
from lmssc.io.labelled_files import LabelledFiles
from lmssc.io.options import Options
from lmssc.io.outputs import write_predictions, write_suspects, write_to_label
from lmssc.io.read_anndata import annotation
from lmssc.io.staging import staged_folder
from lmssc.io.table import counted, some
from lmssc.io.typed_labels import CHECK_LABELS, MODEL, PREDICTIONS, REPORT, TO_LABEL, free_name
from lmssc.model_selection.intervals import wilson
from lmssc.persistence.atomic import open_atomically, readable

# Labelled samples named in the column "because".
N_BECAUSE = 3
# Labels with less confidence are counted as unsure.
SURE = 0.5
# What a fit on disk leaves out, because it would need all samples in memory.
LEFT_OUT_ON_DISK = (
    "The fit was on disk: to_label.csv lists the most uncertain samples, not the most informative ones.",
    "check_labels.csv and the columns novelty and because are left out: they need the graph in memory.",
)
NO_REPORT = "report.html is left out: its refits need all samples in memory."
REFITS = "Holding out labels to measure the accuracy"


@dataclass(frozen=True)
class SuggestionLimits:
    """How many samples `to_label.csv` suggests: fewer for large data, because each costs a solve."""

    most: int = 100
    fewest: int = 20
    """Samples for small and for very large data."""
    large: int = 100_000
    """Above this many samples the number falls, in proportion."""

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
    out: Path | None,
    *,
    options: Options,
    summary: Sequence[str],
    told: Sequence[str],
    command: str,
    search: bool = False,
    memory_limit: str | None = None,
    seed: int = 0,
    jobs: int = 1,
    force: bool = False,
    report: bool = True,
    show: bool = False,
    target: TargetFile | None = None,
) -> Outcome:
    """Label every sample and write predictions, what to label next, the model and the report.

    Parameters
    ----------
    data : LabelledFiles
        Samples, views and labels.
    out : Path, or None
        Folder for the files, which appear there together or not at all; None to write into `target` alone.
    options : Options
        How the files were read; the model keeps it for `predict`.
    summary : sequence of str
        What was understood of the files, for the report.
    told : sequence of str
        The warnings so far, for the report; it grows during the fit.
    command : str
        The command that runs this again, for the report.
    search : bool
        Whether to choose parameters by cross-validation on the labelled samples.
    memory_limit : str, optional
        Memory that the fit may take; not for a search.
    seed : int
        Decides the folds of the search, and which labels are held out for the report.
    jobs : int
        Number of fits in parallel.
    force : bool
        Whether existing results may be replaced.
    report : bool
        Whether to write the report, which takes refits.
    show : bool
        Whether to print what takes time and show progress bars.
    target : TargetFile, optional
        The file of cells to write the answers into.

    Returns
    -------
    Outcome
    """
    _refuse_many_classes(len(data.joined.ids), len(np.unique(data.labels.y[data.labels.known])))
    results = Results(out, report=report)
    with results.stage(force=force) as stage, warnings.catch_warnings():
        # The outcome mentions unreached samples.
        warnings.filterwarnings("ignore", message=".*parts of the graph without a label")
        model, notes = _fit(
            data, impute=options.impute, search=search, memory_limit=memory_limit, seed=seed, jobs=jobs, show=show
        )
        in_parts = memory_map(model.graph_) is not None
        _remember_files(model, data, options)
        n_suspect = 0
        if stage is not None:
            suggestions = _write_results(stage, data, model, options, show=show)
            if not in_parts:
                n_suspect = len(_write_suspects(stage / CHECK_LABELS, data, model, show=show).suspect)
            if n_suspect:
                results.files.append(results.out / CHECK_LABELS)
        if in_parts:
            notes += [*LEFT_OUT_ON_DISK, *([NO_REPORT] if results.drop_report() else [])]
        elif stage is not None and report:
            title = f"{readable(results.out.resolve().name)}: labels for {len(data.joined.ids):,} samples"
            lines = [*summary, *notes]
            _write_report(
                stage / REPORT, data, model, suggestions, title, command, lines, told, seed=seed, jobs=jobs, show=show
            )
    if target is not None:
        with progress_bar(f"writing into {target.path}", show=show):
            target.write(annotation(model, data.joined.ids))
    outcome = _outcome(data, model, notes, results.files, n_suspect)
    outcome.lines.extend(results.stale_lines())
    return outcome


def _remember_files(model: Any, data: LabelledFiles, options: Options) -> None:
    """Store in the model how its files were read, for `predict`."""
    model.files_ = {
        "id_column": options.id_column,
        "label_column": options.label_column,
        "views": data.recipes,
        **data.reading,
    }
    model.ids_ = np.array([str(name) for name in data.joined.ids.tolist()])


class Results:
    """The files of one run.

    Parameters
    ----------
    out : Path, or None
        Their folder; None if there are none.
    report : bool
        Whether there is a report.
    """

    def __init__(self, out: Path | None, *, report: bool) -> None:
        names = () if out is None else (PREDICTIONS, TO_LABEL, MODEL, *([REPORT] if report else []))
        self.out, self.report = out or Path(), report
        self.files = [self.out / name for name in names]
        for path in self.files:
            if path.is_dir():
                raise OutputError(
                    f"{path} is a folder, but a file of that name has to be written; choose another --out"
                )

    def stale_lines(self) -> list[str]:
        """Lines on files of an earlier run that this one does not write."""
        paths = [self.out / name for name in ((REPORT, CHECK_LABELS) if self.files else ())]
        return [
            f"{path.name} in {self.out} is from an earlier run and does not describe these results."
            for path in paths
            if path not in self.files and path.exists()
        ]

    def drop_report(self) -> bool:
        """Leave the report out; whether there was to be one."""
        before = len(self.files)
        self.files = [path for path in self.files if path.name != REPORT]
        return len(self.files) < before

    def stage(self, *, force: bool) -> AbstractContextManager[Path | None]:
        """Context with the folder to write into, whose files appear at the end; None if there are none."""
        if not self.files:
            return nullcontext()
        return staged_folder(self.out, force=force, ready=self._name_to_label)

    def _name_to_label(self, stage: Path) -> None:
        """Spare a list into which labels were typed, even while this was running."""
        self.files[1] = self.out / free_name(self.out, TO_LABEL)
        (stage / TO_LABEL).rename(stage / self.files[1].name)


def _write_results(stage: Path, data: LabelledFiles, model: Any, options: Options, *, show: bool) -> NDArray:
    """Write predictions, list and model; return the rows suggested for labelling."""
    joined, known = data.joined, data.labels.known
    in_parts = memory_map(model.graph_) is not None
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
            None if in_parts else _notes(model),
        )
    with progress_bar(TO_LABEL, show=show):
        suggestions = _suggestions(model, known, in_parts=in_parts)
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


def _notes(model: Any) -> dict[str, NDArray]:
    """Columns that say how far to trust each answer, and which labelled samples it comes from."""
    found = strongest_ids(model, N_BECAUSE)
    if found is None:  # too many samples and labels: 'lmssc explain' does it for single samples
        return {"novelty": model.novelty_}
    names = np.append(model.ids_, "")
    because = [" ".join(filter(None, names[row])) for row in found]
    return {"novelty": model.novelty_, "because": np.array(because, dtype=object)}


def _write_suspects(path: Path, data: LabelledFiles, model: Any, *, show: bool) -> Suspects:
    """Write the labels that are more likely wrong than right, if there are any."""
    with progress_bar(CHECK_LABELS, show=show):
        found = model.suspect_labels()
        if len(found.suspect):
            write_suspects(path, data.joined.ids, found, len(found.suspect), data.joined.id_column)
    return found


def _write_report(
    path: Path,
    data: LabelledFiles,
    model: Any,
    suggestions: NDArray,
    title: str,
    command: str,
    notes: Sequence[str],
    told: Sequence[str],
    *,
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
            doubts=list(told),
            first=suggestions.tolist(),
            random_state=seed,
            n_jobs=jobs,
            progress=advance,
            details=None if data.viewer is None else data.viewer.details,
        )


def _fit(
    data: LabelledFiles,
    *,
    impute: str | None,
    search: bool,
    memory_limit: str | None,
    seed: int,
    jobs: int,
    show: bool,
) -> tuple[Any, list[str]]:
    """Return the fitted model, and lines on how its parameters were chosen."""
    joined, y = data.joined, data.labels.y
    plain = lmssc.LMSSC(scaling=data.scaling, impute=impute, memory_limit=memory_limit, random_state=seed)
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


def _refuse_many_classes(n_samples: int, n_classes: int) -> None:
    """The files of results have a column for each class, and a report a dense array of all of them."""
    if has_many_classes(n_samples, n_classes):
        size = 8 * n_samples * n_classes / 2**30
        raise CommandError(
            f"{n_samples:,} samples with {n_classes:,} classes: a table with a probability for each class would have "
            f"{size:.1f} GiB; use lmssc.LMSSC in Python, whose probabilities are then sparse, or fewer classes"
        )


def _fits(advance: Advance | None) -> Callable[[Any], None] | None:
    return None if advance is None else lambda record: advance(record.done, record.total, f"score {record.score:.3f}")


def _suggestions(model: Any, known: NDArray, *, in_parts: bool) -> NDArray:
    wanted = min(SuggestionLimits().count(len(known)), int((~known).sum()))
    if not wanted:
        return np.empty(0, dtype=int)
    return model.most_uncertain(wanted) if in_parts else model.most_informative(wanted)


def _outcome(data: LabelledFiles, model: Any, notes: list[str], written: list[Path], n_suspect: int) -> Outcome:
    found = ~data.labels.known
    confidence = model.label_distributions_.max(axis=1)[found]
    labels, counts = np.unique(model.transduction_[found].astype(str), return_counts=True)
    n_unsure, n_unreached = int((confidence < SURE).sum()), len(model.unreached_)
    lines = [*notes]
    listed = written[1].name if written else ""
    n_given = len(found) - int(found.sum())
    if found.any():
        lines.append(
            f"{counted(int(found.sum()), 'label')} predicted, with a mean confidence of "
            f"{100 * confidence.mean():.1f} %; {n_unsure:,} below {100 * SURE:.0f} %."
        )
        if n_given < CRITERIA.min_labels:
            lines.append(
                f"This confidence is a guess: {counted(n_given, 'label')} are too few to check it. From "
                f"{CRITERIA.min_labels} on it is checked, and a warning says if it may be chance."
            )
    else:
        lines.append(
            "All samples already had a label, so there was nothing to predict. Use the model to predict new samples, "
            "or 'lmssc compare' with the same files to measure the accuracy."
        )
    if memory_map(model.graph_) is None and found.any():
        from lmssc.report.trust_section import find_novel

        novel = find_novel(model, data.labels.known)
        if novel.suggests_a_class(n_given):
            lines.append(
                f"{counted(len(novel.groups[0]), 'sample')} are like each other and like none of the classes: a class "
                f"without a label? Such as {some(data.joined.ids[novel.groups[0][:3]])}; "
                "the column novelty is small for them."
            )
    if n_unreached:
        lines.append(
            f"No label reaches {counted(n_unreached, 'sample')}: they get the most frequent class and are marked as "
            f"unreached; label some of them{f' ({listed})' if listed else ''}."
        )
    if n_suspect:
        lines.append(
            f"{counted(n_suspect, 'given label')} {'is' if n_suspect == 1 else 'are'} more likely wrong than right: "
            f"see {CHECK_LABELS}."
        )
    if listed not in ("", TO_LABEL):
        lines.append(f"Lists with typed labels are kept; the new list of samples to label is {listed}.")
    facts = {
        "found": int(found.sum()),
        "found_per_class": dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        "mean_confidence": round(float(confidence.mean()), 6) if found.any() else None,
        "unsure": n_unsure,
        "unreached": n_unreached,
        "suspect_labels": n_suspect,
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "notes": notes,
    }
    return Outcome(model, lines, facts, written)
