"""``lmssc compare``: methods on the same splits."""

import argparse
from collections.abc import Sequence
from typing import Any

from lmssc.cli import shared_options as shared
from lmssc.cli.column_options import add_columns, add_labels, check_columns, label_files, read_options
from lmssc.datasets.catalogue import DATASET_NAMES
from lmssc.io.errors import CommandError


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = shared.add_command(
        commands,
        "compare",
        run=run,
        help="compare methods on the same random splits of your data",
        description=(
            "Hold out most labels, let every method predict them, score the predictions, and repeat with other\n"
            "splits. All methods get the same splits of shuffled rows. Every finished run is saved in the folder\n"
            "--out at once: if you stop the command, run it again to continue."
        ),
        epilog=(
            "examples:\n"
            "  lmssc compare digits --repeats 3\n"
            '  lmssc compare sonar --rates 0.2 --methods LMSSC "SVC (RBF)"\n'
            "  lmssc compare mydata.npz --methods LMSSC 1-NN --rates 0.05 0.1 --jobs 2\n"
            "  lmssc compare image.csv text.csv --labels labels.csv\n"
            "  lmssc compare cells.h5ad --labels obs:cell_type --views obsm:X_pca,X\n\n"
            "Files are read as by 'lmssc classify' (see its --help); samples without a label are left out. In an\n"
            ".npz file the labels may be an array 'y'; every 2-D array in it is a view:\n"
            "  numpy.savez('mydata.npz', image=A, text=B, y=labels)"
        ),
    )
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help=f"one of {', '.join(DATASET_NAMES)} (see 'lmssc datasets'), synthetic, or files of views (see below)",
    )
    add_labels(parser)
    shared.add_graphs(parser, "links between the samples")
    shared.add_methods(parser, _method_names)
    shared.add_rates(parser, [0.1, 0.2, 0.3, 0.5])
    shared.add_repeats(parser, 20)
    shared.add_seed(parser, "random seed of the first split")
    shared.add_jobs(parser)
    parser.add_argument(
        "--metric",
        nargs="+",
        default=["accuracy", "balanced_accuracy"],
        metavar="NAME",
        help="tables to print: accuracy, balanced_accuracy, macro_f1, log_loss, calibration_error "
        "(default: the first two)",
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    shared.add_out_folder(parser, "lmssc-compare", "the runs and runs.csv")
    add_columns(parser)
    shared.add_reading(parser, formats=False)


def _method_names() -> Sequence[str]:
    from lmssc.evaluation.methods import METHOD_NAMES

    return METHOD_NAMES


def _left_out(methods: Sequence[str] | None) -> str:
    """A note on methods of packages that are not installed, if all methods were asked for."""
    from lmssc.evaluation.methods import METHOD_NAMES
    from lmssc.evaluation.peers import missing_package

    names = [name for name in METHOD_NAMES if methods is None and missing_package(name)]
    return f"not compared: {', '.join(names)}; pip install 'lmssc[peers]' adds them" if names else ""


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc.evaluation.comparison import compare
    from lmssc.evaluation.named_data import load_for_comparison
    from lmssc.metrics import METRICS
    from lmssc.persistence.atomic import prepare_folder

    shared.check_jobs(args)
    try:
        unknown = sorted(set(args.metric) - set(METRICS))
        if unknown:
            raise ValueError(f"--metric {unknown[0]} is not one of {', '.join(METRICS)}")
        check_columns(args)
        views, y, lines = load_for_comparison(
            args.data, label_files(args), read_options(args), args.unlabelled, args.graph
        )
        if lines and not args.quiet:
            print("\n".join(lines), end="\n\n", flush=True)
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
            progress=not args.quiet,
        )
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(error) from error
    if not args.quiet:
        for metric in args.metric:
            print(result.table(metric, markdown=args.markdown), end="\n\n")
        print("* best mean; ~ not significantly different from it (paired t-test, p >= 0.05)")
        failed = [record for record in result.records if record["error"]]
        if failed:
            print("(n of m): mean over the n runs that did not fail")
        for record in failed[:5]:
            print(f"failed: {record['method']}, {record['rate']:g}, split {record['repeat']}: {record['error']}")
        if left_out := _left_out(args.methods):
            print(left_out)
        print(f"{len(result.records)} runs ({len(failed)} failed) in {args.out / 'runs.csv'}")
    return 0
