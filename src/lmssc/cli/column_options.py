"""What commands can be told about the columns of their files."""

import argparse
import os
from typing import TYPE_CHECKING

from lmssc.cli.shared_options import add_repeated, split_names
from lmssc.io.errors import CommandError
from lmssc.persistence.atomic import readable

if TYPE_CHECKING:
    from lmssc.io.options import Options

KINDS = ("number", "category", "text")  # the same as lmssc.io.column_types.TYPES, which is slow to import
# How a column of AnnData or MuData begins, which --labels takes beside files.
COLUMNS_OF_CELLS = ("obs:", "mod:")


def add_labels(parser: argparse.ArgumentParser) -> None:
    """Add --labels."""
    about = "file with the known labels; repeat to use several files. For AnnData, also a column: obs:cell_type"
    add_repeated(parser, "--labels", "FILE", about)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the columns are."""
    parser.add_argument(
        "--label-column",
        type=readable,
        metavar="NAME",
        help='column with the labels (default: "label"); obs:NAME in AnnData',
    )
    parser.add_argument(
        "--unlabelled",
        type=readable,
        metavar="TEXT",
        help="text that marks unlabelled samples, besides a blank cell (default: NA, NaN, null, None, N/A and the "
        "like, and -1)",
    )
    _add_views(parser)
    add_repeated(parser, "--transpose", "VIEW", "view whose file or matrix has one column per sample", type=readable)
    kinds = "say what columns hold: number, category or text, such as 'zip,ward=category'"
    add_repeated(parser, "--type", "NAMES=KIND", kinds)
    parser.add_argument(
        "--impute",
        choices=("median", "mean", "none"),
        default="median",
        help="fill blank cells with this value of their column; 'none' makes them an error (default: %(default)s)",
    )


def _add_views(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which columns are a view."""
    about = "make a view of some columns, such as 'image=px*,width' or 'bands=b1..b20'; repeat for each view"
    add_repeated(parser, "--view", "NAME=COLUMNS", about, type=readable)
    parser.add_argument(
        "--views",
        dest="matrices",
        type=readable,
        default="",
        metavar="NAMES",
        help="matrices or columns of the file to use as views, such as 'obsm:X_pca,X'",
    )
    parser.add_argument(
        "--prefix-sep",
        type=readable,
        metavar="TEXT",
        help="group columns into views by the part of their name before TEXT (such as _)",
    )


def check_columns(args: argparse.Namespace) -> None:
    """Raise `CommandError` for options that contradict each other."""
    if args.prefix_sep == "":
        raise CommandError("--prefix-sep must not be empty")
    if args.prefix_sep and (args.view or args.matrices):
        raise CommandError("--prefix-sep and --view cannot be combined; use one of them")


def label_files(args: argparse.Namespace) -> list[str]:
    """The files that --labels names; for AnnData it may name a column of obs instead."""
    return [name for name in args.labels if not _is_column(name)]


def _is_column(name: str) -> bool:
    return name.startswith(COLUMNS_OF_CELLS) and not os.path.exists(name)


def read_options(args: argparse.Namespace) -> "Options":
    """What the user said about the files: the options of `add_columns` and of `shared_options.add_reading`."""
    from lmssc.io.options import Options

    columns = [name for name in args.labels if _is_column(name)]
    if len(columns) > 1 or (columns and args.label_column):
        raise CommandError(f"--labels {columns[-1]}: labels are in one column; name it once")
    return Options(
        id_column=args.id,
        label_column=readable(columns[0]) if columns else args.label_column,
        delimiter=args.delimiter,
        selections=_selections(args.view) | {name: name for name in split_names(args.matrices)},
        prefix_separator=args.prefix_sep,
        drop=split_names(args.drop),
        transpose=args.transpose,
        decimal=args.decimal,
        types=_types(args.type),
        impute=None if args.impute == "none" else args.impute,
    )


def _selections(given: list[str]) -> dict[str, str]:
    selections: dict[str, str] = {}
    for text in given:
        name, equals, columns = (part.strip() for part in text.partition("="))
        if not (name and equals and columns and all(part.strip() for part in columns.split(","))):
            raise CommandError(f"--view {text!r} must be NAME=COLUMNS, such as 'image=px*,width'")
        if name in selections:
            raise CommandError(f"--view {name} is given twice; separate its columns by commas")
        selections[name] = columns
    return selections


def _types(given: list[str]) -> dict[str, str]:
    types: dict[str, str] = {}
    for text in given:
        names, equals, kind = (part.strip() for part in text.rpartition("="))
        if not (names and equals and kind in KINDS):
            raise CommandError(f"--type {text!r} must be NAMES=KIND, where KIND is {', '.join(KINDS)}")
        types |= dict.fromkeys(split_names(names), kind)
    return types
