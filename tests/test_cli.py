"""The command line: what the demo prints and writes, and the messages for wrong calls."""

import csv
import io
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from lmssc.cli import digits_demo as demo
from lmssc.cli import main
from lmssc.datasets import load_digits_views
from lmssc.persistence.atomic import open_atomically
from page_code import ROOT, assert_same_percentages, commands, marked_block

ROW = re.compile(r"^([* ]) (\S.*?) +([\d.]+) % +([\d.]+) % +([\d.]+)$", re.MULTILINE)
FIGURES = ["confusion_matrix", "latent_map", "reliability"]
TABLES = ["predictions.csv", "scores.csv"]


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def parse_table(text):
    return {
        method: SimpleNamespace(best=star == "*", accuracy=float(accuracy), balanced=float(balanced))
        for star, method, accuracy, balanced, _ in ROW.findall(text)
    }


@pytest.fixture(scope="module")
def full_demo(tmp_path_factory):
    """The demo as a newcomer runs it, once for all tests."""
    pytest.importorskip("matplotlib").use("Agg")
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["demo", "--out", str(folder)])
    return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue(), folder=folder)


@pytest.fixture
def few_digits(monkeypatch):
    """The demo on the first 300 digits: as real, and fast."""
    data = load_digits_views()
    data.views = [view[:300] for view in data.views]
    data.target = data.target[:300]
    monkeypatch.setattr(demo, "load_digits_views", lambda: data)


def test_demo_ends_well_and_shows_no_bar_where_there_is_no_terminal(full_demo):
    assert full_demo.code == 0
    assert full_demo.err == ""


def test_the_docs_show_what_the_demo_prints(full_demo):
    page = ROOT / "docs" / "quickstart.md"
    if not page.exists():
        pytest.skip("the source distribution has no docs")
    ((command, shown),) = commands(marked_block(page.read_text(encoding="utf-8"), "demo"))
    assert command == "demo --no-figures"  # which changes no number
    assert_same_percentages(shown, full_demo.out)


def test_demo_puts_lmssc_above_the_others(full_demo):
    table = parse_table(full_demo.out)
    assert len(table) == 4
    lmssc = table.pop("LMSSC")
    assert lmssc.best
    assert lmssc.accuracy > 90
    for other in table.values():
        assert not other.best
        assert 50 < other.accuracy < lmssc.accuracy


def test_demo_table_agrees_with_its_predictions(full_demo):
    digits = load_digits_views()
    predictions = read_csv(full_demo.folder / "predictions.csv")
    assert [int(line["row"]) for line in predictions] == list(range(1797))
    label = np.array([int(line["label"]) for line in predictions])
    given = np.array([line["given"] == "yes" for line in predictions])
    np.testing.assert_array_equal(np.bincount(digits.target[given]), 9)
    np.testing.assert_array_equal(label[given], digits.target[given])
    shown = parse_table(full_demo.out)["LMSSC"]
    truth, guessed = digits.target[~given], label[~given]
    assert shown.accuracy == pytest.approx(100 * accuracy_score(truth, guessed), abs=0.051)
    assert shown.balanced == pytest.approx(100 * balanced_accuracy_score(truth, guessed), abs=0.051)
    assert "90 labels given, 1707 held out" in full_demo.out


def test_demo_confidence_is_that_of_the_label(full_demo):
    predictions = read_csv(full_demo.folder / "predictions.csv")
    for line in predictions:
        assert 0.1 <= float(line["confidence"]) <= 1
        assert line["given"] == "no" or float(line["confidence"]) == 1


def test_demo_writes_the_scores_that_it_prints(full_demo):
    table = parse_table(full_demo.out)
    scores = read_csv(full_demo.folder / "scores.csv")
    assert [score["method"] for score in scores] == list(table)
    for score in scores:
        assert table[score["method"]].accuracy == pytest.approx(100 * float(score["accuracy"]), abs=0.051)


def test_demo_writes_figures_and_nothing_half_done(full_demo):
    expected = [f"{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")] + TABLES
    assert sorted(path.name for path in full_demo.folder.iterdir()) == sorted(expected)
    assert all(name in full_demo.out for name in expected)
    assert str(full_demo.folder) in full_demo.out
    assert "Next, try" in full_demo.out


