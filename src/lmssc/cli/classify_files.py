"""The work of ``lmssc classify`` and ``lmssc predict``, from files to files."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lmssc
from lmssc.core.progress_bar import Advance, iterations, progress_bar
from lmssc.io.classify_input import Problem, ViewFacts, make_facts
from lmssc.io.column_types import NUMBER, TEXT, TYPES
from lmssc.io.errors import OutputError
from lmssc.io.join import Joined, join
from lmssc.io.key_columns import find_keys
from lmssc.io.match_model import match_views
from lmssc.io.outputs import write_predictions, write_to_label
from lmssc.io.staging import staged_file, staged_folder
from lmssc.io.table import counted
from lmssc.io.typed_labels import free_name
from lmssc.io.view_columns import Options, read_sources
from lmssc.model_selection.intervals import wilson
from lmssc.persistence.atomic import open_atomically, readable

PREDICTIONS, TO_LABEL, MODEL, REPORT = "predictions.csv", "to_label.csv", "model.lmssc", "report.html"
# Samples in to_label.csv; fewer, but not fewer than so many, if there are more samples than that: each costs a solve.
SUGGESTIONS, FEWEST_SUGGESTIONS, MANY_SAMPLES = 100, 20, 100_000
# Samples that are predicted at a time, unless the model was fitted to more.
BATCH = 10_000
# Labels below this are counted as unsure.
SURE = 0.5


@dataclass(frozen=True)
class Outcome:
    """What came out of it.

    Attributes
    ----------
    model : classifier
        Fitted.
    lines : list of str
        The outcome in words.
    data : dict
        The same for programs.
    files : list of Path
        What was written.
    """

    model: Any
    lines: list[str]
    data: dict[str, Any]
    files: list[Path]


def classify(
    problem: Problem,
    out: Path,
    *,
    options: Options,
    understood: Sequence[str],
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
    problem : Problem
        Samples, views and labels.
    out : Path
        The folder for the files, which appear there together or not at all.
    options : Options
        What was said about the files; `predict` goes by it, too.
    understood : sequence of str
        What was told of the problem, for the report.
    command : str
        The call, for the report.
    search : bool
        Whether parameters are chosen by cross-validation on the labelled samples.
    seed : int
        Decides the folds of the search, and what is held out for the report.
    jobs : int
        Fits at the same time.
    force : bool
        Whether files that are there may be replaced.
    show : bool
        Whether to show bars on a terminal.

    Returns
    -------
    Outcome
    """
    from lmssc.report import write_report

    joined, y = problem.joined, problem.labels.y
    written = [out / name for name in (PREDICTIONS, TO_LABEL, MODEL, REPORT)]
    for path in written:
        if path.is_dir():
            raise OutputError(f"{path} is a folder, where a file is to be written; name another folder")

    def name_to_label(stage: Path) -> None:
        """Keep a file into which labels were typed, also while this was running."""
        written[1] = out / free_name(out, TO_LABEL)
        (stage / TO_LABEL).rename(stage / written[1].name)

    with staged_folder(out, force=force, ready=name_to_label) as stage, warnings.catch_warnings():
        # What is unreached is told in the outcome.
        warnings.filterwarnings("ignore", message=".*parts of the graph without a label")
        model, notes = _fit(problem, impute=options.impute, search=search, seed=seed, jobs=jobs, show=show)
        model.files_ = {
            "id_column": options.id_column,
            "label_column": options.label_column,
            "views": problem.recipes,
            **problem.reading,
        }
        unreached = np.zeros(len(joined.ids), dtype=bool)
        unreached[model.unreached_] = True
        with progress_bar(PREDICTIONS, show=show) as advance, open_atomically(stage / PREDICTIONS) as file:
            write_predictions(
                file,
                joined.ids,
                model,
                model.label_distributions_,
                model.transduction_,
                {"given": problem.labels.known, "unreached": unreached},
                advance,
                joined.id_column,
            )
        with progress_bar(TO_LABEL, show=show):
            suggestions = _suggestions(model, problem.labels.known)
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
        with progress_bar("report", show=show) as advance:
            write_report(
                stage / REPORT,
                model,
                joined.views,
                y,
                ids=joined.ids.tolist(),
                title=readable(out.resolve().name),
                command=command,
                present=joined.sparse_masks,
                notes=[*understood, *notes],
                first=suggestions.tolist(),
                random_state=seed,
                n_jobs=jobs,
                progress=advance,
            )
    return _outcome(problem, model, notes, written)


def _fit(
    problem: Problem, *, impute: str | None, search: bool, seed: int, jobs: int, show: bool
) -> tuple[Any, list[str]]:
    """The fitted model, and what is to be told of how it was made."""
    joined, y = problem.joined, problem.labels.y
    plain = lmssc.LMSSC(scaling=problem.scaling, impute=impute, random_state=seed)
    if not search:
        with progress_bar("LMSSC", show=show) as advance:
            plain.callback = None if advance is None else iterations(advance)
            plain.fit(joined.views, y, joined.sparse_masks)
        plain.callback = None
        return plain, []
    with progress_bar("choosing parameters", show=show) as advance:
        cv = lmssc.LMSSCCV(estimator=plain, n_jobs=jobs, random_state=seed, callback=_fits(advance))
        cv.fit(joined.views, y, joined.sparse_masks)
    chosen = ", ".join(f"{name}={value}" for name, value in cv.best_params_.items()) or "the defaults"
    score = _say_score(cv.best_score_, y[problem.labels.known])
    return cv.best_estimator_, [f"Parameters chosen by cross-validation: {chosen}{score}."]


