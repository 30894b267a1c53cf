"""Small files that unpack to gigabytes are refused before memory is taken; ordinary data that pack well are not."""

import gzip
import io
import os
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io

from lmssc import open_view
from lmssc.io import unpacking
from lmssc.io.errors import InputFileError
from lmssc.io.formats import read_table
from lmssc.io.unpacking import VARIABLE, most_unpacked, read_size
from peak_memory import run_and_measure

LIMIT = 1 << 20


def numbers(n_rows):
    return np.tile(np.arange(8.0), (n_rows, 1))


def packed_csv(path, n_rows):
    text = "a,b,c,d,e,f,g,h\n" + "0,1,2,3,4,5,6,7\n" * n_rows
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(text.encode()))
    return path.with_suffix(".csv.gz")


def packed_mtx(path, n_rows):
    text = f"%%MatrixMarket matrix array real general\n{n_rows} 8\n" + "1.0000\n" * (8 * n_rows)
    path.with_suffix(".mtx.gz").write_bytes(gzip.compress(text.encode()))
    return path.with_suffix(".mtx.gz")


def packed_svm(path, n_rows):
    path.with_suffix(".svm.gz").write_bytes(gzip.compress(b"1 1:1 2:2 3:3 4:4 5:5 6:6\n" * n_rows))
    return path.with_suffix(".svm.gz")


def packed_jsonl(path, n_rows):
    text = '{"a": 0, "b": 1, "c": 2, "d": 3}\n' * n_rows
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return path.with_suffix(".jsonl.gz")


def npz(path, n_rows):
    np.savez_compressed(path.with_suffix(".npz"), X=numbers(n_rows))
    return path.with_suffix(".npz")


def mat(path, n_rows):
    scipy.io.savemat(path.with_suffix(".mat"), {"X": numbers(n_rows)}, do_compression=True)
    return path.with_suffix(".mat")


def mat73(path, n_rows):
    import h5py

    with h5py.File(path.with_suffix(".mat"), "w", userblock_size=512) as file:
        file.create_dataset("X", data=numbers(n_rows).T, compression="gzip")
    return path.with_suffix(".mat")


