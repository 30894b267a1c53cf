"""What the user said about the files: column names, delimiters, types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lmssc.io.delimited import NAMELESS
from lmssc.io.formats import read_table
from lmssc.io.table import NUMBER, Table

ID_NAMES = ("id", "ids")
LABEL_NAMES = ("label", "labels")


@dataclass(frozen=True)
class Options:
    """What the user said about the files, as options of `classify` and `predict`.

    Attributes
    ----------
    id_column, label_column : str, optional
        Names of the columns with ids and labels; by default "id" and "label".
    delimiter : str, optional
        Delimiter of CSV and TSV files.
    selections : dict of str to str
        --view: the columns of each view, by its name.
    prefix_separator : str, optional
        --prefix-sep: a column belongs to the view named by the part of its name before this text.
    drop : sequence of str
        Columns and matrices to ignore.
    transpose : sequence of str
        Views whose matrices have one column per sample.
    decimal : {".", ","}, optional
        Decimal mark.
    usual_decimal : {".", ","}, optional
        Decimal mark of files that do not show theirs.
    types : dict of str to str
        --type: "number", "category" or "text" for each column named.
    impute : {"median", "mean"}, optional
        How blank cells are filled in; None refuses them.
    id_names : sequence of str
        Further names of id columns.
    """

    id_column: str | None = None
    label_column: str | None = None
    delimiter: str | None = None
    selections: Mapping[str, str] = field(default_factory=dict)
    prefix_separator: str | None = None
    drop: Sequence[str] = ()
    transpose: Sequence[str] = ()
    decimal: str | None = None
    usual_decimal: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    impute: str | None = "median"
    id_names: Sequence[str] = ()

    def keep_text(self, name: str) -> bool:
        """Whether to keep the cells of a column as written: ids, labels, and columns that --type calls no numbers."""
        return (
            may_be(name, self.id_column, (*ID_NAMES, NAMELESS))
            or may_be(name, self.label_column, LABEL_NAMES)
            or name in self.id_names
            or self.types.get(name, NUMBER) != NUMBER
        )

    def read(self, path: str) -> Table:
        """Read one file."""
        return read_table(
            path,
            delimiter=self.delimiter,
            decimal=self.decimal,
            usual_decimal=self.usual_decimal,
            keep_text=self.keep_text,
        )


def may_be(name: str, wanted: str | None, usual: Sequence[str]) -> bool:
    """Whether a column has the name that was asked for, or one of the usual names if none was.

    Examples
    --------
    >>> may_be("ID", None, ID_NAMES), may_be("ID", "mouse", ID_NAMES)
    (True, False)
    """
    return name.lower() in usual if wanted is None else name == wanted
