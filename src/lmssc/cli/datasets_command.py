"""``lmssc datasets``: list, describe and download data sets."""

import argparse
from typing import Any

from lmssc.cli.shared_options import add_command
from lmssc.datasets.catalogue import DATASET_NAMES, FACTS
from lmssc.datasets.registry import FILES


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = add_command(
        commands,
        "datasets",
        run=run_list,
        help="list, describe and download data sets",
        description=(
            "List the data sets, their sizes, and where their files are. A file is looked for in the folder given\n"
            "by the environment variable LMSSC_DATA, then in your cache. If it is in neither, it is downloaded on\n"
            "first use, or by 'fetch'. Every file is verified by its sha256."
        ),
        epilog=(
            "examples:\n"
            "  lmssc datasets                      list them\n"
            "  lmssc datasets info sonar           contents, origin and licence\n"
            "  lmssc datasets fetch sonar reuters  download these two, or verify them if they are here\n"
            "  lmssc datasets fetch all\n"
            "  lmssc compare sonar --repeats 5     use one\n\n"
            "in Python:\n"
            "  from lmssc.datasets import load\n"
            "  data = load('sonar')                data.views, data.target, data.DESCR, ..."
        ),
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    info = actions.add_parser("info", help="describe a data set", description="Describe a data set.")
    info.add_argument("name", metavar="NAME", choices=DATASET_NAMES, help=f"one of {', '.join(DATASET_NAMES)}")
    info.set_defaults(run=run_info)
    fetch = actions.add_parser(
        "fetch",
        help="download data sets",
        description="Download data sets into the cache and verify them. Files that are already here are only verified.",
    )
    names = [*FILES, "all"]
    fetch.add_argument("names", metavar="NAME", nargs="+", choices=names, help=f"any of {', '.join(names)}")
    fetch.set_defaults(run=run_fetch)


def run_list(args: argparse.Namespace) -> int:
    """Print a table of the data sets, and the folders."""
    from lmssc.datasets.fetch import cache_folder, data_folder

    rows = [("name", "samples", "classes", "views", "features", "file", "where")]
    for name, facts in FACTS.items():
        widths = [str(width) for width in facts.views.values()]
        features = f"{widths[0]} each" if len(set(widths)) == 1 else " + ".join(widths)
        size = _readable(FILES[name].size) if name in FILES else ""
        counts = (str(facts.n_samples), str(len(facts.classes)), str(len(widths)))
        rows.append((name, *counts, features, size, _where(name)))
    sides = "<>>><><"
    spans = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{cell:{side}{span}}" for cell, side, span in zip(row, sides, spans, strict=True)).rstrip())
    print(f"\n$LMSSC_DATA  {data_folder() or 'not set'}")
    print(f"cache        {cache_folder() or 'downloads need pooch: pip install ' + repr('lmssc[data]')}")
    return 0


def run_info(args: argparse.Namespace) -> int:
    """Print the description of a data set."""
    from lmssc.datasets.catalogue import describe

    if args.name in FILES:
        print(describe(args.name), end="")
    else:
        from lmssc.datasets import load

        print(load(args.name).DESCR, end="")
    return 0


def run_fetch(args: argparse.Namespace) -> int:
    """Download missing files; verify all."""
    from lmssc.datasets.fetch import fetch, find

    for name in FILES if "all" in args.names else dict.fromkeys(args.names):
        file = FILES[name]
        if find(file) is None:
            print(f"{name}: downloading {_readable(file.size)} from {file.address}", flush=True)
        print(f"{name}: {fetch(file)}, sha256 verified", flush=True)
    return 0


def _where(name: str) -> str:
    from lmssc.datasets.fetch import data_folder, find, find_fault

    if name not in FILES:
        return "comes with scikit-learn"
    path = find(FILES[name])
    if path is None:
        return "not here"
    place = "in $LMSSC_DATA" if path.parent == data_folder() else "in the cache"
    return place if find_fault(path, FILES[name]) is None else f"{place}, DAMAGED"


def _readable(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
