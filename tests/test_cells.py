"""AnnData and MuData: views and labels from objects and files of all versions, and answers written back."""

import json
import os
import signal
import stat
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import lmssc
from cell_files import (
    anndata_like,
    contents,
    mark,
    write_anndata,
    write_frame,
    write_h5ad,
    write_h5mu,
    write_old_h5ad,
)
from lmssc.cli import main
from lmssc.io.cells import open_cells
from lmssc.io.errors import CommandError, InputFileError
from lmssc.io.in_place import TargetFile
from lmssc.io.read_anndata import annotation
from small_files import make_problem

pytestmark = pytest.mark.usefixtures("quick_fits")

N = 40
VIEWS, IDS, LABELS = make_problem(N)
A, B = VIEWS["a"].astype(np.float32), VIEWS["b"]
KIND = [label or None for label in LABELS]
OWN = {"lmssc_label", "lmssc_confidence", "lmssc_given", "lmssc_proba", "X_lmssc", "lmssc"}


def like(**more):
    return anndata_like(IDS, {"kind": pd.Categorical(KIND)}, X=A, obsm={"X_pca": B}, **more)


def same(one, other):
    one, other = (part.toarray() if sparse.issparse(part) else part for part in (one, other))
    np.testing.assert_array_equal(one, other)
    assert one.dtype == other.dtype


def write_07(path):
    """As anndata 0.7 did: categories beside the columns, by reference, and no encodings of arrays."""
    with h5py.File(path, "w") as file:
        obs = file.create_group("obs")
        mark(obs, "dataframe", "0.1.0").attrs["_index"] = "index"
        obs.attrs.create("column-order", np.array(["kind"], dtype=object), dtype=h5py.string_dtype())
        obs.create_dataset("index", data=IDS, dtype=h5py.string_dtype())
        levels = obs.create_dataset("__categories/kind", data=["u", "v", "w"], dtype=h5py.string_dtype())
        codes = obs.create_dataset("kind", data=np.array(["uvw".find(k) if k else -1 for k in KIND], dtype="i1"))
        codes.attrs["categories"] = levels.ref
        file["X"], file["obsm/X_pca"] = A, B


FILES = {
    "dense": lambda path: write_h5ad(path, IDS, {"kind": KIND}, A, obsm={"X_pca": B}),
    "csr": lambda path: write_h5ad(path, IDS, {"kind": KIND}, sparse.csr_array(A), obsm={"X_pca": B}),
    "csc": lambda path: write_h5ad(path, IDS, {"kind": KIND}, sparse.csc_array(A), obsm={"X_pca": B}),
    "0.6": lambda path: write_old_h5ad(path, IDS, KIND, A, B),
    "0.7": write_07,
}


@pytest.mark.parametrize("form", FILES)
def test_a_file_gives_what_the_object_gives(form, tmp_path):
    path = tmp_path / "cells.h5ad"
    FILES[form](path)
    found = lmssc.read_anndata(path, ["X", "obsm:X_pca"], labels="kind")
    wanted = lmssc.read_anndata(like(), ["X", "obsm:X_pca"], labels="kind")
    assert found.ids.tolist() == wanted.ids.tolist() == IDS
    assert found.labels.tolist() == wanted.labels.tolist() == KIND
    for name in wanted.views:
        same(found.views[name], wanted.views[name])
    assert found.present == {}
    assert found.features.get("X", wanted.features["X"]) == wanted.features["X"]


def test_columns_of_all_kinds(tmp_path):
    columns = {
        "text": [f"t{i % 3}" for i in range(N)],
        "whole": np.arange(N),
        "gaps": np.ma.array(np.arange(N), mask=np.arange(N) == 3),
        "truth": np.arange(N) % 2 == 0,
        "maybe": np.ma.array(np.arange(N) % 2 == 0, mask=np.arange(N) == 4),
    }
    write_h5ad(tmp_path / "a.h5ad", IDS, columns, A)
    cells = open_cells(tmp_path / "a.h5ad")
    assert cells.column("obs:text").tolist() == columns["text"]
    assert cells.column("obs:whole").tolist() == list(range(N))
    assert np.isnan(cells.column("obs:gaps")[3])
    assert np.isnan(cells.column("obs:maybe")[4])
    assert cells.columns["obs:truth"] == "truth"
    labels = lmssc.read_anndata(tmp_path / "a.h5ad", labels="gaps").labels
    assert labels[:5].tolist() == [0, 1, 2, None, 4]  # whole numbers stay whole


