"""What `lmssc classify` and `predict` tell: columns by name, view and file; warnings in the report; missing classes."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from lmssc import LMSSC, views_from_frame
from lmssc.cli import main
from lmssc.cli.view_files import add_files, naming_files
from lmssc.datasets import make_multiview

pytestmark = pytest.mark.filterwarnings("default")
N = 150
RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 2, N)
LABELS = [f"c{code}" if row < 40 else None for row, code in enumerate(TRUTH)]
DEFECTS = {
    "an id": (RNG.permutation(N), "column 'odd' looks like an id"),
    "a code": (np.where(np.arange(N) % 50 == 3, -999, TRUTH + RNG.normal(size=N)), "-999 in column 'odd', far from"),
    "tiny": (1e-200 * (1 + RNG.random(N)), "column 'odd': values too small"),
    "a leak": (np.where(np.arange(N) < 40, 9.0 * TRUTH + RNG.random(N), 4.0), "column 'odd' seems to be made from"),
}


def table(odd):
    rng = np.random.default_rng(1)
    numbers = TRUTH[:, None] * [2, 1] + rng.normal(size=(N, 2)) + 20
    kind = np.where(rng.random(N) < 0.5, "red", "blue")
    ids = [f"s{row}" for row in range(N)]
    return pd.DataFrame({"id": ids, "size": numbers[:, 0], "kind": kind, "odd": odd, "age": numbers[:, 1]})


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("defect", DEFECTS)
def test_classify_names_column_view_and_file(defect, tmp_path, capsys):
    odd, message = DEFECTS[defect]
    path = tmp_path / "lab.parquet"
    table(odd).assign(label=LABELS).to_parquet(path)
    words = ["--type", "odd=number", "--out", str(tmp_path / "out"), "--no-report"]
    assert main(["classify", f"tests={path}", *words]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "'odd'" in line]
    assert f"view 'tests' ({path})" in line
    assert message in line


def test_warnings_of_the_fit_are_in_the_report_and_in_json(tmp_path, capsys):
    path, out = tmp_path / "lab.parquet", tmp_path / "out"
    table(DEFECTS["a leak"][0]).assign(label=LABELS).to_parquet(path)
    assert main(["classify", str(path), "--out", str(out), "--format", "json"]) == 0
    shown = capsys.readouterr()
    told = json.loads(shown.out)["warnings"]
    leak = f"view 'lab' ({path}), column 'odd' seems to be made from the labels"
    assert [line.removeprefix("lmssc: warning: ") for line in shown.err.splitlines()] == told
    assert sum(line.startswith(leak) for line in told) == 1
    page = (out / "report.html").read_text(encoding="utf-8")
    verdict = page[page.index('class="verdict warned"') :].partition("</div>")[0]
    assert f"<p>V{leak[1:]}".replace("'", "&#39;") in verdict


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize(("n_labels", "guess"), [(19, True), (20, False)])
def test_confidence_from_few_labels_is_called_a_guess(n_labels, guess, tmp_path, capsys):
    path = tmp_path / "lab.csv"
    labels = [f"c{code}" if row < n_labels else None for row, code in enumerate(TRUTH)]
    table(np.random.default_rng(2).normal(size=N)).assign(label=labels).to_csv(path, index=False)
    assert main(["classify", str(path), "--out", str(tmp_path / "out"), "--no-report"]) == 0
    assert ("This confidence is a guess: 19 labels are too few" in capsys.readouterr().out) == guess


@pytest.mark.parametrize(("hidden", "told"), [(3, True), (None, False)])
def test_a_class_without_a_label_is_told(hidden, told, tmp_path, capsys):
    data = make_multiview(400, n_classes=4, labelled=0.4, random_state=1)
    np.savez(tmp_path / "a.npz", **{f"v{v}": view for v, view in enumerate(data.views)})
    y = [f"c{code}" if code >= 0 and code != hidden else "" for code in data.y]
    (tmp_path / "y.csv").write_text("\n".join(["label", *y]) + "\n")
    words = ["classify", str(tmp_path / "a.npz"), "--labels", str(tmp_path / "y.csv")]
    assert main([*words, "--out", str(tmp_path / "out"), "--no-report"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "a class without a label?" in line]
    assert len(lines) == told
    if told:
        rows = [int(name) - 1 for name in lines[0].partition("Such as ")[2].partition(";")[0].split(", ")[:3]]
        assert (data.target[rows] == hidden).all()


@pytest.mark.parametrize("defect", DEFECTS)
def test_views_from_frame_name_the_column(defect):
    odd, message = DEFECTS[defect]
    data = views_from_frame(table(odd).drop(columns="id"), types={"odd": "number"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LMSSC(max_iter=1, **data.settings).fit(data.views, np.array(LABELS, dtype=object), data.present)
    (line,) = [str(one.message) for one in caught if "'odd'" in str(one.message)]
    assert message in line


def test_predict_names_column_view_and_file(tmp_path, capsys):
    old, new = tmp_path / "lab.csv", tmp_path / "lab2.csv"
    frame = table(np.random.default_rng(2).normal(loc=20, size=N))
    frame.assign(label=LABELS).to_csv(old, index=False)
    assert main(["classify", f"tests={old}", "--out", str(tmp_path / "out"), "--no-report"]) == 0
    frame.assign(age=frame["age"] / 1000).to_csv(new, index=False)
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "out/model.lmssc"), f"tests={new}", "--out", str(tmp_path / "new.csv")]) == 0
    assert f"in view 'tests' ({new}), column 'age'. Perhaps they are in another unit" in capsys.readouterr().err


def test_names_of_another_width_are_not_used():
    """Views may be changed before a fit; names that no longer fit them would be wrong."""
    data = views_from_frame(table(np.arange(N)).drop(columns="id"), types={"odd": "number"})
    data.views["numbers"] = data.views["numbers"][:, 2:]
    with (
        pytest.warns(UserWarning, match="labelled samples lie among themselves"),
        pytest.warns(UserWarning, match=r"view 'numbers', column 1 \(counted from 0\) looks like an id"),
    ):
        LMSSC(max_iter=1).fit(data.views, np.array(LABELS, dtype=object))


def test_frames_of_one_column_with_several_features_are_not_compared_by_name():
    data = views_from_frame(table(np.random.default_rng(2).normal(size=N)).drop(columns="id"))
    clf = LMSSC(max_iter=1, **data.settings).fit(data.views, np.array(LABELS, dtype=object))
    frame = pd.DataFrame(data.views["numbers"]).add_prefix("f")
    np.testing.assert_array_equal(clf.predict({"numbers": frame}), clf.transduction_)


def test_errors_name_the_file_once():
    files = {"a": "in/a.csv", "b": "in/b.csv"}
    assert add_files("in/a.csv: view 'a' has no columns", files) == "in/a.csv: view 'a' has no columns"
    assert add_files("view 'a', view 'c'", files) == "view 'a' (in/a.csv), view 'c'"
    with pytest.raises(ValueError, match=r"^view 'b' \(in/b.csv\), row 3: infinite$"), naming_files(files):
        raise ValueError("view 'b', row 3: infinite")
