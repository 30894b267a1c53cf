"""Files that are opened as views hold the same numbers, stay where they are, and are refused if they do not fit."""

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from lmssc import open_view
from lmssc.data.memmap import memory_map

NUMBERS = np.random.default_rng(0).normal(size=(50, 7))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_numbers_are_used_in_place(tmp_path, dtype, order, ending):
    array, path = np.asarray(NUMBERS, dtype=dtype, order=order), tmp_path / f"a.{ending}"
    if ending == "npy":
        np.save(path, array)
    else:
        np.savez(path, small=np.arange(3), a=array, text=np.array(["x"]))
    view = open_view(path, member="a" if ending == "npz" else None)
    assert view.dtype == dtype
    np.testing.assert_array_equal(view, array)
    assert Path(memory_map(view).filename) == path
    assert not view.flags.writeable


@pytest.mark.parametrize("dtype", ["i2", "u8", "?", ">f8", "f2"])
def test_other_numbers_are_copied_to_floats(tmp_path, dtype):
    array = np.rint(NUMBERS).astype(dtype) if dtype != "u8" else np.arange(350, dtype="u8").reshape(50, 7)
    np.save(tmp_path / "a.npy", array)
    view = open_view(tmp_path / "a.npy")
    assert view.dtype == (np.float32 if dtype == "f2" else np.float64)
    np.testing.assert_array_equal(view, array.astype(float))


def test_a_compressed_array_is_unpacked_to_a_file_that_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    np.savez_compressed(tmp_path / "a.npz", NUMBERS)
    view = open_view(tmp_path / "a.npz")
    np.testing.assert_array_equal(view, NUMBERS)
    assert memory_map(view) is not None
    del view
    gc.collect()
    assert not os.listdir(tmp_path / "temporary")


@pytest.mark.parametrize("compressed", [True, False])
def test_a_sparse_matrix(tmp_path, compressed):
    matrix = sparse.random_array((60, 40), density=0.1, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "a.npz", matrix, compressed=compressed)
    view = open_view(tmp_path / "a.npz")
    assert view.format == "csr"
    np.testing.assert_array_equal(view.toarray(), matrix.toarray())
    assert memory_map(view) is not None
    assert memory_map(view.indices) is not None


def write_parquet(path, **columns):
    pa.parquet.write_table(pa.table(columns), path, row_group_size=11)
    return path


def test_columns_of_a_parquet_file(tmp_path, monkeypatch):
    monkeypatch.setattr("lmssc.io.open_view.BATCH_ROWS", 7)
    single = NUMBERS.astype(np.float32)
    path = write_parquet(
        tmp_path / "a.parquet",
        id=[f"s{row}" for row in range(50)],
        a=single[:, 0],
        b=single[:, 1],
        count=pa.array([None, *range(1, 50)]),
        flag=[row % 2 == 0 for row in range(50)],
    )
    whole = open_view(path)
    expected = np.column_stack([single[:, :2], [np.nan, *range(1, 50)], np.arange(50) % 2 == 0])
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole, expected)
    some = open_view(path, columns=["b", "a"])
    assert some.dtype == np.float32
    np.testing.assert_array_equal(some, single[:, [1, 0]])
    assert memory_map(some) is not None


def test_a_parquet_file_is_not_read_whole(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(200_000, 20)).astype(np.float32)
    columns = {f"c{j}": numbers[:, j] for j in range(20)}
    pa.parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=10_000)
    code = (
        "import sys, pyarrow; from lmssc import open_view; view = open_view(sys.argv[1]); "
        "print(len(view), pyarrow.default_memory_pool().max_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.parquet"], capture_output=True, check=True)
    n_rows, peak = map(int, done.stdout.split())
    assert n_rows == len(numbers)
    assert peak < 0.8 * numbers.nbytes
    np.testing.assert_array_equal(open_view(tmp_path / "a.parquet"), numbers)


def bad_files(folder):
    """Calls that have to be refused, and what the message says."""
    np.save(folder / "flat.npy", np.ones(3))
    np.save(folder / "empty.npy", np.ones((0, 3)))
    np.save(folder / "words.npy", np.array([["a"]]))
    np.save(folder / "complex.npy", np.ones((2, 2), complex))
    np.save(folder / "whole.npy", NUMBERS)
    (folder / "cut.npy").write_bytes((folder / "whole.npy").read_bytes()[:-8])
    (folder / "junk.npy").write_bytes(b"\x00\x01")
    (folder / "junk.npz").write_bytes(b"PK\x03\x04")
    (folder / "junk.parquet").write_bytes(b"PAR1")
    (folder / "a.csv").write_text("a\n1\n")
    np.savez(folder / "two.npz", a=NUMBERS, b=NUMBERS)
    np.savez(folder / "objects.npz", a=np.array([[None]], dtype=object))
    sparse.save_npz(folder / "csc.npz", sparse.csc_array(NUMBERS))
    write_parquet(folder / "a.parquet", a=[1.0], t=["x"])
    write_parquet(folder / "texts.parquet", t=["x"])
    write_parquet(folder / "none.parquet", a=pa.array([], pa.float64()))
    return [
        ("gone.npy", {}, "no such file"),
        ("a.csv", {}, "ends in .npy, .npz, .parquet"),
        ("flat.npy", {}, r"the shape \(3,\)"),
        ("empty.npy", {}, r"the shape \(0, 3\)"),
        ("words.npy", {}, "not real numbers"),
        ("complex.npy", {}, "not real numbers"),
        ("cut.npy", {}, "is cut off"),
        ("junk.npy", {}, "not a complete npy file"),
        ("whole.npy", {"columns": ["a"]}, "columns=.* is for Parquet"),
        ("whole.npy", {"member": "a"}, "member='a' is for npz"),
        ("junk.npz", {}, "not a complete npz file"),
        ("two.npz", {}, r"has the arrays \['a', 'b'\]; name one as member="),
        ("two.npz", {"member": "c"}, "has no array 'c'"),
        ("objects.npz", {}, "holds objects"),
        ("csc.npz", {}, "format 'csc'; save it with tocsr"),
        ("junk.parquet", {}, "not a complete Parquet file"),
        ("a.parquet", {"columns": ["b"]}, r"has no column 'b'; it has \['a', 't'\]"),
        ("a.parquet", {"columns": ["t"]}, "column 't': it holds string"),
        ("a.parquet", {"columns": ["a", "a"]}, "'a' appears twice"),
        ("a.parquet", {"columns": []}, "no column of numbers is named"),
        ("texts.parquet", {}, "no column of numbers is there"),
        ("none.parquet", {}, "columns but no rows"),
    ]


def test_what_cannot_be_used_is_refused_with_its_name(tmp_path):
    for name, settings, message in bad_files(tmp_path):
        with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
            open_view(tmp_path / name, **settings)
        assert re.search(re.escape(name), str(caught.value))
        assert "\n" not in str(caught.value)
