"""``lmssc reproduce``: the experiments of the paper, run again."""

import argparse
from collections.abc import Sequence
from typing import Any

from lmssc.cli import shared_options as shared
from lmssc.io.errors import CommandError


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = shared.add_command(
        commands,
        "reproduce",
        run=run,
        help="rerun the paper's experiments, next to its own numbers",
        description=(
            "Run the paper's methods and a few simple ones on its four data sets, on the same splits of shuffled\n"
            "rows, and write the accuracies next to those printed in the paper, in three columns:\n"
            "  fixed         the defaults of the library\n"
            "  cv            parameters chosen by cross-validation on the labelled rows only\n"
            "  best-by-test  the best of a grid by test accuracy, as in the paper's program: an oracle,\n"
            "                because it needs the very labels that are to be predicted\n"
            "Every finished run is saved in the folder --out at once: if you stop the command, run it again with\n"
            "the same options to continue. The tables include all runs in runs.csv, also those of earlier\n"
            "commands with other data sets, methods or splits."
        ),
        epilog=(
            "examples:\n"
            "  lmssc reproduce --datasets sonar --repeats 3 --columns fixed --no-figures   a minute\n"
            "  lmssc reproduce --datasets sonar bbc --columns fixed --jobs 2               minutes, more with figures\n"
            "  lmssc reproduce --jobs 2                                                    everything: hours"
        ),
    )
    parser.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="any of bbc, sonar, handwritten, reuters (default: all)"
    )
    shared.add_methods(parser, _method_names)
    shared.add_rates(parser, [0.1, 0.2, 0.3, 0.5])
    shared.add_repeats(parser, 20)
    parser.add_argument(
        "--columns", nargs="+", metavar="NAME", help="any of fixed, cv, best-by-test, explained above (default: all)"
    )
    parser.add_argument(
        "--tuned-repeats",
        type=int,
        default=5,
        metavar="N",
        help="number of splits for cv and best-by-test, which need many fits (default: %(default)s)",
    )
    shared.add_jobs(parser)
    shared.add_out_folder(parser, "lmssc-reproduce", "the runs, tables, figures and report.html")
    parser.add_argument("--no-figures", action="store_true", help="draw no figures, also not in report.html")
    shared.add_quiet(parser)


def _method_names() -> Sequence[str]:
    from lmssc.paper.reproduction import METHODS

    return list(METHODS)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc._optional import import_optional
    from lmssc.persistence.atomic import prepare_folder

    shared.check_jobs(args)
    with shared.resumable(args.out) as stopped:
        try:
            prepare_folder(args.out)
            if not args.no_figures:  # fail now rather than after hours
                import_optional("matplotlib", purpose="figures (or --no-figures)", extra="plot")
            _reproduce(args)
        except (ValueError, TypeError, ImportError) as error:
            raise CommandError(error) from error
    return stopped.exit_code


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