def test_markers_raw_layers_and_links(tmp_path):
    links = sparse.csr_array(np.eye(N, k=1))
    counts = sparse.csr_array(np.arange(N * 2).reshape(N, 2))
    kind = [value or "Unknown" for value in KIND]
    write_h5ad(tmp_path / "a.h5ad", IDS, {"kind": kind}, A, layers={"counts": counts}, obsp={"near": links})
    with h5py.File(tmp_path / "a.h5ad", "r+") as file:
        raw = mark(file.create_group("raw"), "raw")
        raw["X"] = B
        write_frame(raw, "var", [f"r{i}" for i in range(B.shape[1])], {})
    cells = lmssc.read_anndata(
        tmp_path / "a.h5ad", {"n": "layers:counts", "g": "obsp:near", "r": "raw"}, "obs:kind", unlabelled="Unknown"
    )
    assert cells.labels.tolist() == KIND
    assert isinstance(cells.views["g"], lmssc.Graph)
    same(cells.views["n"], counts.astype(float))
    assert cells.features["r"] == [f"r{i}" for i in range(B.shape[1])]


def mudata_like():
    rna, protein = IDS[5:], IDS[:30][::-1]
    rows = {name: row for row, name in enumerate(IDS)}
    parts = {
        "rna": anndata_like(rna, {"kind": KIND[5:]}, X=sparse.csr_array(A[5:])),
        "protein": anndata_like(protein, {}, X=B[[rows[name] for name in protein]]),
    }
    frame = pd.DataFrame({"kind": KIND}, index=IDS)
    masks = {name: np.isin(IDS, list(part.obs_names)) for name, part in parts.items()}
    return SimpleNamespace(obs=frame, obs_names=frame.index, mod=parts, obsm=masks, uns={}, axis=0)


def write_mudata(path, **more):
    data = mudata_like()
    parts = {
        name: (list(part.obs_names), {"X": part.X, "obs": {"kind": KIND[5:]} if name == "rna" else {}})
        for name, part in data.mod.items()
    }
    write_h5mu(path, IDS, parts, {"kind": KIND}, **more)


@pytest.mark.parametrize("in_file", [True, False])
def test_mudata_says_which_cells_have_which_modality(in_file, tmp_path):
    path = tmp_path / "cells.h5mu"
    write_mudata(path)
    cells = lmssc.read_anndata(path if in_file else mudata_like(), labels="kind")
    assert list(cells.views) == ["mod:rna", "mod:protein"]
    assert cells.present["mod:rna"].tolist() == [False] * 5 + [True] * 35
    assert cells.present["mod:protein"].tolist() == [True] * 30 + [False] * 10
    same(cells.views["mod:protein"][:30], B[:30])
    assert np.isnan(cells.views["mod:protein"][30:]).all()
    same(cells.views["mod:rna"][5:], A[5:])
    clf = lmssc.LMSSC().fit(cells.views, cells.labels, cells.present)
    alone = lmssc.LMSSC().fit({"r": np.vstack([A[:5] * np.nan, A[5:]]), "p": cells.views["mod:protein"]}, cells.labels)
    assert (clf.transduction_ == alone.transduction_).all()


def test_cells_without_any_view_are_left_out(tmp_path):
    path = tmp_path / "cells.h5mu"
    write_mudata(path)
    with pytest.warns(UserWarning, match="5 of 40 cells have none of the views mod:rna"):
        cells = lmssc.read_anndata(path, views=["mod:rna"], labels="mod:rna/obs:kind")
    assert cells.ids.tolist() == IDS[5:]
    assert cells.labels.tolist() == KIND[5:]


@pytest.mark.parametrize(
    ("views", "labels", "message"),
    [
        (["obsm:X_pc"], None, "did you mean 'obsm:X_pca'"),
        (["nothing"], None, "There are X, obsm:X_pca"),
        ([], None, "views is empty"),
        (["X"], "kinds", "no column 'kinds' in obs; did you mean"),
    ],
)
def test_wrong_names_are_told_the_right_ones(views, labels, message):
    with pytest.raises(ValueError, match=message):
        lmssc.read_anndata(like(), views, labels)


def test_what_is_not_anndata_is_refused(tmp_path):
    with pytest.raises(TypeError, match="pass an AnnData or MuData object, or the path"):
        lmssc.read_anndata(np.eye(3))
    (tmp_path / "a.csv").write_text("id\n")
    with pytest.raises(ValueError, match=r"a file of cells ends in \.h5ad"):
        lmssc.read_anndata(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="no such file"):
        lmssc.read_anndata(tmp_path / "a.h5ad")
    twice = anndata_like([*IDS[1:], IDS[1]], {}, X=A)
    with pytest.raises(ValueError, match="appears twice in obs_names"):
        lmssc.read_anndata(twice)