@pytest.mark.parametrize("name", FIGURES)
def test_demo_figures_are_images_with_something_on_them(full_demo, name):
    from matplotlib.image import imread

    image = imread(full_demo.folder / f"{name}.png", format="png")
    height, width = image.shape[:2]
    assert 500 < height < 1500
    assert 700 < width < 2000
    painted = (image[..., :3] < 0.9).any(axis=2)
    assert 0.01 < painted.mean() < 0.9
    margin = 3
    assert not painted[:margin].any()  # nothing is cut off at the edges
    assert not painted[-margin:].any()
    assert not painted[:, :margin].any()
    assert not painted[:, -margin:].any()
    svg = (full_demo.folder / f"{name}.svg").read_text()
    assert svg.startswith("<?xml")
    assert svg.rstrip().endswith("</svg>")


@pytest.mark.usefixtures("few_digits")
def test_quiet_is_quiet_and_repeats_give_the_same_predictions(tmp_path, capsys):
    for name in ("one", "two"):
        code = main(["demo", "-q", "--no-figures", "--rate", "0.1", "--seed", "3", "--out", str(tmp_path / name)])
        assert code == 0
    assert capsys.readouterr() == ("", "")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == TABLES
    first, second = ((tmp_path / name / "predictions.csv").read_bytes() for name in ("one", "two"))
    assert first == second


