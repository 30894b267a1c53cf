"""``lmssc classify --dask``: Parquet files are read, fitted and answered by the workers of a cluster."""

import argparse
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lmssc
from lmssc._optional import import_optional
from lmssc.cli.shared_options import split_names
from lmssc.cluster.dask_fit import open_client
from lmssc.core.progress import iterations, progress_bar
from lmssc.io.errors import CommandError
from lmssc.io.parquet_parts import ParquetView, open_parquet, write_part
from lmssc.io.sources import split_argument
from lmssc.io.staging import staged_folder
from lmssc.io.table import counted

# What is not written, because it would bring all samples to this machine.
LEFT_OUT = (
    "to_label.csv is not written: the choice needs all samples here. Sort the parts by confidence instead.",
    "check_labels.csv is not written: held-out labels are predicted on one machine.",
    "model.lmssc is not written: it would hold all samples. In Python, LMSSC(client=...) has predict and save.",
    "report.html is not written: its refits and its map need all samples here.",
)


def check(args: argparse.Namespace) -> None:
    """Raise `CommandError` for options that a fit on a cluster does not have."""
    for name, given in (
        ("--labels", args.labels),
        ("--graph", args.graph),
        ("--in-place", args.in_place),
        ("--force", args.force),
        ("--cv", args.cv),
        ("--memory-limit", args.memory_limit),
        ("--view", args.view),
        ("--views", args.matrices),
        ("--prefix-sep", args.prefix_sep),
        ("--transpose", args.transpose),
        ("--type", args.type),
        ("--show", args.show),
    ):
        if given:
            raise CommandError(
                f"{name} cannot be combined with --dask, which takes Parquet files with the same samples in the same "
                "order, labels in a column of them, and a new folder for --out"
            )


def classify_on_cluster(args: argparse.Namespace, *, show: bool) -> dict[str, Any]:
    """Read, fit and write on the cluster; print if `show`; return everything as data."""
    sources = [split_argument(view) for view in args.views]
    drop = split_names(args.drop)
    views = [open_parquet(name or Path(path).stem, path, args.id, args.label_column, drop) for name, path in sources]
    labelled = _check_views(views, args)
    summary = _describe(views, labelled)
    if show:
        print("\n".join(summary), flush=True)
    found: dict[str, Any] = {"understood": summary}
    if args.dry_run:
        return found
    parent = args.out.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with (
        open_client(args.dask) as client,
        staged_folder(args.out, force=False) as stage,
        # Workers and this process share the folder of --out, so the files of the fit are beside it.
        tempfile.TemporaryDirectory(prefix=".lmssc-fit-", dir=parent) as place,
    ):
        _check_ids(views)
        y = _labels(labelled, args.unlabelled)
        with progress_bar("LMSSC", show=show) as advance:
            clf = lmssc.LMSSC(client=client, checkpoint=Path(place) / "fit.ckpt", random_state=args.seed)
            clf.callback = None if advance is None else iterations(advance)
            clf.fit({view.name: view.features() for view in views}, y)
        with progress_bar("writing", show=show):
            n_parts = _write(clf, views, y, stage)
        found["outcome"] = _outcome(clf, y)
        del clf
    lines = [
        f"{counted(found['outcome']['found'], 'label')} predicted, with a mean confidence of "
        f"{100 * found['outcome']['mean_confidence']:.1f} %.",
        f"Written to {args.out}: {counted(n_parts, 'Parquet file')}.",
        *LEFT_OUT,
    ]
    if show:
        print("\n" + "\n".join(lines))
    return found | {"left_out": list(LEFT_OUT), "files": [str(path) for path in sorted(args.out.iterdir())]}


def _check_views(views: list[ParquetView], args: argparse.Namespace) -> ParquetView:
    """The view that has the labels; an error if there is not exactly one, or the views have different lengths."""
    lengths = {view.name: view.n_rows for view in views}
    if len(lengths) < len(views):
        raise CommandError(f"two views have the same name: {[view.name for view in views]}; use NAME=FILE")
    if len(set(lengths.values())) > 1:
        raise CommandError(f"views of different length: {lengths}; --dask needs the same samples in the same order")
    _check_keys(views)
    labelled = [view for view in views if view.label_column is not None]
    if len(labelled) != 1:
        column = args.label_column or "label"
        raise CommandError(f"the column {column!r} with the labels must be in one view; it is in {len(labelled)}")
    return labelled[0]


