"""Options that several commands share, each described once, and what their values are checked for."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmssc.io.errors import CommandError
from lmssc.persistence.atomic import readable
from lmssc.persistence.signals import Stopped, exit_code

EXIT_CODES = """\
exit codes:
  0    everything is written
  2    something is wrong with the command or a file; one line says what and where
  3    the output cannot be written
  130  stopped by Ctrl-C, 143 by SIGTERM; no file is left half-written"""


def add_command(commands: Any, name: str, *, run: Callable[[argparse.Namespace], int], **about: Any) -> Any:
    """Add a command whose description and epilog keep their line breaks.

    Parameters
    ----------
    commands : subparsers
        What `add_subparsers` gave.
    name : str
        Name of the command.
    run : callable
        Carries it out and returns the exit code.
    about : dict
        Further arguments of `add_parser`: help, description, epilog.

    Returns
    -------
    ArgumentParser
    """
    parser = commands.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter, **about)
    parser.set_defaults(run=run)
    return parser


def add_repeated(parser: argparse.ArgumentParser, name: str, metavar: str, about: str, **options: Any) -> None:
    """Add an option that may be repeated; its values are a list."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=about, **options)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors")


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add --format."""
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="print text for people or JSON for programs (default: %(default)s)",
    )


def add_jobs(parser: argparse.ArgumentParser, what: str = "runs") -> None:
    """Add --jobs; `check_jobs` checks it."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help=f"number of {what} to run in parallel; -1 for one per core (default: %(default)s)",
    )


def check_jobs(args: argparse.Namespace) -> None:
    """Raise `CommandError` for a number of jobs that makes no sense."""
    if args.jobs == 0:
        raise CommandError("--jobs must be 1 or more, or -1 for one per core; got 0")


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --seed."""
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=f"{what} (default: %(default)s)")


def add_show(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --show."""
    add_repeated(parser, "--show", "KIND=WHAT", f"{what}; may be repeated", type=readable)


def add_rates(parser: argparse.ArgumentParser, default: Sequence[float]) -> None:
    """Add --rates."""
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=list(default),
        metavar="SHARE",
        help=f"shares of the labels that the methods see (default: {' '.join(f'{rate:g}' for rate in default)})",
    )


def add_repeats(parser: argparse.ArgumentParser, default: int) -> None:
    """Add --repeats."""
    parser.add_argument(
        "--repeats",
        type=int,
        default=default,
        metavar="N",
        help="number of random splits for each share of labels (default: %(default)s)",
    )


def add_methods(parser: argparse.ArgumentParser, names: Callable[[], Sequence[str]]) -> None:
    """Add --methods, and --list-methods, which prints what `names` returns."""

    class ListMethods(argparse.Action):
        """Print the names of the methods."""

        def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
            print("\n".join(names()))
            parser.exit()

    parser.add_argument(
        "--methods", nargs="+", metavar="NAME", help="methods to run (default: all; see --list-methods)"
    )
    parser.add_argument("--list-methods", action=ListMethods, nargs=0, help="print the names of the methods and exit")


def add_out_folder(parser: argparse.ArgumentParser, default: str, what: str) -> None:
    """Add --out, the folder for the results."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(default),
        metavar="FOLDER",
        help=f"folder for {what}; created if needed (default: %(default)s)",
    )


@dataclass
class Stop:
    """Exit code of a command that can be stopped: 0 unless a signal stopped it."""

    exit_code: int = 0


@contextmanager
def resumable(out: Path) -> Iterator[Stop]:
    """End quietly on Ctrl-C or SIGTERM, with a line that says where the finished runs are.

    Parameters
    ----------
    out : Path
        Folder of the runs.

    Yields
    ------
    Stop
    """
    stop = Stop()
    try:
        yield stop
    except (KeyboardInterrupt, Stopped) as error:
        print(
            f"\nlmssc: interrupted; finished runs are saved in {out}; run the same command again to continue",
            file=sys.stderr,
        )
        stop.exit_code = exit_code(error)


def add_graphs(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option for files of links."""
    parser.add_argument(
        "--graph",
        action="append",
        default=[],
        metavar="FILE",
        help=f"{what}: a table with the columns source and target (ids) and, for weighted links, weight; or a "
        "matrix (.npz, .mtx and the like). Give FILE or NAME=FILE; repeat for each graph",
    )


def add_reading(parser: argparse.ArgumentParser, *, formats: bool = True) -> None:
    """Add what commands can be told about their input files, --quiet, and --format if they print JSON as well."""
    parser.add_argument("--id", type=readable, metavar="NAME", help='column with the sample ids (default: "id")')
    parser.add_argument(
        "--drop", type=readable, default="", metavar="NAMES", help="columns to ignore, separated by commas"
    )
    parser.add_argument(
        "--delimiter",
        metavar="WORD",
        help="delimiter of text files: comma, tab, semicolon or bar (default: by file ending; semicolons are detected)",
    )
    parser.add_argument(
        "--decimal",
        choices=(".", ","),
        metavar="MARK",
        help="decimal mark of text files, '.' or ','; the other one may separate thousands (default: a point; decimal "
        "commas are detected in files whose delimiter is not a comma)",
    )
    if formats:
        add_format(parser)
    add_quiet(parser)


def split_names(given: str) -> list[str]:
    """Split names separated by commas.

    Examples
    --------
    >>> split_names("a, b,,")
    ['a', 'b']
    """
    return [name.strip() for name in given.split(",") if name.strip()]


def one_line(error: BaseException) -> str:
    r"""Return the message of an error in one line.

    Examples
    --------
    >>> one_line(ValueError("one\n  two"))
    'one two'
    """
    return " ".join(str(error).split())
