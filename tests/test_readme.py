"""The README: its code runs as typed, its numbers come from results/, its links lead somewhere."""

import json
import re
import warnings

import numpy as np
import pytest

from page_code import ROOT, bad_links, blocks, commands, marked_block, repository, run_commands, run_python

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def text():
    return README.read_text(encoding="utf-8")


@pytest.fixture
def measured():
    if not (ROOT / "results").is_dir():
        pytest.skip("the source distribution has no results")
    import measured

    return measured


def flat(text):
    """The text with every run of blanks and line ends as one blank."""
    return " ".join(text.split())


def test_length(text):
    assert 150 <= len(text.splitlines()) <= 200


def test_python_blocks_run(text, tmp_path, monkeypatch):
    assert len(blocks(text, "python")) == 2
    monkeypatch.chdir(tmp_path)
    names = run_python(text)
    clf, data = names["clf"], names["data"]
    assert (clf.predict(data.views) == clf.transduction_).all()
    assert (clf.transduction_ == data.target)[data.y == -1].mean() > 0.8
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "model.lmssc"}


def test_classify_example_runs_as_typed_and_prints_what_is_shown(text, tmp_path, capsys, monkeypatch):
    # The report has tests of its own, and fits many times.
    monkeypatch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
    monkeypatch.chdir(tmp_path)
    block = marked_block(text, "classify")
    assert [command.split()[0] for command, _ in commands(block)] == ["demo", "classify"]
    run_commands(block, capsys)


# ---- numbers


def test_accuracies_are_those_of_the_csv(text, measured):
    means = measured.mean_accuracies(ROOT)
    best, second, *_ = means
    cells = measured.cell_accuracies(ROOT)
    n_cells = len(cells[best])
    n_best = sum(cells[best][cell] >= max(cells[m][cell] for m in cells) - 1e-9 for cell in cells[best])
    assert best == "LMSSC"
    assert f"mean accuracy of {means[best]} %; the best of {_word(len(means) - 1)} other methods has" in flat(text)
    assert f"other methods has {means[second]} %" in flat(text)
    assert f"most accurate in {n_best} of {n_cells} cells" in flat(text)
    assert f"{len({name for name, _ in cells[best]})} public data sets" in flat(text)


def test_speed_is_that_of_the_csv(text, measured):
    row = measured.speed(ROOT, "LMSSC", "1,000,000, float32")
    gigabytes = float(row["megabytes"]) / 1000
    sentence = f"A million samples in {float(row['wall']):.0f} seconds on two cores, in {gigabytes:.1f} GB of memory"
    assert row["threads"] == "2"
    assert sentence in flat(text)


def test_labels_saved_are_those_of_the_csv(text, measured):
    table = measured.active_markdown(ROOT).splitlines()
    labels, (random, asked) = table[0].split(" | "), (line.split(" | ") for line in table[-2:])
    few, many = labels.index("40"), labels.index("100")
    assert asked[few] == random[many]
    guide = (ROOT / measured.LABELLING_PAGE).read_text(encoding="utf-8")
    for page in (text, guide):
        assert f"are worth 100 random ones: both give {asked[few]} %" in flat(page)


def test_picture_shows_these_numbers(measured):
    picture = pytest.importorskip("PIL.Image").open(ROOT / "docs" / "images" / "digits.png")
    numbers = json.loads(picture.text["Description"])
    assert numbers["fresh"] == measured.mean_accuracies(ROOT)
    quickstart = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^\* LMSSC +([\d.]+) %", marked_block(quickstart, "demo"), flags=re.MULTILINE)
    assert numbers["digits"] == pytest.approx(float(shown), abs=0.3)
    assert (ROOT / "docs" / "images" / "digits.png").stat().st_size <= 150_000


def test_guide_tables_come_from_the_csvs(measured):
    for page, filled in measured.filled_guides(ROOT).items():
        assert page.read_text(encoding="utf-8") == filled, f"{page.name} is not up to date: run make pages"


def _word(number):
    return ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"][number]


# ---- links


def test_links_are_absolute_and_lead_somewhere(text):
    if not (ROOT / "docs").is_dir():
        pytest.skip("the source distribution has no docs")
    assert bad_links(text, None) == []
    assert text.count(repository()) >= 15


def test_bad_links_are_found():
    tree = f"{repository()}/blob/main"
    page = f"[a](docs/index.md) [b]({tree}/docs/gone.md) [c]({tree}/README.md#nowhere) [d]({tree}/README.md#install)"
    assert [line.split(":")[0].split()[0] for line in bad_links(page, None)] == ["docs/index.md", "https", "https"]


# ---- what is said about scikit-learn


def test_what_is_said_of_label_spreading_is_true():
    from sklearn.model_selection import cross_val_score
    from sklearn.semi_supervised import LabelSpreading

    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [100.0], [100.1], [100.2]])
    y = np.array([0, -1, -1, 1, -1, -1, -1, -1, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(LabelSpreading().fit(X, y).predict_proba([[1e4]])).all()
        lost = LabelSpreading(kernel="knn", n_neighbors=2).fit(X, y)
        assert (lost.label_distributions_[6:] == 0).all()
        assert (lost.transduction_[6:] == 0).all()
        names = np.where(y == -1, None, np.array(["a", "b"], dtype=object)[y])
        with pytest.raises(TypeError):
            LabelSpreading().fit(X, names)
        with pytest.raises(ValueError, match="NaN"):
            LabelSpreading().fit(np.where(X == 5, np.nan, X), y)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 2))
        truth = (X[:, 0] > 0).astype(int)
        y = np.where(rng.uniform(size=200) < 0.1, truth, -1)
        model = LabelSpreading(kernel="knn").fit(X, y)
        assert (model.predict(X) != model.transduction_).any()
        assert (
            cross_val_score(LabelSpreading(kernel="knn"), X, y, cv=3).max() < 0.3 < (model.predict(X) == truth).mean()
        )


@pytest.mark.filterwarnings("ignore:most new samples have far larger values")
def test_what_is_said_of_lmssc_is_true():
    from lmssc import LMSSC

    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 0.3, (20, 3)), rng.normal(3, 0.3, (20, 3)), rng.normal(1000, 0.3, (20, 3))])
    names = np.full(60, None, dtype=object)
    names[:2], names[20:22] = "a", "b"
    other = X.copy()
    other[5] = np.nan
    with pytest.warns(UserWarning, match="unreached|no label"):
        clf = LMSSC(n_neighbors=5).fit([X, other], names)
    assert set(clf.unreached_) == set(range(40, 60))
    assert (clf.predict([X, other]) == clf.transduction_).all()
    far = clf.predict_proba([np.full((1, 3), -1e6), np.full((1, 3), np.nan)])
    np.testing.assert_allclose(far, [[0.5, 0.5]], atol=1e-6)
