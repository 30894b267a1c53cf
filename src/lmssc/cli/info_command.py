"""``lmssc info``: what a model file contains."""

import argparse
from pathlib import Path
from typing import Any

from lmssc.cli.shared_options import add_command, add_format
from lmssc.io.errors import CommandError


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = add_command(
        commands,
        "info",
        run=run,
        help="show what a model file contains",
        description=(
            "Show what a model file of 'lmssc classify' or clf.save(path) contains: method, samples, views,\n"
            "links, classes and parameters. Its checksum is verified; no code in it is executed."
        ),
        epilog="examples:\n  lmssc info out/model.lmssc\n  lmssc info out/model.lmssc --format json",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file")
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc.cli.console import print_json
    from lmssc.estimators.serialization import describe_model, read_model

    try:
        facts = describe_model(*read_model(args.model))
    except OSError as error:
        raise CommandError(f"{args.model}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(error) from error
    if args.format == "json":
        print_json(facts)
    else:
        print("\n".join(_lines(args.model, facts)))
    return 0


def _lines(path: Path, facts: dict[str, Any]) -> list[str]:
    made = facts["made"]
    state = "" if facts["converged"] is None else ", converged" if facts["converged"] else ", stopped by max_iter"
    lines = [
        f"{path}: {facts['class']}",
        f"saved       {made['date']} by lmssc {made['lmssc']}, format {facts['format_version']}",
        f"size        {facts['bytes']:,} bytes",
        f"samples     {facts['samples']:,}, {_count(facts['labelled'])} labelled, {facts['unreached']:,} unreached",
        f"iterations  {facts['iterations']}{state}",
        "",
        *_table(
            ["view", "features", "scaling"],
            [[view["name"], f"{view['features']:,}", view["scaling"] or "–"] for view in facts["views"]],
        ),
        "",
        *_graph_lines(facts["graphs"]),
        *_table(
            ["class", "labels given", "samples"],
            [[str(one["label"]), _count(one["labelled"]), f"{one['samples']:,}"] for one in facts["classes"]],
        ),
        "",
        "parameters",
    ]
    return lines + [f"  {name} = {value}" for name, value in facts["parameters"].items()]


def _graph_lines(graphs: list[dict[str, Any]]) -> list[str]:
    if not graphs:
        return []
    rows = [
        [
            graph["name"],
            "–" if graph["weight"] is None else f"{graph['weight']:.3g}",
            "–" if graph["weighted"] is None or not graph["weight"] else ("no", "yes")[graph["weighted"]],
        ]
        for graph in graphs
    ]
    return [*_table(["links", "weight", "their weights count"], rows), ""]


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    spans = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return [
        "  ".join(
            f"{cell:{'<' if column == 0 else '>'}{span}}"
            for column, (cell, span) in enumerate(zip(row, spans, strict=True))
        ).rstrip()
        for row in [head, *rows]
    ]
