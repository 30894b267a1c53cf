"""Views and labels read from files, joined and described, before anything is computed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from lmssc.data.graph_view import Graph
from lmssc.data.view_dict import ViewDict
from lmssc.io.column_types import CATEGORY, YES_NO
from lmssc.io.errors import InputFileError
from lmssc.io.file_views import FileView
from lmssc.io.graph_files import Ids, read_graph_files
from lmssc.io.join import Joined, join
from lmssc.io.key_columns import find_keys
from lmssc.io.label_files import KnownLabels, encode_labels, find_label_texts, hide_labels, read_labels
from lmssc.io.media import AUDIO, SampleViewer, Show
from lmssc.io.options import Options
from lmssc.io.sample_cells import SampleCells
from lmssc.io.sources import Source, read_sources
from lmssc.io.table import Table, counted, some
from lmssc.io.view_plans import make_views

# What the summary counts, by the kind of view.
FACTS = {"text": "word", "links": "link"}
# The summary lists at most this many classes.
MAX_LISTED_CLASSES = 30
# Columns of a sample that the report shows, and samples on its map.
MAX_SHOWN_COLUMNS, MAX_SHOWN_SAMPLES = 8, 100_000


@dataclass(frozen=True)
class ViewFacts:
    """One line of the summary: a view, its size and its file."""

    name: str
    kind: str
    n_features: int
    path: str
    n_missing: int
    by_position: bool


@dataclass(frozen=True)
class SamplesInFiles:
    """Samples and views from files.

    Attributes
    ----------
    joined : Joined
        Samples and views.
    recipes : dict of str to dict
        For each view, how `predict` makes it from another file.
    facts : list of ViewFacts
        For each view, its line of the summary.
    notes : list of str
        What was left out or assumed.
    graphs : dict of str to Graph
        Links between the samples.
    """

    joined: Joined
    recipes: dict[str, dict[str, Any]]
    facts: list[ViewFacts]
    notes: list[str]
    graphs: dict[str, Graph]

    @property
    def views(self) -> dict[str, Any]:
        """Views and graphs by name, the X of `fit`."""
        return ViewDict({**self.joined.views, **self.graphs}, columns=self.joined.columns)

    @property
    def paths(self) -> dict[str, str]:
        """The file of each view."""
        return {fact.name: fact.path for fact in self.facts}

    @property
    def scaling(self) -> str | dict[str, str]:
        """The scaling for `LMSSC`."""
        return choose_scaling(self.recipes)


@dataclass(frozen=True)
class LabelledFiles(SamplesInFiles):
    """The same with labels.

    Attributes
    ----------
    labels : KnownLabels
        The known labels.
    reading : dict of str to object
        How the files were read, for `predict`.
    viewer : SampleViewer or None
        What to show of each sample in the report; None if nothing was asked for and the samples are too many.
    """

    labels: KnownLabels
    reading: dict[str, Any]
    viewer: SampleViewer | None


def choose_scaling(recipes: Mapping[str, dict[str, Any]]) -> str | dict[str, str]:
    """The scaling for `LMSSC`: logarithms with idf for text, "mixed" for views with categories, else "auto".

    Examples
    --------
    >>> choose_scaling({"body": {"kind": "text"}, "sizes": {"kind": "numbers", "kinds": {}}})
    {'body': 'logidf'}
    """
    chosen = {name: "logidf" for name, recipe in recipes.items() if recipe["kind"] == "text"}
    for name, recipe in recipes.items():
        if any(kind["role"] in (YES_NO, CATEGORY) for kind in recipe.get("kinds", {}).values()):
            chosen[name] = "mixed"
    return chosen or "auto"


def read_labelled_files(
    arguments: Sequence[str],
    labels: str | Sequence[str] | None,
    options: Options,
    unlabelled: str | None = None,
    graphs: Sequence[str] = (),
    shows: Sequence[str] = (),
) -> LabelledFiles:
    r"""Read views and labels, and join their rows.

    Parameters
    ----------
    arguments : sequence of str
        Files of views, as ``FILE`` or ``NAME=FILE``.
    labels : str or sequence of str, optional
        Files of labels, which are merged; if None, a view has a label column.
    options : Options
        What the user said about the files.
    unlabelled : str, optional
        Text that marks an unlabelled sample.
    graphs : sequence of str
        Files of links, as ``FILE`` or ``NAME=FILE``.
    shows : sequence of str
        What the report shows of a sample, as ``KIND=WHAT``; by default a few columns of the files.

    Returns
    -------
    LabelledFiles

    Raises
    ------
    InputFileError
        If the files do not fit together; the message says where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,x,y,label\np,1,2,yes\nq,3,4,no\nr,5,6,\n")
    >>> data = read_labelled_files([str(path)], None, Options())
    >>> data.labels.counts, data.joined.ids
    ({'no': 1, 'yes': 1}, array(['p', 'q', 'r'], dtype=object))
    """
    paths = [labels] if isinstance(labels, str) else labels or []
    files = join_files(arguments, paths, options)
    known = encode_labels(*files.find_label_texts(unlabelled), files.notes)
    decimals = {source.table.decimal for source in files.sources} - {None}
    reading = {"id_names": list(files.options.id_names), "decimal": decimals.pop() if len(decimals) == 1 else None}
    links, lines = files.read_graphs(graphs)
    viewer, missing = _make_viewer(files, shows)
    notes = [*lines, *files.notes, *missing]
    return LabelledFiles(files.joined, files.recipes, files.facts, notes, links, known, reading, viewer)


def _make_viewer(files: "JoinedFiles", shows: Sequence[str]) -> tuple[SampleViewer | None, list[str]]:
    """What to show of each sample, and lines on files that are not there."""
    ids = files.joined.ids
    if not shows and len(ids) > MAX_SHOWN_SAMPLES:
        return None, []
    cells = SampleCells(files.sources, ids)
    viewer = SampleViewer(cells, [str(key) for key in ids.tolist()], [Show.parse(text, cells) for text in shows])
    if any(show.kind == AUDIO for show in viewer.shows):
        raise InputFileError("--show: a report has no sounds; 'lmssc label' plays them")
    cells.keep(viewer.columns if shows else cells.first_columns(MAX_SHOWN_COLUMNS))
    return viewer, viewer.missing_files()


class JoinedFiles(NamedTuple):
    """Files of views, with their rows joined, and those of labels; `options` names the id columns that were found."""

    sources: Sequence[Source]
    options: Options
    views: list[FileView]
    joined: Joined
    notes: list[str]
    labels: dict[str, Table]

    @property
    def recipes(self) -> dict[str, dict[str, Any]]:
        """For each view, how it is made from another file."""
        return {view.name: view.recipe for view in self.views}

    @property
    def facts(self) -> list[ViewFacts]:
        """For each view, its line of the summary."""
        return make_facts(self.views, self.joined)

    def find_label_texts(self, unlabelled: str | None) -> tuple[NDArray, str]:
        """The labels as they are written, None for unlabelled samples, and where they come from."""
        return find_label_texts(self.labels, self.sources, self.joined, self.options, unlabelled, self.notes)

    def read_graphs(self, paths: Sequence[str]) -> tuple[dict[str, Graph], list[str]]:
        """The links in some files, and lines on them."""
        ids = Ids(self.joined.ids, self.joined.one_order)
        return read_graph_files(paths, ids, self.options, [view.name for view in self.views])


def join_files(arguments: Sequence[str], labels: Sequence[str], options: Options) -> JoinedFiles:
    """Read files of views and join their rows; ids may be found by those in the files of labels."""
    sources = read_sources(arguments, options)
    notes = [source.table.note for source in sources if source.table.note]
    _check_label_files(labels, sources)
    tables = {path: read_labels(path, options) for path in labels}
    sources, options = find_keys(sources, tables.values(), options, notes)
    sources = hide_labels(sources, tables, options)
    views = make_views(sources, options, notes)
    joined = join(views)
    if len(joined.left_out):
        notes.append(f"{counted(len(joined.left_out), 'sample')} with none of these views: left out.")
    return JoinedFiles(sources, options, views, joined, notes, tables)


def _check_label_files(paths: Sequence[str], sources: Sequence[Source]) -> None:
    """Refuse the name of a column in the place of a file, with the way to write it."""
    columns = [name for source in sources for name in source.table.columns]
    for path in paths:
        if os.path.exists(path):
            continue
        if f"obs:{path}" in columns:
            raise InputFileError(f"{path}: no such file; for the column of obs, write obs:{path}")
        if path in columns and not path.startswith("obs:"):
            raise InputFileError(f"{path}: no such file; for the column of a view, write --label-column {path}")


def make_facts(views: Sequence[FileView], joined: Joined) -> list[ViewFacts]:
    """Describe views: one `ViewFacts` each.

    Parameters
    ----------
    views : sequence of FileView
        Views before the join.
    joined : Joined
        The same views, joined.

    Returns
    -------
    list of ViewFacts
    """
    return [
        ViewFacts(
            view.name,
            FACTS.get(view.recipe["kind"], "feature"),
            view.data.nnz if view.links else view.data.shape[1],
            view.rows.path,
            int((~joined.present[view.name]).sum()),
            view.ids is None,
        )
        for view in views
    ]


def describe_views(joined: Joined, facts: Sequence[ViewFacts]) -> list[str]:
    """Summarise samples and views, one line each.

    Parameters
    ----------
    joined : Joined
        The samples.
    facts : sequence of ViewFacts
        The views.

    Returns
    -------
    list of str
    """
    named = some(repr(name) if name else "the first, which has no name" for name in joined.id_columns)
    how = f"rows joined by the column {named}" if joined.by_id else "no ids: rows joined by position"
    width = max(len(fact.name) for fact in facts)
    digits = max(len(f"{fact.n_features:,}") for fact in facts)
    lines = [f"{counted(len(joined.ids), 'sample')} in {counted(len(facts), 'view')} ({how}):"]
    for fact in facts:
        lacking = f"; {counted(fact.n_missing, 'sample')} without it" if fact.n_missing else ""
        place = "; no ids: its rows are taken in the order of the others" if fact.by_position and joined.by_id else ""
        size = counted(fact.n_features, fact.kind).rjust(digits + len(fact.kind) + 2 - (fact.n_features == 1))
        lines.append(f"  {fact.name:{width}}  {size}, {fact.path}{lacking}{place}")
    return lines


def describe(data: LabelledFiles) -> list[str]:
    """Summarise what was read, in lines to print."""
    counts = data.labels.counts
    n_known, n_samples = int(data.labels.known.sum()), len(data.joined.ids)
    listed = some((f"{label} ({count:,})" for label, count in counts.items()), MAX_LISTED_CLASSES)
    return [
        *describe_views(data.joined, data.facts),
        f"{counted(n_known, 'sample')} labelled ({data.labels.source}), {n_samples - n_known:,} unlabelled.",
        f"{len(counts)} classes, with the number of labels of each: {listed}.",
        *data.notes,
    ]


def as_data(data: LabelledFiles) -> dict[str, Any]:
    """Return what `describe` says as a dict that can be written as JSON."""
    return {
        "samples": len(data.joined.ids),
        "id_columns": data.joined.id_columns,
        "views": [
            {
                "name": fact.name,
                "kind": fact.kind,
                "features": fact.n_features,
                "file": fact.path,
                "samples_without": fact.n_missing,
                "by_position": fact.by_position,
            }
            for fact in data.facts
        ],
        "labelled": int(data.labels.known.sum()),
        "labels_from": data.labels.source,
        "labels_per_class": data.labels.counts,
        "graphs": list(data.graphs),
        "notes": data.notes,
    }
