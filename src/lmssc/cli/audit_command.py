"""``lmssc audit``."""

import argparse
import sys
from pathlib import Path
from typing import Any

from lmssc.io.errors import CommandError
from lmssc.persistence.signals import Stopped, exit_code


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "audit",
        help="measure what row order and choice by test labels do to the published results",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Run a port of the program published with the paper on the paper's data: on rows in class order, as\n"
            "the files have them, and on shuffled rows, with the same labelled samples. Measure what choosing\n"
            "among 18 settings by test accuracy adds, what a constant answer scores on BBC, and which methods\n"
            "answer otherwise when rows are permuted. Every finished run is kept in the folder --out at once:\n"
            "stop it and start it again, and it does only what is missing."
        ),
        epilog=(
            "examples:\n"
            "  lmssc audit --datasets sonar --rates 0.2 --repeats 3   minutes\n"
            "  lmssc audit --jobs 2                                   hours: Reuters takes about 10 s a run\n\n"
            "in Python, for a method of your own:\n"
            "  from lmssc.audit import order_sensitivity\n"
            "  print(order_sensitivity(classifier, X, y))"
        ),
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=["sonar", "reuters"],
        metavar="NAME",
        help="of sonar, reuters, handwritten, bbc (default: sonar reuters)",
    )
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=[0.2, 0.5],
        metavar="SHARE",
        help="shares of the labels that are given (default: 0.2 0.5)",
    )
    parser.add_argument("--repeats", type=int, default=10, metavar="N", help="draws of labels (default: %(default)s)")
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
        default=Path("lmssc-audit"),
        metavar="FOLDER",
        help="where the runs, audit.csv, audit_summary.csv, audit.md and the figure go (default: %(default)s)",
    )
    parser.add_argument("--no-figures", action="store_true", help="draw no figure")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc._optional import import_optional
    from lmssc.datasets import load
    from lmssc.evaluation.comparison import check_numbers
    from lmssc.paper.audit_page import make_page, write_page
    from lmssc.paper.printed_tables import DATASETS
    from lmssc.paper.published_audit import audit
    from lmssc.persistence.atomic import prepare_folder

    unknown = [name for name in args.datasets if name not in DATASETS]
    if unknown:
        raise CommandError(f"--datasets {unknown[0]} is not one of {', '.join(DATASETS)}")
    if args.jobs == 0:
        raise CommandError("--jobs must be 1 or more, or -1 for all cores")
    try:
        check_numbers(args.rates, args.repeats)
        prepare_folder(args.out)
        # Said now rather than after hours.
        load("bbc")
        if not args.no_figures:
            import_optional("matplotlib", purpose="figures (or --no-figures)", extra="plot")
        rows = audit(args.datasets, args.rates, args.repeats, args.out, n_jobs=args.jobs, progress=not args.quiet)
        written = write_page(rows, args.out, figures=not args.no_figures)
    except (ValueError, ImportError) as error:
        raise CommandError(error) from error
    except (KeyboardInterrupt, Stopped) as error:
        print(
            f"\nlmssc: interrupted; all finished runs are kept in {args.out}, and the same command goes on from there",
            file=sys.stderr,
        )
        return exit_code(error)
    if not args.quiet:
        print(make_page(rows))
        print(
            "written:",
            ", ".join(str(path) for path in [*written, args.out / "audit.csv", args.out / "audit_summary.csv"]),
        )
    return 0
