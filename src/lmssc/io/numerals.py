"""Numbers as people write them: separated thousands, a decimal comma, a unit, a percent or currency sign."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Cells that mark a missing value.
MISSING = {"", "na", "nan", "n/a", "null", "none", "<na>", "#n/a"}
# The same, by hand or by a spreadsheet; told of among numbers.
ODD_MISSING = {"?", "-", "--", ".", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!"}
MINUS = "\u2212"
# What stands for the unit of times such as "5:00" and "1:05:00".
CLOCK = "h:mm:ss"
DURATION = re.compile(r"(?:(\d+):)?(\d+):([0-5]\d(?:\.\d+)?)")
POINT, COMMA = ".", ","
CURRENCY = "$€£¥₹"
LONG_INTEGER = re.compile(r"[+-]?[0-9]{16,}")
# Fewer digits, such as "007" or "05", may be numbers.
PADDED = re.compile(r"[0-9]{4,}")


def _shape(decimal: str, group: str) -> re.Pattern[str]:
    """Pattern of a number: groups of three digits, if any, are all separated by the same character."""
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?P<group>[{group}'’ \u00a0\u202f])\d{{3}}(?:(?P=group)\d{{3}})*)"
    return re.compile(
        rf"\s*(?P<sign>[+\-{MINUS}]?)(?P<before>[{CURRENCY}]?)\s?"
        rf"(?P<body>{whole}(?:{decimal}\d*)?|{decimal}\d+)(?P<power>[eE][+\-{MINUS}]?\d+)?"
        rf"\s?(?P<after>[%‰{CURRENCY}]|[A-Za-zµ°²³/]{{1,5}})?\s*"
    )


SHAPES = {POINT: _shape(r"\.", ","), COMMA: _shape(",", ".")}


def parse(cell: str, decimal: str = POINT) -> tuple[float, str] | None:
    """Parse number and unit of a cell; None if it is not a number.

    Parameters
    ----------
    cell : str
        Its text.
    decimal : {".", ","}
        Decimal mark; the other mark may separate thousands.

    Returns
    -------
    tuple of float and str, or None

    Examples
    --------
    >>> parse("1,234.50"), parse("1.234,50", ","), parse("-$3"), parse("12 %")
    ((1234.5, ''), (1234.5, ''), (-3.0, '$'), (12.0, '%'))
    >>> parse("3,14"), parse("1_000"), parse("high")
    (None, None, None)
    """
    match = SHAPES[decimal].fullmatch(cell)
    if match is None:
        return (float(cell), "") if is_plain(cell) and POINT not in cell else None
    if match["before"] and match["after"]:
        return None
    body = match["body"].replace(match["group"], "") if match["group"] else match["body"]
    number = f"{match['sign']}{body.replace(decimal, POINT)}{match['power'] or ''}"
    return float(number.replace(MINUS, "-")), match["before"] or match["after"] or ""


def is_plain(cell: str) -> bool:
    """Whether a cell is a number as programs write it.

    Examples
    --------
    >>> is_plain("-1.5e3"), is_plain("1,5"), is_plain("1_000")
    (True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_missing(cell: str) -> bool:
    """Whether a cell marks a missing value.

    Examples
    --------
    >>> is_missing(" NA "), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in MISSING or is_odd_missing(cell)


def is_odd_missing(cell: str) -> bool:
    """Whether a cell stands for "not known" in a way that is told of.

    Examples
    --------
    >>> is_odd_missing("?"), is_odd_missing("#DIV/0!"), is_odd_missing("NA")
    (True, True, False)
    """
    return cell.strip().lower() in ODD_MISSING


def are_durations(cells: Iterable[str]) -> bool:
    """Whether all cells are times such as "5:00" (minutes and seconds, or hours and minutes) or "1:05:00".

    Examples
    --------
    >>> are_durations(["5:00", "1:08:20"]), are_durations(["5:00", "12:00 am"]), are_durations([])
    (True, False, False)
    """
    found = [DURATION.fullmatch(cell.strip()) is not None for cell in cells]
    return bool(found) and all(found)


def read_durations(cells: Iterable[str | None]) -> NDArray:
    """Seconds of times, NaN where a cell is blank or no time.

    Examples
    --------
    >>> read_durations(["5:00", None, "1:05:00.5"])
    array([ 300. ,    nan, 3900.5])
    """
    seconds = []
    for cell in cells:
        match = None if cell is None else DURATION.fullmatch(cell.strip())
        seconds.append(np.nan if match is None else 3600 * int(match[1] or 0) + 60 * int(match[2]) + float(match[3]))
    return np.array(seconds, dtype=np.float64)


def is_mostly_numbers(cells: Sequence[str]) -> bool:
    """Whether most of the cells are numbers with the same unit, in any notation.

    Examples
    --------
    >>> is_mostly_numbers(["1", "2,5", "x"]), is_mostly_numbers(["5 cm", "7 cm"]), is_mostly_numbers(["5a", "5b"])
    (True, True, False)
    """
    found = [(0.0, "") if is_plain(cell) else parse(cell) or parse(cell, COMMA) for cell in cells]
    units = [number[1] for number in found if number is not None]
    return bool(units) and 2 * max(units.count(unit) for unit in set(units)) > len(cells)


def are_digit_codes(cells: Sequence[str]) -> bool:
    """Whether the cells are codes made of digits: most of 16 digits or more, or all padded with zeros to one width.

    Floats would lose digits of the former, such as card numbers, and the zeros of the latter, such as postcodes.

    Examples
    --------
    >>> are_digit_codes(["4000123412341234567", "4000123412341234568"]), are_digit_codes(["0.1234567890123456"])
    (True, False)
    >>> are_digit_codes(["00501", "94110"]), are_digit_codes(["0", "94110"]), are_digit_codes(["10501", "94110"])
    (True, False, False)
    """
    stripped = [cell.strip() for cell in cells]
    if 2 * sum(LONG_INTEGER.fullmatch(cell) is not None for cell in stripped) > len(stripped):
        return True
    padded = any(cell.startswith("0") for cell in stripped)
    return padded and len({len(cell) for cell in stripped}) == 1 and all(map(PADDED.fullmatch, stripped))


def decimal_of(cells: Iterable[str]) -> str | None:
    """Return the decimal mark of the cells if it is unambiguous, else None.

    Examples
    --------
    >>> decimal_of(["3,14", "2,948"]), decimal_of(["2,948"])
    (',', None)
    """
    certain, _ = marks(cells)
    return certain.pop() if len(certain) == 1 else None


def marks(cells: Iterable[str]) -> tuple[set[str], str]:
    """Return the unambiguous decimal marks of the cells, and one cell whose mark is ambiguous.

    Examples
    --------
    >>> marks(["3,14", "7"]), marks(["1,234.5"]), marks(["2,948", "12"])
    (({','}, ''), ({'.'}, ''), (set(), '2,948'))
    """
    certain, either = set(), ""
    for cell in cells:
        if POINT in cell or COMMA in cell:
            readings = {mark for mark in SHAPES if SHAPES[mark].fullmatch(cell)}
            if len(readings) == 1:
                certain |= readings
            elif readings:
                either = either or cell
    return certain, either


@dataclass(frozen=True)
class Numbers:
    """Numbers of a column.

    Attributes
    ----------
    values : ndarray
        NaN for blank cells.
    unit : str
        Unit written with the numbers, such as "%"; empty if there is none.
    grouped : bool
        Whether some have separated thousands.
    fault : str
        Why they cannot be used; empty if they can.
    odd_blanks : tuple of (str, int)
        Cells such as "?" that count as blank, and how many of each.
    """

    values: NDArray
    unit: str
    grouped: bool
    fault: str
    odd_blanks: tuple[tuple[str, int], ...] = ()


class Numerals:
    """A column of numbers while it is being read.

    Parameters
    ----------
    where : callable
        Returns how messages refer to a cell, given its line.
    decimal : {".", ","}
        Decimal mark.
    told : bool
        Whether that is certain; if not, ambiguous cells are checked.

    Examples
    --------
    >>> column = Numerals("a.csv, line {}, column 'x'".format, ".", told=False)
    >>> column.extend(["948", "2,948", ""], [2, 3, 4])
    >>> column.finish()
    Numbers(values=array([ 948., 2948.,   nan]), unit='', grouped=True, fault='', odd_blanks=())
    >>> column.extend(["3,14"], [5])
    >>> column.finish().fault.partition(";")[0]
    "a.csv, line 5, column 'x': '3,14' has a decimal comma"
    """

    def __init__(self, where: Callable[[int], str], decimal: str, *, told: bool) -> None:
        self._where, self._decimal, self._told = where, decimal, told
        self._values: list[NDArray] = []
        # For each unit: number of cells, line and text of the first one.
        self._units: dict[str, tuple[int, int, str]] = {}
        self._grouped = False
        self._n_either = 0  # cells such as "2,948"
        self._either: tuple[int, str] | None = None  # the first of them, with its line
        self._fault = ""
        self._odd: Counter[str] = Counter()

    def extend(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Add cells, with their line numbers."""
        if self._decimal == POINT:
            try:
                values = np.fromiter(map(float, cells), np.float64, len(cells))
            except ValueError:
                pass
            else:
                if "_" not in "\n".join(cells):  # float() takes "1_000"
                    self._values.append(values)
                    written = np.flatnonzero(~np.isnan(values))
                    if len(written):
                        self._count("", len(written), lines[written[0]], cells[written[0]])
                    return
        self._values.append(np.array([self._value(cell, line) for cell, line in zip(cells, lines, strict=True)]))

    def _value(self, cell: str, line: int) -> float:
        if is_missing(cell):
            if is_odd_missing(cell):
                self._odd[cell.strip()] += 1
            return np.nan
        if self._decimal == POINT and is_plain(cell):
            self._count("", 1, line, cell)
            return float(cell)
        found = parse(cell, self._decimal)
        if found is None:
            self._fault = self._fault or self._place(line, cell) + self._complaint(cell)
            return np.nan
        self._count(found[1], 1, line, cell)
        match = SHAPES[self._decimal].fullmatch(cell)
        self._grouped |= match is not None and match["group"] is not None
        if marks([cell])[1]:
            self._n_either += 1
            self._either = self._either or (line, cell)
        return found[0]

    def _count(self, unit: str, number: int, line: int, cell: str) -> None:
        before, *first = self._units.get(unit, (0, line, cell))
        self._units[unit] = (before + number, *first)  # type: ignore[assignment]

    def _place(self, line: int, cell: str) -> str:
        shown = cell if len(cell) < 40 else cell[:37] + "..."
        return f"{self._where(line)}: {shown!r} "

    def _complaint(self, cell: str) -> str:
        other = COMMA if self._decimal == POINT else POINT
        if parse(cell, other) is None:
            return "is not a number, unlike the other cells of the column"
        names = {POINT: "point", COMMA: "comma"}
        return (
            f"has a decimal {names[other]}; write a {names[self._decimal]}, or pass --decimal {other} if "
            "all cells have one; --drop leaves a column out"
        )

    def finish(self) -> Numbers:
        """Return the complete column."""
        values = np.concatenate(self._values) if self._values else np.empty(0)
        unit = max(self._units, key=lambda unit: self._units[unit][0], default="")
        fault = self._fault or self._other_units(unit) or self._either_way(values)
        return Numbers(values, unit, self._grouped, fault, tuple(sorted(self._odd.items())))

    def _other_units(self, unit: str) -> str:
        for other, (_, line, cell) in self._units.items():
            if other != unit:
                difference = f"is not in {unit!r}" if unit else "has a unit"
                return f"{self._place(line, cell)}{difference}, unlike the other cells of the column; use one unit"
        return ""

    def _either_way(self, values: NDArray) -> str:
        """The fault of an ambiguous cell: "2,948" next to "1948", without any decimals in the column."""
        if self._told or self._either is None or (values[np.isfinite(values)] % 1).any():
            return ""
        n_large = int((np.abs(values) >= 1000).sum())
        if n_large <= self._n_either:
            return ""
        line, cell = self._either
        return (
            f"{self._place(line, cell)}is ambiguous: its comma may separate thousands or decimals, and other cells "
            "of the column have none; say which with --decimal . or --decimal ,"
        )


def read_numbers(
    cells: Sequence[str | None],
    decimal: str,
    *,
    told: bool,
    where: Callable[[int], str] = str,
) -> Numbers:
    """Parse a column of text as numbers.

    Parameters
    ----------
    cells : sequence of str or None
        Its cells.
    decimal : {".", ","}
        The decimal mark.
    told : bool
        Whether that is certain.
    where : callable
        Returns how messages refer to a cell, given its row.

    Returns
    -------
    Numbers

    Examples
    --------
    >>> read_numbers(["12 %", None, "7%"], ".", told=True).values
    array([12., nan,  7.])
    """
    column = Numerals(where, decimal, told=told)
    if len(cells):
        column.extend(["" if cell is None else cell for cell in cells], range(len(cells)))
    return column.finish()
