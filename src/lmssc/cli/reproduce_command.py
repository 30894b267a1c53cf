"""``lmssc reproduce``."""

import argparse
import sys
from pathlib import Path
from typing import Any

from lmssc.io.errors import CommandError
from lmssc.persistence.signals import Stopped, exit_code


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        help="the paper's tables and figures again, beside its own numbers",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Run the paper's methods and a few simple ones on its four data sets, all on the same splits of\n"
            "shuffled rows, and write the accuracies beside those that the paper has, in three columns:\n"
            "  fixed         the defaults of the library\n"
            "  cv            parameters chosen by cross-validation on the labelled rows only\n"
            "  best-by-test  the best of a grid by test accuracy, as the paper's program does: an oracle,\n"
            "                because it needs the very labels that are to be found\n"
            "Every finished run is kept in the folder --out at once: stop it and start it again with the same\n"
            "words, and it does only what is missing. What earlier calls left in runs.csv there, of other data\n"
            "sets, methods or splits, takes part in the tables."
        ),
        epilog=(
            "examples:\n"
            "  lmssc reproduce --datasets sonar --repeats 3 --columns fixed --no-figures   a minute\n"
            "  lmssc reproduce --datasets sonar bbc --columns fixed --jobs 2  some minutes, and more for figures\n"
            "  lmssc reproduce --jobs 2                                       all of it: hours"
        ),
    )
    parser.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="of bbc, sonar, handwritten, reuters (default: all)"
    )
    parser.add_argument(
        "--methods", nargs="+", metavar="NAME", help="methods (default: all; --list-methods names them)"
    )
    parser.add_argument("--list-methods", action=_ListMethods, nargs=0, help="print the names of the methods and stop")
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=[0.1, 0.2, 0.3, 0.5],
        metavar="SHARE",
        help="shares of the labels that are given (default: those of the paper, 0.1 0.2 0.3 0.5)",
    )
    parser.add_argument(
        "--repeats", type=int, default=20, metavar="N", help="splits at each rate (default: %(default)s)"
    )
    parser.add_argument(
        "--columns", nargs="+", metavar="NAME", help="of fixed, cv, best-by-test, as above (default: all)"
    )
    parser.add_argument(
        "--tuned-repeats",
        type=int,
        default=5,
        metavar="N",
        help="how many of the splits cv and best-by-test use, because they take many fits (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="runs at the same time, -1 for one a core (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("lmssc-reproduce"),
        metavar="FOLDER",
        help="where the runs, tables, figures and report.html go (default: %(default)s)",
    )
    parser.add_argument("--no-figures", action="store_true", help="draw no figures; report.html is without them")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run)


class _ListMethods(argparse.Action):
    """Print the names of the methods of the reproduction."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from lmssc.paper.reproduction import METHODS

        print("\n".join(METHODS))
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc._optional import import_optional
    from lmssc.persistence.atomic import prepare_folder

    if args.jobs == 0:
        raise CommandError("--jobs must be 1 or more, or -1 for all cores")
    try:
        prepare_folder(args.out)
        if not args.no_figures:  # said now rather than after hours
            import_optional("matplotlib", purpose="figures (or --no-figures)", extra="plot")
        _reproduce(args)
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(error) from error
    except (KeyboardInterrupt, Stopped) as error:
        print(
            f"\nlmssc: interrupted; all finished runs are kept in {args.out}, and the same command goes on from there",
            file=sys.stderr,
        )
        return exit_code(error)
    return 0


def _reproduce(args: argparse.Namespace) -> None:
    from lmssc.paper.printed_tables import DATASETS
    from lmssc.paper.reproduction import reproduce
    from lmssc.paper.reproduction_page import write_report
    from lmssc.paper.tables import lmssc_markdown

    result = reproduce(
        args.out,
        args.datasets,
        args.methods,
        args.rates,
        args.repeats,
        tuned_repeats=args.tuned_repeats,
        columns=args.columns,
        n_jobs=args.jobs,
        progress=not args.quiet,
    )
    if not args.quiet:
        print(lmssc_markdown(result.rows), end="\n\n")
        failed = [record for record in result.records if record["error"]]
        for record in failed[:5]:
            where = f"{record['dataset']}, {record['method']}, {record['rate']:g}, split {record['repeat']}"
            print(f"failed: {where}: {record['error']}")
    if not args.no_figures:
        from lmssc.paper.figures import draw_figures

        draw_figures(args.datasets or list(DATASETS), args.out, jobs=args.jobs, progress=not args.quiet)
    write_report(args.out)
    if not args.quiet:
        print(f"tables.md, tables.csv, runs.csv and report.html are in {args.out}")
