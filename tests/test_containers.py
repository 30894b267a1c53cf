"""The same data through every container give the same predictions; embeddings, mixed frames, turned tables."""

import gzip
import json
import lzma
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import lmssc
from cell_files import anndata_like, write_h5ad, write_h5mu
from lmssc.cli import main
from lmssc.io.labelled_files import read_labelled_files
from lmssc.io.options import Options
from small_files import label_text, make_problem, view_text

N = 40
VIEWS, IDS, LABELS = make_problem(N)
A, B = VIEWS["a"], VIEWS["b"]
KIND = [label or None for label in LABELS]


def arrow_table(**more):
    import pyarrow as pa

    lists = pa.FixedSizeListArray.from_arrays(pa.array(A.ravel()), A.shape[1])
    return pa.table({"id": IDS, "label": KIND, "a": lists, "b": list(B), **more})


def parquet(folder):
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow_table(), folder / "all.parquet", row_group_size=7)
    return ["all.parquet"]


def feather(folder):
    import pyarrow.feather

    pyarrow.feather.write_feather(arrow_table(), folder / "all.feather", chunksize=7)
    return ["all.feather"]


def json_lines(folder):
    rows = [
        {"id": key, "label": label, "a": a, "b": b}
        for key, label, a, b in zip(IDS, KIND, A.tolist(), B.tolist(), strict=True)
    ]
    (folder / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["all.jsonl"]


def two_files(folder, texts, ending):
    for name, content in texts.items():
        (folder / f"{name}{ending}").write_bytes(content)
    (folder / "labels.csv").write_text(label_text(IDS, LABELS))
    return [f"a{ending}", f"b{ending}", "--labels", "labels.csv"]


def csv_files(folder):
    return two_files(folder, {name: view_text(name, view, IDS).encode() for name, view in VIEWS.items()}, ".csv")


def csv_gz(folder):
    packed = {name: gzip.compress(view_text(name, view, IDS).encode()) for name, view in VIEWS.items()}
    return two_files(folder, packed, ".csv.gz")


def csv_xz(folder):
    packed = {name: lzma.compress(view_text(name, view, IDS).encode()) for name, view in VIEWS.items()}
    return two_files(folder, packed, ".csv.xz")


def csv_zst(folder):
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    pack = zstandard.ZstdCompressor().compress
    return two_files(
        folder, {name: pack(view_text(name, view, IDS).encode()) for name, view in VIEWS.items()}, ".csv.zst"
    )


def turned(name):
    """Features × samples."""
    names = pd.Index([f"{name}{i}" for i in range(VIEWS[name].shape[1])], name="feature")
    return pd.DataFrame(VIEWS[name].T, columns=IDS, index=names)


def turned_csv(folder):
    texts = {name: turned(name).to_csv().encode() for name in VIEWS}
    return [*two_files(folder, texts, ".csv"), "--transpose", "a", "--transpose", "b"]


def turned_parquet(folder):
    for name in VIEWS:
        turned(name).reset_index().to_parquet(folder / f"{name}.parquet", index=False)
    (folder / "labels.csv").write_text(label_text(IDS, LABELS))
    return ["a.parquet", "b.parquet", "--labels", "labels.csv", "--transpose", "a", "--transpose", "b"]


def workbook(folder):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    for name, view in VIEWS.items():
        frame = pd.DataFrame(view, columns=[f"{name}{i}" for i in range(view.shape[1])])
        frame.insert(0, "id", IDS)
        frame.to_excel(folder / f"{name}.xlsx", index=False)
    (folder / "labels.csv").write_text(label_text(IDS, LABELS))
    return ["a.xlsx", "b.xlsx", "--labels", "labels.csv"]


def h5ad(folder):
    write_h5ad(folder / "all.h5ad", IDS, {"label": KIND}, A, obsm={"b": B})
    return ["all.h5ad", "--view", "a=X", "--view", "b=obsm:b", "--labels", "obs:label"]


def h5mu(folder):
    turned = list(range(N))[::-1]
    parts = {"a": (IDS, {"X": A}), "b": ([IDS[i] for i in turned], {"X": B[turned]})}
    write_h5mu(folder / "all.h5mu", IDS, parts, {"label": KIND})
    return ["all.h5mu", "--view", "a=mod:a", "--view", "b=mod:b", "--label-column", "label"]


def zarr_folder(folder):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    root = zarr.open_group(str(folder / "all.zarr"), mode="w", zarr_format=2)
    obs = root.create_group("obs")
    obs.attrs.update({"_index": "_index", "column-order": ["label"], "encoding-type": "dataframe"})
    obs.create_array("_index", data=np.array(IDS))
    label = obs.create_group("label")
    label.attrs["encoding-type"] = "categorical"
    label.create_array("codes", data=np.array(["uvw".find(k) if k else -1 for k in KIND], dtype="i1"))
    label.create_array("categories", data=np.array(["u", "v", "w"]))
    root.create_array("X", data=A)
    root.create_group("obsm").create_array("b", data=B)
    return ["all.zarr", "--view", "a=X", "--view", "b=obsm:b", "--label-column", "label"]


def npy_parts(folder):
    """As clip-retrieval writes them."""
    import pyarrow as pa
    import pyarrow.parquet

    for name in ("a", "b", "metadata"):
        (folder / "clip" / name).mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(N), 11)):  # part 10 comes after part 9
        for name, view in VIEWS.items():
            np.save(folder / "clip" / name / f"{name}_{number}.npy", view[rows])
        table = pa.table({"id": [IDS[i] for i in rows], "label": pa.array([KIND[i] for i in rows], pa.string())})
        pyarrow.parquet.write_table(table, folder / "clip" / "metadata" / f"metadata_{number}.parquet")
    return ["clip"]


