"""``lmssc demo``: label digits, or write them as example files."""

import argparse
from pathlib import Path
from typing import Any

from lmssc.cli.shared_options import add_command, add_out_folder, add_quiet, add_seed
from lmssc.io.errors import CommandError


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = add_command(
        commands,
        "demo",
        run=run,
        help="label 1,797 digits from 5 %% of the labels, compare methods, draw figures",
        description=(
            "Hold out most labels of the 1,797 handwritten digits that come with scikit-learn, let LMSSC and three\n"
            "simple methods predict them, and score the predictions on the held-out labels. Writes the scores,\n"
            "LMSSC's labels and figures into a folder. Needs no network."
        ),
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="share of the labels of each class that is given, between 0 and 1 (default: %(default)s)",
    )
    add_seed(parser, "random seed: decides the order of the rows and which labels are given")
    add_out_folder(parser, "lmssc-demo", "the files")
    parser.add_argument(
        "--files",
        type=Path,
        metavar="FOLDER",
        help="only write the digits as files in several formats, to try 'lmssc classify' on",
    )
    parser.add_argument("--no-figures", action="store_true", help="draw no figures")
    add_quiet(parser)


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
                f"Written to {args.files}: four views of the digits, one file each, labels.csv with {args.rate:.0%} of "
                f"the labels,\nand truth.csv with all of them, to compare. Now run:\n\n  {command}"
            )
        return 0
    prepare_folder(args.out)
    demo.run(task, args.out, figures=not args.no_figures, quiet=args.quiet)
    return 0
