"""Work on several threads: the same result, errors are raised, and linear algebra stays on one thread."""

import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from lmssc import GFHF, LMSSC, LMSSCCV
from lmssc.data.n_jobs import thread_count, worker_count
from lmssc.data.views import Views
from lmssc.datasets import make_multiview
from lmssc.model_selection.refit import hold_out
from lmssc.numerics.parallel import count_threads, threaded_map, threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_as_many_threads_as_are_allowed():
    with threadpool_limits(limits=1):
        assert count_threads() == 1
    with threads(n_jobs=3):
        assert count_threads() == 3
        assert blas_threads() == {1}
        with threads():  # what is inside does not ask again
            assert count_threads() == 3
        with threads(n_jobs=2):
            assert count_threads() == 2
        assert count_threads() == 3


def test_all_is_as_it_was_before():
    before = count_threads(), blas_threads()
    with pytest.raises(RuntimeError), threads(n_jobs=5):
        raise RuntimeError
    assert (count_threads(), blas_threads()) == before


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_a_map_keeps_the_order_and_tells_errors(n_jobs):
    with threads(n_jobs=n_jobs):
        assert threaded_map(lambda a, b: a - b, range(20), range(20, 40)) == [-20] * 20
        assert threaded_map(abs, []) == []
        with pytest.raises(ZeroDivisionError):
            threaded_map(lambda x: 1 / x, [1, 0, 2])


def test_after_an_error_no_more_is_begun():
    begun = []

    def fail_at_once(number):
        begun.append(number)
        if number < 2:
            raise IndexError(number)
        time.sleep(0.05)

    with threads(n_jobs=2), pytest.raises(IndexError):
        threaded_map(fail_at_once, range(50))
    assert len(begun) < 10


def test_threads_do_not_share_out_their_own_work():
    with threads(n_jobs=3):
        assert threaded_map(lambda _: (count_threads(), threaded_map(abs, [-1, 2])), range(4)) == [(1, [1, 2])] * 4


def test_products_of_large_views_are_the_same_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("lmssc.data.views.MIN_PARALLEL_WORK", 0)
    rng = np.random.default_rng(0)
    views = Views.from_arrays([rng.normal(size=(300, width)) for width in (3, 50, 7, 20, 11)])
    latent = rng.normal(size=(300, 6))
    loadings = [rng.normal(size=(view.data.shape[1], 6)) for view in views]
    answers = []
    for n_jobs in (1, 2, 3):
        with threads(n_jobs=n_jobs):
            answers.append([views.dot(loadings), views.gram(), *views.transpose_dot(latent)])
    for answer in answers[1:]:
        for one, other in zip(answers[0], answer, strict=True):
            np.testing.assert_array_equal(one, other)
    stacked = np.hstack([view.data for view in views])
    np.testing.assert_allclose(answers[0][0], stacked @ np.vstack(loadings), rtol=1e-10)
    np.testing.assert_allclose(answers[0][1], stacked.T @ stacked, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [thread_count, worker_count])
def test_n_jobs_follows_joblib_and_stops_at_the_cores(count, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.setattr(joblib, "effective_n_jobs", lambda _: 4)
    given = [1, 3, 4, 5, 10**6, 10**9, 10**30, -1, -2, -4, -5, -(10**9), None]
    assert [count(n_jobs) for n_jobs in given] == [1, 3, 4, 4, 4, 4, 4, 4, 3, 1, 1, 1, None]
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(ValueError, match=r"^n_jobs must be .* got "):
            count(wrong)


@pytest.mark.parametrize("n_jobs", [10**6, 10**9, -1, -2])
def test_a_fit_asks_for_no_more_threads_than_cores(n_jobs, monkeypatch):
    seen = []
    monkeypatch.setattr("lmssc.estimators.lmssc.threads", lambda n: seen.append(n) or threads(min(n, 64)))
    data = make_multiview(60, labelled=0.3, random_state=0)
    one = LMSSC(n_jobs=1, max_iter=2).fit(data.views, data.y)
    many = LMSSC(n_jobs=n_jobs, max_iter=2).fit(data.views, data.y)
    assert 1 <= max(seen) <= joblib.cpu_count()
    np.testing.assert_array_equal(many.label_distributions_, one.label_distributions_)


def test_searches_and_refits_start_no_more_processes_than_cores(monkeypatch):
    asked = []

    class Counted(joblib.Parallel):
        def __init__(self, n_jobs=None, **settings):
            asked.append(n_jobs)
            super().__init__(1, **settings)

    monkeypatch.setattr("lmssc.estimators.lmssc_cv.Parallel", Counted)
    monkeypatch.setattr("lmssc.model_selection.refit.Parallel", Counted)
    data = make_multiview(60, labelled=0.3, random_state=0)
    grid = {"n_neighbors": [5, 6]}
    LMSSCCV(estimator=GFHF(), param_grid=grid, n_repeats=1, n_jobs=10**6).fit(data.views, data.y)
    hold_out(GFHF(), data.views, data.y, n_jobs=10**6)
    assert asked == [joblib.effective_n_jobs(-1)] * 2
    with pytest.raises(ValueError, match=r"n_jobs must be .* got 0"):
        LMSSCCV(n_jobs=0).fit(data.views, data.y)
