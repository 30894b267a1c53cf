"""``lmssc compare``."""

import argparse
from pathlib import Path
from typing import Any

from lmssc.datasets.catalogue import NAMES
from lmssc.io.errors import CommandError


def add(commands: Any) -> None:
    """Describe the command to the parser."""
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
            '  lmssc compare sonar --rates 0.2 --methods LMSSC "SVC (RBF)"\n'
            "  lmssc compare mydata.npz --methods LMSSC 1-NN --rates 0.05 0.1 --jobs 2\n\n"
            "mydata.npz has the labels of all samples as 'y', and every 2-D array in it is a view:\n"
            "  numpy.savez('mydata.npz', image=A, text=B, y=labels)"
        ),
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        help=f"one of {', '.join(NAMES)} ('lmssc datasets' tells of them), synthetic, or an .npz file (see below)",
    )
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
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="runs at the same time, -1 for one a core (default: %(default)s)",
    )
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
    parser.set_defaults(run=run)


class _ListMethods(argparse.Action):
    """Print the names of the methods that can be compared."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from lmssc.evaluation.methods import NAMES

        print("\n".join(NAMES))
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc.evaluation.comparison import compare
    from lmssc.evaluation.named_data import load_for_comparison
    from lmssc.metrics import METRICS
    from lmssc.persistence.atomic import prepare_folder

    if args.jobs == 0:
        raise CommandError("--jobs must be 1 or more, or -1 for all cores")
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
            progress=not args.quiet,
        )
    except (ValueError, TypeError, ImportError) as error:
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
