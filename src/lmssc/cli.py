"""The command ``lmssc``. A new command is one function here that adds its parser to ``COMMANDS``.

Whatever takes time to import is imported by the command that needs it: ``lmssc --help`` answers at once.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Labels for every sample, from a few labels and several views of the same samples.

Say you have 2,000 documents as word counts and as links, or images as pixels and
as captions, and you know the class of 5 % of them. lmssc learns one latent
representation and one graph from all views, and gives every sample a label and a
distribution over the classes."""

EPILOG = """\
start here:
  lmssc demo              1,797 digits, 5 % of them labelled, against three simple methods
  lmssc demo --rate 0.01  the same with 1 % labelled
  lmssc demo --help       what else can be set

in Python:
  from lmssc import LMSSC
  clf = LMSSC().fit([X1, X2], y)     # y: -1 where the label is not known
  clf.transduction_                  # a label for every sample"""


class CommandError(Exception):
    """A call that cannot be carried out as it was made; shown in one line, without traceback."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments after the program's name; those of the process if None.

    Returns
    -------
    int
        0 if all went well, 2 for a call that cannot be carried out, 130 after Ctrl-C.
    """
    parser = _make_parser()
    args = parser.parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return args.run(args)
    except (CommandError, OSError) as error:
        print(f"lmssc: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nlmssc: interrupted", file=sys.stderr)
        return 130


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lmssc",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and stop")
    parser.set_defaults(run=_help_of(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add_command in COMMANDS:
        add_command(commands)
    return parser


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Show a warning in one line, without the place in the code that a user of the command has no use for."""
    print(f"lmssc: warning: {message}", file=sys.stderr)


def _help_of(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    def print_help(args: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    return print_help


class _PrintVersion(argparse.Action):
    """Print the installed version; looks it up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from importlib import metadata

        try:
            print("lmssc", metadata.version("lmssc"))
        except metadata.PackageNotFoundError:
            print("lmssc, run from its source without being installed")
        parser.exit()


def _add_demo(commands: Any) -> None:
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
    parser.add_argument("--no-figures", action="store_true", help="write no figures")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=_run_demo)


def _run_demo(args: argparse.Namespace) -> int:
    from lmssc import demo

    try:
        task = demo.make_task(args.rate, args.seed)
    except ValueError as error:
        raise CommandError(error) from error
    demo.prepare_folder(args.out)
    demo.run(task, args.out, seed=args.seed, figures=not args.no_figures, quiet=args.quiet)
    return 0


COMMANDS = (_add_demo,)
