"""MatrixMarket files of every kind are read as scipy reads them."""

import gzip
import io
from contextlib import suppress

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from lmssc.io.errors import InputFileError
from lmssc.io.sparse import read_matrix_market, read_svmlight

RNG = np.random.default_rng(0)
GENERAL = np.where(RNG.uniform(size=(7, 4)) < 0.4, RNG.normal(size=(7, 4)), 0)
SQUARE = np.where(RNG.uniform(size=(6, 6)) < 0.4, RNG.integers(1, 9, size=(6, 6)), 0)
MATRICES = {
    "real": (sparse.coo_array(GENERAL), {}),
    "integer": (sparse.coo_array(SQUARE), {}),
    "pattern": (sparse.coo_array(SQUARE), {"field": "pattern"}),
    "symmetric": (sparse.coo_array(SQUARE + SQUARE.T), {"symmetry": "symmetric"}),
    "skew-symmetric": (sparse.coo_array(SQUARE - SQUARE.T), {"symmetry": "skew-symmetric"}),
    "dense": (GENERAL, {}),
    "dense integer": (SQUARE, {}),
    "nothing in it": (sparse.coo_array((3, 2)), {}),
}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("packed", [False, True])
def test_as_scipy_reads_it(kind, packed, tmp_path, monkeypatch):
    monkeypatch.setattr("lmssc.io.sparse.CHUNK", 3)
    matrix, options = MATRICES[kind]
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, matrix, comment="made up\n\nfor a test", **options)
    path = tmp_path / ("x.mtx.gz" if packed else "x.mtx")
    path.write_bytes(gzip.compress(buffer.getvalue()) if packed else buffer.getvalue())
    buffer.seek(0)
    truth = scipy.io.mmread(buffer)
    (block,) = read_matrix_market(str(path)).blocks.values()
    assert sparse.issparse(block) == sparse.issparse(truth)
    np.testing.assert_array_equal(
        block.toarray() if sparse.issparse(block) else block, truth.toarray() if sparse.issparse(truth) else truth
    )


def test_lines_of_svmlight_are_those_of_the_file(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("# made up\n1 1:0.5\n\n-1 2:3 # good\n1 1:inf\n")
    table = read_svmlight(str(path))
    assert [table.rows.place(row) for row in range(3)] == [f"{path}, line {line}" for line in (2, 4, 5)]
    assert table.texts("target").tolist() == ["1", "-1", "1"]
    assert not table.types_detected
    path.write_text("# made up\n1 1:0.5\n\n-1 2:x\n")
    with pytest.raises(InputFileError, match=r"x\.svm, line 4: '2:x' is not of the form feature:value"):
        read_svmlight(str(path))


def test_a_file_cut_off_anywhere_is_refused_or_read_as_far_as_it_tells(tmp_path):
    """scipy's reader crashed on some of these."""
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, sparse.coo_array(GENERAL))
    content = buffer.getvalue().rstrip()
    path = tmp_path / "x.mtx"
    for end in range(len(content)):
        path.write_bytes(content[:end])
        in_last_number = b" " not in content[end:] and b"\n" not in content[end:]
        with suppress(InputFileError) if in_last_number else pytest.raises(InputFileError, match=r"x\.mtx"):
            read_matrix_market(str(path))
