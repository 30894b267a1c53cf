"""``lmssc classify``: its options, and what it prints."""

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmssc.cli.column_options import add_columns, add_labels, check_columns, label_files, read_options
from lmssc.cli.shared_options import (
    EXIT_CODES,
    add_command,
    add_graphs,
    add_jobs,
    add_reading,
    add_seed,
    add_show,
    check_jobs,
    one_line,
)
from lmssc.cli.view_files import naming_files
from lmssc.io.errors import CommandError
from lmssc.persistence.atomic import readable

if TYPE_CHECKING:
    from lmssc.cli.classify_run import Outcome
    from lmssc.io.in_place import TargetFile

DESCRIPTION = """\
Label every sample in your files, given labels for a few of them. Each file or group of columns
is a view of the samples. The command first prints how it understood the files."""
EPILOG = f"""\
examples:
  lmssc demo --files digits
  lmssc classify digits/views/* --labels digits/labels.csv --out result
      write example files, then label them

  lmssc classify image.csv text.csv --labels labels.csv --out result
      two views in two files; labels.csv has the columns id and label, for some of the samples
  lmssc classify all.csv --label-column kind --view 'image=px*' --view 'sound=f1..f40' --out result
      one file; views chosen by column names (* matches anything, A..B is a range), labels in the column "kind"
  lmssc classify all.parquet --prefix-sep _ --out result
      columns image_1, image_2, text_1, ... become the views "image" and "text"; labels in the column "label"
  lmssc classify papers.csv --graph cites.csv --labels labels.csv --out result
      links between the samples, such as citations; cites.csv has the columns source and target, which are ids
  lmssc classify features.csv --labels labels.csv --show 'image=photos/{{id}}.jpg' --out result
      a click on the map of the report shows the photo
  lmssc classify reviews.csv --out result --dry-run
      read the files, print how they were understood, and stop
  lmssc classify features.mat --label-column y --transpose X1 --out result
      the matrices of a MATLAB file, X1 transposed; y has the labels 0, 1, 2, ... and -1 for unlabelled samples
  lmssc classify cells.h5ad --views obsm:X_pca,X --label-column obs:cell_type --in-place
      AnnData: two matrices as views; the predicted labels are written into the file itself
  lmssc classify embeddings.npy --labels labels.csv --memory-limit 6GB --out result
      more samples than fit into memory: the fit runs on disk
  lmssc classify image=images/ text=texts.parquet --dask tcp://host:8786 --out /shared/result
      on a Dask cluster: reads folders of Parquet files and writes a folder of Parquet files
  lmssc classify image.csv text.csv --labels labels.csv --labels result/to_label.csv --out result --force
      run again with the labels that you typed into to_label.csv; that file is not overwritten

views:
  Each row of a file is a sample. The ending of the file name gives the format:
    .csv .tsv .tab       the first line names the columns (also .gz, .xz, .zst; see --delimiter)
    .jsonl .ndjson       a JSON object per line; its keys are the columns (also compressed)
    .parquet .pq         Parquet; needs pip install 'lmssc[files]'
    .feather .arrow      Feather; needs pip install 'lmssc[files]'
    .xlsx                the first sheet of a workbook; needs pip install 'lmssc[excel]'
    .h5ad .h5mu .zarr    AnnData and MuData: --views names X, layers:NAME, obsm:NAME, obsp:NAME (links), in MuData
                         mod:NAME or mod:NAME/obsm:NAME (default: X). Needs 'lmssc[files]', .zarr 'lmssc[zarr]'
    a folder             parts of embeddings in .npy files, or a data set that Hugging Face datasets saved
    .npy .npz            plain arrays; every matrix in an .npz file is a view
    .mat                 every matrix is a view, also inside cells; version 7.3 needs 'lmssc[files]'
    .svm .svmlight .libsvm .mtx
                         SVMlight and MatrixMarket, for sparse views (also compressed)
  The numeric columns of a file form one view, named after the file (or by NAME=FILE). Each column of
  text, and each column of lists of numbers (embeddings), is a view of its own. If a table has a column for
  each sample, transpose it with --transpose VIEW.
  A compressed file may unpack to 1 GiB, or to 100 times its size up to 64 GiB; the environment
  variable LMSSC_MAX_UNPACKED changes the limit (LMSSC_MAX_UNPACKED=16G).

columns of tables (the output reports everything except plain numbers and text):
  numbers              also 1,234.50, 12%, $12 and 5 kg, if all cells have the same unit. Decimal commas
                       are detected in files delimited by ';' or tabs; otherwise use --decimal
  times                5:00 or 1:05:00, as numbers of seconds
  yes/no, true/false   become 1 and 0
  categories           few values, each in several rows; the 20 most frequent values become one feature each.
                       Case does not matter; blank cells are a value of their own
  text                 word counts with tf-idf weights
  dates, ids, codes    not used, nor are columns with a single value
  --type NAMES=KIND (number, category or text) overrides this. Blank cells among numbers, and '?', '-' and
  '#DIV/0!', are filled in with the median of their column (--impute).

rows:
  Rows with the same "id" (or the same value in the column given by --id) are the same sample, in any order.
  Without such a column, lmssc uses another column that the files share, if its values are all different. A
  sample may be missing from some views: then it has no row there, or a blank one. Files without any ids must
  have the same samples in the same order.

links:
  --graph names a file of links between the samples, such as citations or friendships. A table has a line for
  each link: source and target, which are ids of samples, and a weight if links are weighted. If no columns have
  these names, the first two are used. Without ids, samples are numbered from 1. A matrix (.npz, .mtx, .npy) has
  a row and a column for each sample. lmssc learns from the data how much the links count.

labels:
  Labels are in --labels FILE, with the columns id and label for some of the samples, or in a column of a
  view (--label-column, or the column "label"), blank for unlabelled samples. Among whole numbers, -1 means
  unlabelled. With several --labels, all labels count; two different labels for one sample are an error.

output, written all at once or not at all:
  predictions.csv   one row per sample: id, label, confidence, runner_up, p_<class> for each class, given,
                    unreached, novelty (a p-value, small if the sample is unlike every class), because (the
                    ids of the three labelled samples that count most; not for very large data)
  check_labels.csv  given labels that are more likely wrong than right, if there are any
  to_label.csv      the samples to label next, most useful first: 100, or down to 20 for more than 100,000
                    samples. Type labels into it and pass it to --labels. --force never overwrites a list
                    with labels in it: the new list is then called to_label-2.csv
  model.lmssc       for 'lmssc predict', 'lmssc explain', 'lmssc info', and lmssc.load in Python
  report.html       how reliable the labels are, and why; open it in a browser. To find out, some labels are
                    held out and the model is fitted again, which takes up to three times as long as the fit;
                    --no-report skips it. A click on the map shows the columns of a sample, or what --show
                    names: image=... or text=... is a column, or files with {{id}} or {{column}} in their name,
                    which come from that folder only. The report holds up to 8 MB of small pictures, of the
                    least certain samples first. To shrink pictures it needs pip install 'lmssc[images]';
                    without it, only files of up to 64 kB are used
  An input file is never replaced, not even with --force.
  Ids and labels that a spreadsheet would evaluate (=A1) are written with an apostrophe in front, which lmssc
  removes when it reads the file.

{EXIT_CODES}"""


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    about = "label every sample in your files from a few labels"
    parser = add_command(commands, "classify", run=run, help=about, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("views", nargs="+", metavar="VIEW", help="a file, or NAME=FILE; see 'views' below")
    add_labels(parser)
    add_graphs(parser, "links between the samples")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the results; new or empty (not needed with --dry-run)"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace results that are already in the folder, except lists into which you typed labels",
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="write the labels into the .h5ad or .h5mu file itself, in one step; nothing else in it changes (--out is "
        "then not needed)",
    )
    add_show(parser, "what the report shows for a sample, such as 'image=photos/{id}.jpg' or text=body")
    parser.add_argument("--no-report", action="store_true", help="skip report.html and the refits that it needs")
    add_columns(parser)
    parser.add_argument("--cv", action="store_true", help="choose parameters by cross-validation on the labels; slower")
    add_seed(parser, "random seed: decides which labels are held out")
    add_jobs(parser, "fits (of --cv and the report)")
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="memory that the fit may use in addition to the data, such as 6GB. A fit that would need more runs on "
        "disk, in parts; report.html, check_labels.csv and some columns are then left out, and the output says so",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="fit on the Dask cluster whose scheduler is at ADDRESS, such as tcp://host:8786. Each VIEW is a Parquet "
        "file or a folder of them, with the same samples in the same order; one has the labels in a column. The "
        "workers write the answers to --out, a new folder that they must share with this machine",
    )
    parser.add_argument("--dry-run", action="store_true", help="print how the files were understood, and stop")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    _check(args)
    try:
        result = _classify(args, show=args.format == "text" and not args.quiet)
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(one_line(error)) from error
    except MemoryError as error:
        raise CommandError("not enough memory for these files") from error
    if args.format == "json" and not args.quiet:
        from lmssc.cli.console import print_json

        print_json(result)
    return 0


