"""``--graph`` of classify, predict, compare and label."""

import csv

import numpy as np
import pytest
from scipy import io, sparse

from lmssc import LMSSC, Graph
from lmssc.cli import main
from lmssc.io.files_to_label import read_files_to_label
from lmssc.io.options import Options
from lmssc.studio.engine import Engine
from test_graph_views import papers, some_labels

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of 90 papers: features, labels of some, and links; the last 30 are new."""
    text, cites, topic = papers(120, noise=0.8, p_link=0.15)
    where = tmp_path_factory.mktemp("papers")
    ids = [f"p{i}" for i in range(120)]

    def write(name, head, rows):
        with open(where / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *rows])

    head = ["id", *(f"f{j}" for j in range(8))]
    write("text.csv", head, [[ids[i], *text[i].round(4)] for i in range(90)])
    write("new.csv", head, [[ids[i], *text[i].round(4)] for i in range(90, 120)])
    labels = some_labels(topic)
    write("labels.csv", ["id", "label"], [[ids[i], f"t{topic[i]}"] for i in range(90) if labels[i] >= 0])
    edges = np.argwhere(cites.toarray() > 0)
    write("cites.csv", ["source", "target"], [[ids[i], ids[j]] for i, j in edges if max(i, j) < 90])
    write("new_cites.csv", ["from", "to", "weight"], [[ids[j], ids[i], 1] for i, j in edges if max(i, j) >= 90])
    write("unknown.csv", ["source", "target"], [["p1", "p2"], ["p3", "nobody"]])
    write("negative.csv", ["source", "target", "weight"], [["p1", "p2", "-1"]])
    write("blank.csv", ["source", "target"], [["p1", ""]])
    sparse.save_npz(where / "links.npz", cites[:90][:, :90].tocsr())
    io.mmwrite(where / "links.mtx", cites[:90][:, :90])
    np.savez(where / "all.npz", text=text[:90], y=topic[:90])
    return where, [f"t{one}" for one in topic]


def classify(folder, out, *graphs):
    words = [str(folder / "text.csv"), "--labels", str(folder / "labels.csv"), "--out", str(out), "--no-report"]
    return main(["classify", *words, *graphs])


def answers(path):
    with open(path, encoding="utf-8") as file:
        return {row["id"]: row["label"] for row in csv.DictReader(file)}


def test_links_by_id_in_npz_and_in_mtx_are_the_same(folder, tmp_path, capsys):
    where, _ = folder
    assert classify(where, tmp_path / "a", "--graph", f"cites={where / 'cites.csv'}") == 0
    assert "Links 'cites': " in capsys.readouterr().out
    assert classify(where, tmp_path / "b", "--graph", f"cites={where / 'links.npz'}") == 0
    assert classify(where, tmp_path / "c", "--graph", f"cites={where / 'links.mtx'}") == 0
    first = answers(tmp_path / "a" / "predictions.csv")
    assert first == answers(tmp_path / "b" / "predictions.csv") == answers(tmp_path / "c" / "predictions.csv")


def test_links_of_samples_to_themselves_are_left_out_and_told(folder, tmp_path, capsys):
    where, _ = folder
    lines = (where / "cites.csv").read_text().splitlines()
    more = tmp_path / "cites.csv"
    more.write_text(
        "\n".join(["source,target,year", *(f"{line},1" for line in lines[1:]), "p1,p1,7", "p2,p2,7"]) + "\n"
    )
    assert classify(where, tmp_path / "a", "--graph", str(where / "cites.csv")) == 0
    assert classify(where, tmp_path / "b", "--graph", str(more)) == 0
    told = capsys.readouterr().out
    links = f"Links 'cites': {len(lines) - 1} links, "
    assert f"{links}{where / 'cites.csv'}." in told
    assert f"{links}{more}, weights in the column 'year'; 2 links of samples to themselves left out." in told
    assert answers(tmp_path / "a" / "predictions.csv") == answers(tmp_path / "b" / "predictions.csv")


def test_new_samples_by_their_links(folder, tmp_path, capsys):
    where, topic = folder
    assert classify(where, tmp_path / "a", "--graph", str(where / "cites.csv")) == 0
    words = ["predict", str(tmp_path / "a" / "model.lmssc"), f"text={where / 'new.csv'}", "--out"]
    assert main([*words, str(tmp_path / "linked.csv"), "--graph", f"cites={where / 'new_cites.csv'}"]) == 0
    assert "to known samples" in capsys.readouterr().out
    found = answers(tmp_path / "linked.csv")
    assert len(found) == 30
    right = [found[f"p{i}"] == topic[i] for i in range(90, 120)]
    assert np.mean(right) > 0.6
    assert main([*words, str(tmp_path / "x.csv")]) == 0
    said = capsys.readouterr()
    assert "No file has the graph 'cites': samples are treated as without links (--graph cites=FILE)." in said.out
    assert not said.err
    assert main([*words, str(tmp_path / "y.csv"), "--graph", str(where / "new_cites.csv")]) == 2
    assert f"its graphs are: 'cites'; name it with --graph cites={where / 'new_cites.csv'}" in capsys.readouterr().err


def test_links_to_a_model_from_python(tmp_path, capsys):
    rng = np.random.default_rng(0)
    topic = np.arange(60) % 2
    features = rng.normal(size=(60, 4)) + topic[:, None]
    links = sparse.csr_array((rng.random((60, 60)) < np.where(topic[:, None] == topic, 0.2, 0.01)).astype(float))
    model = LMSSC().fit({"a": features, "cites": Graph(links)}, np.where(np.arange(60) < 20, topic, -1))
    model.save(tmp_path / "m.lmssc")
    np.save(tmp_path / "a.npy", features[:5] + 0.1)
    sparse.save_npz(tmp_path / "cites.npz", links[:5])
    words = [str(tmp_path / name) for name in ("m.lmssc", "a.npy")]
    graph, out = str(tmp_path / "cites.npz"), str(tmp_path / "new.csv")
    assert main(["predict", *words, "--graph", graph, "--out", out]) == 0
    assert f"Links 'cites': {links[:5].nnz} links" in capsys.readouterr().out
    with open(out, encoding="utf-8") as file:
        found = [row["label"] for row in csv.DictReader(file)]
    expected = model.predict({"a": features[:5] + 0.1, "cites": Graph(links[:5])})
    assert found == [str(label) for label in expected]
    with pytest.raises(ValueError, match="'cites' was a graph in fit, but is a matrix of features here"):
        model.predict({"a": features[:5], "cites": links[:5]})
    assert main(["info", words[0]]) == 0
    assert f"cites  {model.link_weights_['cites']:>6.3g}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unknown.csv", "unknown.csv, line 3: no sample has the id 'nobody'"),
        ("negative.csv", "negative.csv, line 2, column 'weight': '-1' is not a weight"),
        ("blank.csv", "blank.csv, line 2: no id in the column 'target'"),
        ("all.npz", "all.npz is 90 x 8; links need a row for each of the 90 samples"),
        ("nothing.csv", "nothing.csv: no such file"),
    ],
)
def test_bad_files_are_one_line(folder, tmp_path, capsys, name, message):
    where, _ = folder
    assert classify(where, tmp_path / "a", "--graph", str(where / name)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_graph_that_the_model_does_not_have(folder, tmp_path, capsys):
    where, _ = folder
    assert classify(where, tmp_path / "a") == 0
    words = ["predict", str(tmp_path / "a" / "model.lmssc"), f"text={where / 'new.csv'}", "--out"]
    assert main([*words, str(tmp_path / "x.csv"), "--graph", str(where / "new_cites.csv")]) == 2
    assert "the model has no graph 'new_cites'; its graphs are: none" in capsys.readouterr().err


def test_the_studio_takes_links(folder, tmp_path):
    where, truth = folder
    data = read_files_to_label([str(where / "text.csv")], [], Options(), None, [f"cites={where / 'cites.csv'}"])
    assert any(note.startswith("Links 'cites': ") for note in data.notes)
    engine = Engine({**data.joined.views, **data.graphs}, background=False)
    names = sorted(set(truth))
    engine.start(names, {row: truth[row] for row in range(0, 90, 4)})
    engine.settle()
    y = np.array([truth[row] if row % 4 == 0 else None for row in range(90)], dtype=object)
    clf = LMSSC().fit({**data.joined.views, **data.graphs}, y)
    assert clf.link_weights_["cites"] > 0
    shares, columns = engine.predictions(range(90))
    order = [columns.index(name) for name in clf.classes_]
    np.testing.assert_allclose(shares[:, order], clf.label_distributions_, atol=1e-6)


def test_compare_takes_links(folder, tmp_path, capsys):
    where, _ = folder
    words = ["--methods", "LMSSC", "MLAN", "1-NN", "--rates", "0.2", "--repeats", "1", "--out", str(tmp_path)]
    assert main(["compare", str(where / "all.npz"), "--graph", str(where / "links.mtx"), *words]) == 0
    assert "3 runs (0 failed)" in capsys.readouterr().out
