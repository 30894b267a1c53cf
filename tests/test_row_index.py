"""Rows are joined by position, unless the indexes of frames and series say that this is wrong."""

import numpy as np
import pandas as pd
import pytest

from lmssc import LMSSC, LMSSCCV, stack_views
from lmssc.datasets import make_multiview
from lmssc.model_selection import labelled_scorer
from lmssc.model_selection.refit import hold_out

N = 40
DATA = make_multiview(N, n_views=2, n_features=4, labelled=0.5, random_state=0)
IDS = np.array([f"s{i:02}" for i in range(N)])
NUMBERS = np.arange(N) + 1000
SHUFFLED = np.random.default_rng(0).permutation(N)


def frames(index=IDS, other=None):
    """Two views, with an index each."""
    other = index if other is None else other
    return {"a": pd.DataFrame(DATA.views[0], index=index), "b": pd.DataFrame(DATA.views[1], index=other)}


def quick(**parameters):
    return LMSSC(max_iter=1, calibrate=False, **parameters)


@pytest.fixture(scope="module")
def right():
    return quick().fit(dict(zip("ab", DATA.views, strict=True)), DATA.y).label_distributions_


OTHER = {
    "one id changed": (IDS, np.where(IDS == "s07", "s99", IDS), r"39 of 41 ids are in both \('s07' is not\)"),
    "one row missing in each": (IDS, np.append(IDS[1:], "s99"), r"39 of 41 ids"),
    "numbers and text": (NUMBERS, NUMBERS.astype(str), r"0 of 80 ids.*ids are int in view 'a', str in view 'b'"),
    "other numbers": (NUMBERS, NUMBERS + 1, r"39 of 41 ids"),
    "ids twice": (IDS, np.append(IDS[:-1], "s00"), r"39 of 40 ids"),
    "the same ids, some twice": (IDS[[0, 0, *range(1, N - 1)]], IDS[[0, 1, *range(1, N - 1)]], r"another order"),
}


@pytest.mark.parametrize("case", OTHER)
@pytest.mark.parametrize("form", [dict, lambda views: list(views.values())])
def test_views_with_other_ids_are_refused(case, form):
    one, two, message = OTHER[case]
    message = message.replace("view 'a'", "view '(a|view0)'").replace("view 'b'", "view '(b|view1)'")
    with pytest.raises(ValueError, match=message) as caught:
        quick().fit(form(frames(one, two)), DATA.y)
    assert "to_numpy()" in str(caught.value)
    assert "reindex" in str(caught.value)


def test_views_with_a_row_less_are_told_of_by_their_ids():
    views = frames()
    views["b"] = views["b"].drop("s03")
    with pytest.raises(ValueError, match=r"39 of 40 ids are in both \('s03' is not\)"):
        quick().fit(views, DATA.y)


@pytest.mark.parametrize("index", [IDS, NUMBERS, NUMBERS.astype(str)], ids=["text", "numbers", "numbers as text"])
def test_equal_indexes_are_taken(index, right):
    clf = quick().fit(frames(index), pd.Series(DATA.y, index=index), {"a": pd.Series(np.ones(N, bool), index=index)})
    np.testing.assert_array_equal(clf.label_distributions_, right)


def test_an_index_that_counts_rows_means_positions(right):
    for views, y in (
        (frames(IDS, pd.RangeIndex(N)), DATA.y),
        (frames(pd.RangeIndex(N), IDS), pd.Series(DATA.y)),
        (frames(IDS), pd.Series(DATA.y)),
        (frames(pd.RangeIndex(N)), pd.Series(DATA.y, index=IDS)),
    ):
        np.testing.assert_array_equal(quick().fit(views, y).label_distributions_, right)


