"""What a view is taken for, by its values alone, and the scalings that follow from it."""

import tempfile
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

import lmssc
from lmssc import GFHF, LMSSC
from lmssc.data.memmap import MappedRows
from lmssc.data.scaling import CHANGES, fit_scaling, fit_scalings
from lmssc.data.text_detection import idf_ratio
from lmssc.data.view import RawView
from lmssc.data.view_kinds import CRITERIA, choose_scalings, have_distinct_values, least_correlation
from lmssc.datasets import make_multiview

pytestmark = pytest.mark.usefixtures("uncalibrated")


def raw_view(data, present=None):
    return RawView("a", data, present)


def kind(data):
    return choose_scalings([raw_view(data)])[0].kind


def mixtures(rng, n=150, d=12, sources=6):
    """Measurements that correlate, in different units."""
    return (rng.normal(size=(n, sources)) @ rng.normal(size=(sources, d)) + rng.normal(size=(n, d))) * np.exp(
        rng.normal(size=d)
    )


def scores(rows, centred=True):
    """Of a principal component analysis, or of a singular value decomposition without centring."""
    rows = rows - rows.mean(axis=0) if centred else rows
    return rows @ np.linalg.svd(rows, full_matrices=False)[2].T


class TestComponents:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("width", [2, 5, 40])
    def test_scores_of_these_samples(self, seed, width):
        rng = np.random.default_rng(seed)
        assert kind(scores(mixtures(rng, d=width, sources=3))) == "center"
        assert kind(scores(3 + mixtures(rng, d=width, sources=3), centred=False)) == "center"

    @pytest.mark.parametrize("seed", range(5))
    def test_scores_of_more_samples_than_these(self, seed):
        rng = np.random.default_rng(seed)
        every = scores(mixtures(rng, n=500, d=40))
        assert kind(every[rng.permutation(500)[:300]]) == "center"

    def test_columns_of_rounding_errors_do_not_hide_the_others(self):
        rng = np.random.default_rng(0)
        rows = scores(mixtures(rng, d=12))
        noise = 1e-13 * rng.normal(size=(150, 1)) @ np.ones((1, 8))
        assert kind(np.hstack([rows, noise])) == "center"

    def test_measurements_are_no_components(self):
        rng = np.random.default_rng(0)
        found = [kind(rng.normal(size=(100, 10)) * np.exp(2 * rng.normal(size=10))) for _ in range(200)]
        assert found.count("zscore") >= 198  # independent columns: 0.1 % by chance
        assert {kind(mixtures(rng)) for _ in range(20)} == {"zscore"}

    @pytest.mark.parametrize("width", [5, 30])
    def test_rare_large_values_are_no_components(self, width):
        """Columns with outliers in different rows do not correlate, and incomes and prices little."""
        rng = np.random.default_rng(0)
        units = np.logspace(0, 4, width)
        for n_outliers in (1, 3, 6):
            outlying = rng.permuted(np.tile(np.arange(100)[:, None] < n_outliers, (1, width)), axis=0)
            assert kind((mixtures(rng, n=100, d=width) + 1e4 * outlying) * units) == "zscore"
        heavy = [kind(np.exp(2 * rng.normal(size=(200, width))) * units) for _ in range(40)]
        assert heavy.count("zscore") >= 39

    def test_a_designed_experiment_is_no_components(self):
        levels = np.array([[a, b, c] for a in (10, 20, 30) for b in (-1, 0, 1) for c in (100, 200, 500)] * 4, float)
        assert np.abs(np.corrcoef(levels.T)[np.triu_indices(3, 1)]).max() < 1e-12
        assert kind(levels) == "zscore"

    def test_the_statistic_by_loops(self):
        rows = np.random.default_rng(1).normal(size=(60, 4))
        rows[:, :2] *= np.sqrt(np.abs(rows[:, :2]))  # large values are rarer, but no outliers
        sums = []
        for points in (rows, rows - rows.mean(axis=0)):
            total, variance = 0.0, 0.0
            for i in range(4):
                for j in range(i):
                    a, b = points[:, i], points[:, j]
                    total += 60 * (a @ b) ** 2 / ((a @ a) * (b @ b))
                    excess = [60 * (c**4).sum() / (c @ c) ** 2 - 3 for c in (a, b)]
                    variance += 2 + excess[0] * excess[1] / 60
            scale = max(variance / 12, 1)
            sums.append(chi2.cdf(total / scale, 6 / scale))
        assert least_correlation(raw_view(rows)) == pytest.approx(min(sums), abs=1e-9)

    def test_a_few_columns_that_correlate_decide(self, monkeypatch):
        rng = np.random.default_rng(0)
        correlated = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 40)) + rng.normal(size=(400, 40))
        independent = rng.normal(size=(400, 40))
        early = [least_correlation(raw_view(rows)) for rows in (correlated, independent, scores(independent))]
        monkeypatch.setattr("lmssc.data.view_kinds.CRITERIA", replace(CRITERIA, n_first_columns=8))
        late = [least_correlation(raw_view(rows)) for rows in (correlated, independent, scores(independent))]
        assert early[0] > 0.5
        assert late[0] == 0.5
        assert early[1:] == late[1:]

    def test_distinct_values_by_sorting(self):
        rng = np.random.default_rng(0)
        rows = np.stack([rng.integers(-n, n, size=300) / 2 * -1.0 for n in (1, 50, 75, 150, 10**9)], axis=1)
        counts = np.array([len(np.unique(column)) for column in rows.T])
        for least in (1, 2, 90, 150, 270, 300):
            np.testing.assert_array_equal(have_distinct_values(rows, least), counts >= least)

    def test_components_are_answered_like_what_they_are_made_of(self):
        """Noise in the last components decided before: they counted as much as the first."""
        right = []
        for seed in range(4):
            data = make_multiview(300, n_views=2, n_features=40, labelled=0.05, random_state=seed)
            hidden = data.y < 0
            views = [scores(view / view.std(axis=0)) for view in data.views]
            fits = (
                LMSSC().fit(data.views, data.y),
                LMSSC().fit(views, data.y),
                LMSSC(scaling="zscore").fit(views, data.y),
            )
            assert set(fits[1].scalings_.values()) == {"center"}
            right.append([(clf.transduction_ == data.target)[hidden].mean() for clf in fits])
        plain, components, standardised = np.mean(right, axis=0)
        assert components > plain - 0.01
        assert components > standardised + 0.03


