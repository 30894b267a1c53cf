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
  lmssc compare digits    all methods on the same splits, with a paired test

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
    from lmssc.io import prepare_folder

    try:
        task = demo.make_task(args.rate, args.seed)
    except ValueError as error:
        raise CommandError(error) from error
    prepare_folder(args.out)
    demo.run(task, args.out, figures=not args.no_figures, quiet=args.quiet)
    return 0


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare methods on the same random splits of your data",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Hide most labels, let every method find them, score the answers on the hidden labels, and repeat\n"
            "with other labels. All methods get the same splits of shuffled rows. Every finished run is kept\n"
            "in the folder --out at once: stop it and start it again, and it does only what is missing."
        ),
        epilog=(
            "examples:\n"
            "  lmssc compare digits --repeats 3\n"
            "  lmssc compare mydata.npz --methods LMSSC 1-NN --rates 0.05 0.1 --jobs 2\n\n"
            "mydata.npz has the labels of all samples as 'y', and every 2-D array in it is a view:\n"
            "  numpy.savez('mydata.npz', image=A, text=B, y=labels)"
        ),
    )
    parser.add_argument("data", metavar="DATA", help="'digits', 'synthetic', or an .npz file (see below)")
    parser.add_argument(
        "--methods", nargs="+", metavar="NAME", help="methods to compare (default: all; --list-methods names them)"
    )
    parser.add_argument("--list-methods", action=_ListMethods, nargs=0, help="print the names of the methods and stop")
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=[0.1, 0.2, 0.3, 0.5],
        metavar="SHARE",
        help="shares of the labels that are given (default: 0.1 0.2 0.3 0.5)",
    )
    parser.add_argument(
        "--repeats", type=int, default=20, metavar="N", help="splits at each rate (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the first split (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at the same time (default: %(default)s)")
    parser.add_argument(
        "--metric",
        nargs="+",
        default=["accuracy", "balanced_accuracy"],
        metavar="NAME",
        help="tables to print: accuracy, balanced_accuracy, macro_f1, log_loss, calibration_error "
        "(default: the first two)",
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("lmssc-compare"),
        metavar="FOLDER",
        help="where the runs and runs.csv go (default: %(default)s)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=_run_compare)


class _ListMethods(argparse.Action):
    """Print the names of the methods that can be compared."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from lmssc.experiments.methods import NAMES

        print("\n".join(NAMES))
        parser.exit()


def _run_compare(args: argparse.Namespace) -> int:
    from lmssc.experiments.compare import compare
    from lmssc.experiments.data import load_for_comparison
    from lmssc.experiments.scores import METRICS
    from lmssc.io import prepare_folder

    try:
        unknown = sorted(set(args.metric) - set(METRICS))
        if unknown:
            raise ValueError(f"--metric {unknown[0]} is not one of {', '.join(METRICS)}")
        views, y = load_for_comparison(args.data)
        prepare_folder(args.out)
        result = compare(
            views,
            y,
            args.methods,
            args.rates,
            args.repeats,
            args.seed,
            args.jobs,
            out=args.out,
            progress=not args.quiet and sys.stderr.isatty(),
        )
    except (ValueError, TypeError) as error:
        raise CommandError(error) from error
    if not args.quiet:
        for metric in args.metric:
            print(result.table(metric, markdown=args.markdown), end="\n\n")
        print("* best mean; ~ not told from it by a paired t-test (p >= 0.05)")
        failed = [record for record in result.records if record["error"]]
        for record in failed[:5]:
            print(f"failed: {record['method']}, {record['rate']:g}, split {record['repeat']}: {record['error']}")
        print(f"{len(result.records)} runs ({len(failed)} failed) in {args.out / 'runs.csv'}")
    return 0


COMMANDS = (_add_demo, _add_compare)
