"""Each of the four updates against its slow oracle, over random and over awkward problems."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import solve_sylvester

import oracles
from lmssc.core import loadings as loadings_module
from lmssc.core.direct_propagation import solve_directly
from lmssc.core.embedding import Embedding
from lmssc.core.graph import MAX_NEIGHBORS, adaptive_alpha, connect_new, learn_graph, simplex_rows
from lmssc.core.laplacian import laplacian
from lmssc.core.latent import update_latent
from lmssc.core.loadings import nonnegative_loadings, orthonormal_loadings
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets
from lmssc.data.view import View
from lmssc.data.views import Views
from lmssc.numerics.knn.exact import other_neighbors
from lmssc.numerics.parallel import threads

TOLERANCE = 1e-6
seeds = st.integers(0, 2**32 - 1)
many = settings(max_examples=60, deadline=None)


def relative_error(found, right):
    return np.linalg.norm(found - right) / max(np.linalg.norm(right), 1e-12)


def awkward_points(rng, n, dims):
    """Positions with duplicates, a constant and an all-zero feature, and an outlier."""
    Z = rng.normal(size=(n, dims))
    Z[: n // 4] = Z[0]
    Z[:, 0] = 3.0
    if dims > 1:
        Z[:, 1] = 0.0
    Z[-1] += 50
    return Z


def random_row_stochastic(rng, n, k, n_parts=1):
    """A random S of `n_parts` parts with no edge between them."""
    S = np.zeros((n, n))
    for part in np.array_split(rng.permutation(n), n_parts):
        for i in part:
            others = part[part != i]
            if len(others):
                chosen = rng.choice(others, min(k, len(others)), replace=False)
                S[i, chosen] = rng.uniform(0.05, 1, len(chosen))
                S[i] /= S[i].sum()
    return S


class TestLoadings:
    @many
    @given(seeds, st.integers(3, 30), st.integers(1, 8), st.integers(1, 6))
    def test_nonnegative_is_nnls(self, seed, n, d, r):
        rng = np.random.default_rng(seed)
        H, X = rng.normal(size=(n + r, r)), rng.normal(size=(n + r, d))
        found = nonnegative_loadings(X.T @ H, H.T @ H)
        assert relative_error(found, oracles.nnls_loadings(X, H)) <= TOLERANCE

    @many
    @given(seed=seeds, rank=st.integers(1, 4))
    @example(seed=301, rank=2)
    @example(seed=2155, rank=2)
    @example(seed=3576649549, rank=3)
    def test_rank_deficient_latent(self, seed, rank):
        rng = np.random.default_rng(seed)
        H = rng.normal(size=(20, rank)) @ rng.normal(size=(rank, 6))
        H[:, 5] = 0
        X = rng.normal(size=(20, 5))
        X[:, 0], X[:, 1] = 0, 2.5
        found = nonnegative_loadings(X.T @ H, H.T @ H)
        # The minimiser is not unique, the minimum is. Plain `nnls` may run away along directions that only rounding
        # keeps apart, so it gets a hair of a ridge, and the minimum is certified: W ≥ 0 with a gradient that is nowhere
        # negative, and zero where W is not.
        ridged = oracles.nnls_loadings(np.vstack([X, np.zeros((6, 5))]), np.vstack([H, 1e-5 * np.eye(6)]))
        least = ((X - H @ ridged.T) ** 2).sum()
        assert ((X - H @ found.T) ** 2).sum() <= least * (1 + TOLERANCE)
        gradient = found @ (H.T @ H) - X.T @ H
        assert found.min() >= 0
        assert gradient.min() >= -TOLERANCE * np.abs(X.T @ H).max()
        assert np.abs(found * gradient).max() <= TOLERANCE * least
        assert (found[0] == 0).all()
        assert (found[:, 5] == 0).all()

    @many
    @given(seeds)
    def test_rows_that_pivoting_leaves_are_solved_one_by_one(self, seed):
        rng = np.random.default_rng(seed)
        H, X = rng.normal(size=(15, 5)), rng.normal(size=(15, 6))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loadings_module, "SETTINGS", replace(loadings_module.SETTINGS, max_rounds=1))
            found = nonnegative_loadings(X.T @ H, H.T @ H)
        assert relative_error(found, oracles.nnls_loadings(X, H)) <= TOLERANCE

    @pytest.mark.parametrize("error", [RuntimeError("too many iterations"), np.linalg.LinAlgError("singular")])
    def test_rows_that_nnls_gives_up_are_solved_by_another_method(self, monkeypatch, error):
        def give_up(*_, **__):
            raise error

        rng = np.random.default_rng(0)
        H, X = rng.normal(size=(15, 5)), rng.normal(size=(15, 6))
        monkeypatch.setattr(loadings_module, "SETTINGS", replace(loadings_module.SETTINGS, max_rounds=1))
        monkeypatch.setattr(loadings_module, "nnls", give_up)
        assert relative_error(nonnegative_loadings(X.T @ H, H.T @ H), oracles.nnls_loadings(X, H)) <= TOLERANCE

    @many
    @given(seeds)
    def test_the_start_changes_nothing(self, seed):
        rng = np.random.default_rng(seed)
        H, X = rng.normal(size=(15, 5)), rng.normal(size=(15, 6))
        found = nonnegative_loadings(X.T @ H, H.T @ H, np.maximum(rng.normal(size=(6, 5)), 0))
        assert relative_error(found, oracles.nnls_loadings(X, H)) <= TOLERANCE

    @many
    @given(seeds)
    def test_orthonormal_is_the_best_of_all_orthonormal(self, seed):
        rng = np.random.default_rng(seed)
        Xs, H = [rng.normal(size=(20, 5)), rng.normal(size=(20, 4))], rng.normal(size=(20, 3))
        H[:, 2] = H[:, 1]  # a cross product of deficient rank
        stacked = np.vstack(orthonormal_loadings([X.T @ H for X in Xs]))
        np.testing.assert_allclose(stacked.T @ stacked, np.eye(3), atol=1e-12)
        loss = ((np.hstack(Xs) - H @ stacked.T) ** 2).sum()
        for _ in range(20):
            other = np.linalg.qr(stacked + rng.normal(scale=rng.choice([0.01, 1]), size=stacked.shape))[0]
            assert loss <= ((np.hstack(Xs) - H @ other.T) ** 2).sum() * (1 + 1e-12)


class TestLatent:
    @many
    @given(seeds, st.integers(2, 25), st.integers(1, 5), st.sampled_from([1e-3, 0.1, 1.0, 100.0]))
    def test_is_the_sylvester_solution(self, seed, n, r, beta):
        rng = np.random.default_rng(seed)
        Xs = [rng.normal(size=(n, r + 1)), rng.normal(size=(n, 3))]
        loadings = [np.abs(rng.normal(size=(X.shape[1], r))) for X in Xs]
        L = oracles.dense_laplacian(random_row_stochastic(rng, n, 4))
        found = update_latent(Views.from_arrays(Xs), loadings, sparse.csr_array(L), beta, np.zeros((n, r)), tol=1e-12)
        A = sum(W.T @ W for W in loadings)
        right = solve_sylvester(beta * L, A, sum(X @ W for X, W in zip(Xs, loadings, strict=True)))
        assert relative_error(found, right) <= TOLERANCE

    @many
    @given(seeds, st.integers(2, 20), st.integers(1, 4))
    def test_metric_and_norms_are_part_of_the_system(self, seed, n, r):
        """HA + β·D⁻¹LD⁻¹·H·M = B, all N·r unknowns at once."""
        rng = np.random.default_rng(seed)
        X, W, beta = rng.normal(size=(n, r + 2)), rng.normal(size=(r + 2, r)), 0.3
        L = oracles.dense_laplacian(random_row_stochastic(rng, n, 3))
        D, metric = rng.uniform(0.5, 2, n), rng.uniform(0.1, 1, r)
        embedding = Embedding(stretch=np.sqrt(metric), radius=1.0, norms=D)
        pulled = embedding.pull_back(sparse.csr_array(L))
        np.testing.assert_allclose(pulled.toarray(), L / D[:, None] / D, atol=1e-14)
        found = update_latent(Views.from_arrays([X]), [W], pulled, beta, np.zeros((n, r)), embedding.metric, tol=1e-12)
        system = np.kron(np.eye(n), W.T @ W) + beta * np.kron(pulled.toarray(), np.diag(metric))
        right = np.linalg.solve(system, (X @ W).ravel()).reshape(n, r)
        assert relative_error(found, right) <= TOLERANCE
        places = embedding.embed(found)
        assert np.trace(places.T @ L @ places) == pytest.approx(
            np.trace(found.T @ pulled.toarray() @ found @ np.diag(metric)), abs=1e-9
        )

    @many
    @given(seeds, st.integers(0, 3))
    def test_rank_deficient_loadings(self, seed, rank):
        rng = np.random.default_rng(seed)
        n, r = 12, 4
        X = rng.normal(size=(n, 6))
        W = rng.normal(size=(6, rank)) @ rng.normal(size=(rank, r))
        L = oracles.dense_laplacian(random_row_stochastic(rng, n, 3, n_parts=2))
        found = update_latent(Views.from_arrays([X]), [W], sparse.csr_array(L), 0.5, rng.normal(size=(n, r)), tol=1e-12)
        right = oracles.minimum_norm_latent([X], [W], L, 0.5, [np.ones(n, bool)])
        np.testing.assert_allclose(found, right, atol=TOLERANCE * max(1, np.abs(right).max()))

    @many
    @given(seeds, st.floats(0.1, 0.6), st.booleans())
    def test_missing_views_take_no_part(self, seed, share, kept):
        rng = np.random.default_rng(seed)
        n, r = 15, 3
        root = rng.normal(size=(r, r))
        ridge = root @ root.T if kept else None
        Xs = [rng.normal(size=(n, 5)), rng.normal(size=(n, 4)), rng.normal(size=(n, 3))]
        loadings = [rng.normal(size=(X.shape[1], r)) for X in Xs]
        present = [np.ones(n, bool), rng.uniform(size=n) > share, rng.uniform(size=n) > share]
        L = oracles.dense_laplacian(random_row_stochastic(rng, n, 4))
        zeroed = [np.where(has[:, None], X, 0) for X, has in zip(Xs, present, strict=True)]
        views = Views([View(X, present=has) for X, has in zip(zeroed, present, strict=True)])
        found = update_latent(views, loadings, sparse.csr_array(L), 0.3, np.zeros((n, r)), tol=1e-12, ridge=ridge)
        right = oracles.minimum_norm_latent(Xs, loadings, L, 0.3, present, 0.0 if ridge is None else ridge)
        assert relative_error(found, right) <= TOLERANCE

    @many
    @given(seeds)
    def test_a_ridge_ties_components_that_loadings_do_not_use(self, seed):
        rng = np.random.default_rng(seed)
        n, r = 15, 3
        present = [np.arange(n) > 0, rng.uniform(size=n) > 0.5]
        present[0] |= ~present[1]
        Xs = [np.where(has[:, None], rng.normal(size=(n, 4)), 0) for has in present]
        loadings = [rng.normal(size=(4, r)) * [1, 1, 0] for _ in Xs]
        root = rng.normal(size=(r, r))
        L = oracles.dense_laplacian(random_row_stochastic(rng, n, 4))
        views = Views([View(X, present=has) for X, has in zip(Xs, present, strict=True)])
        ridge = root @ root.T + np.eye(r)
        found = update_latent(views, loadings, sparse.csr_array(L), 0.3, np.zeros((n, r)), tol=1e-12, ridge=ridge)
        right = oracles.minimum_norm_latent(Xs, loadings, L, 0.3, present, ridge)
        assert relative_error(found, right) <= TOLERANCE


class TestGraph:
    @many
    @given(
        seeds,
        st.integers(3, 40),
        st.integers(1, 6),
        st.sampled_from([0.01, 1.0, 30.0]),
        st.booleans(),
        st.booleans(),
    )
    def test_is_the_dense_projection(self, seed, n, dims, beta, shared, awkward):
        rng = np.random.default_rng(seed)
        Z = awkward_points(rng, n, dims) if awkward else rng.normal(size=(n, dims))
        k = int(rng.integers(1, n))  # up to k + 1 = N
        S, alpha = learn_graph(Z, k, beta, shared_alpha=shared)
        # α = 0, or what rounding of equal distances makes of it, is looked at below.
        valid = alpha * beta > 1e-13 * oracles.squared_distances(Z).max()
        right = oracles.dense_graph(Z, np.where(valid, alpha, 1), beta)
        assert relative_error(S.toarray()[valid], right[valid]) <= TOLERANCE
        np.testing.assert_allclose(S.sum(axis=1), 1)
        assert (S.diagonal() == 0).all()
        assert S.data.min() > 0

    @many
    @given(seeds, st.integers(4, 12))
    def test_is_what_a_qp_solver_finds(self, seed, n):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(n, 3))
        S, alpha = learn_graph(Z, 2, 0.7, shared_alpha=True)
        D = oracles.squared_distances(Z)
        for i in range(n):
            others = np.arange(n) != i
            right = oracles.qp_row(D[i, others], alpha[i], 0.7)
            np.testing.assert_allclose(S.toarray()[i, others], right, atol=TOLERANCE)

    def test_longer_lists_are_fetched_where_the_support_needs_them(self):
        rng = np.random.default_rng(0)
        Z = np.vstack([rng.normal(scale=1e-3, size=(150, 3)), 10 * rng.normal(size=(50, 3))])
        S, alpha = learn_graph(Z, 2, 1.0, shared_alpha=True)
        assert np.diff(S.indptr).max() > 100  # far beyond the 6 that are fetched at first
        assert relative_error(S.toarray(), oracles.dense_graph(Z, alpha, 1.0)) <= TOLERANCE

    def test_in_parts_on_several_threads(self, monkeypatch):
        Z = np.random.default_rng(1).normal(size=(90, 4))
        S, _ = learn_graph(Z, 5, 0.3)
        L = laplacian(S)
        for module in ("graph", "laplacian"):
            monkeypatch.setattr(f"lmssc.core.{module}.ROWS_PER_THREAD", 20)
        monkeypatch.setattr("lmssc.core.graph.BATCH_ROWS", 7)
        with threads(n_jobs=2):
            again, _ = learn_graph(Z, 5, 0.3)
            L_again = laplacian(again)
        assert all((np.diff(row.indices) > 0).all() for row in (again[[i]] for i in range(90)))
        np.testing.assert_array_equal(again.toarray(), S.toarray())
        np.testing.assert_array_equal(L_again.toarray(), L.toarray())
        np.testing.assert_allclose(L.toarray(), oracles.dense_laplacian(S.toarray()), atol=1e-15)

    def test_own_alpha_gives_exactly_k_neighbours(self):
        S, _ = learn_graph(np.random.default_rng(0).normal(size=(60, 4)), 7, 0.3)
        assert (np.diff(S.indptr) == 7).all()

    def test_duplicates_share_evenly(self):
        Z = np.vstack([np.zeros((4, 2)), np.ones((3, 2))])
        S, alpha = learn_graph(Z, 2, 1.0)
        assert alpha[0] == 0
        np.testing.assert_allclose(S.toarray()[0], [0, 1 / 3, 1 / 3, 1 / 3, 0, 0, 0])

    def test_thousands_of_duplicates_stay_sparse(self):
        S, _ = learn_graph(np.zeros((3 * MAX_NEIGHBORS, 2)), 5, 1.0)
        assert np.diff(S.indptr).max() <= MAX_NEIGHBORS
        np.testing.assert_allclose(S.sum(axis=1), 1)

    def test_alpha_is_the_papers_mean(self):
        rng = np.random.default_rng(3)
        Z, k, beta = rng.normal(size=(30, 4)), 5, 0.3
        D = np.sort(oracles.squared_distances(Z), axis=1)[:, 1:]
        right = sum(k / 2 * D[i, k] - D[i, :k].sum() / 2 for i in range(30)) / (2 * 30 * beta)
        assert learn_graph(Z, k, beta, shared_alpha=True)[1][0] == pytest.approx(right)

    def test_alpha_without_a_next_neighbour(self):
        assert adaptive_alpha(np.array([[1.0, 2.0]]), 2, beta=0.25) == pytest.approx([1.0])

    @many
    @given(seeds, st.integers(2, 30))
    def test_neighbours_leave_oneself_out(self, seed, n):
        rng = np.random.default_rng(seed)
        Z = rng.integers(0, 2, size=(n, 2)).astype(float)  # full of duplicates
        found = other_neighbors(Z, n - 1)
        for i in range(n):
            assert sorted(found.indices[i]) == [j for j in range(n) if j != i]
            np.testing.assert_allclose(
                found.squared_distances[i], np.sort(np.delete(oracles.squared_distances(Z)[i], i))
            )

    @many
    @given(seeds)
    def test_new_samples_get_the_same_kind_of_row(self, seed):
        rng = np.random.default_rng(seed)
        points, query = rng.normal(size=(25, 3)), rng.normal(size=(1, 3))
        d = ((points - query) ** 2).sum(axis=1)
        found = connect_new(points, query, 4, alpha=0.2).toarray()[0]
        np.testing.assert_allclose(found, oracles.project_onto_simplex(-d / 0.8), atol=1e-12)

    def test_whole_numbers_as_distances(self):
        weights, support = simplex_rows(np.array([[0, 1, 4], [0, 0, 9]]), np.array([2.0, 2.0]))
        np.testing.assert_allclose(weights, [[0.75, 0.25, 0], [0.5, 0.5, 0]])
        assert support.tolist() == [2, 2]

    @many
    @given(seeds, st.integers(2, 20))
    def test_laplacian(self, seed, n):
        S = random_row_stochastic(np.random.default_rng(seed), n, 3)
        np.testing.assert_allclose(laplacian(sparse.csr_array(S)).toarray(), oracles.dense_laplacian(S), atol=1e-14)


def propagate_with(max_direct, *arguments, **options):
    """`propagate`, with a direct solve up to so many unknown samples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lmssc.core.direct_propagation.MAX_DIRECT", max_direct)
        return propagate(*arguments, tol=1e-12, **options)