@pytest.mark.parametrize("index", [IDS, NUMBERS, np.arange(N), pd.RangeIndex(N)], ids=["text", "numbers", "0", "range"])
@pytest.mark.parametrize("method", [quick(), LMSSCCV(estimator=quick(), param_grid=[{}], n_repeats=1)], ids=repr)
def test_labels_in_another_order_are_refused(index, method):
    y = pd.Series(DATA.y, index=index).iloc[SHUFFLED]
    with pytest.raises(ValueError, match=r"view 'a' and y have the same index in another order.*reindex"):
        method.fit(frames(index), y)
    X, views = stack_views(DATA.views)
    with pytest.raises(ValueError, match="X and y have the same index in another order"):
        quick(views=views).fit(pd.DataFrame(X, index=index), y)


def test_labels_in_order_again_are_taken(right):
    views = frames()
    y = pd.Series(DATA.y, index=IDS).iloc[SHUFFLED].reindex(views["a"].index)
    np.testing.assert_array_equal(quick().fit(views, y).label_distributions_, right)


def test_labels_of_other_samples_are_refused():
    with pytest.raises(ValueError, match=r"view 'a' and y have different indexes: 39 of 41 ids"):
        quick().fit(frames(), pd.Series(DATA.y, index=np.append(IDS[1:], "s99")))
    with pytest.raises(ValueError, match=r"X and y have different indexes"):
        quick().fit(frames()["a"], pd.DataFrame({"y": DATA.y}, index=NUMBERS))


@pytest.mark.parametrize("form", [dict, lambda masks: list(masks.values())])
def test_masks_in_another_order_are_refused(form):
    mask = pd.Series(np.arange(N) % 5 > 0, index=IDS).iloc[SHUFFLED]
    masks = form({"a": mask, "b": None})
    with pytest.raises(ValueError, match=r"view 'a' and present\[('a'|0)\] have the same index in another order"):
        quick().fit(frames(), DATA.y, masks)
    clf = quick().fit(frames(), DATA.y)
    with pytest.raises(ValueError, match="another order"):
        clf.predict(frames(), masks)
    with pytest.raises(ValueError, match="another order"):
        stack_views(frames(), masks)


def test_scores_and_refits_look_at_the_index_too():
    y = pd.Series(DATA.y, index=IDS).iloc[SHUFFLED]
    clf = quick().fit(frames(), DATA.y)
    for score in (lambda: clf.score(frames(), y), lambda: labelled_scorer()(clf, frames(), y)):
        with pytest.raises(ValueError, match="view 'a' and y have the same index in another order"):
            score()
    with pytest.raises(ValueError, match="view 'a' and y have the same index in another order"):
        hold_out(clf, frames(), y)


def test_weights_and_a_table_of_masks_look_at_the_index_too():
    weights = pd.Series(np.linspace(0.5, 1, N), index=IDS)
    with pytest.raises(ValueError, match="view 'a' and sample_weight have the same index in another order"):
        quick().fit(frames(), DATA.y, sample_weight=weights.iloc[SHUFFLED])
    clf = quick().fit(frames(), DATA.y, sample_weight=weights)
    with pytest.raises(ValueError, match="view 'a' and sample_weight have the same index in another order"):
        clf.score(frames(), DATA.y, sample_weight=weights.iloc[SHUFFLED])
    table = pd.DataFrame({"a": np.arange(N) % 5 > 0, "b": True}, index=IDS)
    quick().fit(frames(), DATA.y, table)
    with pytest.raises(ValueError, match="view 'a' and present have the same index in another order"):
        quick().fit(frames(), DATA.y, table.iloc[SHUFFLED])


@pytest.mark.parametrize("write", [str, "{:03}".format], ids=["plain", "padded"])
def test_numbers_as_text_in_another_order_are_not_joined_to_an_index_that_counts_rows(write, right):
    """An index read from a file as text: the labels were joined by position, and few answers were right."""
    views, texts = frames(pd.RangeIndex(N)), np.array([write(row) for row in range(N)])
    with pytest.raises(ValueError, match="view 'a' and y have the same index in another order"):
        quick().fit(views, pd.Series(DATA.y, index=texts).iloc[SHUFFLED])
    np.testing.assert_array_equal(quick().fit(views, pd.Series(DATA.y, index=texts)).label_distributions_, right)