def _say_score(score: float, labels: NDArray) -> str:
    """The accuracy on held-out labels, and what it may be in truth; nothing if none could be held out."""
    if np.isnan(score):
        return ""
    counts = np.unique(labels.astype(str), return_counts=True)[1]
    n = int(counts[counts > 1].sum())  # the only label of a class is never hidden
    low, high = wilson(score, n)
    interval = f"95 % interval with {counted(n, 'label')}: {100 * low:.1f} to {100 * high:.1f} %"
    return f"; accuracy on held-out labels {100 * score:.1f} % ({interval})"


def _fits(advance: Advance | None) -> Callable[[Any], None] | None:
    return None if advance is None else lambda record: advance(record.done, record.total, f"score {record.score:.3f}")


def _suggestions(model: Any, known: NDArray) -> NDArray:
    most = min(SUGGESTIONS, max(FEWEST_SUGGESTIONS, SUGGESTIONS * MANY_SAMPLES // len(known)))
    wanted = min(most, int((~known).sum()))
    return model.most_informative(wanted) if wanted else np.empty(0, dtype=int)


def _outcome(problem: Problem, model: Any, notes: list[str], written: list[Path]) -> Outcome:
    found = ~problem.labels.known
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
        lines.append("All samples had a label; the model is for new ones.")
    if n_unreached:
        lines.append(
            f"{counted(n_unreached, 'sample')} unreached by any label: the most frequent class, marked; label some "
            f"({written[1].name})."
        )
    if written[1].name != TO_LABEL:
        lines.append(f"Files with typed labels are kept; the new list of what to label is {written[1].name}.")
    data = {
        "found": int(found.sum()),
        "found_per_class": dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        "mean_confidence": round(float(confidence.mean()), 6) if found.any() else None,
        "unsure": n_unsure,
        "unreached": n_unreached,
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "notes": notes,
    }
    return Outcome(model, lines, data, written)


@dataclass(frozen=True)
class NewSamples:
    """Samples for a model, as they were understood."""

    joined: Joined
    facts: list[ViewFacts]
    notes: list[str]


def read_new_samples(arguments: Sequence[str], model: Any, options: Options) -> NewSamples:
    """Read files of new samples as views that a model knows.

    Parameters
    ----------
    arguments : sequence of str
        Files, as ``FILE`` or ``NAME=FILE``.
    model : classifier
        Fitted.
    options : Options
        What was said about the files.

    Returns
    -------
    NewSamples
    """
    before = getattr(model, "files_", {})
    # What the columns of the model's views were; they are features, and no ids.
    roles = {
        column: recipe.get("kinds", {}).get(column, {"role": NUMBER})["role"] if recipe["kind"] == "numbers" else TEXT
        for recipe in before.get("views", {}).values()
        for column in recipe["columns"] or ()
    }
    options = replace(
        options,
        id_column=options.id_column or before.get("id_column"),
        label_column=before.get("label_column"),
        id_names=before.get("id_names", ()),
        usual_decimal=before.get("decimal"),
        types={column: role if role in TYPES else NUMBER for column, role in roles.items()},
        impute=getattr(model, "impute", None),
    )
    notes: list[str] = []
    sources = read_sources(arguments, options)
    notes += [source.table.note for source in sources if source.table.note]
    sources, options = find_keys(sources, [], options, notes)
    views = match_views(sources, model, options, notes)
    joined = join(views)
    return NewSamples(joined, make_facts(views, joined), notes)


def predict(model: Any, samples: NewSamples, out: Path, *, force: bool = False, show: bool = False) -> NDArray:
    """Label new samples, some at a time, and write the predictions.

    Parameters
    ----------
    model : classifier
        Fitted.
    samples : NewSamples
        The samples.
    out : Path
        The file, which appears once it is complete.
    force : bool
        Whether one that is there may be replaced.
    show : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    ndarray of str
        The labels.
    """
    joined = samples.joined
    count = len(joined.ids)
    distributions = np.empty((count, len(model.classes_)))
    labels = np.empty(count, dtype=model.classes_.dtype)
    # What a search needs is made anew for each batch.
    batch = max(BATCH, len(model.transduction_))
    with (
        staged_file(out, force=force) as file,
        progress_bar("predict", show=show) as advance,
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="X does not have the view")  # a note says it
        for start in range(0, count, batch):
            rows = slice(start, min(start + batch, count))
            masks = joined.sparse_masks
            part = {name: view[rows] for name, view in joined.views.items()}
            present = None if masks is None else {name: mask[rows] for name, mask in masks.items()}
            distributions[rows] = model.predict_proba(part, present)
            labels[rows] = model._decide(distributions[rows])
            if advance is not None:
                advance(rows.stop, count)
        write_predictions(file, joined.ids, model, distributions, labels, {}, id_column=joined.id_column)
    return labels
