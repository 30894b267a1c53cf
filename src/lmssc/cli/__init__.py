"""The command ``lmssc``: its parser, and what becomes of errors. ``lmssc.cli.commands`` lists the commands."""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from lmssc.cli.commands import COMMANDS, CommandError
from lmssc.cli.console import safe_streams
from lmssc.io.errors import OutputError
from lmssc.persistence.signals import Stopped, exit_code, stop_by_signals

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
  lmssc demo --files DIR  write the digits as files, to try the next two on
  lmssc classify --help   labels for your own files: CSV, Parquet, MATLAB, ...
  lmssc predict --help    labels for new samples, by the model that classify wrote
  lmssc compare digits    all methods on the same splits, with a paired test
  lmssc datasets          data sets with several views, and where they are
  lmssc reproduce --help  the results of the paper that this is built on, run again

in Python:
  from lmssc import LMSSC
  clf = LMSSC().fit([X1, X2], y)     # y: -1 where the label is not known
  clf.transduction_                  # a label for every sample"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments after the program's name; those of the process if None.

    Returns
    -------
    int
        0 if all went well, 2 for a call that cannot be carried out, 3 for output that cannot be written, 130 after
        Ctrl-C, 143 after SIGTERM.
    """
    with safe_streams() as out:
        code = _run(argv)
        out.flush()
        if out.error is not None and code == 0:  # files are written, but what was to be printed is not
            print(f"lmssc: error: stdout cannot be written to: {out.error.strerror}", file=sys.stderr)
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
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and stop")
    parser.set_defaults(run=_help_of(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
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
