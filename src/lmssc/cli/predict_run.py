"""The work of ``lmssc predict``: new samples from files, labelled by a model."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.core.progress import progress_bar
from lmssc.data.graph_view import Graph
from lmssc.io.graph_files import Ids, read_new_links
from lmssc.io.join import Joined, join
from lmssc.io.key_columns import find_keys
from lmssc.io.labelled_files import ViewFacts, make_facts
from lmssc.io.match_model import match_views, options_of_model
from lmssc.io.options import Options
from lmssc.io.outputs import write_predictions
from lmssc.io.sources import read_sources
from lmssc.io.staging import staged_file

# Batch size, unless the model was fitted to more: amortises building the neighbour index, once per batch.
MIN_BATCH = 10_000


@dataclass(frozen=True)
class NewSamples:
    """New samples for a model, with lines that describe them."""

    joined: Joined
    facts: list[ViewFacts]
    notes: list[str]
    graphs: dict[str, Graph]


def read_new_samples(arguments: Sequence[str], model: Any, options: Options, graphs: Sequence[str] = ()) -> NewSamples:
    """Read files of new samples as views of a model.

    Parameters
    ----------
    arguments : sequence of str
        Files, as ``FILE`` or ``NAME=FILE``.
    model : classifier
        Fitted.
    options : Options
        What the user said about the files.
    graphs : sequence of str
        Files of links to the samples of the model, as ``FILE`` or ``NAME=FILE``.

    Returns
    -------
    NewSamples
    """
    options = options_of_model(model, options)
    notes: list[str] = []
    sources = read_sources(arguments, options)
    notes += [source.table.note for source in sources if source.table.note]
    sources, options = find_keys(sources, [], options, notes)
    views = match_views(sources, model, options, notes)
    joined = join(views)
    numbers = [str(number) for number in range(1, len(model.transduction_) + 1)]
    fitted = {name: model._link_columns.get(name, numbers) for name in model.graph_names_}
    links, lines = read_new_links(graphs, Ids(joined.ids, joined.one_order), fitted, options)
    lines += [
        f"No file has the graph {name!r}: samples are treated as without links (--graph {name}=FILE)."
        for name in fitted
        if name not in links
    ]
    return NewSamples(joined, make_facts(views, joined), [*lines, *notes], links)


def predict(model: Any, samples: NewSamples, out: Path, *, force: bool = False, show: bool = False) -> NDArray:
    """Label new samples in batches and write the predictions.

    Parameters
    ----------
    model : classifier
        Fitted.
    samples : NewSamples
        The samples.
    out : Path
        The file; it appears once it is complete.
    force : bool
        Whether an existing file may be replaced.
    show : bool
        Whether to show a progress bar on a terminal.

    Returns
    -------
    ndarray of str
        The labels.
    """
    joined = samples.joined
    count = len(joined.ids)
    distributions = np.empty((count, len(model.classes_)))
    labels = np.empty(count, dtype=model.classes_.dtype)
    novelty = np.empty(count) if hasattr(model, "novelty") else None
    batch = max(MIN_BATCH, len(model.transduction_))
    with (
        staged_file(out, force=force) as file,
        progress_bar("predict", show=show) as advance,
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="X does not have the (view|graph)")  # a note says so
        for start in range(0, count, batch):
            rows = slice(start, min(start + batch, count))
            masks = joined.sparse_masks
            part: dict[str, Any] = {name: view[rows] for name, view in joined.views.items()}
            part |= {name: Graph(graph.affinity[rows]) for name, graph in samples.graphs.items()}
            present = None if masks is None else {name: mask[rows] for name, mask in masks.items()}
            distributions[rows] = model.predict_proba(part, present)
            if novelty is not None:
                novelty[rows] = model.novelty(part, present)
            labels[rows] = model._decide(distributions[rows])
            if advance is not None:
                advance(rows.stop, count)
        notes = {} if novelty is None else {"novelty": novelty}
        write_predictions(file, joined.ids, model, distributions, labels, {}, id_column=joined.id_column, notes=notes)
    return labels