class TestAmounts:
    def draw(self, rng, n=200, d=60, groups=4):
        """The columns of a group are non-zero together."""
        own = np.arange(d) % groups == rng.integers(groups, size=n)[:, None]
        return rng.gamma(2, size=(n, d)) * (rng.random((n, d)) < np.where(own, 0.7, 0.1))

    def test_mostly_zeros_in_one_unit(self):
        rng = np.random.default_rng(0)
        assert kind(self.draw(rng)) == kind(self.draw(rng, d=8)) == kind(1000 * self.draw(rng)) == "sqrt"

    def test_zeros_at_random_say_nothing(self):
        """Roots would raise them above the sizes, which may be what matters."""
        rng = np.random.default_rng(0)
        rows = rng.gamma(2, size=(200, 60)) * (rng.random((200, 60)) < 0.3)
        assert kind(rows) == "zscore"

    def test_columns_in_another_unit(self):
        rows = self.draw(np.random.default_rng(0))
        rows[:, :2] *= 10_000
        assert kind(rows) == "zscore"

    def test_negative_values_or_few_zeros(self):
        rng = np.random.default_rng(0)
        rows = self.draw(rng)
        assert kind(np.where(rng.random(rows.shape) < 0.01, -1, rows)) == "zscore"
        assert kind(mixtures(rng) ** 2) == "zscore"

    def test_zeros_and_ones_have_no_unit(self):
        assert kind((self.draw(np.random.default_rng(0), d=12) > 0).astype(float)) == "zscore"


