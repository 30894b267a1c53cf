"""MATLAB files are read as scipy reads them, and damaged ones are refused."""

import io
from contextlib import suppress

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from lmssc.io.errors import InputFileError
from lmssc.io.matlab import read_matlab
from lmssc.io.matlab5 import DamagedMatlabError, read_matlab5

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


def test_the_data_of_the_paper(paper_file):
    path = paper_file("reuters")
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
        with suppress(DamagedMatlabError, InputFileError):  # the second if it says that it is huge
            read_matlab5(bytes(damaged))


# --- version 7.3: nothing from other files ---------------------------------------------------------------------------


def outside(h5py, file, folder):
    """Numbers of another file as external storage, a virtual dataset, and links of all kinds."""
    (folder / "secret.bin").write_bytes(np.arange(12.0).tobytes())
    with h5py.File(folder / "other.h5", "w") as other:
        other["X"] = np.arange(12.0).reshape(3, 4)
    layout = h5py.VirtualLayout((3, 4), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "X", (3, 4))
    file.create_dataset("stored", shape=(3, 4), dtype="f8", external=[(str(folder / "secret.bin"), 0, 96)])
    file.create_virtual_dataset("virtual", layout)
    file["linked"] = h5py.ExternalLink(str(folder / "other.h5"), "/X")
    file["far"] = h5py.ExternalLink(str(folder / "other.h5"), "/")
    file["through"] = h5py.SoftLink("/#refs#/far/X")
    file["dangling"] = h5py.SoftLink("/nowhere")
    file["round"] = h5py.SoftLink("/#refs#/round")


OUTSIDE = {
    "stored": r"'/?.*stored' has its numbers in another file \(.*secret\.bin",
    "virtual": r"'/?.*virtual' is assembled from other files",
    "linked": r"'linked' is a link to another file \(.*other\.h5",
    "through": r"'through' is a link to another file \(.*other\.h5",
    "dangling": r"'dangling' is a link to '/nowhere', which is not in the file",
    "round": r"'round' is a link that leads back to itself",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_hdf5_reads_nothing_from_other_files_and_names_what_points_there(name, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        outside(h5py, file.create_group("#refs#"), tmp_path)
        file["X"] = np.ones((4, 3))
        if name in ("stored", "virtual"):
            file[name] = file[f"#refs#/{name}"]
        else:
            file[name] = file["#refs#"].get(name, getlink=True)
    with pytest.raises(InputFileError, match=rf"x\.mat: {OUTSIDE[name]}"):
        read_matlab(str(tmp_path / "x.mat"))


@pytest.mark.parametrize("name", ["stored", "virtual"])
@pytest.mark.parametrize("form", ["cell", "sparse"])
def test_hdf5_reads_nothing_from_other_files_in_cells_and_sparse_matrices(name, form, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        outside(h5py, file.create_group("#refs#"), tmp_path)
        part = file[f"#refs#/{name}"]
        if form == "cell":
            file["X"] = np.array([[part.ref]], dtype=h5py.ref_dtype)
        else:
            group = file.create_group("X")
            group.attrs["MATLAB_sparse"] = np.uint64(3)
            group["data"], group["ir"], group["jc"] = part, np.zeros(1, dtype="u8"), np.array([0, 1], dtype="u8")
    with pytest.raises(
        InputFileError, match=r"x\.mat: '.*' (has its numbers in another file|is assembled from other files)"
    ):
        read_matlab(str(tmp_path / "x.mat"))


def test_hdf5_links_within_the_file_are_followed_and_an_empty_reference_is_named(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        file["#refs#/a"] = np.arange(12.0).reshape(4, 3)
        file["X"] = h5py.SoftLink("/#refs#/a")
        file["Y"] = h5py.SoftLink("X")
    np.testing.assert_array_equal(read_matlab(str(tmp_path / "x.mat")).blocks["Y"], np.arange(12.0).reshape(4, 3).T)
    with h5py.File(tmp_path / "x.mat", "a") as file:
        file["cell"] = np.array([[h5py.Reference()]], dtype=h5py.ref_dtype)
    with pytest.raises(InputFileError, match=r"x\.mat: 'cell' refers to nothing"):
        read_matlab(str(tmp_path / "x.mat"))
