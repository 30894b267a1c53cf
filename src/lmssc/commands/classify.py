"""``lmssc classify``."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from lmssc.commands.errors import CommandError

EPILOG = """\
examples:
  lmssc demo --files digits
  lmssc classify digits/views/* --labels digits/labels.csv --out result
      files to try it on, and the call that goes with them

  lmssc classify image.csv text.csv --labels labels.csv --out result
      two views, a file each, and a file with the columns id and label for some of the samples
  lmssc classify all.csv --label-column kind --view 'image=px*' --view 'sound=f1..f40' --out result
      one file: views by column names (* for anything, A..B for a range), labels in the column "kind"
  lmssc classify all.parquet --prefix-sep _ --out result
      columns image_1, image_2, text_1, ... are views "image" and "text"; labels in the column "label"
  lmssc classify reviews.csv --out result --dry-run
      say what would be done; a column of text becomes a view of its words, with tf-idf weights
  lmssc classify features.mat --label-column y --transpose X1 --out result
      the matrices in a MATLAB file, with X1 turned round; y has 0, 1, 2, ... and -1 where not known

views:
  A file has a row for each sample. Formats, by the ending of the name:
    .csv .tsv            first line: names of the columns (also .csv.gz, ...; --delimiter for others)
    .parquet .feather    needs pip install 'lmssc[files]'
    .npy .npz            plain arrays; every matrix in an .npz is a view
    .mat                 every matrix, and every matrix in a cell; 7.3 needs 'lmssc[files]'
    .svm .mtx            SVMlight and MatrixMarket, for sparse views (also .gz)
  The columns of numbers of a file are a view, named like the file (NAME=FILE names it otherwise);
  each column of text is a view of its own.

rows:
  If files have a column "id" (or the one that --id names), rows with the same id are the same sample,
  in whatever order. A sample may be missing from some views: no row, or a row of blanks. Files without
  ids have to have the same samples in the same order.

labels:
  --labels FILE with columns id and label, for some samples; or a column of a view (--label-column, or
  one that is named "label"), blank where the label is not known. -1 among whole numbers is "not known".

what is written, all of it together or nothing:
  predictions.csv   id, label, confidence, runner_up, p_<class> for each class, given, unreached
  to_label.csv      what to label next, most useful first: 100 samples (of more than 100,000 fewer, down to 20)
  model.lmssc       for 'lmssc predict', 'lmssc info' and lmssc.load in Python
  report.html       how sure it is and why, to be opened in a browser

exit codes: 0 all is written; 2 something is wrong with the call or a file (one line says what and
where); 3 the output cannot be written; 130 stopped by Ctrl-C."""


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "classify",
        help="label every sample in your files from a few labels",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Label every sample in files with several views of the samples, from labels for a few of them.\n"
            "Says what it understood of the files before it starts."
        ),
        epilog=EPILOG,
    )
    parser.add_argument("views", nargs="+", metavar="VIEW", help="a file, or NAME=FILE; see 'views' below")
    parser.add_argument("--labels", metavar="FILE", help="file with the labels that are known")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the results; new or empty (not needed with --dry-run)"
    )
    parser.add_argument("--force", action="store_true", help="replace results that are in the folder already")
    parser.add_argument("--label-column", metavar="NAME", help='column with the labels (default: "label")')
    parser.add_argument(
        "--unlabelled",
        metavar="TEXT",
        help="what is written where a label is not known, besides nothing (default: NA, NaN, null, N/A, "
        "and -1 among whole numbers)",
    )
    parser.add_argument(
        "--view",
        action="append",
        default=[],
        metavar="NAME=COLUMNS",
        help="make a view of some columns of a file, such as 'image=px*,width' or 'bands=b1..b20'; once for each view",
    )
    parser.add_argument(
        "--prefix-sep",
        metavar="TEXT",
        help="columns of a file are of the view that their name starts with, up to TEXT (such as _)",
    )
    parser.add_argument(
        "--transpose", action="append", default=[], metavar="VIEW", help="this matrix has a column for each sample"
    )
    parser.add_argument("--cv", action="store_true", help="choose parameters by cross-validation on the labels; slower")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="decides which labels are held out (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="fits at the same time, for --cv and the report (default: %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what was understood of the files")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Describe what `classify` and `predict` have in common."""
    parser.add_argument("--id", metavar="NAME", help='column with the ids of the samples (default: "id")')
    parser.add_argument(
        "--drop", default="", metavar="NAMES", help="columns that are not to be used, with commas between"
    )
    parser.add_argument(
        "--delimiter",
        metavar="WORD",
        help="between cells of text files: comma, tab, semicolon or bar (default: by ending)",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to print what was understood and found"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    _check(args)
    from lmssc.bar import progress_bar
    from lmssc.files.problem import as_data, describe, read_problem
    from lmssc.files.run import MODEL, PREDICTIONS, REPORT, TO_LABEL, classify
    from lmssc.files.views import Options

    texts = args.format == "text" and not args.quiet
    try:
        options = Options(
            id_column=args.id,
            label_column=args.label_column,
            delimiter=args.delimiter,
            selections=_selections(args.view),
            prefix_separator=args.prefix_sep,
            drop=_names(args.drop),
            transpose=args.transpose,
        )
        with progress_bar("reading", show=texts):
            problem = read_problem(args.views, args.labels, options, args.unlabelled)
        understood = describe(problem)
        if texts:
            print("\n".join(understood), flush=True)
        result: dict[str, Any] = {"understood": as_data(problem)}
        if not args.dry_run:
            outcome = classify(
                problem,
                args.out,
                options=options,
                understood=understood,
                command=shlex.join(["lmssc", *args.argv]),
                search=args.cv,
                seed=args.seed,
                jobs=args.jobs,
                force=args.force,
                show=texts,
            )
            written = [args.out / name for name in (PREDICTIONS, TO_LABEL, MODEL, REPORT)]
            result |= {"outcome": outcome.data, "files": [str(path) for path in written]}
            if texts:
                print("\n" + "\n".join(outcome.lines))
                print(f"Written to {args.out}: {', '.join(path.name for path in written)}.")
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(one_line(error)) from error
    except MemoryError as error:
        raise CommandError("not enough memory for these files") from error
    if args.format == "json" and not args.quiet:
        print(json.dumps(result, ensure_ascii=False, indent=2))
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.out is None and not args.dry_run:
        raise CommandError("--out DIR is missing: the folder for the results")
    if args.seed < 0 or args.seed >= 2**32:
        raise CommandError(f"--seed must be from 0 to 2^32 - 1; got {args.seed}")
    if args.jobs == 0:
        raise CommandError("--jobs must be a number of fits, or -1 for one a core; got 0")
    if args.prefix_sep == "":
        raise CommandError("--prefix-sep must not be empty")
    if args.prefix_sep and args.view:
        raise CommandError("--prefix-sep and --view are two ways to say the same; take one")


def _selections(given: list[str]) -> dict[str, str]:
    selections: dict[str, str] = {}
    for text in given:
        name, equals, columns = (part.strip() for part in text.partition("="))
        if not (name and equals and columns and all(part.strip() for part in columns.split(","))):
            raise CommandError(f"--view {text!r} has to be NAME=COLUMNS, such as 'image=px*,width'")
        if name in selections:
            raise CommandError(f"--view {name} is given twice; put commas between its columns")
        selections[name] = columns
    return selections


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def one_line(error: BaseException) -> str:
    r"""The message of an error in one line.

    Examples
    --------
    >>> one_line(ValueError("one\n  two"))
    'one two'
    """
    return " ".join(str(error).split())