def test_features_of_new_cells_are_brought_into_the_order_of_the_model(tmp_path):
    write_h5ad(tmp_path / "a.h5ad", IDS, {"kind": KIND}, A)
    turned = np.arange(A.shape[1])[::-1]
    write_h5ad(tmp_path / "b.h5ad", IDS, {}, A[:, turned], features=[f"g{i}" for i in turned])
    cells = lmssc.read_anndata(tmp_path / "a.h5ad")
    same(lmssc.read_anndata(tmp_path / "b.h5ad", features=cells.features).views["X"], A)
    with pytest.raises(ValueError, match="lacks 1 of the 7 features of the model, such as z"):
        lmssc.read_anndata(tmp_path / "b.h5ad", features={"X": [*cells.features["X"], "z"]})
    # On the command line the model knows the features.
    out, model = tmp_path / "out", tmp_path / "out" / "model.lmssc"
    assert main(["classify", str(tmp_path / "a.h5ad"), "--label-column", "kind", "--out", str(out), "--no-report"]) == 0
    for name in "ab":
        call = ["predict", str(model), str(tmp_path / f"{name}.h5ad"), "--out", str(tmp_path / f"{name}.csv")]
        assert main(call) == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


@pytest.fixture(scope="module")
def clf():
    cells = lmssc.read_anndata(like(), ["X", "obsm:X_pca"], labels="kind")
    return lmssc.LMSSC(calibrate=False).fit(cells.views, cells.labels)  # as with `quick_fits`


def test_annotate_aligns_by_name(clf):
    order = [7, 3, *range(10, N)]
    other = anndata_like([*[IDS[i] for i in order], "stranger"], {})
    lmssc.annotate(other, clf)
    assert other.obs["lmssc_label"][:-1].tolist() == clf.transduction_[order].tolist()
    assert other.obs["lmssc_given"][:-1].tolist() == [KIND[i] is not None for i in order]
    np.testing.assert_array_equal(other.obsm["lmssc_proba"][:-1], clf.label_distributions_[order])
    np.testing.assert_array_equal(other.obsm["X_lmssc"][:-1], clf.latent_[order])
    np.testing.assert_array_equal(other.obs["lmssc_confidence"][:-1], clf.label_distributions_[order].max(axis=1))
    assert pd.isna(other.obs["lmssc_label"].iloc[-1])
    assert not other.obs["lmssc_given"].iloc[-1]
    assert other.uns["lmssc"]["classes"].tolist() == ["u", "v", "w"]


def test_annotate_refuses_what_it_cannot_align(clf, tmp_path):
    with pytest.raises(ValueError, match="none of its cells is one that clf was fitted to"):
        lmssc.annotate(anndata_like(["p", "q"], {}), clf)
    nameless = lmssc.LMSSC().fit([A, B], KIND)
    with pytest.raises(ValueError, match="does not know the names of its samples"):
        lmssc.annotate(like(), nameless)
    with pytest.raises(ValueError, match="ids has 2 names"):
        lmssc.annotate(like(), nameless, ids=["p", "q"])
    with pytest.raises(ValueError, match="not fitted"):
        lmssc.annotate(like(), lmssc.LMSSC())
    with pytest.raises(TypeError, match="got str; for a file: lmssc classify FILE --in-place"):
        lmssc.annotate("cells.h5ad", clf)
    adata = like()
    lmssc.annotate(adata, nameless, "mine", ids=IDS)
    assert adata.obs["mine_label"].tolist() == nameless.transduction_.tolist()


def test_names_are_kept_in_the_model_and_by_a_search(clf, tmp_path):
    clf.save(tmp_path / "m.lmssc")
    adata = like()
    lmssc.annotate(adata, lmssc.load(tmp_path / "m.lmssc"))
    assert adata.obs["lmssc_label"].tolist() == clf.transduction_.tolist()
    assert not hasattr(lmssc.LMSSC().fit([A, B], KIND), "ids_")


def in_place(path, *more):
    views = ["--views", "X,obsm:X_pca"] if str(path).endswith("h5ad") else []
    return main(["classify", str(path), *views, "--label-column", "kind", "--in-place", "-q", *more])