def _classify(args: argparse.Namespace, *, show: bool) -> dict[str, Any]:
    """Read, fit and write; print if `show`; return everything as data."""
    if args.dask:
        from lmssc.cli.classify_dask import classify_on_cluster

        return classify_on_cluster(args, show=show)
    from lmssc.core.progress import progress_bar
    from lmssc.io.labelled_files import as_data, describe, read_labelled_files
    from lmssc.io.sources import split_argument
    from lmssc.io.staging import refuse_inputs
    from lmssc.io.typed_labels import CHECK_LABELS, MODEL, PREDICTIONS, REPORT

    paths = [split_argument(view)[1] for view in args.views]
    if args.out is not None:  # a list with typed labels is kept anyway
        links = [split_argument(graph)[1] for graph in args.graph]
        written = [args.out / name for name in (PREDICTIONS, MODEL, REPORT, CHECK_LABELS)]
        refuse_inputs(written, [*paths, *links, *args.labels])
    target = _target(paths) if args.in_place else None
    options, labels = read_options(args), label_files(args)
    with progress_bar("reading", show=show):
        data = read_labelled_files(args.views, labels, options, args.unlabelled, args.graph, args.show)
    summary = describe(data)
    if show:
        print("\n".join(summary), flush=True)
    result: dict[str, Any] = {"understood": as_data(data)}
    if args.dry_run:
        return result
    from lmssc.cli.classify_run import classify  # slow to import; what was understood of the files comes first

    with naming_files(data.paths) as told:
        outcome = classify(
            data,
            args.out,
            options=options,
            summary=summary,
            told=told,
            command=_again(args),
            search=args.cv,
            memory_limit=args.memory_limit,
            seed=args.seed,
            jobs=args.jobs,
            force=args.force,
            report=not args.no_report,
            show=show,
            target=target,
        )
    if show:
        _print(outcome, args.out, target)
    return result | {
        "warnings": told,
        "outcome": outcome.data,
        "files": [readable(str(path)) for path in outcome.files],
    }


