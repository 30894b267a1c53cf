"""Everything that was understood of the files before anything is computed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lmssc.io.column_types import CATEGORY, YES_NO
from lmssc.io.join import Joined, join
from lmssc.io.key_columns import find_keys
from lmssc.io.label_files import KnownLabels, find_labels, read_labels
from lmssc.io.table import counted, some
from lmssc.io.view_columns import FileView, Options, make_views, read_sources

# Classes that are listed with their number of labels.
MOST_CLASSES = 30


@dataclass(frozen=True)
class ViewFacts:
    """What is told of a view."""

    name: str
    kind: str
    n_features: int
    path: str
    n_missing: int


@dataclass(frozen=True)
class Problem:
    """Samples, views and labels as they were understood.

    Attributes
    ----------
    joined : Joined
        The samples and their views.
    labels : KnownLabels
        The labels that are known.
    recipes : dict of str to dict
        For each view, how `predict` makes it of another file.
    facts : list of ViewFacts
        For each view, what is told of it.
    notes : list of str
        What was left out or assumed.
    reading : dict of str to object
        How the files were read that `predict` has to know of.
    """

    joined: Joined
    labels: KnownLabels
    recipes: dict[str, dict[str, Any]]
    facts: list[ViewFacts]
    notes: list[str]
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def scaling(self) -> str | dict[str, str]:
        """Text gets tf-idf weights, categories are weighed against numbers; of other views LMSSC finds out itself."""
        chosen = {name: "tfidf" for name, recipe in self.recipes.items() if recipe["kind"] == "text"}
        for name, recipe in self.recipes.items():
            if any(kind["role"] in (YES_NO, CATEGORY) for kind in recipe.get("kinds", {}).values()):
                chosen[name] = "mixed"
        return chosen or "auto"


def read_problem(
    arguments: Sequence[str], labels: str | Sequence[str] | None, options: Options, unlabelled: str | None = None
) -> Problem:
    r"""Read views and labels, and bring them together.

    Parameters
    ----------
    arguments : sequence of str
        Files of views, as ``FILE`` or ``NAME=FILE``.
    labels : str or sequence of str, optional
        The file with labels, or several, whose labels are merged; if None, a view has a column of labels.
    options : Options
        What was said about the files.
    unlabelled : str, optional
        What is written where a label is not known.

    Returns
    -------
    Problem

    Raises
    ------
    InputFileError
        If something does not fit; the message says where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,x,y,label\np,1,2,yes\nq,3,4,no\nr,5,6,\n")
    >>> problem = read_problem([str(path)], None, Options())
    >>> problem.labels.counts, problem.joined.ids
    ({'no': 1, 'yes': 1}, array(['p', 'q', 'r'], dtype=object))
    """
    notes: list[str] = []
    sources = read_sources(arguments, options)
    notes += [source.table.note for source in sources if source.table.note]
    paths = [labels] if isinstance(labels, str) else labels or []
    sources, options = find_keys(sources, (read_labels(path, options) for path in paths), options, notes)
    views = make_views(sources, options, notes)
    joined = join(views)
    known = find_labels(paths, sources, joined, options, unlabelled, notes)
    decimals = {source.table.decimal for source in sources} - {None}
    reading = {"id_names": list(options.id_names), "decimal": decimals.pop() if len(decimals) == 1 else None}
    recipes = {view.name: view.recipe for view in views}
    return Problem(joined, known, recipes, make_facts(views, joined), notes, reading)


def make_facts(views: Sequence[FileView], joined: Joined) -> list[ViewFacts]:
    """What is told of views.

    Parameters
    ----------
    views : sequence of FileView
        As they are in the files.
    joined : Joined
        The same, joined.

    Returns
    -------
    list of ViewFacts
    """
    return [
        ViewFacts(
            view.name,
            "word" if view.recipe["kind"] == "text" else "feature",
            view.data.shape[1],
            view.rows.path,
            int((~joined.present[view.name]).sum()),
        )
        for view in views
    ]


def describe_views(joined: Joined, facts: Sequence[ViewFacts]) -> list[str]:
    """Lines that tell what the samples and views are.

    Parameters
    ----------
    joined : Joined
        The samples.
    facts : sequence of ViewFacts
        What is known of the views.

    Returns
    -------
    list of str
    """
    named = some(repr(name) if name else "the first, which has no name" for name in joined.id_columns)
    how = f"rows joined by the column {named}" if joined.by_id else "no ids: row 1 of each file is sample 1, and so on"
    width = max(len(fact.name) for fact in facts)
    digits = max(len(f"{fact.n_features:,}") for fact in facts)
    lines = [f"{counted(len(joined.ids), 'sample')} in {counted(len(facts), 'view')} ({how}):"]
    for fact in facts:
        lacking = f"; {counted(fact.n_missing, 'sample')} without it" if fact.n_missing else ""
        size = counted(fact.n_features, fact.kind).rjust(digits + len(fact.kind) + 2 - (fact.n_features == 1))
        lines.append(f"  {fact.name:{width}}  {size}, {fact.path}{lacking}")
    return lines


def describe(problem: Problem) -> list[str]:
    """Lines that tell what was understood.

    Parameters
    ----------
    problem : Problem
        What was read.

    Returns
    -------
    list of str
    """
    counts = problem.labels.counts
    n_known, n_samples = int(problem.labels.known.sum()), len(problem.joined.ids)
    listed = some((f"{label} ({count:,})" for label, count in counts.items()), MOST_CLASSES)
    return [
        *describe_views(problem.joined, problem.facts),
        f"{counted(n_known, 'sample')} labelled ({problem.labels.source}), {n_samples - n_known:,} not.",
        f"{len(counts)} classes, with the number of their labels: {listed}.",
        *problem.notes,
    ]


def as_data(problem: Problem) -> dict[str, Any]:
    """The same for programs.

    Parameters
    ----------
    problem : Problem
        What was read.

    Returns
    -------
    dict
        To be written as JSON.
    """
    return {
        "samples": len(problem.joined.ids),
        "id_columns": problem.joined.id_columns,
        "views": [
            {
                "name": fact.name,
                "kind": fact.kind,
                "features": fact.n_features,
                "file": fact.path,
                "samples_without": fact.n_missing,
            }
            for fact in problem.facts
        ],
        "labelled": int(problem.labels.known.sum()),
        "labels_from": problem.labels.source,
        "labels_per_class": problem.labels.counts,
        "notes": problem.notes,
    }
