"""``lmssc classify``."""

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from lmssc.io.errors import CommandError
from lmssc.persistence.atomic import readable

KINDS = ("number", "category", "text")  # lmssc.io.column_types.TYPES, which takes long to import

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
  lmssc classify image.csv text.csv --labels labels.csv --labels result/to_label.csv --out result --force
      once more, with the labels that you typed into to_label.csv; that file is kept as it is

views:
  A file has a row for each sample. Formats, by the ending of the name:
    .csv .tsv            first line: names of the columns (also .csv.gz, ...; --delimiter for others)
    .parquet .feather    needs pip install 'lmssc[files]'
    .npy .npz            plain arrays; every matrix in an .npz is a view
    .mat                 every matrix, and every matrix in a cell; 7.3 needs 'lmssc[files]'
    .svm .mtx            SVMlight and MatrixMarket, for sparse views (also .gz)
  The columns of numbers of a file are a view, named like the file (NAME=FILE names it otherwise);
  each column of text is a view of its own. A packed file may unpack to 1 GiB, or to 100 times its size up to
  64 GiB; the environment variable LMSSC_MAX_UNPACKED (16G) sets another limit.

columns of tables, whatever the format; what was understood tells of all but plain numbers and text:
  numbers              also 1,234.50, 12%, $12 and 5 kg, if the unit is the same in all cells. In files with
                       ';' or tabs between the cells decimal commas are seen; --decimal says it
  yes/no, true/false   1 and 0, among the numbers
  categories           few values, each in several rows: a feature for each of the 20 most frequent
  text                 a view of its words
  dates, ids           left out, as are columns with one value only
  --type NAMES=KIND says otherwise: number, category or text. A blank cell is filled in with the median of
  its column (--impute).

rows:
  If files have a column "id" (or the one that --id names), rows with the same id are the same sample,
  in whatever order. So are they if files share another column in which no two rows are alike. A sample may
  be missing from some views: no row, or a row of blanks. Files without ids have to have the same samples in
  the same order.

labels:
  --labels FILE with columns id and label, for some samples; or a column of a view (--label-column, or
  one that is named "label"), blank where the label is not known. -1 among whole numbers is "not known".
  --labels may be given more than once; a sample with two different labels is an error.

what is written, all of it together or nothing:
  predictions.csv   id (by the name that it has in the files), label, confidence, runner_up, p_<class> for
                    each class, given, unreached
  to_label.csv      what to label next, most useful first: 100 samples (of more than 100,000 fewer, down to 20).
                    Type labels into it and give it to --labels. --force does not replace one with labels in
                    it: the next is to_label-2.csv
  model.lmssc       for 'lmssc predict', 'lmssc info' and lmssc.load in Python
  report.html       how sure it is and why, to be opened in a browser
  A file that is read is never replaced, not even with --force.
  In the CSV files an id or label that a spreadsheet would compute (=A1) has an apostrophe before it, which
  is taken off when it is read again.

