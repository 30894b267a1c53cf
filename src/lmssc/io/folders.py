"""Folders of embeddings: parts in .npy files with a table of metadata, and data sets of Hugging Face."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.data.memmap import MIN_MAPPED_BYTES, copy_to_disk
from lmssc.io.arrow import arrow_table, read_parquet
from lmssc.io.errors import InputFileError
from lmssc.io.table import NUMBER, TEXT, Column, LazyBlocks, Rows, Table, clean_texts, reason, some, stem

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
METADATA = "metadata"


def read_folder(path: str) -> Table:
    """Read a folder: one that `datasets` saved, or parts of embeddings with their metadata.

    Parts are numbered .npy files, in the folder itself or in one folder for each view, as clip-retrieval writes them:
    ``img_emb/img_emb_0.npy``, ``text_emb/text_emb_0.npy``, ``metadata/metadata_0.parquet``.
    """
    folder = Path(path)
    for inner in folder.rglob("*"):
        if inner.is_symlink() and not inner.resolve().is_relative_to(folder.resolve()):
            raise InputFileError(f"{path}: {inner.name} is a link to outside the folder, which is not followed")
    if (folder / SPLITS).is_file():
        splits = _json(folder / SPLITS).get("splits", [])
        raise InputFileError(
            f"{path} has the splits {some(splits)}; name one: {os.path.join(path, str((splits or ['train'])[0]))}"
        )
    if (folder / STATE).is_file():
        return _read_dataset(folder)
    homes = [folder, *sorted(inner for inner in folder.iterdir() if inner.is_dir() and inner.name != METADATA)]
    parts = {stem(str(home.resolve())): _numbered(home, ".npy") for home in homes}
    parts = {name: files for name, files in parts.items() if files}
    if not parts:
        raise InputFileError(f"{path} is a folder; name the files in it (or a folder with parts in .npy files)")
    return _read_parts(path, folder, parts)


def _numbered(folder: Path, ending: str) -> list[Path]:
    """Files of a folder in the order of their numbers: part_2 before part_10."""
    files = [file for file in folder.iterdir() if file.suffix.lower() == ending and file.is_file()]
    return sorted(files, key=lambda file: [(int(d or 0), t) for d, t in re.findall(r"(\d*)(\D*)", file.name)])


def _read_parts(path: str, folder: Path, parts: dict[str, list[Path]]) -> Table:
    counts = {name: [_open(file).shape[0] for file in files] for name, files in parts.items()}
    first = next(iter(counts))
    for name, sizes in counts.items():
        if sizes != counts[first]:
            raise InputFileError(
                f"{path}: {name!r} and {first!r} have parts of other lengths: {sizes} and {counts[first]}"
            )
    columns: dict[str, Column] = {}
    homes = [home for home in (folder / METADATA, folder) if home.is_dir()]
    tables = next((found for home in homes if (found := _numbered(home, ".parquet"))), [])
    if tables:
        read = [read_parquet(str(file)) for file in tables]
        if [table.rows.count for table in read] != counts[first]:
            raise InputFileError(f"{path}: the metadata and {first!r} have parts of other lengths")
        columns = {name: _joined(read, name) for name in read[0].columns if all(name in t.columns for t in read)}
    blocks = {name: partial(_load, files) for name, files in parts.items()}
    return Table(Rows(path, sum(counts[first])), columns, LazyBlocks(blocks))


def _joined(tables: Sequence[Table], name: str) -> Column:
    """A column of all parts of a table; it is no feature unless it is asked for."""
    columns = [table.columns[name] for table in tables]
    if {column.kind for column in columns} == {NUMBER, TEXT}:
        columns = [_text_if_blank(column) for column in columns]
    if len({column.kind for column in columns}) > 1 or any(column.fault for column in columns):
        return replace(
            columns[0], fault=columns[0].fault or f"the column {name!r} differs from part to part", feature=False
        )
    return replace(columns[0], load=lambda: np.concatenate([column.load() for column in columns]), feature=False)


def _text_if_blank(column: Column) -> Column:
    """The column of a part; as text if all its cells are blank, because such a column is written without a type.

    Examples
    --------
    >>> _text_if_blank(Column(NUMBER, lambda: np.array([np.nan, np.nan]))).load()
    array([None, None], dtype=object)
    >>> _text_if_blank(Column(NUMBER, lambda: np.array([1, 2]))).kind
    'number'
    """
    if column.kind == TEXT:
        return column
    values = column.load()
    if not np.isnan(values).all():
        return column
    return Column(TEXT, lambda: np.full(len(values), None, dtype=object))


def _open(file: Path) -> NDArray:
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputFileError(f"{file} is not a complete numpy array: {reason(error)}") from error
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputFileError(f"{file} has the shape {array.shape} and holds {array.dtype}; a part is rows of numbers")
    return array


def _load(files: Sequence[Path]) -> NDArray:
    """All parts of a view; a large one is copied to disk part by part."""
    first = _open(files[0])
    dtype = np.dtype(np.float32 if first.dtype.kind == "f" and first.dtype.itemsize <= 4 else np.float64)

    def arrays() -> Iterator[NDArray]:
        for file in files:
            array = _open(file)
            if array.shape[1] != first.shape[1]:
                raise InputFileError(f"{file} has {array.shape[1]} columns, but {files[0]} has {first.shape[1]}")
            yield array

    size = sum(_open(file).shape[0] for file in files) * first.shape[1] * dtype.itemsize
    if size >= MIN_MAPPED_BYTES:
        return copy_to_disk(arrays(), first.shape[1], dtype)
    return np.concatenate([np.asarray(array, dtype=dtype) for array in arrays()])


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise InputFileError(f"{file} is not JSON: {reason(error)}") from error
    if not isinstance(found, dict):
        raise InputFileError(f"{file} must be a JSON object")
    return found


def _read_dataset(folder: Path) -> Table:
    """A data set that `datasets.Dataset.save_to_disk` wrote: Arrow streams, mapped and not copied."""
    arrow = import_optional("pyarrow", purpose="data sets of Hugging Face", extra="files")
    ipc = import_optional("pyarrow.ipc", purpose="data sets of Hugging Face", extra="files")
    state, info = _json(folder / STATE), _json(folder / INFO) if (folder / INFO).is_file() else {}
    if state.get("_indices_data_files"):
        raise InputFileError(
            f"{folder}: its rows are chosen by a list of indices; call flatten_indices() and save again"
        )
    files = [str(file.get("filename", "")) for file in state.get("_data_files") or [] if isinstance(file, dict)]
    wrong = [name for name in files if Path(name).name != name or not (folder / name).is_file()]
    if not files or wrong:
        raise InputFileError(f"{folder}: {STATE} names no file of the folder" + (f" {wrong[0]!r}" if wrong else ""))
    try:
        tables = [ipc.open_stream(arrow.memory_map(str(folder / name))).read_all() for name in files]
        table = arrow.concat_tables(tables).unify_dictionaries()
        table.validate(full=True)
    except (arrow.ArrowException, OSError) as error:
        raise InputFileError(f"{folder} is not a complete data set: {reason(error)}") from error
    if not table.num_rows:
        raise InputFileError(f"{folder} has columns but no rows")
    made = arrow_table(table, str(folder))
    names = {name: _class_names(feature) for name, feature in (info.get("features") or {}).items()}
    named = {
        name: _with_names(made.columns[name], levels, str(folder))
        for name, levels in names.items()
        if levels and name in made.columns
    }
    return replace(made, columns={**made.columns, **named})


def _class_names(feature: Any) -> list[str]:
    """Names of the classes of a column of labels; empty for any other column."""
    if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
        return []
    return [str(name) for name in feature.get("names") or []]


def _with_names(column: Column, levels: list[str], path: str) -> Column:
    """Class names in place of their numbers; −1 and blank are unlabelled."""
    if column.kind != NUMBER:
        return column

    def load() -> NDArray:
        numbers = np.nan_to_num(np.asarray(column.load(), dtype=np.float64), nan=-1).astype(np.int64)
        if numbers.max() >= len(levels):
            raise InputFileError(f"{path}: a label is {numbers.max()}, but there are {len(levels)} class names")
        return clean_texts(None if number < 0 else levels[number] for number in numbers.tolist())

    return Column(TEXT, load)
