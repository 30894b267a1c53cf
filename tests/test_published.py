"""The port of the published program against its steps written out, and the pivoting that makes it fast."""

import numpy as np
import pytest
from scipy import sparse

import oracles
from lmssc.core.loadings import nonnegative_loadings
from lmssc.paper import published
from lmssc.paper.published import ProgramConstants, PublishedProgram, draw_labelled, published_program


def problem(seed=0, n=36, c=3, r=4):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(c), n // c)
    centres = rng.random((c, 9))
    X = np.abs(centres[codes] + 0.3 * rng.standard_normal((n, 9)))
    return [X[:, :5], X[:, 5:]], codes, draw_labelled(n, c, 0.34, seed), rng.random((n, r))


def shuffle(seed, views, codes, labelled, start):
    order = np.random.default_rng(seed).permutation(len(codes))
    return order, ([view[order] for view in views], codes[order], np.argsort(order)[labelled], start[order])


@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("in_class_order", [True, False])
@pytest.mark.parametrize(("seed", "beta", "gamma"), [(0, 0.1, 1.0), (1, 1.0, 0.1), (2, 0.01, 10.0)])
def test_equals_the_steps_written_out(seed, beta, gamma, in_class_order, mended, monkeypatch):
    views, codes, labelled, start = problem(seed)
    if not in_class_order:
        _, (views, codes, labelled, start) = shuffle(9, views, codes, labelled, start)
    for n_rounds in (1, 5):
        expected = oracles.published_program(views, codes, labelled, start, beta, gamma, mended, n_rounds)
        for max_samples in (0, 500):  # both ways to solve for H
            monkeypatch.setattr(published, "PROGRAM", ProgramConstants(max_samples_for_eigh=max_samples))
            answer = published_program(
                views, codes, labelled, start, beta=beta, gamma=gamma, mended=mended, max_rounds=n_rounds
            )
            np.testing.assert_allclose(answer.scores, expected, atol=1e-7)
            np.testing.assert_array_equal(answer.unlabelled, np.setdiff1d(np.arange(len(codes)), labelled))
            np.testing.assert_array_equal(answer.predicted, expected[answer.unlabelled].argmax(axis=1))


def test_the_order_of_rows_matters_unless_mended():
    views, codes, labelled, start = problem()
    order, shuffled = shuffle(3, views, codes, labelled, start)
    for mended in (False, True):
        given = published_program(views, codes, labelled, start, beta=0.1, gamma=1.0, mended=mended)
        moved = published_program(*shuffled, beta=0.1, gamma=1.0, mended=mended)
        same = np.allclose(moved.scores, given.scores[order], atol=1e-6)
        assert same == mended


def test_mending_changes_nothing_where_labelled_rows_come_first():
    views, codes, labelled, start = problem()
    first = np.concatenate([labelled, np.setdiff1d(np.arange(len(codes)), labelled)])
    data = ([view[first] for view in views], codes[first], np.arange(len(labelled)), start[first])
    answers = [published_program(*data, beta=0.1, gamma=1.0, mended=mended).scores for mended in (False, True)]
    np.testing.assert_array_equal(*answers)


def test_sparse_views_give_the_answer_of_dense_ones():
    views, codes, labelled, start = problem()
    views = [np.where(view > 0.5, view, 0) for view in views]
    dense = published_program(views, codes, labelled, start, beta=0.1, gamma=1.0)
    few = published_program([sparse.csr_array(view) for view in views], codes, labelled, start, beta=0.1, gamma=1.0)
    np.testing.assert_allclose(few.scores, dense.scores, atol=1e-8)


def test_unlabelled_classes_are_not_read():
    views, codes, labelled, start = problem()
    hidden = np.zeros_like(codes)
    hidden[labelled] = codes[labelled]
    answers = [published_program(views, y, labelled, start, beta=0.1, gamma=1.0).scores for y in (codes, hidden)]
    np.testing.assert_array_equal(*answers)


def test_samples_that_no_label_reaches_get_the_smallest_solution():
    # Two clusters far apart, all labels in the first: no path leads to the second.
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 0], 15)
    X = rng.random((45, 3)) + np.repeat([0, 0, 50], 15)[:, None] * [1, 0, 0]
    labelled = np.array([0, 1, 2, 15, 16, 17])
    start = np.c_[X + 0.01, rng.random((45, 1))]
    answer = published_program([X], codes, labelled, start, beta=0.01, gamma=0.1, max_rounds=1)
    assert (answer.scores[30:] == 0).all()
    assert (answer.predicted[-15:] == 0).all()
    assert np.allclose(answer.scores[:30].sum(axis=1), 1)


def test_draw_uses_the_same_positions_in_every_block():
    drawn = draw_labelled(208, 2, 0.2, seed=4)
    assert len(drawn) == 2 * int(0.2 * 104)
    np.testing.assert_array_equal(drawn[20:], drawn[:20] + 104)
    assert len(set(drawn.tolist())) == 40
    assert (draw_labelled(1200, 6, 0.3, seed=0) < 1200).all()
    assert len(draw_labelled(1200, 6, 0.3, seed=0)) == 6 * 60  # 0.3 · 200 is 60, whatever binary fractions say
    assert not np.array_equal(np.sort(drawn), np.sort(draw_labelled(208, 2, 0.2, seed=5)))


def test_estimator_is_the_function_with_a_start_that_goes_with_the_sample():
    views, codes, labelled, _ = problem()
    y = np.full_like(codes, -1)
    y[labelled] = codes[labelled]
    order = np.random.default_rng(1).permutation(len(y))
    mended = PublishedProgram(n_components=4, mended=True)
    given = mended.fit(views, y).label_distributions_
    moved = mended.fit([view[order] for view in views], y[order]).label_distributions_
    np.testing.assert_allclose(moved, given[order], atol=1e-6)
    program = PublishedProgram(n_components=4)
    given = program.fit(views, y).label_distributions_
    moved = program.fit([view[order] for view in views], y[order])
    assert not np.allclose(moved.label_distributions_, given[order], atol=1e-3)
    np.testing.assert_array_equal(moved.transduction_[y[order] >= 0], codes[order][y[order] >= 0])
    np.testing.assert_array_equal(moved.transduction_, moved.label_distributions_.argmax(axis=1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("r", [1, 3, 12])
def test_pivoting_equals_nnls(seed, r):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((40, r)) + seed
    X = rng.standard_normal((40, 60)) + 0.5 * seed
    expected = oracles.nnls_loadings(X, H)
    np.testing.assert_allclose(nonnegative_loadings(X.T @ H, H.T @ H), expected, atol=1e-9)
    start = np.abs(rng.standard_normal(expected.shape))
    np.testing.assert_allclose(nonnegative_loadings(X.T @ H, H.T @ H, start), expected, atol=1e-9)


def test_pivoting_with_empty_and_equal_columns():
    rng = np.random.default_rng(0)
    H = rng.random((30, 5))
    H[:, 1] = 0
    H[:, 3] = H[:, 0]
    X = rng.random((30, 20))
    W = nonnegative_loadings(X.T @ H, H.T @ H)
    assert (W >= 0).all()
    assert (W[:, 1] == 0).all()
    losses = ((X - H @ W.T) ** 2).sum(axis=0)
    best = ((X - H @ oracles.nnls_loadings(X, H).T) ** 2).sum(axis=0)
    np.testing.assert_allclose(losses, best, rtol=1e-8)