def topical(rng, n=200, n_words=400):
    """Counts of words of four topics, none of them frequent."""
    topic = rng.integers(4, size=n)
    own = np.arange(n_words) % 4 == topic[:, None]
    return rng.poisson(np.where(own, 0.25, 0.02)).astype(float)


class TestIdf:
    def test_by_loops(self):
        counts = topical(np.random.default_rng(0), n=40, n_words=120)
        assert len(np.unique(counts, axis=0)) == len(counts)
        logs = np.log(1 + counts)
        idf = np.log(41 / (1 + (counts > 0).sum(axis=0))) + 1
        cosines = []
        for rows in (logs, logs * idf):
            total = 0.0
            for a in rows:
                for b in rows:
                    total += a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
            cosines.append(total)
        assert idf_ratio(raw_view(counts)) == pytest.approx(cosines[0] / cosines[1], rel=1e-9)

    def test_frequent_words_call_for_idf_in_all_views(self):
        rng = np.random.default_rng(0)
        plain, other = topical(rng), topical(rng)
        frequent = np.hstack([plain, 1.0 + rng.poisson(1.0, size=(200, 8))])
        views = [raw_view(view) for view in (plain, other)]
        assert [choice.kind for choice in choose_scalings(views)] == ["log", "log"]
        views = [raw_view(view) for view in (frequent, other, mixtures(rng, n=200))]
        choices = choose_scalings(views)
        assert [choice.kind for choice in choices] == ["logidf", "logidf", "zscore"]
        assert [choice.kind for choice in choose_scalings(views[::-1])] == ["zscore", "logidf", "logidf"]
        assert "frequent words were not removed" in choices[1].reason


def by_hand(rows, scaling):
    """Each new kind, cell by cell."""
    out = np.zeros(rows.shape)
    n, d = rows.shape
    for j in range(d):
        column = [float(value) for value in rows[:, j]]
        if scaling == "center":
            out[:, j] = [value - sum(column) / n for value in column]
        elif scaling == "sqrt":
            roots = [value**0.5 for value in column]
            out[:, j] = [root - sum(roots) / n for root in roots]
        else:
            weight = np.log((1 + n) / (1 + sum(value != 0 for value in column))) + 1 if scaling == "logidf" else 1.0
            out[:, j] = [np.log(1 + value) * weight for value in column]
    if scaling.startswith("log"):
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        out = out / np.where(norms > 0, norms, 1)
    return out


KINDS = ("center", "sqrt", "log", "logidf")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaling", KINDS)
def test_scaled_by_hand_however_the_rows_are_stored(scaling, dtype):
    rng = np.random.default_rng(0)
    rows = (rng.poisson(2, size=(30, 7)) * (rng.random((30, 7)) < 0.4)).astype(dtype)
    expected = by_hand(rows, scaling)
    present = np.repeat([True, False], [30, 3])
    with tempfile.NamedTemporaryFile() as file:
        on_disk = np.memmap(file, dtype, "w+", shape=rows.shape)
        on_disk[:] = rows
        ways = {
            "dense": raw_view(rows),
            "sparse": raw_view(sparse.csr_array(rows)),
            "on disk": raw_view(MappedRows(on_disk, np.arange(30))),
            "with missing rows": raw_view(np.vstack([rows, np.full((3, 7), 9, dtype)]), present),
            "sparse with missing rows": raw_view(
                sparse.csr_array(np.vstack([rows, np.full((3, 7), 9, dtype)])), present
            ),
        }
        for name, raw in ways.items():
            fitted = fit_scaling(raw, scaling)
            scaled = fitted.apply(raw).dot(np.eye(7, dtype=dtype))
            np.testing.assert_allclose(scaled[:30], expected, atol=1e-6, err_msg=name)
            np.testing.assert_allclose(scaled[30:], 0, atol=1e-6, err_msg=name)
            if "sparse" in name:
                assert sparse.issparse(fitted.apply(raw).data)
        np.testing.assert_array_equal(on_disk, rows)
    one = fit_scalings([raw_view(rows)] * 2, [scaling] * 2)[0].apply(raw_view(rows))
    assert one.squared_norm() / 30 == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("scaling", KINDS)
