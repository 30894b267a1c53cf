"""What a report says about labels to check, samples like none of the classes, and the labels behind an answer."""

import json
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from lmssc import GFHF, LMSSC
from lmssc.datasets import make_multiview
from lmssc.plotting import CalibrationDisplay


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    data = make_multiview(240, n_classes=4, labelled=0.5, noise=0.5, random_state=3)
    y = np.where(data.target == 3, -1, data.y)
    y[np.flatnonzero(y >= 0)[:10]] += 1
    y[y == 3] = 0
    path = tmp_path_factory.mktemp("page") / "report.html"
    clf = LMSSC(max_iter=2).fit(data.views, y)
    clf.report(path)
    return clf, path.read_text(encoding="utf-8")


def test_the_page_names_labels_to_check(page):
    clf, text = page
    suspects = clf.suspect_labels()
    assert "more likely wrong than right" in text
    assert f'<th scope="row">{suspects.rows[0]}</th>' in text


def test_the_page_groups_samples_like_no_class(page):
    _, text = page
    assert "samples are like none of the classes" in text
    assert "a class that has no label yet?" in text


def test_a_click_tells_the_labels_behind_an_answer(page):
    clf, text = page
    data = json.loads(re.search(r'id="map-data">(.*?)</script>', text, re.S).group(1))
    why = clf.explain(n=3)
    i = int(np.flatnonzero(~clf._labelled)[0])
    expected = ", ".join(f"{row} ({label})" for row, _, label, _ in why.votes(i))
    assert data["because"][i] == expected


def test_other_methods_have_a_page_too(tmp_path):
    data = make_multiview(60, labelled=0.3, random_state=0)
    GFHF().fit(data.views, data.y).report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "GFHF does not judge single labels" in text
    assert "more likely wrong" not in text


def test_confidence_by_class_has_intervals(tmp_path):
    data = make_multiview(90, labelled=0.5, random_state=0)
    clf = LMSSC(max_iter=1).fit(data.views, data.y)
    clf.report(tmp_path / "report.html", data.views, data.y)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "right when predicted (95 % interval)" in text
    row = re.search(r'id="by-class".*?<tbody><tr>(.*?)</tr>', text, re.S).group(1)
    assert re.search(r"\d %</td><td>[\d.]+ % \([\d.]+ % to [\d.]+ %\)</td>", row)


def test_calibration_is_drawn_by_class():
    data = make_multiview(90, labelled=0.3, random_state=0)
    clf = LMSSC(max_iter=1).fit(data.views, data.y)
    axes = Figure().subplots(2)
    display = CalibrationDisplay.from_estimator(clf, data.target, y=data.y, by_class=True, ax=axes)
    hidden = data.y < 0
    assert list(display.lines_) == ["0", "1", "2"]
    right, _ = display.answers["1"]
    named = hidden & (clf.transduction_ == 1)
    assert right.tolist() == (data.target[named] == 1).tolist()
