"""Checks of files that are about to be joined by position: do their columns say that the rows are in another order?

Columns are compared only if they may identify samples. Two files may well share a feature: a column `mean` in each has
other values in the same rows. A key in another order is different: its *values* are the same, and only their rows
differ.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lmssc.io.column_types import ID, looks_like_id, recognise
from lmssc.io.errors import InputFileError
from lmssc.io.numerals import is_missing
from lmssc.io.options import Options
from lmssc.io.sources import Source, check_ids
from lmssc.io.table import NUMBER, TEXT, Table, some

# Last word of a column's name that suggests a key, if its values are nearly all distinct.
KEY_WORDS = {"accession", "barcode", "case", "code", "index", "individual", "name", "no", "nr", "num", "number"} | {
    *("participant", "patient", "person", "record", "row", "sample", "specimen", "subject")
}


@dataclass(frozen=True)
class _Limits:
    """When columns of two files count as the same key."""

    min_rows: int = 5
    """Fewer rows than this are no evidence."""
    n_probed: int = 1000
    """Rows that are looked at first, to rule out most columns quickly."""
    distinct: float = 0.9
    """Smallest share of distinct values in a key; a few repeated or blank cells are mistakes to report."""
    shared: float = 0.1
    shared_numbers: float = 0.5
    shared_unnamed: float = 0.9
    """Smallest share of values in common: of text; of numbers in columns of the same name, because whole numbers of a
    narrow range share many values by chance; and of numbers under different names that do not suggest a key."""
    max_numeric_keys: int = 10
    """Where more columns than this have distinct whole numbers, only their names tell which may be keys."""
    max_parts: int = 6
    """Of more columns than this only all are tried as a key together, not each combination."""
    max_levels: int = 20
    """Columns of text with at most so many values may be categories, which are keys only together."""


LIMITS = _Limits()


def suggests_key(name: str) -> bool:
    """Whether the name of a column suggests that it identifies samples.

    Parameters
    ----------
    name : str
        Name of the column.

    Returns
    -------
    bool

    Examples
    --------
    >>> [suggests_key(name) for name in ("Subject", "patient_no", "mouse_id", "sample mean", "rank")]
    [True, True, True, False, False]
    """
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return looks_like_id(name) or (bool(words) and words[-1].lower() in KEY_WORDS)


def is_rank(values: NDArray) -> bool:
    """Whether whole numbers are 0 to n - 1 or 1 to n in some order, as ranks and counters are.

    Parameters
    ----------
    values : ndarray
        Distinct whole numbers.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_rank(np.array([3.0, 1.0, 2.0])), is_rank(np.array([1001.0, 1002.0]))
    (True, False)
    """
    return bool(values.min() in (0, 1) and values.max() - values.min() == len(values) - 1)


@dataclass(frozen=True, eq=False)
class _Column:
    """A column that is compared with those of another file."""

    table: Table
    name: str

    @property
    def is_number(self) -> bool:
        return self.table.columns[self.name].kind == NUMBER

    @property
    def is_measured(self) -> bool:
        """Whether some of its numbers are not whole."""
        values = self.table.columns[self.name].load() if self.is_number else np.empty(0)
        return bool((values[np.isfinite(values)] % 1 != 0).any())

    @cached_property
    def folded(self) -> str:
        """Its name without case, blanks and punctuation."""
        return re.sub(r"[\W_]+", "", self.name).casefold() or self.name

    @cached_property
    def texts(self) -> NDArray:
        """Its cells, as far as they can be compared; None where one is blank."""
        texts = self.table.texts(self.name)
        return texts if self.is_number else np.array([_plain(text) for text in texts], dtype=object)

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(text for text in self.texts if text is not None)

    @cached_property
    def may_be_key(self) -> bool:
        """Whether its cells are text or whole numbers, and nearly all distinct."""
        values = self.table.columns[self.name].load()
        if len(values) < LIMITS.min_rows or not _nearly_distinct(values[: LIMITS.n_probed]):
            return False
        return _nearly_distinct(values) and len(self.counts) >= LIMITS.distinct * len(self.texts)

    @cached_property
    def like_ids(self) -> bool:
        return suggests_key(self.name) or recognise(self.table, self.name).role == ID

    def agrees(self, other: "_Column") -> bool:
        """Whether no row has one value here and another value there."""
        if self.table.rows.count != other.table.rows.count:
            return False
        if self.is_number and other.is_number:
            mine, theirs = (column.table.columns[column.name].load() for column in (self, other))
            return not ((mine != theirs) & (mine == mine) & (theirs == theirs)).any()
        pairs = zip(self.texts, other.texts, strict=True)
        return not any(mine is not None and theirs is not None and mine != theirs for mine, theirs in pairs)

    def shared(self, other: "_Column") -> float:
        """Share of the values of the column with fewer that are in both."""
        return len(self.counts.keys() & other.counts.keys()) / max(1, min(len(self.counts), len(other.counts)))

    def has_values_of(self, other: "_Column") -> bool:
        """Whether both have the same values, each as often as the other; a few cells of text may differ."""
        if self.table.rows.count != other.table.rows.count:
            return False
        if self.is_number and other.is_number:
            mine, theirs = (column.table.columns[column.name].load() for column in (self, other))
            return _ends(mine) == _ends(theirs) and np.array_equal(np.sort(mine), np.sort(theirs), equal_nan=True)
        return (self.counts & other.counts).total() >= LIMITS.distinct * self.table.rows.count


def _nearly_distinct(values: NDArray) -> bool:
    if values.dtype.kind == "O":
        return len({value for value in values if value is not None}) >= LIMITS.distinct * len(values)
    if values.dtype.kind == "f":
        written = values[~np.isnan(values)]
        if not (np.isfinite(written).all() and (written == np.rint(written)).all()):
            return False
        return len(np.unique(written)) >= LIMITS.distinct * len(values)
    return len(np.unique(values)) >= LIMITS.distinct * len(values)


def _ends(values: NDArray) -> tuple[float, float]:
    """The smallest and the largest of some numbers; tells most columns apart without sorting them."""
    return (float(np.fmin.reduce(values)), float(np.fmax.reduce(values))) if len(values) else (0.0, 0.0)


# The columns of two files that contradict each other; more than one of each if they are a key together.
Conflict = tuple[Sequence[_Column], Sequence[_Column]]


def refuse_other_order(sources: Sequence[Source], options: Options) -> None:
    """Check files that are about to be joined by position.

    Parameters
    ----------
    sources : sequence of Source
        The files of the views. Only pairs in which a file has no ids are compared.
    options : Options
        What the user said. Columns that `drop` or `types` name are no keys.

    Raises
    ------
    InputFileError
        If columns of two files look like the same key, with other values in the same rows.
    """
    columns = {
        id(source): _columns(source.table, _known_features(source, options)) for source in sources if len(sources) > 1
    }
    for first, other in combinations(sources, 2):
        if first.id_column is None or other.id_column is None:
            found = _find_conflict(columns[id(first)], columns[id(other)])
            if found is not None:
                raise InputFileError(_describe(*found))


def refuse_labels_in_other_order(table: Table, label_column: str, sources: Sequence[Source], options: Options) -> None:
    """Check a file of labels that is about to be joined to the views by position.

    Parameters
    ----------
    table : Table
        The labels.
    label_column : str
        Where they are.
    sources : sequence of Source
        The files of the views.
    options : Options
        What the user said.

    Raises
    ------
    InputFileError
        If another column of it looks like a key that a file of views has, too, with other values in the same rows.
    """
    theirs = _columns(table, {label_column, *options.drop, *options.types})
    for source in sources if theirs else ():
        ours = _columns(source.table, _known_features(source, options))
        found = _find_conflict(ours, theirs, labels=True)
        if found is not None:
            raise InputFileError(_describe(*found))


def _known_features(source: Source, options: Options) -> set[str]:
    unused = {name for name, column in source.table.columns.items() if not column.feature}
    return {*unused, *options.drop, *options.types, source.label_column or ""} - {source.id_column}


def _columns(table: Table, without: Collection[str]) -> list[_Column]:
    """Columns that may be a key, or a part of one."""
    return [
        _Column(table, name)
        for name, column in table.columns.items()
        if name not in without
        and column.kind in (NUMBER, TEXT)
        and not (column.fault or column.unit or column.truth)
        and len(column.load()) == table.rows.count
    ]


def _plain(text: str | None) -> str | None:
    """A cell as it is compared: whole numbers without leading zeros and ".0", as columns of numbers have them."""
    if text is None or is_missing(text):
        return None
    digits = text.removesuffix(".0")
    return str(int(digits)) if digits.isascii() and digits.isdigit() else text


def _find_conflict(ours: Sequence[_Column], theirs: Sequence[_Column], *, labels: bool = False) -> Conflict | None:
    """The first key of two files that contradicts the order of their rows.

    `labels`: whether `theirs` are the columns beside labels. What stands there is there to say whose labels these are,
    so that less evidence is enough.
    """
    by_name = {column.folded: column for column in theirs}
    same_name = [(column, by_name[column.folded]) for column in ours if column.folded in by_name]
    agreeing: list[tuple[_Column, _Column]] = []
    differing: list[tuple[_Column, _Column]] = []
    for mine, other in same_name:
        (agreeing if mine.agrees(other) else differing).append((mine, other))
    if any(mine.may_be_key and other.may_be_key for mine, other in agreeing):
        return None
    for mine, other in differing:
        if _same_key(mine, other, labels=labels):
            return [mine], [other]
    together = _key_of_several(differing, agreeing)
    if together is not None:
        return together
    for mine in _likely_keys(ours):
        for other in theirs if labels else _likely_keys(theirs):
            if mine.folded != other.folded and _same_values(mine, other, labels=labels) and not mine.agrees(other):
                return [mine], [other]
    return None


def _likely_keys(columns: Sequence[_Column]) -> list[_Column]:
    """Columns that may be keys under any name; where many columns have distinct numbers, those are features."""
    keys = [column for column in columns if column.may_be_key]
    if sum(key.is_number for key in keys) > LIMITS.max_numeric_keys:
        keys = [key for key in keys if not key.is_number or suggests_key(key.name)]
    return keys


def _same_key(mine: _Column, other: _Column, *, labels: bool) -> bool:
    """Whether two columns of the same name are the same key, perhaps with a few cells that are blank or repeated."""
    keys = mine.may_be_key and other.may_be_key
    if labels:
        return keys or (not mine.is_measured and mine.shared(other) > 0)
    numbers = mine.is_number or other.is_number
    limit = LIMITS.shared_numbers if numbers and not suggests_key(mine.name) else LIMITS.shared
    return keys and mine.shared(other) > limit


def _same_values(mine: _Column, other: _Column, *, labels: bool) -> bool:
    """The same for two columns of different names."""
    numbers = mine.is_number or other.is_number
    if not mine.may_be_key or not (other.may_be_key or (labels and not numbers)):
        return False
    unnamed = numbers and not (mine.like_ids and other.like_ids)
    return mine.shared(other) > (LIMITS.shared_unnamed if unnamed else LIMITS.shared_numbers)


def _key_of_several(
    differing: Sequence[tuple[_Column, _Column]], agreeing: Sequence[tuple[_Column, _Column]]
) -> Conflict | None:
    """Columns of the same names that are a key together, such as site and visit, or one with repeated values.

    Values that are the same by chance, or in any order because they are quantiles, differ once columns are combined.
    """
    moved = [pair for pair in differing if pair[0].has_values_of(pair[1])]
    parts = [*moved, *(pair for pair in agreeing if not pair[0].is_number)] if moved else []
    sizes = range(len(parts), 0, -1) if len(parts) <= LIMITS.max_parts else [len(parts)]
    for size in sizes:
        for chosen in combinations(parts, size):
            ours, theirs = zip(*chosen, strict=True)
            keys = Counter(zip(*(column.texts for column in ours), strict=True))
            enough = 2 * len(keys) >= ours[0].table.rows.count >= LIMITS.min_rows
            if enough and keys == Counter(zip(*(column.texts for column in theirs), strict=True)):
                return ours, theirs
    for mine, other in moved:
        if not (mine.is_number or other.is_number) and len(mine.counts) > LIMITS.max_levels:
            return [mine], [other]
    return None


def _describe(ours: Sequence[_Column], theirs: Sequence[_Column]) -> str:
    first, other = ours[0], theirs[0]
    paths = f"{first.table.path} and {other.table.path}"
    names = some(dict.fromkeys(repr(column.name) for column in (*ours, *theirs)))
    start = f"{paths} would be joined by position, but their rows differ in {names}, which may identify the samples"
    drop = f"--drop {first.name} (or --type {first.name}=KIND, if it is a feature)"
    if len(ours) > 1:
        return f"{start} together; put the key into one column of both files and name it with --id NAME, else {drop}"
    if first.name == other.name:
        ask = f"if it has their ids, pass --id {first.name}"
    else:
        ask = f"if they have their ids, give them the same name and pass --id {first.name}"
    if fault := _fault(first) or _fault(other):
        return f"{fault}. So {start}; {ask}, else {drop}"
    return f"{start}; {ask}, else {drop}"


def _fault(column: _Column) -> str:
    """Why a column cannot be used as ids as it is."""
    try:
        check_ids(column.table, column.name)
    except InputFileError as error:
        return str(error)
    return ""
