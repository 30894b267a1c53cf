"""Recognise what a column holds: numbers, yes/no, categories, text, or nothing to learn from."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.io.numerals import (
    CLOCK,
    POINT,
    are_digit_codes,
    are_durations,
    decimal_of,
    is_missing,
    is_mostly_numbers,
    read_numbers,
)
from lmssc.io.table import DATE as DATES
from lmssc.io.table import NUMBER as NUMBERS
from lmssc.io.table import TEXT as TEXTS
from lmssc.io.table import Table, some

NUMBER, YES_NO, CATEGORY, TEXT = "number", "yes/no", "category", "text"
# Columns that are not used.
DATE, VERSION, CODE, ID, CONSTANT, BLANK = "date", "version", "code", "id", "constant", "blank"
# Kinds that --type accepts.
TYPES = (NUMBER, CATEGORY, TEXT)

# Words for yes and no that may occur together in one column.
PAIRS = [{"true", "false", "t", "f"}, {"yes", "no", "y", "n"}, {"on", "off"}]
WORDS = {word: float(word in ("true", "yes", "y", "t", "on")) for pair in PAIRS for word in pair}


@dataclass(frozen=True)
class RecognitionRules:
    """Thresholds that decide what a column holds."""

    max_levels: int = 20
    """Values of a category that get a feature, the most frequent ones."""
    max_levels_by_type: int = 1000
    """The same for a column that --type calls a category."""
    min_cells_per_level: int = 3
    max_words_per_level: int = 3
    max_level_length: int = 60
    """A column of text is a category if its values have at least so many cells and at most so many words on average,
    and none is longer."""
    min_rows_for_serial: int = 20
    min_rows_for_ids: int = 10
    """Fewer whole numbers in a row (1, 2, 3, ...), and fewer distinct words, are not taken for ids."""
    n_sampled: int = 1000
    """Rows looked at first, to rule something out quickly."""
    min_share: float = 0.9
    """Share of the values that must be dates, codes or UUIDs; a few may be something else ("unknown")."""


RULES = RecognitionRules()

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[ap]m)?"
_DAY = (
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d{2})|\d{4}-\d{2}"
    rf"|\d{{1,2}}[. -]*{_MONTH}[, -]*(?:\d{{4}}|\d{{2}})|{_MONTH}\s\d{{1,2}},?\s\d{{4}}|{_MONTH}[\s-]\d{{4}})"
)
DAY = re.compile(rf"(?:{_DAY}(?:[T\s]\s?{_CLOCK}\s?(?:z|utc|[+-]\d{{2}}:?\d{{2}})?)?|{_CLOCK})", re.IGNORECASE)
# Day, month and year in digits, in any order.
DIGITS = re.compile(r"(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})(?:\D.*)?", re.DOTALL)
VERSIONS = re.compile(r"v?\d+(?:\.\d+){2,3}(?:[-+.]?[a-z]+\.?\d*)?", re.IGNORECASE)
UUID = re.compile(r"\{?[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\}?", re.IGNORECASE)
# Phone numbers, postcodes and the like: every part has a digit, or is up to three capital letters.
_CODE_PART = r"(?:\S*\d\S*|[A-Z]{1,3})"
CODE_PARTS = re.compile(rf"(?=.*\d)(?=.{{1,30}}$){_CODE_PART}(?:\s{_CODE_PART})*")
TOKEN = re.compile(r"\S{1,64}")
ID_NAME = re.compile(r"(?:.*[^a-z])?(?:id|ids|uuid|guid|key)|.*[a-z](?:Id|ID|Key)", re.DOTALL)


@dataclass(frozen=True)
class Kind:
    """What a column holds.

    Attributes
    ----------
    role : str
        "number", "yes/no", "category" or "text"; "date", "version", "code", "id", "constant" or "blank" if it is not
        used.
    levels : tuple of str
        Values of a category that have a feature.
    n_levels : int
        Number of all values of a category.
    unit : str
        Unit written with each number.
    decimal : str
        Decimal mark of numbers in a column of text.
    grouped : bool
        Whether thousands are separated.
    blank : bool or None
        For a category or yes/no: whether blank cells have a feature of their own. If False, a blank cell is none of
        the values. If None, blank cells are imputed, as in models of earlier versions.
    n_blank : int
        Number of blank cells of a category or yes/no.
    odd_blanks : tuple of (str, int)
        Cells such as "?" in a numeric column that count as blank, and how many of each.
    """

    role: str
    levels: tuple[str, ...] = ()
    n_levels: int = 0
    unit: str = ""
    decimal: str = POINT
    grouped: bool = False
    blank: bool | None = None
    n_blank: int = 0
    odd_blanks: tuple[tuple[str, int], ...] = ()

    @property
    def used(self) -> bool:
        """Whether the column becomes a feature or a view."""
        return self.role in (NUMBER, YES_NO, CATEGORY, TEXT)

    def as_data(self) -> dict[str, Any]:
        """Return what `predict` needs to know, for the model file.

        Examples
        --------
        >>> Kind(CATEGORY, ("a", "b"), 2).as_data()
        {'role': 'category', 'levels': ['a', 'b']}
        """
        data: dict[str, Any] = {"role": self.role}
        if self.levels:
            data["levels"] = list(self.levels)
        if self.unit:
            data["unit"] = self.unit
        if self.decimal != POINT:
            data["decimal"] = self.decimal
        if self.blank is not None:
            data["blank"] = self.blank
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Kind":
        """Restore what `as_data` returned."""
        levels = tuple(data.get("levels", ()))
        unit, decimal = data.get("unit", ""), data.get("decimal", POINT)
        return cls(data["role"], levels, len(levels), unit, decimal, blank=data.get("blank"))


def recognise(table: Table, name: str, *, wanted: str | None = None, decimal: str | None = None) -> Kind:
    """Recognise what a column holds by its values and, for ids, its name. The order of the rows does not matter.

    Parameters
    ----------
    table : Table
        A file.
    name : str
        One of its columns.
    wanted : {"number", "category", "text"}, optional
        What --type says.
    decimal : {".", ","}, optional
        The decimal mark, if --decimal gives it.

    Returns
    -------
    Kind

    Examples
    --------
    >>> from lmssc.io.table import Column, Rows
    >>> def kind_of(*cells):
    ...     texts = np.array(cells, dtype=object)
    ...     return recognise(Table(Rows("a.csv", len(cells)), {"x": Column("text", lambda: texts)}), "x").role
    >>> kind_of("yes", "no", "no"), kind_of("2024-01-31", "2024-02-01"), kind_of("$1,200", "$30")
    ('yes/no', 'date', 'number')
    >>> kind_of("a", "b", "a", "a", "b", "b"), kind_of("so it is", "and so on")
    ('category', 'text')
    """
    column = table.columns[name]
    if wanted == CATEGORY:
        texts = table.texts(name)
        written = _written(texts)
        return _category(Counter(written), RULES.max_levels_by_type, len(texts) - len(written))
    if wanted == TEXT:
        return Kind(TEXT)
    if column.kind == NUMBERS:
        if column.truth and wanted is None:
            return _yes_no(int(np.isnan(np.asarray(column.load(), dtype=np.float64)).sum()))
        role = NUMBER if wanted or column.fault else _role_of_numbers(np.asarray(column.load()), name)
        return Kind(role, unit=column.unit, grouped=column.grouped, odd_blanks=column.odd_blanks)
    if column.kind == TEXTS:
        texts = column.load()
        written = _written(texts)
        if wanted == NUMBER:
            return _number(written, decimal)
        return _kind_of_texts(written, len(texts) - len(written), name, decimal)
    return Kind(DATE) if column.kind == DATES else Kind(NUMBER)


def _written(texts: NDArray) -> list[str]:
    return [text for text in texts if text is not None and not is_missing(text)]


def _role_of_numbers(values: NDArray, name: str) -> str:
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    if not len(values):
        return BLANK
    if len(values) > 1 and (values == values[0]).all():
        return CONSTANT
    if _are_days(values):
        return DATE
    if not (_are_distinct_whole(values[: RULES.n_sampled]) and _are_distinct_whole(values)):
        return NUMBER
    runs = len(values) >= RULES.min_rows_for_serial and values.max() - values.min() == len(values) - 1
    return ID if runs or looks_like_id(name) else NUMBER


def looks_like_id(name: str) -> bool:
    """Whether the name of a column suggests ids.

    Examples
    --------
    >>> [looks_like_id(name) for name in ("mouse_id", "ID", "patientId", "lipid", "x")]
    [True, True, True, False, False]
    """
    return ID_NAME.fullmatch(name) is not None or ID_NAME.fullmatch(name.lower()) is not None


def _are_distinct_whole(values: NDArray) -> bool:
    if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.rint(values)).all()):
        return False
    return len(values) > 1 and len(np.unique(values)) == len(values)


def _are_days(values: NDArray) -> bool:
    """Whether numbers are days like 20240131."""
    if not (np.abs(values - 20000000) <= 1010000).all() or (values != np.rint(values)).any():
        return False
    whole = values.astype(np.int64)
    month, day = whole // 100 % 100, whole % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all() and len(np.unique(whole)) > 1)


def _kind_of_texts(written: list[str], n_blank: int, name: str, decimal: str | None) -> Kind:
    if not written:
        return Kind(BLANK)
    counts = Counter(written)
    lowered = {value.lower() for value in counts}
    if any(lowered <= pair for pair in PAIRS) and len({WORDS[value] for value in lowered}) == 2:
        return _yes_no(n_blank)
    if are_durations(counts):
        return Kind(NUMBER, unit=CLOCK)
    if sum(_is_day(value) for value in counts) >= RULES.min_share * len(counts):
        return Kind(DATE)
    sample = written[: RULES.n_sampled]
    if is_mostly_numbers(sample) and not are_digit_codes(sample):
        return _number(written, decimal, name)
    n_levels = len({value.casefold() for value in counts})
    if n_levels == 1 and len(written) > 1 and not n_blank:
        return Kind(CONSTANT)
    if RULES.min_cells_per_level * n_levels <= len(written) and _are_levels(counts):
        return _category(counts, RULES.max_levels, n_blank)
    if _share(VERSIONS, counts) >= RULES.min_share:
        return Kind(VERSION)
    if len(written) >= RULES.min_rows_for_ids and _share(UUID, counts) >= RULES.min_share:
        return Kind(ID)
    if len(written) >= RULES.min_rows_for_ids and _share(TOKEN, counts) == 1:
        return Kind(ID)
    if len(written) >= RULES.min_rows_for_ids and _share(CODE_PARTS, counts) >= RULES.min_share:
        return Kind(CODE)
    return Kind(TEXT)


def _share(pattern: re.Pattern[str], counts: Counter[str]) -> float:
    """Share of the distinct values that match a pattern."""
    return sum(pattern.fullmatch(value) is not None for value in counts) / len(counts)


def _are_levels(counts: Counter[str]) -> bool:
    words = sum(len(value.split()) for value in counts)
    return words <= RULES.max_words_per_level * len(counts) and max(map(len, counts)) <= RULES.max_level_length


def _is_day(value: str) -> bool:
    """Whether a value is a date; "1.0.12", which has no month, is not."""
    if DAY.fullmatch(value) is None:
        return False
    digits = DIGITS.fullmatch(value)
    if digits is None:
        return True
    first, second, third = (int(part) for part in digits.groups())
    pairs = [(second, third)] if len(digits[1]) > 2 else [(first, second), (second, first)]
    return any(1 <= month <= 12 and 1 <= day <= 31 for month, day in pairs)


def _yes_no(n_blank: int) -> Kind:
    return Kind(YES_NO, blank=n_blank > 0, n_blank=n_blank)


def _category(counts: Counter[str], most: int, n_blank: int) -> Kind:
    """Values that differ in case only are one, in the spelling that is most frequent."""
    spellings: dict[str, str] = {}
    totals: Counter[str] = Counter()
    for value in sorted(counts, key=lambda value: (-counts[value], value)):
        totals[spellings.setdefault(value.casefold(), value)] += counts[value]
    frequent = sorted(totals, key=lambda value: (-totals[value], value))[:most]
    # Beside a single value, blank cells are told by its feature.
    blank = n_blank > 0 and len(totals) > 1
    return Kind(CATEGORY, tuple(sorted(frequent)), len(totals), blank=blank, n_blank=n_blank)


def _number(written: list[str], decimal: str | None, name: str | None = None) -> Kind:
    """The kind of a column of numbers written as text; with a name, dates and ids are recognised."""
    if are_durations(written):
        return Kind(NUMBER, unit=CLOCK)
    mark = decimal or decimal_of(written) or POINT
    numbers = read_numbers(written, mark, told=True)
    role = NUMBER if name is None or numbers.fault else _role_of_numbers(numbers.values, name)
    return Kind(role, unit=numbers.unit, decimal=mark, grouped=numbers.grouped, odd_blanks=numbers.odd_blanks)


# Why a column is not used.
WHY = {
    DATE: "dates",
    VERSION: "versions",
    CODE: "codes such as phone numbers or postcodes",
    ID: "looks like ids; use --id NAME if it has them",
    CONSTANT: "the same in all rows",
    BLANK: "blank",
}


def _say_levels(kind: Kind) -> str:
    return str(kind.n_levels) if kind.n_levels == len(kind.levels) else f"{len(kind.levels)} of {kind.n_levels}"


def _say_blank(kind: Kind) -> str:
    if not kind.n_blank:
        return ""
    return f"{kind.n_blank:,} blank as a value of their own" if kind.blank else f"{kind.n_blank:,} blank"


def describe_kinds(path: str, kinds: Mapping[str, Kind]) -> list[str]:
    """Describe the columns that are neither plain numbers nor text, in lines to print.

    Parameters
    ----------
    path : str
        The file.
    kinds : dict of str to Kind
        Its columns.

    Returns
    -------
    list of str

    Examples
    --------
    >>> describe_kinds("a.csv", {"x": Kind(NUMBER), "day": Kind(DATE), "who": Kind(CATEGORY, ("a", "b"), 2)})
    ['a.csv: categories, one feature per value: who (2).', 'Not used in a.csv: day (dates; --type overrides this).']
    """

    def listed(chosen: Mapping[str, str]) -> str:
        named = {name or "the column without a name": more for name, more in chosen.items()}
        return some(f"{name} ({more})" if more else name for name, more in named.items())

    yes_no = {name: _say_blank(kind) for name, kind in kinds.items() if kind.role == YES_NO}
    categories = {
        name: ", ".join(filter(None, (_say_levels(kind), _say_blank(kind))))
        for name, kind in kinds.items()
        if kind.role == CATEGORY
    }
    units = {name: kind.unit for name, kind in kinds.items() if kind.role == NUMBER and kind.unit not in ("", CLOCK)}
    durations = {name: "" for name, kind in kinds.items() if kind.role == NUMBER and kind.unit == CLOCK}
    grouped = {name: "" for name, kind in kinds.items() if kind.role == NUMBER and kind.grouped}
    commas = {name: "" for name, kind in kinds.items() if kind.role == NUMBER and kind.decimal != POINT}
    odd = {
        name: ", ".join(f"{cell!r}: {count:,}" for cell, count in kind.odd_blanks)
        for name, kind in kinds.items()
        if kind.role == NUMBER and kind.odd_blanks
    }
    lines = []
    for what, chosen in (
        ("yes/no, as 1 and 0", yes_no),
        ("categories, one feature per value", categories),
        ("numbers with a unit", units),
        ("times such as 5:00 or 1:05:00, as numbers of seconds", durations),
        ("numbers with separated thousands", grouped),
        ("numbers with a decimal comma", commas),
        ("cells that count as blank", odd),
    ):
        if chosen:
            lines.append(f"{path}: {what}: {listed(chosen)}.")
    for role, why in WHY.items():
        left = {name: "" for name, kind in kinds.items() if kind.role == role}
        if left:
            lines.append(f"Not used in {path}: {listed(left)} ({why}; --type overrides this).")
    return lines
