"""What a notebook shows: the views of a classifier, the progress of many fits, the table of a comparison."""

import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

SETUP = """
from lmssc import LMSSC, LMSSCCV, Graph, compare
from lmssc.datasets import make_multiview
import numpy as np
data = make_multiview(60, n_views=2, labelled=0.4, random_state=0)
links = (data.target[:, None] == data.target) & (np.random.default_rng(0).random((60, 60)) < 0.2)
views = {"<b>pixels</b>": data.views[0], "words": data.views[1], "cites": Graph(links)}
"""


@pytest.fixture(scope="module")
def notebook():
    """A shell that runs cells as a kernel does."""
    shell = InteractiveShell.instance(history_manager=None)
    shell.kernel = object()  # where notebooks differ from IPython on a terminal
    run(shell, SETUP)
    yield shell
    InteractiveShell.clear_instance()


def run(shell, cell):
    """The HTML that a cell shows."""
    with capture_output() as shown:
        ended = shell.run_cell(cell)
    ended.raise_error()
    html = [one.data["text/html"] for one in shown.outputs]
    if ended.result is not None:
        html.append(shell.display_formatter.format(ended.result)[0]["text/html"])
    return html


def test_a_classifier_shows_its_views(notebook):
    (unfitted,) = run(notebook, "LMSSC()")
    assert "features</th>" not in unfitted
    (shown,) = run(notebook, "LMSSC(max_iter=2).fit(views, data.y)")
    assert "sk-estimator" in shown  # the diagram of scikit-learn
    assert "features</th>" in shown
    assert "&lt;b&gt;pixels&lt;/b&gt;</td>" in shown
    assert "<b>pixels</b>" not in shown
    assert ">words</td>" in shown
    assert ">links</td>" in shown


def test_a_search_and_a_comparison_show_how_far_they_are(notebook):
    search = "LMSSCCV(param_grid={'beta': [1.0, 0.5]}, n_splits=2, n_repeats=1%s).fit(data.views, data.y) and None"
    shown = run(notebook, search % "")
    assert shown[0] == "<progress value='0' max='4'></progress> 0 of 4 runs"
    assert shown[-1] == "<progress value='4' max='4'></progress> 4 of 4 runs"
    assert "left" in shown[1]
    assert run(notebook, search % ", verbose=0") == []
    *progress, table = run(notebook, "compare(data.views, data.target, ['1-NN', 'GFHF (concatenated)'], [0.3], 2)")
    assert progress[-1] == "<progress value='4' max='4'></progress> 4 of 4 runs"
    assert "<td style='text-align: left'>1-NN</td>" in table
    assert table.count("<tr>") == 3
    assert "*" in table