@pytest.mark.parametrize("form", [*FILES, "mudata"])
def test_in_place_adds_its_own_and_changes_nothing_else(form, tmp_path, clf):
    path = tmp_path / ("cells.h5mu" if form == "mudata" else "cells.h5ad")
    write_mudata(path) if form == "mudata" else FILES[form](path)
    os.chmod(path, 0o640)
    before = contents(path)
    assert in_place(path) == 0
    after = contents(path)
    extended = {"obs", "obsm"} if form == "0.6" else set()
    for name, item in before.items():
        if name in extended:
            continue
        if name == "obs":  # the list of its columns is longer
            order = after[name][2].pop("column-order"), item[2].pop("column-order")
            assert order[0][: len(order[1])] == order[1]
        assert after[name] == item, name
    new = {name.split("/")[min(1, name.count("/"))] for name in set(after) - set(before)}
    assert new <= {*OWN, "lmssc_label_categories", "uns"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [other.name for other in tmp_path.iterdir()] == [path.name]
    with h5py.File(path) as file:
        if form == "0.6":
            assert file["obs"]["depth"].tolist() == list(range(N))
            same(file["obsm"]["X_pca"], B)
    cells = open_cells(path)
    labels = cells.column("obs:lmssc_label")
    if form in ("dense", "0.6", "0.7"):
        assert labels.tolist() == clf.transduction_.tolist()
        same(cells.matrix("obsm:X_lmssc"), clf.latent_)
    assert cells.column("obs:lmssc_given").tolist() == [label is not None for label in KIND]
    once = contents(path)
    assert in_place(path) == 0
    assert contents(path) == once


def test_in_place_follows_a_link_and_needs_one_file(tmp_path, capsys):
    real = tmp_path / "real"
    real.mkdir()
    FILES["dense"](real / "cells.h5ad")
    (tmp_path / "link.h5ad").symlink_to(real / "cells.h5ad")
    assert in_place(tmp_path / "link.h5ad") == 0
    assert (tmp_path / "link.h5ad").is_symlink()
    assert "obs/lmssc_label" in contents(real / "cells.h5ad")
    (tmp_path / "a.csv").write_text("id,x,label\np,1,u\nq,2,v\n")
    assert main(["classify", str(tmp_path / "a.csv"), "--in-place"]) == 2
    assert "--in-place needs one file that ends in .h5ad or .h5mu" in capsys.readouterr().err


def test_in_place_leaves_a_file_that_changed_meanwhile(tmp_path, clf):
    path = tmp_path / "cells.h5ad"
    FILES["dense"](path)
    target = TargetFile(str(path))
    FILES["csr"](path)
    before = path.read_bytes()
    with pytest.raises(CommandError, match="was changed while this ran"):
        target.write(annotation(clf, clf.ids_))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_in_place_checks_the_space_first(tmp_path, clf, monkeypatch):
    path = tmp_path / "cells.h5ad"
    FILES["dense"](path)
    monkeypatch.setattr("lmssc.io.in_place.shutil.disk_usage", lambda folder: SimpleNamespace(free=100))
    with pytest.raises(CommandError, match="of disk space for a copy, but only 100 bytes are free"):
        TargetFile(str(path)).write(annotation(clf, clf.ids_))


def killed_at(step, work):
    """Do the work in another process, which is killed at some call of a function; the number of calls if it ends."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            calls += 1
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(None)
            os.write(writing, str(calls).encode())
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return int(pipe.read() or 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment_the_file_is_whole(tmp_path, clf):
    """50 processes are killed while they write: each leaves the old file or the new one, whole."""
    path = tmp_path / "cells.h5ad"
    answer = annotation(clf, clf.ids_)

    def write():
        TargetFile(str(path)).write(answer)

    FILES["dense"](path)
    old = contents(path)
    n_calls = killed_at(0, write)
    new = contents(path)
    assert new != old
    left = []
    for step in np.linspace(1, n_calls - 1, 50).astype(int):
        for file in tmp_path.iterdir():
            file.unlink()
        FILES["dense"](path)
        assert killed_at(step, write) == 0
        left.append(contents(path))
        assert left[-1] in (old, new)
    assert left[0] == old
    assert left[-1] == new
    FILES["dense"](path)
    killed_at(n_calls // 2, write)
    assert len(list(tmp_path.iterdir())) == 2
    write()  # what was left behind is removed
    assert list(tmp_path.iterdir()) == [path]


def test_large_matrices_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("lmssc.io.hdf5.MIN_MAPPED_BYTES", 100)
    monkeypatch.setattr("lmssc.data.memmap.BATCH_BYTES", 200)
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        write_anndata(file, IDS, {"kind": KIND}, A)
        del file["X"]
        file.create_dataset("X", data=A, chunks=(3, 2), compression="gzip")
    view = lmssc.read_anndata(tmp_path / "a.h5ad").views["X"]
    assert isinstance(view, np.memmap)
    same(np.asarray(view), A)


def test_labels_of_cells_are_explained_by_their_names(tmp_path, capsys):
    write_h5ad(tmp_path / "a.h5ad", IDS, {"kind": KIND}, A)
    words = ["--label-column", "obs:kind", "--no-report", "-q"]
    assert main(["classify", str(tmp_path / "a.h5ad"), *words, "--out", str(tmp_path / "out")]) == 0
    model = tmp_path / "out" / "model.lmssc"
    unlabelled = IDS[list(KIND).index(None)]
    assert main(["explain", str(model), "--id", unlabelled, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["samples"]
    assert found["id"] == unlabelled
    given = dict(zip(IDS, KIND, strict=True))
    assert found["because"]
    assert all(given[one["id"]] == one["label"] for one in found["because"])
    assert main(["explain", str(tmp_path / "a.h5ad"), "--id", unlabelled]) == 2
    assert "not a model" in capsys.readouterr().err


def test_the_label_column_is_asked_for_by_name(tmp_path, capsys):
    write_h5ad(tmp_path / "a.h5ad", IDS, {"depth": np.arange(N), "cell_type": KIND}, A)
    assert main(["classify", str(tmp_path / "a.h5ad"), "--dry-run"]) == 2
    assert "--label-column obs:cell_type" in capsys.readouterr().err
    assert main(["classify", str(tmp_path / "a.h5ad"), "--dry-run", "--labels", "cell_type"]) == 2
    assert "no such file; for the column of obs, write obs:cell_type" in capsys.readouterr().err
    for option in ("--labels", "--label-column"):
        assert main(["classify", str(tmp_path / "a.h5ad"), "--dry-run", option, "obs:cell_type"]) == 0
    words = ["classify", str(tmp_path / "a.h5ad"), "--dry-run", "--labels", "obs:cell_type", "--views", "obsm:pca"]
    assert main(words) == 2
    assert "--views obsm:pca: no file has" in capsys.readouterr().err


def test_a_file_without_x_asks_for_views(tmp_path, capsys):
    write_h5ad(tmp_path / "a.h5ad", IDS, {"kind": KIND}, obsm={"X_pca": B})
    assert main(["classify", str(tmp_path / "a.h5ad"), "--label-column", "kind", "--dry-run"]) == 2
    assert "--views obsm:X_pca" in capsys.readouterr().err
    with pytest.raises(InputFileError, match="name the views: obsm:X_pca"):
        lmssc.read_anndata(tmp_path / "a.h5ad")


def test_links_on_the_command_line(tmp_path, capsys):
    links = sparse.csr_array(np.eye(N, k=1))
    write_h5ad(tmp_path / "a.h5ad", IDS, {"kind": KIND}, A, obsp={"near": links})
    call = ["classify", str(tmp_path / "a.h5ad"), "--views", "X,obsp:near", "--label-column", "kind", "--dry-run"]
    assert main(call) == 0
    assert f"{N - 1} links" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")  # anndata and mudata warn of the old format, of common gene names, of themselves
def test_anndata_and_mudata_read_what_was_written(tmp_path):
    """With the packages themselves, where they are installed."""
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    mudata = pytest.importorskip("mudata", reason="mudata is not installed")
    for form in FILES:
        FILES[form](tmp_path / "cells.h5ad")
        assert in_place(tmp_path / "cells.h5ad") == 0
        adata = anndata.read_h5ad(tmp_path / "cells.h5ad")
        assert adata.obs["lmssc_label"].dtype == "category"
        assert adata.obsm["lmssc_proba"].shape == (N, 3)
        cells = lmssc.read_anndata(adata, ["X", "obsm:X_pca"], labels="kind")
        clf = lmssc.LMSSC().fit(cells.views, cells.labels)
        assert adata.obs["lmssc_label"].tolist() == clf.transduction_.tolist()
        lmssc.annotate(adata, clf, "again")
        assert (adata.obs["again_label"] == adata.obs["lmssc_label"]).all()
    write_mudata(tmp_path / "cells.h5mu")
    assert in_place(tmp_path / "cells.h5mu") == 0
    mdata = mudata.read_h5mu(tmp_path / "cells.h5mu")
    assert mdata.obs["lmssc_label"].notna().all()
    assert list(lmssc.read_anndata(mdata).present) == ["mod:rna", "mod:protein"]
