"""Tables with a column for each sample, as omics data have them: turned, so that rows are samples."""

from collections.abc import Iterable, Sequence

import numpy as np

from lmssc.io.errors import InputFileError
from lmssc.io.table import NUMBER, TEXT, Column, Rows, Table, some

IDS = "id"
# Columns are taken for samples if more than this share of the ids are names of columns.
MIN_SHARE = 0.5


def transpose_table(table: Table, name: str, drop: Sequence[str] = ()) -> Table:
    """Turn a table with a column for each sample.

    Parameters
    ----------
    table : Table
        Its first column of text, if there is one, names the features; all other columns are samples.
    name : str
        Name of the view.
    drop : sequence of str
        Columns that are no samples.

    Returns
    -------
    Table
        One matrix, whose rows are named by the columns of the table.

    Examples
    --------
    >>> def column(kind, values):
    ...     return Column(kind, lambda: np.array(values, dtype=object if kind == TEXT else float))
    >>> columns = {"gene": column(TEXT, ["g1", "g2"]), "a": column(NUMBER, [1, 2]), "b": column(NUMBER, [3, 4])}
    >>> turned = transpose_table(Table(Rows("x.csv", 2), columns), "x")
    >>> turned.columns["id"].load(), turned.blocks["x"].tolist(), turned.features("x")
    (array(['a', 'b'], dtype=object), [[1.0, 2.0], [3.0, 4.0]], ['g1', 'g2'])
    """
    names = [column for column in table.columns if column not in drop]
    texts = [column for column in names if table.columns[column].kind == TEXT]
    samples = [column for column in names if column not in texts[:1]]
    wrong = [column for column in samples if table.columns[column].kind != NUMBER]
    if wrong or not samples:
        what = f"column {wrong[0]!r} is not numbers" if wrong else "it has no column of numbers"
        raise InputFileError(
            f"--transpose {name}: {what}; except for a column with the names of the features, all columns of "
            f"{table.path} must be samples (leave others out with --drop)"
        )
    features = list(table.texts(texts[0])) if texts else [str(number) for number in range(1, table.rows.count + 1)]
    if len(set(features)) < len(features) or None in features:
        repeated = None if None in features else next(one for one in features if features.count(one) > 1)
        shown = "a feature has no name" if repeated is None else f"the feature {repeated!r} appears twice"
        raise InputFileError(f"--transpose {name}: in {table.path} {shown} (column {texts[0]!r})")
    data = np.stack([np.asarray(table.numbers(column), dtype=np.float64) for column in samples])
    ids = np.array(samples, dtype=object)
    return Table(
        Rows(table.path, len(samples)),
        {IDS: Column(TEXT, lambda: ids, feature=False)},
        {name: data},
        note=table.note,
        id_column=IDS,
        features=lambda block: features,
        transposed=True,
    )


def suggest_transpose(name: str, columns: Iterable[str], ids: Iterable[str]) -> str:
    """Advice if the ids of the samples are the names of the columns; empty if they are not.

    Examples
    --------
    >>> suggest_transpose("gene", ["s1", "s2", "x"], ["s1", "s2"])
    '. The columns of gene are the samples (s1, s2): --transpose gene'
    """
    wanted, there = list(ids), set(columns)
    found = [value for value in wanted if value in there]
    if not wanted or len(found) <= MIN_SHARE * len(wanted):
        return ""
    return f". The columns of {name} are the samples ({some(found, 2)}): --transpose {name}"