@pytest.mark.usefixtures("few_digits")
def test_without_matplotlib_the_table_comes_and_a_hint(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["demo", "--rate", "0.1", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert len(parse_table(captured.out)) == 4
    assert captured.err == "lmssc: no figures: figures need matplotlib: pip install 'lmssc[plot]'\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == TABLES


@pytest.mark.usefixtures("few_digits")
@pytest.mark.parametrize("installed", [True, False])
def test_a_terminal_gets_a_progress_bar_if_tqdm_is_there(tmp_path, capsys, monkeypatch, installed):
    if installed:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    with redirect_stderr(terminal):
        assert main(["demo", "--no-figures", "--rate", "0.1", "--out", str(tmp_path)]) == 0
    assert len(parse_table(capsys.readouterr().out)) == 4
    shown = terminal.getvalue()
    assert ("LMSSC" in shown and "change" in shown) if installed else shown == ""


@pytest.mark.parametrize("rate", ["0", "1", "-0.1", "1.5", "nan"])
def test_rate_outside_0_to_1(rate, tmp_path, capsys):
    assert main(["demo", f"--rate={rate}", "--out", str(tmp_path / "out")]) == 2
    assert_one_error_line(capsys, "--rate must be between 0 and 1")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rate", ["0.001", "0.999"])
def test_rate_that_leaves_a_class_with_nothing(rate, tmp_path, capsys):
    assert main(["demo", "--rate", rate, "--out", str(tmp_path / "out")]) == 2
    assert_one_error_line(capsys, "each class needs at least one given and one held-out label")


def test_negative_seed(tmp_path, capsys):
    assert main(["demo", "--seed=-1", "--out", str(tmp_path)]) == 2
    assert_one_error_line(capsys, "--seed must not be negative")


def test_out_is_a_file(tmp_path, capsys, no_computation):
    file = tmp_path / "file"
    file.write_text("mine")
    assert main(["demo", "--out", str(file)]) == 2
    assert_one_error_line(capsys, "is a file")
    assert file.read_text() == "mine"


def test_out_is_below_a_file(tmp_path, capsys, no_computation):
    (tmp_path / "file").touch()
    assert main(["demo", "--out", str(tmp_path / "file" / "out")]) == 2
    assert_one_error_line(capsys, "cannot be written")


def test_out_is_not_writable(tmp_path, capsys, monkeypatch, no_computation):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.touch", refuse)  # a mode of the folder would not stop a test run by root
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert_one_error_line(capsys, "cannot be written to: Permission denied")


@pytest.fixture
def no_computation(monkeypatch):
    """Fail if the demo goes on to its computation."""
    monkeypatch.setattr(demo, "run", lambda *args, **kwargs: pytest.fail("computed before the check"))


@pytest.mark.filterwarnings("always")
def test_a_warning_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "run", lambda *args, **kwargs: warnings.warn("mind the gap", stacklevel=1))
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "lmssc: warning: mind the gap\n"


def assert_one_error_line(capsys, message):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lmssc: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


@pytest.mark.usefixtures("few_digits")
def test_interrupted_while_computing(tmp_path, capsys, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo.LMSSC, "fit", interrupt)
    assert main(["demo", "--rate", "0.1", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "\nlmssc: interrupted\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("few_digits")
def test_interrupted_while_writing_a_figure(tmp_path, capsys, monkeypatch):
    def interrupt(self, file, **kwargs):
        file.write(b"half")
        raise KeyboardInterrupt

    figure = pytest.importorskip("matplotlib.figure")
    monkeypatch.setattr(figure.Figure, "savefig", interrupt)
    assert main(["demo", "--rate", "0.1", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "\nlmssc: interrupted\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == TABLES


def test_a_file_is_replaced_only_by_a_complete_one(tmp_path):
    path = tmp_path / "file"
    with open_atomically(path) as file:
        file.write(b"old")
        assert not path.exists()
    with suppress(RuntimeError), open_atomically(path) as file:
        file.write(b"new")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_labels_are_hidden_class_by_class():
    task = demo.make_task(0.05, seed=1)
    digits = load_digits_views()
    np.testing.assert_array_equal(task.target, digits.target[task.rows])
    np.testing.assert_array_equal(np.sort(task.rows), np.arange(1797))
    assert (task.rows != np.arange(1797)).mean() > 0.9
    np.testing.assert_array_equal(task.views[0], digits.views[0][task.rows])
    np.testing.assert_array_equal(np.unique(task.y[task.held_out]), [-1])
    np.testing.assert_array_equal(np.bincount(task.y[~task.held_out]), 9)
    assert (demo.make_task(0.05, seed=2).rows != task.rows).any()


def test_methods_do_not_see_the_held_out_labels():
    task = demo.make_task(0.05, seed=0)
    wrong = np.where(task.held_out, (task.target + 1) % 10, task.target)
    lied_to = demo.Task(task.views, task.y, wrong, task.rows)
    for score in demo.score_methods(lied_to, ConstantModel())[1:]:
        assert score.accuracy < 0.1


class ConstantModel:
    """Stands in for LMSSC where only the other methods matter."""

    def fit(self, views, y):
        self.transduction_ = np.zeros_like(y)
        return self


def test_no_arguments_teach(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    for wanted in ("Label every sample, given", "demo", "lmssc demo --rate 0.01", "transduction_", "--version"):
        assert wanted in text


def test_help_of_demo_names_every_option(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["demo", "--help"])
    text = capsys.readouterr().out
    for option in ("--rate", "--seed", "--out", "--no-figures", "--quiet"):
        assert option in text


def test_version(capsys, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"lmssc": "9.8.7"}[name])
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == "lmssc 9.8.7\n"


@pytest.mark.parametrize("argv", [["no-such-command"], ["demo", "--rate", "many"], ["demo", "--no-such-option"]])
def test_unknown_words_get_the_usage(argv, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert "usage: lmssc" in capsys.readouterr().err


def test_run_as_a_module():
    ended = subprocess.run([sys.executable, "-m", "lmssc"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "lmssc demo" in ended.stdout


def test_the_command_line_starts_without_the_heavy_modules():
    """With an empty package around it, because this is about cli.py and not about lmssc/__init__.py."""
    code = (
        "import sys, types; package = types.ModuleType('lmssc'); package.__path__ = [sys.argv[1]]; "
        "sys.modules['lmssc'] = package; from lmssc.cli import main; main([]); "
        "sys.exit(str([m for m in ('numpy', 'scipy', 'sklearn', 'matplotlib') if m in sys.modules]))"
    )
    command = [sys.executable, "-c", code, str(Path(demo.__file__).parents[1])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stderr == "[]\n"
    assert "lmssc demo" in ended.stdout