def mat73_cell(path, n_rows):
    """One matrix that a cell refers to many times."""
    import h5py

    with h5py.File(path.with_suffix(".mat"), "w", userblock_size=512) as file:
        part = file.create_dataset("#refs#/a", data=numbers(100).T)
        file["X"] = np.array([[part.ref] * max(1, n_rows // 100)], dtype=h5py.ref_dtype)
    return path.with_suffix(".mat")


def parquet(path, n_rows):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({f"x{column}": values for column, values in enumerate(numbers(n_rows).T)})
    pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def feather(path, n_rows):
    import pyarrow
    import pyarrow.feather

    table = pyarrow.table({f"x{column}": values for column, values in enumerate(numbers(n_rows).T)})
    pyarrow.feather.write_feather(table, path.with_suffix(".feather"), compression="zstd")
    return path.with_suffix(".feather")


FORMATS = [packed_csv, packed_jsonl, packed_mtx, packed_svm, npz, mat, mat73, mat73_cell, parquet, feather]


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", LIMIT)
    monkeypatch.setattr(unpacking, "MAX_RATIO", 1)
    monkeypatch.setattr("lmssc.io.hdf5.SMALL_CHUNK", LIMIT // 1032)


@pytest.mark.parametrize("write", FORMATS)
def test_a_small_file_that_unpacks_to_too_much_is_refused(write, tmp_path, small_limit):
    path = write(tmp_path / "bomb", 100_000)
    message = rf"bomb\..* unpacks to more than the limit of .*{VARIABLE}=16G"
    with pytest.raises(InputFileError, match=message):
        read_table(str(path))


@pytest.mark.parametrize("write", FORMATS)
def test_ordinary_data_that_pack_well_are_read(write, tmp_path, small_limit):
    table = read_table(str(write(tmp_path / "plain", 400)))
    assert table.rows.count == (100 if write is mat73_cell else 400)


@pytest.mark.parametrize("write", FORMATS)
def test_the_limit_can_be_raised(write, tmp_path, small_limit, monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", LIMIT // 8)
    path = write(tmp_path / "large", 10_000)
    with pytest.raises(InputFileError, match=VARIABLE):
        read_table(str(path))
    monkeypatch.setenv(VARIABLE, "100M")
    assert read_table(str(path)).rows.count in (10_000, 100)


def test_limits_by_size_and_by_ratio(monkeypatch):
    gib = 1 << 30
    assert most_unpacked(1) == most_unpacked(10_000_000) == gib  # whatever the ratio
    assert most_unpacked(gib // 10) == gib // 10 * 100
    assert most_unpacked(10 * gib) == 64 * gib
    monkeypatch.setenv(VARIABLE, "2 GiB")
    assert most_unpacked(1) == most_unpacked(10 * gib) == 2 * gib
    for wrong in ("much", "-1", "1.5G", "1X"):
        with pytest.raises(InputFileError, match="is not a size"):
            read_size(wrong)


def huge_npz(path):
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as file,
    ):
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 15, 1 << 10)}
        )
        for _ in range(1 << 4):
            file.write(bytes(1 << 24))


def huge_mat(path):
    """A packed matrix whose tag says 3 GiB; what follows is never looked at."""
    inside = np.array([14, 3 << 30], dtype="<u4").tobytes() + bytes(1 << 20)
    packed = zlib.compress(inside)
    tag = np.array([15, len(packed)], dtype="<u4").tobytes()
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + tag + packed)


def huge_mat73(path):
    """Numbers that were never written: they take no room in the file."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("X", shape=(1 << 10, 1 << 20), dtype="f8", chunks=(1, 1 << 20), compression="gzip")


def huge_csv(path):
    a_mebibyte = gzip.compress((b"0" * 1023 + b"\n") * 1024)
    path.write_bytes(gzip.compress(b"a\n") + a_mebibyte * 256)


def huge_mtx(path):
    """A sparse matrix of two billion rows, all of them empty but one."""
    path.write_text("%%MatrixMarket matrix coordinate real general\n2000000000 3 1\n1 1 1.0\n")


HUGE = {
    "x.npz": huge_npz,
    "x.mat": huge_mat,
    "x73.mat": huge_mat73,
    "x.csv.gz": huge_csv,
    "x.mtx": huge_mtx,
}
READ = """
import sys
from lmssc.io.formats import read_table
from lmssc.io.errors import InputFileError
import h5py, lmssc.io.matlab  # what is imported late
for path in sys.argv[1:]:
    try:
        read_table(path)
    except InputFileError as error:
        print(error)
"""


def test_gigabytes_are_refused_before_memory_is_taken(tmp_path):
    pytest.importorskip("h5py")
    for name, write in HUGE.items():
        write(tmp_path / name)
        assert (tmp_path / name).stat().st_size < 8 << 20
    _, before = run_and_measure(READ)
    paths = [str(tmp_path / name) for name in HUGE]
    messages, after = run_and_measure(READ, *paths, env={**os.environ, VARIABLE: "64M"})
    for name, message in zip(HUGE, messages.splitlines(), strict=True):
        assert f"{name} has " in message
        assert "unpacks to more than the limit of 64 MiB" in message
    assert after - before < 160  # the smallest has 256 MiB


def test_a_text_that_is_there_a_million_times_is_kept_once(tmp_path):
    import pyarrow
    import pyarrow.parquet

    words = pyarrow.DictionaryArray.from_arrays(np.arange(20_000, dtype="i4") % 2, ["x" * 1_000_000, "y"])
    for path, write in (("x.parquet", pyarrow.parquet.write_table), ("x.feather", None)):
        file = str(tmp_path / path)
        if write is None:
            import pyarrow.feather

            pyarrow.feather.write_feather(pyarrow.table({"t": words}), file)
        else:
            write(pyarrow.table({"t": words}), file)
        texts = read_table(file).texts("t")
        assert len(texts) == 20_000
        assert texts[0] is texts[2]
        assert texts[1] == "y"


def test_json_lines_with_a_key_of_their_own_each_are_refused(tmp_path, small_limit):
    """As many columns as rows: the table would be the square of the file."""
    path = tmp_path / "wide.jsonl"
    path.write_text("".join(f'{{"x{row}": 1}}\n' for row in range(2000)))
    with pytest.raises(InputFileError, match=rf"wide\.jsonl .* unpacks to more than the limit of .*{VARIABLE}"):
        read_table(str(path))


def test_an_archive_packed_in_another_way_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, numbers(3))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("X.npy", buffer.getvalue())
    with pytest.raises(InputFileError, match=r"compressed by a method that numpy does not use"):
        read_table(str(tmp_path / "x.npz"))


def test_a_chunk_that_unpacks_to_more_than_it_should_is_refused(tmp_path, small_limit):
    import h5py

    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        dataset = file.create_dataset("X", shape=(10, 10), dtype="f8", chunks=(10, 10), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(64 << 20)))
    with pytest.raises(InputFileError, match="unpacks to more than"):
        read_table(str(tmp_path / "x.mat"))


def test_a_view_on_disk_has_the_same_limit(tmp_path, small_limit):
    with pytest.raises(ValueError, match="unpacks to more than"):
        open_view(npz(tmp_path / "bomb", 300_000))