def npy_parts_of_other_names(folder):
    """The ids have another name, and the labels are in a file."""
    npy_parts(folder)
    for file in (folder / "clip" / "metadata").iterdir():
        pd.read_parquet(file).rename(columns={"id": "path"}).drop(columns="label").to_parquet(file)
    rows = [(key, label) for key, label in zip(IDS, KIND, strict=True) if label]
    pd.DataFrame(rows, columns=["path", "label"]).to_csv(folder / "labels.csv", index=False)
    return ["clip", "--labels", "labels.csv"]


def hugging_face(folder):
    """As `datasets.Dataset.save_to_disk` writes it: Arrow streams, and names of the classes in JSON."""
    import pyarrow as pa

    table = arrow_table()
    codes = pa.array(["uvw".find(label) if label else -1 for label in KIND], pa.int64())
    table = table.set_column(1, "label", codes)
    (folder / "set").mkdir()
    files = []
    for number, rows in enumerate((slice(0, 15), slice(15, N))):
        files.append({"filename": f"data-0000{number}-of-00002.arrow"})
        with (
            pa.OSFile(str(folder / "set" / files[-1]["filename"]), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as w,
        ):
            w.write_table(table.slice(rows.start, rows.stop - rows.start))
    features = {"label": {"names": ["u", "v", "w"], "_type": "ClassLabel"}, "id": {"dtype": "string", "_type": "Value"}}
    (folder / "set" / "dataset_info.json").write_text(json.dumps({"features": features}))
    (folder / "set" / "state.json").write_text(json.dumps({"_data_files": files, "_indices_data_files": None}))
    return ["set"]


FILES = [
    csv_files, csv_gz, csv_xz, csv_zst, turned_csv, turned_parquet, workbook, parquet, feather, json_lines, h5ad, h5mu,
    zarr_folder, npy_parts, npy_parts_of_other_names, hugging_face,
]  # fmt: skip


@pytest.fixture(scope="module")
def wanted():
    """The answer, as `quick_fits` has it."""
    return lmssc.LMSSC(random_state=0, calibrate=False).fit(VIEWS, KIND)


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("write", FILES)
def test_the_same_data_in_every_file_give_the_same_predictions(write, tmp_path, monkeypatch, wanted, capsys):
    monkeypatch.chdir(tmp_path)
    call = write(tmp_path)
    assert main(["classify", *call, "--out", "out", "--no-report", "-q"]) == 0, capsys.readouterr().err
    found = pd.read_csv("out/predictions.csv")
    assert found.iloc[:, 0].tolist() == IDS
    assert found["label"].tolist() == wanted.transduction_.tolist()
    model = lmssc.load("out/model.lmssc")
    np.testing.assert_array_equal(model.label_distributions_, wanted.label_distributions_)
    # The model finds its views in the same files again.
    views = call[: next((number for number, word in enumerate(call) if word.startswith("--")), len(call))]
    assert main(["predict", "out/model.lmssc", *views, "--out", "new.csv", "-q"]) == 0, capsys.readouterr().err
    assert pd.read_csv("new.csv")["label"].tolist() == found["label"].tolist()


def polars_lists():
    import polars as pl

    return {"a": pl.Series(A.tolist(), dtype=pl.Array(pl.Float64, A.shape[1])), "b": pl.Series(B.tolist())}


def mudata():
    """Modalities with the cells in other orders."""
    turned_ids = IDS[::-1]
    parts = {"a": anndata_like(IDS, {}, X=A), "b": anndata_like(turned_ids, {}, X=B[::-1])}
    frame = pd.DataFrame(index=pd.Index(IDS))
    masks = dict.fromkeys(parts, np.ones(N, bool))
    data = SimpleNamespace(obs=frame, obs_names=frame.index, mod=parts, obsm=masks, uns={}, axis=0)
    return lmssc.read_anndata(data, {"a": "mod:a", "b": "mod:b"}).views


def polars_frame():
    import polars as pl

    return lmssc.views_from_frame(pl.DataFrame(polars_lists()), {"a": "a", "b": "b"}).views


OBJECTS = {
    "arrow": lambda: {name: arrow_table()[name] for name in VIEWS},
    "pandas": lambda: {name: pd.Series(list(view)) for name, view in VIEWS.items()},
    "pandas arrow": lambda: dict(arrow_table().to_pandas(types_mapper=pd.ArrowDtype)[["a", "b"]].items()),
    "polars": polars_lists,
    "anndata": lambda: lmssc.read_anndata(anndata_like(IDS, {}, X=A, obsm={"b": B}), {"a": "X", "b": "obsm:b"}).views,
    "mudata": mudata,
    "polars frame": polars_frame,
    "frame": lambda: lmssc.views_from_frame(arrow_table().drop(["id", "label"]), {"a": "a", "b": "b"}).views,
    "sparse arrays": lambda: {name: sparse.csr_array(view) for name, view in VIEWS.items()},
    "sparse matrices": lambda: {name: sparse.csc_matrix(view) for name, view in VIEWS.items()},
}


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("kind", OBJECTS)
def test_the_same_data_in_every_object_give_the_same_predictions(kind, wanted):
    views = OBJECTS[kind]()
    settings = {"scaling": "zscore"} if kind.startswith("sparse") else {}
    reference = lmssc.LMSSC(random_state=0, **settings).fit(VIEWS, KIND) if settings else wanted
    clf = lmssc.LMSSC(random_state=0, **settings).fit(views, KIND)
    assert clf.transduction_.tolist() == reference.transduction_.tolist()
    np.testing.assert_allclose(clf.label_distributions_, reference.label_distributions_, atol=1e-6)
    assert clf.predict(views).tolist() == clf.transduction_.tolist()


def test_lists_are_not_copied():
    import pyarrow as pa

    from lmssc.data.list_columns import list_column_to_array

    values = pa.array(A.astype(np.float32).ravel())
    lists = pa.FixedSizeListArray.from_arrays(values, A.shape[1])
    assert np.shares_memory(list_column_to_array(lists, "x"), values.to_numpy())
    assert np.shares_memory(list_column_to_array(lists[3:], "x"), values.to_numpy())
    np.testing.assert_array_equal(list_column_to_array(lists[3:], "x"), A[3:].astype(np.float32))


def test_a_missing_list_is_a_missing_view(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    lists = [None if row in (2, 7) else values for row, values in enumerate(A.tolist())]
    for column in (pa.array(lists), pa.array(lists, pa.list_(pa.float64(), A.shape[1])), pd.Series(lists)):
        view = lmssc.LMSSC().fit({"a": column, "b": B}, KIND)
        assert view.transduction_.shape == (N,)
    table = pa.table({"id": IDS, "label": KIND, "a": lists, "b": list(B)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=3)
    found = read_labelled_files([str(tmp_path / "x.parquet")], None, Options())
    assert np.flatnonzero(~found.joined.present["a"]).tolist() == [2, 7]
    opened = lmssc.open_view(tmp_path / "x.parquet", columns=["a"])
    np.testing.assert_array_equal(opened, found.joined.views["a"])


@pytest.mark.parametrize("make", ["arrow", "pandas", "polars"])
def test_ragged_lists_are_named_by_row(make):
    import polars as pl
    import pyarrow as pa

    lists = A.tolist()
    lists[8] = lists[8][:2]
    column = {"arrow": pa.array, "pandas": pd.Series, "polars": pl.Series}[make](lists)
    with pytest.raises(ValueError, match=r"view 'a', row 9: a list of 2 numbers, but the first has 6"):
        lmssc.LMSSC().fit({"a": column, "b": B}, KIND)


def test_large_lists_stay_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("lmssc.io.arrow.MIN_MAPPED_BYTES", 100)
    monkeypatch.setattr("lmssc.io.arrow.BATCH_ROWS", 9)
    monkeypatch.chdir(tmp_path)
    found = read_labelled_files(parquet(tmp_path), None, Options()).joined.views
    assert isinstance(found["a"], np.memmap)
    np.testing.assert_array_equal(found["a"], A)
    np.testing.assert_array_equal(found["b"], B)


def mail(n=60, seed=0):
    """Text, numbers, a category, yes/no, a date and an embedding, of two kinds of mail."""
    rng = np.random.default_rng(seed)
    spam = rng.random(n) < 0.5
    words = np.where(spam[:, None], ["cheap", "pills", "offer", "now"], ["lunch", "meeting", "notes", "today"])
    text = [" ".join(rng.choice(row, 3)) + f" nr{i}" for i, row in enumerate(words)]
    frame = pd.DataFrame(
        {
            "body": text,
            "links": rng.poisson(np.where(spam, 5, 1)).astype(float),
            "size": rng.normal(np.where(spam, 2, 5), 1),
            "color": np.where(rng.random(n) < np.where(spam, 0.8, 0.2), "red", "blue"),
            "read": np.where(rng.random(n) < np.where(spam, 0.2, 0.8), "yes", "no"),
            "sent": pd.date_range("2024-01-01", periods=n),
            "vector": list(rng.normal(spam[:, None], 1, size=(n, 4))),
        }
    )
    frame.loc[3, "size"] = np.nan
    return frame, np.where(spam, "spam", "mail")


SPEC = {"text": "body", "numbers": ["links", "size"], "kind": ["color", "read"], "vector": "vector"}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_views_of_a_frame_and_predict_takes_the_frame(library, tmp_path):
    import polars as pl
    import pyarrow as pa

    convert = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": lambda f: pa.Table.from_pandas(f)}[library]
    frame, y = mail()
    data = lmssc.views_from_frame(convert(frame), SPEC)
    assert list(data.views) == list(SPEC)
    assert data.settings == {"scaling": {"text": "logidf", "kind": "mixed"}, "impute": "median"}
    known = np.where(np.arange(len(y)) % 5 == 0, y, None)
    clf = lmssc.LMSSC(**data.settings).fit(data.views, known, data.present)
    assert (clf.transduction_ == y).mean() > 0.9
    assert clf.predict(convert(frame)).tolist() == clf.transduction_.tolist()
    new, truth = mail(30, seed=1)
    assert (clf.predict(convert(new.sample(frac=1, axis=1, random_state=0))) == truth).mean() > 0.9
    clf.save(tmp_path / "m.lmssc")
    assert lmssc.load(tmp_path / "m.lmssc").predict(convert(new)).tolist() == clf.predict(convert(new)).tolist()


def test_a_frame_and_a_csv_file_are_understood_alike(tmp_path):
    frame, _ = mail()
    frame = frame.drop(columns="vector")
    data = lmssc.views_from_frame(frame)
    frame.to_csv(tmp_path / "numbers.csv", index=False)
    frame.assign(label=["u", "v"] * 30).to_csv(tmp_path / "numbers.csv", index=False)
    found = read_labelled_files([str(tmp_path / "numbers.csv")], None, Options())
    assert list(found.joined.views) == list(data.views)
    for name, view in data.views.items():
        one, other = (v.toarray() if sparse.issparse(v) else v for v in (view, found.joined.views[name]))
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert found.recipes == data.views.recipes
    assert [
        note.replace(f"{tmp_path}/numbers.csv", "the frame").removeprefix("the frame: ") for note in found.notes
    ] == [note.replace("types= overrides", "--type overrides") for note in data.notes]


def test_what_a_frame_lacks_or_adds_is_told():
    frame, y = mail()
    data = lmssc.views_from_frame(frame, {"kind": ["color", "read"], "numbers": ["links"]})
    clf = lmssc.LMSSC(**data.settings).fit(data.views, np.where(np.arange(60) % 3 == 0, y, None))
    with pytest.warns(UserWarning, match=r"column 'color': 1 cell with values unknown to the model \(green\)"):
        clf.predict(frame.assign(color=["green", *frame["color"][1:]]))
    with pytest.raises(ValueError, match="lacks columns of the model's view 'kind': color"):
        clf.predict(frame.drop(columns="color"))
    with pytest.raises(ValueError, match="present cannot be combined with a data frame"):
        clf.predict(frame, present={"kind": np.ones(60, bool)})


def test_a_column_of_labels_is_no_feature():
    frame, y = mail()
    plain, labelled = lmssc.views_from_frame(frame), lmssc.views_from_frame(frame.assign(label=y))
    assert labelled.notes[:-1] == plain.notes
    assert labelled.notes[-1].startswith("Not used in the frame: label (labels, by its name")
    assert labelled.views.recipes == plain.views.recipes
    clf = lmssc.LMSSC(**labelled.settings).fit(labelled.views, np.where(np.arange(60) % 3 == 0, y, None))
    assert clf.predict(frame).shape == (60,)
    asked_for = lmssc.views_from_frame(frame.assign(label=y), types={"label": "category"})
    n_classes = len(set(y))
    assert asked_for.views["numbers"].shape[1] == plain.views["numbers"].shape[1] + n_classes
    assert lmssc.views_from_frame(frame.assign(label=y), {"a": "label"}).views["a"].shape == (60, n_classes)


@pytest.mark.parametrize(
    ("views", "options", "error", "message"),
    [
        ({"a": "nothing"}, {}, ValueError, r"view 'a' names the columns \['nothing'\], which the frame does not have"),
        ({"a": []}, {}, ValueError, "names no column"),
        (["links"], {}, TypeError, "views must be a dict"),
        ({"a": ["body", "links"]}, {}, ValueError, "column 'body' of the frame is text.*Make it a view of its own"),
        ({"a": ["links", "vector"]}, {}, ValueError, "a matrix has to be a view of its own"),
        ({"a": "links"}, {"types": {"links": "numeral"}}, ValueError, "must be one of number, category, text"),
        ({"a": "links"}, {"types": {"nothing": "text"}}, ValueError, "no file has such a column|no column"),
        ({"a": ["links", "size"]}, {"impute": None}, ValueError, "row 4, column 'size': blank or NaN.*pass impute="),
    ],
)
def test_wrong_calls_of_views_from_frame(views, options, error, message):
    with pytest.raises(error, match=message):
        lmssc.views_from_frame(mail()[0], views, **options)


def test_views_from_frame_takes_frames_only():
    with pytest.raises(TypeError, match="pass a data frame of pandas, polars or pyarrow, not ndarray"):
        lmssc.views_from_frame(np.eye(3))


def run(call):
    return main(call.split())


@pytest.mark.usefixtures("quick_fits")
def test_columns_beside_the_matrices_are_views_if_they_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    phase = ["G1" if row % 3 else "S" for row in range(N)]
    write_h5ad(tmp_path / "all.h5ad", IDS, {"label": KIND, "phase": phase}, A)
    named = "all.h5ad --view x=X --view p=obs:phase"
    assert run(f"classify {named} --label-column label --out out --no-report") == 0
    assert "p  2 features" in capsys.readouterr().out
    assert run("predict out/model.lmssc all.h5ad --out new.csv") == 0
    assert pd.read_csv("new.csv")["label"].tolist() == pd.read_csv("out/predictions.csv")["label"].tolist()
    assert run(f"classify {named} --label-column label --drop obs:phase --dry-run") == 2
    assert "column 'obs:phase' of all.h5ad is left out by --drop" in capsys.readouterr().err
    npy_parts(tmp_path)
    for file in (tmp_path / "clip" / "metadata").iterdir():
        frame = pd.read_parquet(file)
        frame.assign(caption=[f"note on the {key}" for key in frame["id"]]).to_parquet(file)
    assert run("classify clip --dry-run") == 0
    assert "Not used in clip: caption (--view NAME=caption uses it)." in capsys.readouterr().out
    assert run("classify clip --view a=a --view b=b --view text=caption --dry-run") == 0
    assert "text" in capsys.readouterr().out


def test_a_part_without_labels_has_a_column_without_a_type(tmp_path, monkeypatch, capsys):
    """Older pandas writes a column of blank cells so."""
    import pyarrow as pa
    import pyarrow.parquet

    monkeypatch.chdir(tmp_path)
    npy_parts(tmp_path)
    last = tmp_path / "clip" / "metadata" / "metadata_10.parquet"
    table = pyarrow.parquet.read_table(last)
    pyarrow.parquet.write_table(table.set_column(1, "label", pa.nulls(len(table))), last)
    assert run("classify clip --dry-run") == 0
    n_labelled = sum(bool(label) for label in KIND[: N - len(table)])
    assert f"{n_labelled} samples labelled" in capsys.readouterr().out
    pyarrow.parquet.write_table(table.set_column(1, "label", pa.array(range(len(table)))), last)
    assert run("classify clip --dry-run") == 2
    assert "the column 'label' differs from part to part" in capsys.readouterr().err


def test_a_turned_table_is_suggested_by_its_ids_and_its_shape(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = pd.Index([f"g{i}" for i in range(A.shape[1])], name="gene")
    pd.DataFrame(A.T, columns=IDS, index=names).to_csv("expr.csv")
    (tmp_path / "labels.csv").write_text(label_text(IDS, LABELS))
    (tmp_path / "b.csv").write_text(view_text("b", B, IDS))
    for call in ("expr.csv", "b.csv expr.csv"):
        assert run(f"classify {call} --labels labels.csv --dry-run") == 2
        assert "--transpose expr" in capsys.readouterr().err
    assert run("classify expr.csv b.csv --labels labels.csv --transpose expr --dry-run") == 0
    assert "expr  6 features" in capsys.readouterr().out


def test_compare_reads_what_classify_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_h5ad(tmp_path / "cells.h5ad", IDS, {"kind": KIND}, A, obsm={"X_pca": B})
    call = "compare cells.h5ad --labels obs:kind --views X,obsm:X_pca --methods 1-NN --rates 0.4 --repeats 1 --out cmp"
    assert run(call) == 0
    out = capsys.readouterr().out
    assert f"Compared on the {sum(map(bool, KIND))} samples with a label" in out
    assert "1-NN" in out
    assert run("compare nothing --methods 1-NN") == 2
    assert "or files of views, got 'nothing'" in capsys.readouterr().err


def test_addresses_are_refused(capsys):
    assert run("classify https://example.org/a.csv --dry-run") == 2
    assert "https://example.org/a.csv is an address; download the file" in capsys.readouterr().err


def test_lmssc_in_a_pipeline_of_columns():
    frame, y = mail()
    encode = ColumnTransformer(
        [("numbers", StandardScaler(), ["links"]), ("kinds", OneHotEncoder(sparse_output=False), ["color", "read"])]
    )
    clf = make_pipeline(encode, lmssc.LMSSC(views=[1, 4])).fit(frame, np.where(np.arange(60) % 3 == 0, y, None))
    assert (clf.predict(frame) == y).mean() > 0.8


def test_polars_output():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    clf = lmssc.LMSSC().set_output(transform="polars").fit(VIEWS, KIND)
    assert isinstance(clf.transform(VIEWS), pl.DataFrame)


@pytest.mark.parametrize("table", [np.asarray, lambda masks: pd.DataFrame(masks, columns=["view0", "view1"])])
def test_masks_are_cut_by_a_grid_search(table):
    present = np.ones((N, 2), dtype=bool)
    present[5:9, 0] = False
    seen = []

    class Watched(lmssc.LMSSC):
        def fit(self, X, y, present=None):
            super().fit(X, y, present)
            seen.append((len(X), len(present)))
            return self

    y = np.array(["uvw".find(label) if label else row % 3 for row, label in enumerate(KIND)])
    with sklearn.config_context(enable_metadata_routing=True):
        clf = Watched(views=[A.shape[1], B.shape[1]]).set_fit_request(present=True)
        search = GridSearchCV(clf, {"n_neighbors": [5]}, cv=2, scoring="accuracy")
        search.fit(np.hstack([A, B]), y, present=table(present))
    assert seen == [(20, 20), (20, 20), (40, 40)]
    lists = lmssc.LMSSC(views=[A.shape[1], B.shape[1]], n_neighbors=5).fit(np.hstack([A, B]), y, list(present.T))
    np.testing.assert_array_equal(search.best_estimator_.label_distributions_, lists.label_distributions_)