def test_new_samples_are_scaled_by_what_fit_learned(scaling):
    rng = np.random.default_rng(0)
    rows, new = rng.poisson(2, size=(2, 30, 7)).astype(float)
    fitted = fit_scaling(raw_view(rows), scaling)
    both = np.vstack([rows, new])
    change = CHANGES.get(scaling, lambda values: values)
    expected = change(new)
    if scaling in ("center", "sqrt"):
        expected = expected - change(rows).mean(axis=0)
    else:
        weight = np.log(31 / (1 + (rows > 0).sum(axis=0))) + 1 if scaling == "logidf" else 1
        expected = expected * weight
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.apply(raw_view(both)).data[30:], expected, atol=1e-12)
    # Counts are not negative, but what is not must not become NaN.
    assert np.isfinite(fitted.apply(raw_view(-new)).data).all()


def test_outliers_do_not_decide_the_mean_of_roots():
    rng = np.random.default_rng(0)
    rows = rng.gamma(2, size=(200, 5)) * (rng.random((200, 5)) < 0.4)
    spoiled = rows.copy()
    spoiled[3] = 1e8
    clean, other = fit_scaling(raw_view(rows), "sqrt"), fit_scaling(raw_view(spoiled), "sqrt")
    assert len(other.outliers.columns) == 5
    np.testing.assert_allclose(other.mean, clean.mean, atol=0.02)


@pytest.mark.parametrize("scaling", ["sqrt", "log", "logidf"])
def test_negative_values_are_refused(scaling):
    data = make_multiview(60, n_views=2, labelled=0.2, random_state=0)
    with pytest.raises(ValueError, match=f"scaling='{scaling}' needs counts, but view 'view0' has negative values"):
        LMSSC(scaling=scaling).fit(data.views, data.y)


def four_kinds(n=120):
    rng = np.random.default_rng(0)
    target = np.arange(n) % 2
    words = rng.poisson(np.where(np.arange(150) % 2 == target[:, None], 0.3, 0.05)).astype(float)
    amounts = rng.gamma(2, size=(n, 20)) * (
        rng.random((n, 20)) < np.where(np.arange(20) % 2 == target[:, None], 0.6, 0.1)
    )
    measured = mixtures(rng, n=n) + target[:, None]
    return {"words": words, "amounts": amounts, "components": scores(measured), "measured": measured}, target


def test_a_fit_says_what_it_took_and_why(tmp_path):
    views, target = four_kinds()
    y = np.where(np.arange(len(target)) < 20, target, -1)
    clf = LMSSC(max_iter=2).fit(views, y)
    assert clf.scalings_ == {"words": "log", "amounts": "sqrt", "components": "center", "measured": "zscore"}
    assert list(clf.scaling_reasons_) == list(views)
    starts = [clf.scaling_reasons_[name].split(":")[0].split(";")[0] for name in views]
    assert starts == ["counted words", "amounts in one unit", "components", "measurements"]
    assert LMSSC(scaling="zscore", max_iter=1).fit(views, y).scaling_reasons_["words"] == "as asked for"
    clf.save(tmp_path / "model")
    again = lmssc.load(tmp_path / "model")
    assert again.scaling_reasons_ == clf.scaling_reasons_
    new = {name: view + 0.5 for name, view in views.items()}
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))
    assert GFHF(graph="precomputed").fit(clf.graph_, y).scaling_reasons_ == {}


def test_the_order_of_samples_and_views_changes_nothing():
    views, target = four_kinds()
    y = np.where(np.arange(len(target)) < 20, target, -1)
    order = np.random.default_rng(1).permutation(len(target))
    one = LMSSC(max_iter=2).fit(views, y)
    other = LMSSC(max_iter=2).fit({name: views[name][order] for name in reversed(views)}, y[order])
    np.testing.assert_array_equal(other.label_distributions_, one.label_distributions_[order])
    repeated = LMSSC(max_iter=2).fit(
        {name: np.repeat(view, 2, axis=0) for name, view in views.items()}, np.repeat(y, 2)
    )
    assert repeated.scalings_ == one.scalings_
