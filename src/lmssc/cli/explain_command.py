"""``lmssc explain``: why samples have their labels, in words."""

import argparse
from pathlib import Path
from typing import Any

from lmssc.cli.shared_options import add_command, add_format, one_line
from lmssc.io.errors import CommandError

EPILOG = """\
examples:
  lmssc explain result/model.lmssc --id sample-17
  lmssc explain result/model.lmssc --id sample-17 --id sample-18 --top 10
  lmssc explain result/model.lmssc --id sample-17 --format json

With the graph of the model fixed, the scores of a sample are a weighted mean of the given labels. The
command names the labelled samples with the most weight, with their labels, the views in which the sample is
close to its neighbours, and a weak edge if the sample is connected by one only."""


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = add_command(
        commands,
        "explain",
        run=run,
        help="say why samples have their labels",
        description="Say why 'lmssc classify' gave samples their labels: which given labels count most.",
        epilog=EPILOG,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="model file written by 'lmssc classify'")
    parser.add_argument(
        "--id", action="append", required=True, dest="ids", metavar="ID", help="id of a sample; may be repeated"
    )
    parser.add_argument(
        "--top", type=int, default=5, metavar="N", help="number of labelled samples to name (default: %(default)s)"
    )
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    import lmssc
    from lmssc.cli.console import print_json

    if args.top < 1:
        raise CommandError(f"--top must be at least 1, got {args.top}")
    try:
        model = lmssc.load(args.model)
        rows = _rows_of(model, args.ids)
        found = model.explain(rows, n=args.top)
    except OSError as error:
        raise CommandError(f"{args.model}: {error.strerror or error}") from error
    except AttributeError as error:
        raise CommandError(f"{args.model}: {type(model).__name__} cannot be explained; fit LMSSC") from error
    except (ValueError, TypeError) as error:
        raise CommandError(one_line(error)) from error
    if args.format == "json":
        print_json({"samples": [_facts(found, i) for i in range(len(found))]})
    else:
        print("\n\n".join("\n".join(found.sentences(i)) for i in range(len(found))))
    return 0


def _rows_of(model: Any, ids: list[str]) -> list[int]:
    """Rows of samples by their ids, or by row numbers if the model has no ids."""
    from lmssc.io.table import some

    names = getattr(model, "ids_", None)
    known = {str(name): row for row, name in enumerate(range(len(model.transduction_)) if names is None else names)}
    for name in ids:
        if name not in known:
            hint = "; the model has no ids, so they are row numbers from 0"
            if names is not None:
                hint = f"; ids are such as {some(list(known), 2)}"
            raise CommandError(f"no sample has the id {name!r}{hint}")
    return [known[name] for name in ids]


def _facts(found: Any, i: int) -> dict[str, Any]:
    return {
        "id": found.names[i],
        "label": str(found.labels[i]),
        "confidence": round(float(found.confidence[i]), 6),
        "because": [
            {"id": name, "label": str(label), "weight": round(weight, 6)} for _, name, label, weight in found.votes(i)
        ],
        "regression": round(float(found.regression[i]), 6),
        "views": {name: round(float(share[i]), 6) for name, share in found.view_shares.items()},
        "bottleneck": round(float(found.bottleneck[i]), 6),
    }