class TestPropagation:
    @many
    @given(seeds, st.integers(3, 40), st.integers(2, 4), st.integers(1, 4))
    def test_is_the_dense_solve(self, seed, n, n_classes, n_parts):
        rng = np.random.default_rng(seed)
        S = random_row_stochastic(rng, n, 3, n_parts)
        codes = np.where(rng.uniform(size=n) < 0.3, rng.integers(0, n_classes, size=n), -1)
        codes[rng.integers(n)] = 0
        L = sparse.csr_array(oracles.dense_laplacian(S))
        right = oracles.dense_scores(S, codes, n_classes)
        for max_direct in (0, n):  # by conjugate gradients, and at once
            found = propagate_with(max_direct, L, Targets.from_codes(codes, n_classes))
            assert relative_error(found.scores, right) <= TOLERANCE
        parts = [part for part in oracles.components(S) if (codes[part] < 0).all()]
        assert sorted(np.flatnonzero(found.unreached)) == sorted(i for part in parts for i in part)
        np.testing.assert_allclose(found.scores.sum(axis=1), 1, atol=1e-9)
        assert found.scores.min() > -1e-9

    def test_a_matrix_that_rounding_makes_indefinite_is_left_to_the_iterations(self):
        """As in single precision: the diagonal is a little less than the sum of the row."""
        S = np.diag(np.ones(29), 1)
        codes = np.full(30, -1)
        codes[0] = 0
        L = oracles.dense_laplacian(S)
        for weight, cholesky_fails in ((0.0, False), (1e-2, True)):
            rounded = sparse.csr_array(L - weight * np.eye(30))
            one_step = propagate(rounded, Targets.from_codes(codes, 2))
            assert (solve_directly(rounded, np.eye(30, 2), codes >= 0, codes >= 0) is None) == cholesky_fails
            assert np.isfinite(one_step.scores).all()

    def test_all_labelled(self):
        S = random_row_stochastic(np.random.default_rng(0), 6, 2)
        codes = np.array([0, 1, 0, 1, 0, 1])
        found = propagate(sparse.csr_array(oracles.dense_laplacian(S)), Targets.from_codes(codes, 2))
        np.testing.assert_array_equal(found.scores, np.eye(2)[codes])
        assert not found.unreached.any()

    @many
    @given(seeds)
    def test_a_bad_start_does_not_matter(self, seed):
        rng = np.random.default_rng(seed)
        S = random_row_stochastic(rng, 20, 3)
        codes = np.full(20, -1)
        codes[:2] = [0, 1]
        L = sparse.csr_array(oracles.dense_laplacian(S))
        found = propagate_with(0, L, Targets.from_codes(codes, 2), start=100 * rng.normal(size=(20, 2)))
        assert relative_error(found.scores, oracles.dense_scores(S, codes, 2)) <= TOLERANCE


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_direct_and_iterative_propagation_agree(monkeypatch, dtype, atol):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(120, 3)).astype(dtype)
    points[60:] += 100  # no label there
    points[-1] += 3  # hardly tied to the others
    codes = np.where(np.arange(120) < 15, rng.integers(3, size=120), -1)
    L, targets = laplacian(learn_graph(points, 6, 1.0)[0]), Targets.from_codes(codes, 3)
    direct = propagate(L, targets)
    monkeypatch.setattr("lmssc.core.direct_propagation.MAX_DIRECT", 0)
    iterative = propagate(L, targets)
    np.testing.assert_allclose(direct.scores, iterative.scores, atol=atol)
    np.testing.assert_array_equal(direct.unreached, iterative.unreached)
    assert direct.scores.dtype == dtype
    assert direct.unreached.sum() == 60
