"""The command ``lmssc``: one module per command, the parser, and how errors are reported.

In each module ``add`` describes the command to the parser and ``run`` carries it out. Slow imports are inside ``run``,
so that ``lmssc --help`` answers at once.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from lmssc.cli import (
    audit_command,
    classify_command,
    compare_command,
    datasets_command,
    demo_command,
    explain_command,
    info_command,
    label_command,
    predict_command,
    reproduce_command,
)
from lmssc.cli.console import safe_streams
from lmssc.io.errors import CommandError, OutputError
from lmssc.persistence.signals import Stopped, exit_code, stop_by_signals

COMMANDS = (
    demo_command,
    label_command,
    classify_command,
    predict_command,
    explain_command,
    info_command,
    compare_command,
    datasets_command,
    reproduce_command,
    audit_command,
)

DESCRIPTION = """\
Label every sample, given a few labels and several views of the same samples.

Say you have 2,000 documents as word counts and as links, or images as pixels and
as captions, and you know the class of 5 % of them. lmssc learns one latent
representation and one graph from all views, and gives every sample a label and a
probability for each class."""

EPILOG = """\
start here:
  lmssc demo              label 1,797 digits from 5 % of the labels; compare three simple methods
  lmssc demo --rate 0.01  the same with 1 % of the labels
  lmssc demo --files DIR  write the digits as example files for classify and predict
  lmssc label --help      label your own samples in the browser; every label updates all predictions
  lmssc classify --help   label the samples in your own files: CSV, Parquet, MATLAB, ...
  lmssc predict --help    label new samples with a model that classify wrote
  lmssc explain --help    say which given labels are behind an answer
  lmssc compare digits    compare all methods on the same splits, with a paired test
  lmssc datasets          list data sets with several views
  lmssc reproduce --help  rerun the experiments of the paper behind the method

in Python:
  from lmssc import LMSSC
  clf = LMSSC().fit([X1, X2], y)     # y: -1 for unlabelled samples
  clf.transduction_                  # a label for every sample"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        0 for success, 2 for a wrong command or file, 3 for output that cannot be written, 130 after Ctrl-C, 143 after
        SIGTERM.
    """
    with safe_streams() as out:
        code = _run(argv)
        out.flush()
        if out.error is not None and code == 0:  # the files are written, but not the text
            print(f"lmssc: error: cannot write to stdout: {out.error.strerror}", file=sys.stderr)
            return OutputError.exit_code
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        with stop_by_signals(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            args = _make_parser().parse_args(argv)
            args.argv = list(sys.argv[1:] if argv is None else argv)
            return args.run(args)
    except (CommandError, OSError) as error:
        print(f"lmssc: error: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, CommandError) else 2
    except (KeyboardInterrupt, Stopped) as error:
        print("\nlmssc: interrupted", file=sys.stderr)
        return exit_code(error)


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lmssc",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    parser.set_defaults(run=_help_of(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Show a warning in one line, without its place in the code."""
    print(f"lmssc: warning: {message}", file=sys.stderr)


def _help_of(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    def print_help(args: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    return print_help


class _PrintVersion(argparse.Action):
    """Print the installed version, looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from importlib import metadata

        try:
            print("lmssc", metadata.version("lmssc"))
        except metadata.PackageNotFoundError:
            print("lmssc, run from source, not installed")
        parser.exit()