def _print(outcome: "Outcome", out: Path | None, target: "TargetFile | None") -> None:
    """Print what was found, and where it is written."""
    print("\n" + "\n".join(outcome.lines))
    if outcome.files:
        print(f"Written to {out}: {', '.join(path.name for path in outcome.files)}.")
    if target is not None:
        print(
            f"Written into {target.path}: lmssc_label, lmssc_confidence and lmssc_given in obs; lmssc_proba and "
            "X_lmssc in obsm; lmssc in uns."
        )


def _check(args: argparse.Namespace) -> None:
    if args.out is None and not args.dry_run and not args.in_place:
        raise CommandError("--out DIR is missing: the folder for the results")
    if args.dask:
        from lmssc.cli.classify_dask import check

        check(args)
    if args.memory_limit is not None:
        _check_memory_limit(args.memory_limit)
    if args.memory_limit and args.cv:
        raise CommandError("--memory-limit cannot be combined with --cv, whose fits run side by side in memory")
    if args.seed < 0 or args.seed >= 2**32:
        raise CommandError(f"--seed must be from 0 to 2^32 - 1; got {args.seed}")
    check_jobs(args)
    check_columns(args)


def _check_memory_limit(limit: str) -> None:
    from lmssc.core.parts.plan import parse_bytes

    try:
        valid = parse_bytes(limit) > 0
    except ValueError:
        valid = False
    if not valid:
        raise CommandError(f"--memory-limit must be an amount of memory, such as 6GB or 500MB; got {limit!r}")


def _target(paths: list[str]) -> Any:
    """The one file that answers are written into."""
    from lmssc.io.in_place import ENDINGS, TargetFile

    folders = [path for path in paths if path.lower().rstrip("/\\").endswith(".zarr")]
    if folders:
        raise CommandError(
            f"--in-place: {folders[0]} is a folder, which cannot be replaced in one step; write to --out, then "
            "lmssc.annotate(adata, lmssc.load('DIR/model.lmssc')) adds the answers in Python"
        )
    found = [path for path in paths if path.lower().endswith(ENDINGS)]
    if len(found) != 1:
        raise CommandError(f"--in-place needs one file that ends in {' or '.join(ENDINGS)}; there are {len(found)}")
    return TargetFile(found[0])


def _again(args: argparse.Namespace) -> str:
    """The command that runs this again, from the folder where it ran, replacing its results."""
    options = [] if args.force else ["--force"]
    words = [*args.argv[:1], *options, *args.argv[1:]] if "--" in args.argv else [*args.argv, *options]
    return f"cd {shlex.quote(os.getcwd())} && {shlex.join([*_program(), *words])}"


def _program() -> list[str]:
    """How to start this program: `lmssc`, unless that name finds another one."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return [sys.executable, "-m", "lmssc"]
    found = shutil.which("lmssc")
    if called.stem == "lmssc" and called.exists() and (found is None or not called.samefile(found)):
        return [str(called.absolute())]
    return ["lmssc"]
