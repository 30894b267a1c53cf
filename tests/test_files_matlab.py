"""MATLAB files are read as scipy reads them, and damaged ones are refused."""

import io
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from lmssc.files.matlab import read_matlab
from lmssc.files.matlab5 import DamagedMatlabError, read_matlab5

RNG = np.random.default_rng(0)
CELL = np.empty((2, 2), dtype=object)
CELL[:] = [
    [RNG.normal(size=(3, 2)), sparse.csc_array(np.eye(3))],
    [np.float32(RNG.normal(size=(1, 4))), np.empty((0, 0))],
]
VARIABLES = {
    "double": RNG.normal(size=(5, 3)),
    "single": RNG.normal(size=(5, 3)).astype(np.float32),
    "whole": RNG.integers(-300, 300, size=(4, 2)),
    "bytes": RNG.integers(0, 200, size=(4, 2)).astype(np.uint8),
    "logical": RNG.uniform(size=(4, 2)) < 0.5,
    "three": RNG.normal(size=(2, 3, 4)),
    "sparse": sparse.csc_array(np.where(RNG.uniform(size=(6, 4)) < 0.4, RNG.normal(size=(6, 4)), 0)),
    "nothing": np.empty((0, 3)),
    "text": np.array(["one", "two", "six"]),
    "umlauts": np.array(["größe"]),
    "cell": CELL,
}


def written(**options):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, VARIABLES | {"structure": {"field": 1.0}}, **options)
    return buffer.getvalue()


def check_equal(found, truth):
    if sparse.issparse(truth):
        found, truth = found.toarray(), truth.toarray()
    np.testing.assert_array_equal(found, truth)


@pytest.mark.parametrize("packed", [False, True])
def test_as_scipy_reads_it(packed):
    content = written(do_compression=packed)
    found, truth = read_matlab5(content), scipy.io.loadmat(io.BytesIO(content))
    assert set(found) == set(VARIABLES)
    for name in VARIABLES.keys() - {"cell"}:
        check_equal(found[name], truth[name])
    assert len(found["cell"]) == 4
    for one, other in zip(found["cell"], truth["cell"].ravel(order="F"), strict=True):
        check_equal(one, other)


def test_big_endian():
    """By turning round the bytes of a matrix that has no small elements."""
    element = np.array([6, 8, 6, 0, 5, 8, 2, 1, 1, 8], dtype=">u4").tobytes() + b"longname"
    numbers = np.array([9, 16], dtype=">u4").tobytes() + np.array([1.5, 2.5], dtype=">f8").tobytes()
    tag = np.array([14, len(element + numbers)], dtype=">u4").tobytes()
    content = b"MATLAB 5.0".ljust(124) + b"\x01\x00MI" + tag + element + numbers
    np.testing.assert_array_equal(read_matlab5(content)["longname"], [[1.5], [2.5]])


def test_the_data_of_the_paper():
    folder = Path(os.environ.get("LMSSC_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = folder / "Reuters-1200.mat"
    if not path.exists():
        pytest.skip(f"no {path}")
    table, truth = read_matlab(str(path)), scipy.io.loadmat(path)
    assert list(table.blocks) == ["X1", "X2", "X3", "X4", "X5"]
    for block, view in zip(table.blocks.values(), truth["X"].ravel(), strict=True):
        check_equal(block, view)
    np.testing.assert_array_equal(table.numbers("y"), truth["y"].ravel())


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_files_are_read_or_refused(packed):
    """scipy's reader crashed on some of these."""
    content = written(do_compression=packed)
    rng = np.random.default_rng(0)
    for end in range(0, len(content), 7):
        with suppress(DamagedMatlabError):
            read_matlab5(content[:end])
    for _ in range(500):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 6)):
            damaged[place] = rng.integers(256)
        with suppress(DamagedMatlabError):
            read_matlab5(bytes(damaged))
