"""The table of all measurements, results/speed/speed.csv, and valid ratios between its rows."""

import csv
import json

from speed_peers import PEERS

SHAPE = ["case", "data", "samples", "views", "features", "classes", "components", "dtype", "threads"]
COLUMNS = [*SHAPE, "run", "machine", "wall", "cpu", "megabytes", "accuracy", "detail"]
COMPARED = ("LMSSC", *PEERS)


def read_rows(folder):
    """All rows, as text; rows without a run are left out."""
    path = folder / "speed.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if row.get("run")]


def keep(new, folder):
    """Add rows to the table; earlier measurements of the same case are replaced."""
    taken = {tuple(row[name] for name in SHAPE) for row in new}
    rows = [row for row in read_rows(folder) if tuple(row[name] for name in SHAPE) not in taken] + new
    numbers = ("threads", "samples", "features", "views", "classes")
    rows.sort(
        key=lambda row: (
            row["data"],
            row["dtype"],
            *(int(row[name] or 0) for name in numbers),
            row["components"].rjust(4),
            COMPARED.index(row["case"]) if row["case"] in COMPARED else len(COMPARED),
        )
    )
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "speed.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def as_text(row):
    """A row as text: numbers with four digits, None as an empty cell, details as JSON."""
    text = {name: "" if row.get(name) is None else str(row[name]) for name in COLUMNS}
    text |= {name: f"{row[name]:.4g}" for name in COLUMNS if isinstance(row.get(name), float)}
    return {**text, "detail": json.dumps(row["detail"], ensure_ascii=False)}


def median(rows):
    """The run of a case with the median time, and the times of all its runs."""
    ordered = sorted((row for row in rows if row["wall"]), key=seconds)
    if len(ordered) < 2:
        return (ordered or rows)[0]
    middle = ordered[len(ordered) // 2]
    detail = {**json.loads(middle["detail"]), "all runs": [seconds(row) for row in ordered]}
    return {**middle, "detail": json.dumps(detail, ensure_ascii=False)}


def seconds(row):
    """Wall time in seconds."""
    return float(row["wall"])


def find(rows, **wanted):
    """The row of that shape, if it was measured."""
    fits = [row for row in rows if row["wall"] and all(row[name] == str(value) for name, value in wanted.items())]
    return fits[0] if fits else None


def ratio(row, other):
    """Time relative to another row; None unless both were measured in the same run."""
    if row is None or other is None or not (row["wall"] and other["wall"]) or row["run"] != other["run"]:
        return None
    return seconds(row) / seconds(other)


def beside_lmssc(row, rows):
    """Time relative to LMSSC on the same data, in the same run."""
    if row["case"] == "dense formulas":  # it does the iteration of LMSSC itself
        return json.loads(row["detail"]).get("× LMSSC")
    if row["case"] not in COMPARED:
        return None
    return ratio(row, find(rows, case="LMSSC", **{name: row[name] for name in SHAPE[1:]}))


def number(value, digits=3):
    """Format a number or its text with that many digits; empty if there is none."""
    if value in (None, ""):
        return ""
    value = float(value)
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def shape_of(row):
    """The data and threads of a row, in words."""
    return (
        f"{row['data']}, {int(row['samples']):,} samples, {row['views']} views, {row['features']} features, "
        f"{row['classes']} classes, {row['dtype']}, threads: {row['threads']}"
    )


def side_by_side(rows):
    """One line per row: its case, seconds, × LMSSC, MB and accuracy."""
    lines = [
        [
            row["case"],
            number(row["wall"]),
            number(beside_lmssc(row, rows)),
            number(row["megabytes"]),
            number(row["accuracy"]),
            "" if row["wall"] else json.loads(row["detail"]),
        ]
        for row in rows
    ]
    return aligned(["", "seconds", "× LMSSC", "MB", "accuracy %", ""], lines)


def growth(rows, name):
    """Rows sorted by the growing number, and the time of each relative to the one before."""
    rows = sorted((row for row in rows if row["wall"]), key=lambda row: int(row[name]))
    return [
        [f"{int(row[name]):,}", number(row["wall"]), number(ratio(row, before)), number(row["megabytes"])]
        for before, row in zip([None, *rows], rows, strict=False)
    ]


def aligned(head, lines):
    """A table as text, with the first column left-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [head, *lines]
    )