def _check_keys(views: list[ParquetView]) -> None:
    """Refuse a column that several views have and that numbers the samples: it would be used as a feature."""
    for first, second in combinations(views, 2):
        for name in sorted({*first.columns} & {*second.columns}):
            if first.names_samples(name) and second.names_samples(name):
                raise CommandError(
                    f"the column {name!r} of {first.name} and {second.name} has a different whole number in every row: "
                    f"if it names the samples, use --id {name}; if not, rename it in one of them, or --drop {name}"
                )


def _check_ids(views: list[ParquetView]) -> None:
    """Refuse views whose ids differ in some row."""
    named = [view for view in views if view.id_column is not None]
    for view in named[1:]:
        first = named[0].texts(str(named[0].id_column))
        same = first == view.texts(str(view.id_column)).rechunk({0: first.chunks[0]})
        if not bool(same.all().compute()):
            raise CommandError(
                f"{named[0].name} and {view.name} have different ids in some row; --dask needs the same samples in the "
                "same order"
            )


def _describe(views: list[ParquetView], labelled: ParquetView) -> list[str]:
    lines = [f"{counted(views[0].n_rows, 'sample')} in {counted(len(views), 'view')}, read by the workers."]
    for view in views:
        unused = f"; not used: {', '.join(view.unused)}" if view.unused else ""
        lines.append(f"  {view.name}: {counted(len(view.columns), 'column')} of numbers{unused}")
    lines.append(f"Labels: the column {labelled.label_column!r} of {labelled.name}.")
    return lines


def _labels(view: ParquetView, unlabelled: str | None) -> NDArray:
    """The labels of all samples; None where there is none, and −1 among whole numbers."""
    given = view.texts(str(view.label_column)).compute()
    if unlabelled is not None:
        given[np.array([str(label) == unlabelled for label in given])] = None
    given[np.array([isinstance(label, str) and not label.strip() for label in given])] = None
    given[np.array([isinstance(label, float) and np.isnan(label) for label in given])] = None
    known = np.array([label is not None for label in given])
    if known.all() and all(isinstance(label, int) for label in given):
        return given.astype(np.int64)
    return given


def _write(clf: Any, views: list[ParquetView], y: NDArray, stage: Path) -> int:
    """Have the workers write the answers, a Parquet file for each block; the number of files."""
    delayed = import_optional("dask", purpose="--dask", extra="dask").delayed
    chunks = clf.label_distributions_.chunks[0]
    ends = np.cumsum(chunks)
    given = np.array([label is not None and label != -1 for label in y])
    unreached = np.zeros(len(y), dtype=bool)
    unreached[clf.unreached_] = True
    named = next((view for view in views if view.id_column is not None), None)
    da = import_optional("dask.array", purpose="--dask", extra="dask")
    column = "id" if named is None else str(named.id_column)
    ids = da.arange(1, len(y) + 1, chunks=(chunks,)) if named is None else named.texts(column).rechunk({0: chunks})
    blocks = zip(
        ids.to_delayed(), clf.label_distributions_.to_delayed()[:, 0], clf.transduction_.to_delayed(), strict=True
    )
    tasks = []
    for number, (names, distributions, labels) in enumerate(blocks):
        rows = slice(int(ends[number] - chunks[number]), int(ends[number]))
        flags = {"given": given[rows], "unreached": unreached[rows]}
        path = str((stage / f"part-{number:05d}.parquet").absolute())
        tasks.append(delayed(write_part)(path, column, names, distributions, labels, clf.classes_, flags))
    return len(import_optional("dask", purpose="--dask", extra="dask").compute(*tasks))


def _outcome(clf: Any, y: NDArray) -> dict[str, Any]:
    unlabelled = np.array([label is None or label == -1 for label in y])
    da = import_optional("dask.array", purpose="--dask", extra="dask")
    confidence = clf.label_distributions_.max(axis=1)
    sums = (confidence * da.from_array(unlabelled, chunks=confidence.chunks)).sum()
    return {
        "found": int(unlabelled.sum()),
        "mean_confidence": round(float(sums.compute()) / max(int(unlabelled.sum()), 1), 6),
        "unreached": len(clf.unreached_),
        "iterations": int(clf.n_iter_),
        "converged": bool(clf.converged_),
    }
