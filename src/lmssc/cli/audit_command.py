"""``lmssc audit``: what row order and selection by test labels do to the published results."""

import argparse
from typing import Any

from lmssc.cli import shared_options as shared
from lmssc.io.errors import CommandError


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = shared.add_command(
        commands,
        "audit",
        run=run,
        help="measure how row order and selection by test labels affect the published results",
        description=(
            "Run a port of the paper's program on the paper's data: on rows in class order, as in the files, and\n"
            "on shuffled rows, with the same labelled samples. Measure how much selecting among 18 settings by\n"
            "test accuracy adds, what a constant prediction scores on BBC, and which methods change their\n"
            "predictions when rows are permuted. Every finished run is saved in the folder --out at once: if you\n"
            "stop the command, run it again to continue."
        ),
        epilog=(
            "examples:\n"
            "  lmssc audit --datasets sonar --rates 0.2 --repeats 3   minutes\n"
            "  lmssc audit --jobs 2                                   hours: a run on Reuters takes about 10 s\n\n"
            "in Python, for your own method:\n"
            "  from lmssc.audit import order_sensitivity\n"
            "  print(order_sensitivity(classifier, X, y))"
        ),
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=["sonar", "reuters"],
        metavar="NAME",
        help="any of sonar, reuters, handwritten, bbc (default: sonar reuters)",
    )
    shared.add_rates(parser, [0.2, 0.5])
    shared.add_repeats(parser, 10)
    shared.add_jobs(parser)
    shared.add_out_folder(parser, "lmssc-audit", "the runs, audit.csv, audit_summary.csv, audit.md and the figure")
    parser.add_argument("--no-figures", action="store_true", help="draw no figure")
    shared.add_quiet(parser)


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
    shared.check_jobs(args)
    with shared.resumable(args.out) as stopped:
        try:
            check_numbers(args.rates, args.repeats)
            prepare_folder(args.out)
            # Fail now rather than after hours.
            load("bbc")
            if not args.no_figures:
                import_optional("matplotlib", purpose="figures (or --no-figures)", extra="plot")
            rows = audit(args.datasets, args.rates, args.repeats, args.out, n_jobs=args.jobs, progress=not args.quiet)
            written = write_page(rows, args.out, figures=not args.no_figures)
        except (ValueError, ImportError) as error:
            raise CommandError(error) from error
        if not args.quiet:
            print(make_page(rows))
            files = [*written, args.out / "audit.csv", args.out / "audit_summary.csv"]
            print("written:", ", ".join(str(path) for path in files))
    return stopped.exit_code