exit codes: 0 all is written; 2 something is wrong with the call or a file (one line says what and
where); 3 the output cannot be written; 130 stopped by Ctrl-C, 143 by SIGTERM: nothing is half-written."""


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
    parser.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="FILE",
        help="file with the labels that are known; if given more than once, all of them count",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the results; new or empty (not needed with --dry-run)"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace results that are in the folder already, but no list with labels in it",
    )
    parser.add_argument(
        "--label-column", type=readable, metavar="NAME", help='column with the labels (default: "label")'
    )
    parser.add_argument(
        "--unlabelled",
        type=readable,
        metavar="TEXT",
        help="what is written where a label is not known, besides nothing (default: NA, NaN, null, None, "
        "N/A and the like, and -1)",
    )
    parser.add_argument(
        "--view",
        type=readable,
        action="append",
        default=[],
        metavar="NAME=COLUMNS",
        help="make a view of some columns of a file, such as 'image=px*,width' or 'bands=b1..b20'; once for each view",
    )
    parser.add_argument(
        "--prefix-sep",
        type=readable,
        metavar="TEXT",
        help="columns of a file are of the view that their name starts with, up to TEXT (such as _)",
    )
    parser.add_argument(
        "--transpose",
        type=readable,
        action="append",
        default=[],
        metavar="VIEW",
        help="this matrix has a column for each sample",
    )
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="NAMES=KIND",
        help="say what columns are, where it was not understood: number, category or text, such as 'zip,ward=category'",
    )
    parser.add_argument(
        "--impute",
        choices=("median", "mean", "none"),
        default="median",
        help="what a blank cell is filled in with, of its column; none: refuse it (default: %(default)s)",
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
        help="fits at the same time, for --cv and the report; -1 for one a core (default: %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what was understood of the files")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Describe what `classify` and `predict` have in common."""
    parser.add_argument(
        "--id", type=readable, metavar="NAME", help='column with the ids of the samples (default: "id")'
    )
    parser.add_argument(
        "--drop",
        type=readable,
        default="",
        metavar="NAMES",
        help="columns that are not to be used, with commas between",
    )
    parser.add_argument(
        "--delimiter",
        metavar="WORD",
        help="between cells of text files: comma, tab, semicolon or bar (default: by ending; a semicolon is seen)",
    )
    parser.add_argument(
        "--decimal",
        choices=(".", ","),
        metavar="MARK",
        help="'.' or ',': what stands before decimals in text files; the other may set thousands apart (default: a "
        "point, or a comma where something else is between the cells and all numbers have it)",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to print what was understood and found"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    _check(args)
    from lmssc.cli.classify_files import MODEL, PREDICTIONS, REPORT, classify
    from lmssc.cli.console import print_json
    from lmssc.core.progress import progress_bar
    from lmssc.io.classify_input import as_data, describe, read_problem
    from lmssc.io.staging import refuse_inputs
    from lmssc.io.view_columns import Options, split_argument

    if args.out is not None:  # a list of what to label is kept anyway, if something is typed into it
        inputs = [*(split_argument(view)[1] for view in args.views), *args.labels]
        refuse_inputs([args.out / name for name in (PREDICTIONS, MODEL, REPORT)], inputs)
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
            decimal=args.decimal,
            types=_types(args.type),
            impute=None if args.impute == "none" else args.impute,
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
                command=_again(args),
                search=args.cv,
                seed=args.seed,
                jobs=args.jobs,
                force=args.force,
                show=texts,
            )
            result |= {"outcome": outcome.data, "files": [readable(str(path)) for path in outcome.files]}
            if texts:
                print("\n" + "\n".join(outcome.lines))
                print(f"Written to {args.out}: {', '.join(path.name for path in outcome.files)}.")
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(one_line(error)) from error
    except MemoryError as error:
        raise CommandError("not enough memory for these files") from error
    if args.format == "json" and not args.quiet:
        print_json(result)
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


def _again(args: argparse.Namespace) -> str:
    """What to type to run it again: in the folder where it ran, over the results that are there then."""
    options = [] if args.force else ["--force"]
    words = [*args.argv[:1], *options, *args.argv[1:]] if "--" in args.argv else [*args.argv, *options]
    return f"cd {shlex.quote(os.getcwd())} && {shlex.join([*_program(), *words])}"


def _program() -> list[str]:
    """How the command was started: `lmssc`, unless that would not find this one."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return [sys.executable, "-m", "lmssc"]
    found = shutil.which("lmssc")
    if called.stem == "lmssc" and called.exists() and (found is None or not called.samefile(found)):
        return [str(called.absolute())]
    return ["lmssc"]


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


def _types(given: list[str]) -> dict[str, str]:
    types: dict[str, str] = {}
    for text in given:
        names, equals, kind = (part.strip() for part in text.rpartition("="))
        if not (names and equals and kind in KINDS):
            raise CommandError(f"--type {text!r} has to be NAMES=KIND, where KIND is {', '.join(KINDS)}")
        types |= dict.fromkeys(_names(names), kind)
    return types


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
