"""``lmssc demo``."""

import argparse
from pathlib import Path
from typing import Any

from lmssc.io.errors import CommandError


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "demo",
        help="label 1,797 digits from 5 %% labels, compare, draw figures",
        description=(
            "Hide most labels of 1,797 real digits that scikit-learn ships, let LMSSC and three simple "
            "methods guess them, and score the guesses on the hidden labels only. Needs no network. "
            "Writes the scores, LMSSC's labels and figures into a folder."
        ),
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="share of each class whose labels are given, between 0 and 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="decides the order of the rows and which labels are given (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("lmssc-demo"),
        metavar="FOLDER",
        help="where the files go; made if it does not exist (default: %(default)s)",
    )
    parser.add_argument(
        "--files",
        type=Path,
        metavar="FOLDER",
        help="instead write the digits as files in several formats, to try 'lmssc classify' on",
    )
    parser.add_argument("--no-figures", action="store_true", help="write no figures")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc.cli import digits_demo as demo
    from lmssc.persistence.atomic import prepare_folder

    try:
        task = demo.make_task(args.rate, args.seed)
    except ValueError as error:
        raise CommandError(error) from error
    if args.files is not None:
        from lmssc.cli.demo_files import write_files

        command = write_files(task, args.files, args.seed)
        if not args.quiet:
            print(
                f"Written to {args.files}: the digits in four views, a file each, labels.csv with {args.rate:.0%} of "
                f"the labels,\nand truth.csv with all, to compare. Now type:\n\n  {command}"
            )
        return 0
    prepare_folder(args.out)
    demo.run(task, args.out, figures=not args.no_figures, quiet=args.quiet)
    return 0
