"""What CONTRIBUTING says is true of the code: names, files and targets exist, and the recipes work."""

import ast
import re
import subprocess

import numpy as np
import pytest

from page_code import ROOT, bad_links

PAGE = ROOT / "CONTRIBUTING.md"
if not PAGE.exists():
    pytest.skip("the source distribution has no CONTRIBUTING.md", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")


def defined(path):
    """Names that a Python file defines, at any level, or lists in `__all__`."""
    names = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def missing_names(text):
    """Phrases "`name` in `file`" of which the file does not define the name."""
    pairs = re.findall(r"`(\w+)`\s+in\s+`([\w/.]+\.py)`", text)
    return [f"{name} in {file}" for name, file in pairs if name not in defined(ROOT / file)], len(pairs)


def test_names_are_where_it_says():
    missing, count = missing_names(TEXT)
    assert missing == []
    assert count >= 20


def test_a_wrong_name_is_found():
    assert missing_names("`no_such_thing` in `src/lmssc/io/formats.py`")[0] == [
        "no_such_thing in src/lmssc/io/formats.py"
    ]


def test_files_exist():
    files = re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w/.-]+)`", TEXT)
    assert len(files) >= 20
    assert [file for file in files if not (ROOT / file).exists() and file != "docs/_build/html"] == []
    assert bad_links(TEXT, ROOT) == []


def test_layers_are_those_of_the_package():
    from test_layers import MAY_IMPORT

    section = TEXT.partition("## Layers")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("- ")]
    listed = dict.fromkeys(name for line in lines for name in re.findall(r"`(\w+)`", line))
    assert [name for name in listed if name in MAY_IMPORT] == list(MAY_IMPORT)


def test_targets_exist_and_are_explained():
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {word for call in re.findall(r"`make ([a-z -]+)`", TEXT) for word in call.split()}
    assert len(named) >= 10
    assert named <= known
    helped = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in helped.splitlines()} >= named


def test_a_format_is_a_function_and_a_line(tmp_path, monkeypatch, capsys):
    from lmssc.cli import main
    from lmssc.io import formats
    from lmssc.io.arrays import table_of_arrays
    from small_files import make_problem, table_text

    def read_blanks(path):
        return table_of_arrays({"a": np.loadtxt(path)}, path)

    monkeypatch.setitem(formats.READERS, ".blanks", read_blanks)
    monkeypatch.chdir(tmp_path)
    views, _, labels = make_problem()
    np.savetxt("a.blanks", views["a"])
    (tmp_path / "labels.csv").write_text(table_text(["label"], [[label] for label in labels]))
    assert main(["classify", "a.blanks", "--labels", "labels.csv", "--dry-run"]) == 0
    assert f"a  {views['a'].shape[1]} features, a.blanks" in capsys.readouterr().out


def test_named_columns_are_a_format_too(tmp_path, monkeypatch, capsys):
    from lmssc.cli import main
    from lmssc.io import formats
    from lmssc.io.errors import InputFileError
    from lmssc.io.table import NUMBER, TEXT, Column, Rows, Table
    from lmssc.io.unpacking import open_bytes
    from small_files import make_problem

    def read_pairs(path):
        """Lines such as ``x=1 label=a``."""
        with open_bytes(path) as file:
            cells = [dict(pair.split("=") for pair in line.decode().split()) for line in file]
        if not cells:
            raise InputFileError(f"{path} is empty")
        numbers = np.array([float(row["x"]) for row in cells])
        texts = np.array([row.get("label") for row in cells], dtype=object)
        columns = {"x": Column(NUMBER, lambda: numbers), "label": Column(TEXT, lambda: texts)}
        return Table(Rows(path, len(cells), np.arange(1, len(cells) + 1)), columns)

    monkeypatch.setitem(formats.READERS, ".pairs", read_pairs)
    monkeypatch.chdir(tmp_path)
    views, _, labels = make_problem()
    lines = [f"x={x}" + (f" label={label}" if label else "") for x, label in zip(views["a"][:, 0], labels, strict=True)]
    (tmp_path / "a.pairs").write_text("\n".join(lines))
    assert main(["classify", "a.pairs", "--dry-run"]) == 0
    assert "a  1 feature, a.pairs" in capsys.readouterr().out
    (tmp_path / "a.pairs").write_text("\n".join([*lines[:4], "x=inf", *lines[5:]]))
    assert main(["classify", "a.pairs", "--out", "result"]) == 2
    assert "a.pairs, line 5, column 'x': infinite" in capsys.readouterr().err
    (tmp_path / "a.pairs").write_text("")
    assert main(["classify", "a.pairs", "--dry-run"]) == 2
    assert capsys.readouterr().err.strip().endswith("a.pairs is empty")


def test_a_column_of_another_kind_has_a_message():
    from lmssc.io.errors import InputFileError
    from lmssc.io.table import OTHER, TEXT, Column, Rows, Table

    with pytest.raises(ValueError, match="needs a fault"):
        Column(OTHER, lambda: np.empty(0))
    for kind in (OTHER, TEXT):
        table = Table(Rows("a.x", 1), {"x": Column(kind, lambda: np.array(["b"], dtype=object), "a.x: no")})
        for read in (table.texts, table.numbers):
            with pytest.raises(InputFileError, match=r"^a\.x: no$"):
                read("x")


def test_every_ending_is_in_the_help_and_the_guide(capsys):
    from lmssc.cli import main
    from lmssc.io.formats import READERS, TEXT_TABLES

    with pytest.raises(SystemExit):
        main(["classify", "--help"])
    endings = {*READERS, *TEXT_TABLES}
    assert endings - set(re.findall(r"(?<=\s)\.\w+(?=\s)", capsys.readouterr().out)) == set()
    guide = (ROOT / "docs" / "guide" / "files.md").read_text(encoding="utf-8")
    assert endings - set(re.findall(r"`(\.\w+)`", guide)) == set()


def test_a_method_is_two_functions():
    from scipy import sparse

    import lmssc
    from lmssc.datasets import make_multiview
    from lmssc.estimators.base import MultiViewClassifier, Solution

    class Frequencies(MultiViewClassifier):
        """Answers the frequencies of the labels."""

        def __init__(self, views=None, *, scaling="auto", impute=None):
            self.views, self.scaling, self.impute = views, scaling, impute

        def _fit_method(self, problem):
            n = self._fit_scalings(problem).n_samples
            self.objective_, self.n_iter_ = np.zeros(1), 1
            scores = np.tile(problem.targets.frequencies, (n, 1))
            return Solution(scores, sparse.csr_array((n, n)), np.zeros(n, dtype=bool))

        def _predict_new(self, raws):
            return np.tile(self._known_distributions()[0], (len(raws[0].data), 1))

    class Empty(Frequencies):
        """Has no answer for the first two samples."""

        def _fit_method(self, problem):
            solution = super()._fit_method(problem)
            solution.scores[:2] = 0
            return solution

    data = make_multiview(60, n_classes=2, weights=[0.8, 0.2], random_state=0)
    result = lmssc.compare(data.views, data.target, {"mine": Frequencies(), "1-NN": None}, rates=[0.3], repeats=1)
    assert [record["error"] for record in result.records] == ["", ""]
    new = [view + 0.1 for view in data.views]
    for target in (data.target, 1 - data.target):  # in one of the two, the canonical order is not that of classes_
        y = np.where(np.arange(60) < 20, target, -1)
        clf = Frequencies().fit(data.views, y)
        frequencies = np.bincount(y[:20]) / 20
        assert frequencies[0] != frequencies[1]
        np.testing.assert_allclose(clf.label_distributions_, np.tile(frequencies, (60, 1)))
        np.testing.assert_allclose(clf.predict_proba(new), np.tile(frequencies, (60, 1)))
        np.testing.assert_array_equal(clf.predict(new), frequencies.argmax())
    with pytest.raises(ValueError, match=r"Empty\._fit_method returned no positive score for 2 of 60 samples"):
        Empty().fit(data.views, y)


def test_a_view_is_three_products():
    from lmssc.data.view import View
    from lmssc.data.views import Views

    class Halves(View):
        """Stored twice as large as it is."""

        def dot(self, loadings):
            return super().dot(loadings) / 2

        def transpose_dot(self, latent):
            return super().transpose_dot(latent) / 2

        def squared_norm(self):
            return super().squared_norm() / 4

    rng = np.random.default_rng(0)
    X, H, W = rng.normal(size=(7, 4)), rng.normal(size=(7, 2)), rng.normal(size=(4, 2))
    plain, halves = Views([View(X)]), Views([Halves(2 * X)])
    assert halves.loss(H, [W]) == pytest.approx(plain.loss(H, [W]))
    np.testing.assert_allclose(halves.dot([W]), plain.dot([W]))


def test_workflows_call_targets_that_exist():
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    workflows = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert set(workflows) == {"tests.yml", "publish.yml"}
    called = {name: set(re.findall(r"run: make ([a-z-]+)", text)) for name, text in workflows.items()}
    assert called == {"tests.yml": {"test", "test-oldest", "release-check"}, "publish.yml": {"release-check"}}
    assert called["tests.yml"] <= known
    # Trusted publishing: the job may ask for an identity, and there is no secret.
    assert "id-token: write" in workflows["publish.yml"]
    assert "secrets." not in workflows["publish.yml"]
