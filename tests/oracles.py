"""Slow, dense and obvious versions of every update, to test the fast ones against."""

import numpy as np
import quadprog
from scipy.linalg import solve_sylvester
from scipy.optimize import nnls


def nnls_loadings(X, H):
    """Rows of W ≥ 0, one non-negative least squares problem each."""
    return np.array([nnls(H, column)[0] for column in X.T])


def minimum_norm_latent(Xs, loadings, L, beta, present, ridge=0.0):
    """H from the normal equations of all its N·r unknowns at once; the smallest solution if there are many."""
    n, r = len(L), loadings[0].shape[1]
    system = beta * np.kron(L, np.eye(r))
    system += np.kron(np.diag(1.0 - np.all(present, axis=0)), np.broadcast_to(ridge, (r, r)))
    rhs = np.zeros((n, r))
    for X, W, has in zip(Xs, loadings, present, strict=True):
        system += np.kron(np.diag(has.astype(float)), W.T @ W)
        rhs += has[:, None] * (np.where(has[:, None], X, 0) @ W)
    return np.linalg.lstsq(system, rhs.ravel(), rcond=1e-12)[0].reshape(n, r)


def normal_positions(rows, C, noise):
    """Means and covariances of positions h ~ N(0, C), given x = h·Wᵀ + noise of variance `noise`; rows are (x, W)."""
    means, covariances = [], []
    for x, W in rows:
        gain = C @ W.T @ np.linalg.inv(W @ C @ W.T + noise * np.eye(len(x)))
        means.append(gain @ x)
        covariances.append(C - gain @ W @ C)
    return np.array(means), np.array(covariances)


def squared_distances(Z):
    return ((Z[:, None] - Z[None]) ** 2).sum(axis=2)


def project_onto_simplex(v):
    """The textbook projection: sort, find the threshold, clip."""
    v = v - v.max()  # the projection is the same, and sums lose no digits
    u = np.sort(v)[::-1]
    excess = np.cumsum(u) - 1
    rho = np.flatnonzero(u - excess / np.arange(1, len(v) + 1) > 0)[-1]
    return np.maximum(v - excess[rho] / (rho + 1), 0)


def dense_graph(Z, alpha, beta):
    """Every row of S projected over all other samples."""
    D = squared_distances(Z)
    S = np.zeros_like(D)
    for i in range(len(Z)):
        others = np.arange(len(Z)) != i
        S[i, others] = project_onto_simplex(-D[i, others] / (4 * alpha[i] * beta))
    return S


def qp_row(d, alpha, beta):
    """min ½ d·s + αβ‖s‖² over the simplex, by a general quadratic programming solver."""
    n = len(d)
    scale = 2 * alpha * beta
    constraints = np.vstack([np.ones(n), np.eye(n)]).T
    bounds = np.append(1.0, np.zeros(n))
    return quadprog.solve_qp(np.eye(n), -d / 2 / scale, constraints, bounds, meq=1)[0]


def dense_laplacian(S):
    affinity = (S + S.T) / 2
    return np.diag(affinity.sum(axis=1)) - affinity


def components(S):
    """Connected components by walking."""
    n, seen, found = len(S), set(), []
    neighbours = [set(np.flatnonzero((S[i] > 0) | (S[:, i] > 0))) for i in range(n)]
    for i in range(n):
        if i in seen:
            continue
        part, queue = set(), [i]
        while queue:
            j = queue.pop()
            if j not in part:
                part.add(j)
                queue.extend(neighbours[j] - part)
        seen |= part
        found.append(sorted(part))
    return found


def dense_scores(S, codes, n_classes):
    """F by a dense solve on the parts of the graph with a label; class frequencies elsewhere."""
    L = dense_laplacian(S)
    F = np.zeros((len(S), n_classes))
    labelled = codes >= 0
    F[labelled, codes[labelled]] = 1
    frequencies = F[labelled].mean(axis=0)
    for part in components(S):
        known = [i for i in part if labelled[i]]
        unknown = [i for i in part if not labelled[i]]
        if not known:
            F[part] = frequencies
        elif unknown:
            F[unknown] = np.linalg.solve(L[np.ix_(unknown, unknown)], -L[np.ix_(unknown, known)] @ F[known])
    return F


def objective(Xs, loadings, H, S, F, alpha, beta, gamma):
    """J as it is printed, term by term."""
    L = dense_laplacian(S)
    fit = sum(((X - H @ W.T) ** 2).sum() for X, W in zip(Xs, loadings, strict=True))
    alpha = np.broadcast_to(alpha, len(S))
    penalty = (alpha[:, None] * S**2).sum()
    return fit + beta * (np.trace(H.T @ L @ H) + penalty) + gamma * np.trace(F.T @ L @ F)


def objective_of_places(fit, Z, S, F, alpha, beta, gamma):
    """J from the loss of the views and the places."""
    L = dense_laplacian(S)
    penalty = (np.broadcast_to(alpha, len(S))[:, None] * S**2).sum()
    return fit + beta * (np.trace(Z.T @ L @ Z) + penalty) + gamma * np.trace(F.T @ L @ F)


def kernel_ridge(Z, F, labelled, ridge=1e-3):
    """Expected scores by the N × N formula of kernel ridge regression with weights, up to a constant for each class."""
    n, c = F.shape
    w = np.where(labelled, 0.5 / labelled.sum(), 0.5 / (~labelled).sum())
    T = F / np.sqrt(c * F[labelled].mean(axis=0))
    centred = Z - Z.mean(axis=0)
    energy = (centred**2).sum() / n
    K = 0.8 * centred @ centred.T / energy + 0.2 * np.exp(-squared_distances(Z) / (2 * energy))
    # Centred in feature space: features minus their weighted mean, which is what an intercept without penalty does.
    centre = np.eye(n) - np.outer(np.ones(n), w)
    Kc = centre @ K @ centre.T
    a = np.linalg.solve(Kc + ridge * np.diag(1 / w), T - w @ T)
    f = Kc @ a
    return f - f.mean(axis=0)


def mean_kernel(Xs, present, landmarks, linear=False, laplacian=0.0, weights=None):
    """Mean of the views' kernels between samples and landmarks, entry by entry; widths and centres by the landmarks."""
    n, V = len(Xs[0]), len(Xs)
    has = np.ones((n, V), dtype=bool) if present is None else np.asarray(present).T
    a = np.ones(V) if weights is None else np.asarray(weights)
    K = np.zeros((n, len(landmarks)))
    for v, X in enumerate(Xs):
        seen = [j for j in landmarks if has[j, v]]
        centre = X[seen].mean(axis=0)
        spread = np.mean([((X[j] - centre) ** 2).sum() for j in seen])
        width = np.mean([np.abs(X[i] - X[j]).sum() for i in seen for j in seen if i != j])
        for i in range(n):
            for place, j in enumerate(landmarks):
                if has[i, v] and has[j, v]:
                    near = (1 - laplacian) * np.exp(-((X[i] - X[j]) ** 2).sum() / (2 * spread))
                    near += laplacian * np.exp(-np.abs(X[i] - X[j]).sum() / width)
                    if linear:
                        near = (X[i] - centre) @ (X[j] - centre) / spread
                    K[i, place] += a[v] * near / np.sqrt((has[i] @ a) * (has[j] @ a))
    return K


def second_opinion(K, Y, ridge):
    """Scores of kernel ridge regression with the constant 1 in the kernel; the first samples are the labelled ones."""
    m = len(Y)
    return (K + 1)[:, :m] @ np.linalg.solve((K + 1)[:m, :m] + ridge * np.eye(m), Y)


def ridge_by_noise(Z, F, labelled):
    """The ridge: more for what neither the regression explains of the labels nor the scores of the other samples."""
    T = (F / np.sqrt(F.shape[1] * F[labelled].mean(axis=0)))[labelled]
    left = T - kernel_ridge(Z, F, labelled)[labelled]
    rest = F[~labelled]
    doubt = np.mean(1 - (rest**2).sum(axis=1)) / (1 - (rest.mean(axis=0) ** 2).sum())
    return 1e-3 * (1 + 15 * doubt * left.var(axis=0).sum() / T.var(axis=0).sum())


def algorithm_1(Xs, codes, n_classes, H, S, beta, gamma, k, n_iterations):
    """The paper's Algorithm 1, dense and line by line: W by NNLS, H by Sylvester, mean α, S, F."""
    F = np.zeros((len(H), n_classes))
    F[codes >= 0, codes[codes >= 0]] = 1
    for _ in range(n_iterations):
        loadings = [nnls_loadings(X, H) for X in Xs]
        A = sum(W.T @ W for W in loadings)
        B = sum(X @ W for X, W in zip(Xs, loadings, strict=True))
        H = solve_sylvester(beta * dense_laplacian(S), A, B)
        Z = np.hstack([np.sqrt(beta) * H, np.sqrt(gamma) * F])
        D = np.sort(squared_distances(Z), axis=1)[:, 1:]
        alpha = np.mean(k / 2 * D[:, k] - D[:, :k].sum(axis=1) / 2) / (2 * beta)
        S = dense_graph(Z, np.full(len(H), alpha), beta)
        F = dense_scores(S, codes, n_classes)
    return loadings, H, S, F, alpha


def adaptive_rows(D, k):
    """The adaptive-neighbour rows of a matrix of squared distances, one by one."""
    S = np.zeros_like(D)
    for i in range(len(D)):
        others = np.array([j for j in np.argsort(D[i], kind="stable") if j != i])
        d = D[i, others]
        S[i, others[:k]] = (d[k] - d[:k]) / (k * d[k] - d[:k].sum())
    return S


def harmonic_by_inverse(L, codes, n_classes):
    """F_u = −L_uu⁻¹ L_ul Y_l, by inverting."""
    F = np.zeros((len(L), n_classes))
    labelled = codes >= 0
    F[labelled, codes[labelled]] = 1
    F[~labelled] = -np.linalg.inv(L[np.ix_(~labelled, ~labelled)]) @ L[np.ix_(~labelled, labelled)] @ F[labelled]
    return F


def normalised_laplacian(W):
    roots = 1 / np.sqrt(W.sum(axis=1))
    return np.eye(len(W)) - roots[:, None] * W * roots


def amgl(Xs, codes, n_classes, k, n_iterations):
    """AMGL, dense and line by line; also the objective after each iteration."""
    graphs = [adaptive_rows(squared_distances(X), k) for X in Xs]
    Ls = [normalised_laplacian((S + S.T) / 2) for S in graphs]
    weights, history = np.full(len(Xs), 1 / len(Xs)), []
    for _ in range(n_iterations):
        F = harmonic_by_inverse(sum(a * L for a, L in zip(weights, Ls, strict=True)), codes, n_classes)
        rough = np.array([np.trace(F.T @ L @ F) for L in Ls])
        weights = 1 / (2 * np.sqrt(rough))
        history.append(np.sqrt(rough).sum())
    return F, weights, Ls, history


def standard_samples(X):
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def mlan(Xs, codes, n_classes, k, label_weight, n_iterations):
    """MLAN, dense and line by line; rows projected over the k nearest of the weighted views."""
    n = len(codes)
    Ds = [squared_distances(standard_samples(X)) for X in Xs]
    mean = sum(Ds) / len(Ds)
    ordered = np.sort(mean + np.diag(np.full(n, np.inf)), axis=1)
    alpha = np.mean(0.5 * (k * ordered[:, k] - ordered[:, :k].sum(axis=1)))
    S = adaptive_rows(mean, k)
    S = (S + S.T) / 2
    F = dense_scores(S, codes, n_classes)
    for _ in range(n_iterations):
        weights = np.array([1 / (2 * np.sqrt((D * S).sum())) for D in Ds])
        by_views = sum(w * D for w, D in zip(weights, Ds, strict=True))
        both = by_views + label_weight * squared_distances(F)
        S = np.zeros((n, n))
        for i in range(n):
            nearest = np.array([j for j in np.argsort(by_views[i], kind="stable") if j != i])[:k]
            S[i, nearest] = project_onto_simplex(-both[i, nearest] / (2 * alpha))
        S = (S + S.T) / 2
        F = dense_scores(S, codes, n_classes)
    terms = {
        "views": sum(np.sqrt((D * S).sum()) for D in Ds),
        "graph": alpha * (S**2).sum(),
        "labels": label_weight * (squared_distances(F) * S).sum(),
    }
    return F, S, weights, alpha, terms


def published_program(Xs, codes, labelled, H, beta, gamma, mended, n_rounds, k=10):
    """The published program, dense, one sample after the other; F as the labelled rows over the others."""
    n, c = len(codes), codes.max() + 1
    unlabelled = [i for i in range(n) if i not in set(labelled)]
    stacked = [*labelled, *unlabelled]
    F = np.zeros((n, c))  # in the order of `stacked`
    for row, i in enumerate(labelled):
        F[row, codes[i]] = 1
    S = np.eye(n)
    for _ in range(n_rounds):
        L = np.diag(S.sum(axis=1)) - S
        loadings = [nnls_loadings(X, H) for X in Xs]
        A = sum(W.T @ W for W in loadings)
        B = sum(X @ W for X, W in zip(Xs, loadings, strict=True))
        H = solve_sylvester(beta * L, A, B)
        by_latent = squared_distances(H)
        if mended:
            place = [stacked.index(i) for i in range(n)]
            by_scores = squared_distances(F[place])
        else:
            by_scores = squared_distances(F)
        alphas = []
        for i in range(n):
            d = beta * np.sort(by_latent[i])[1 : k + 2] + gamma * np.sort(by_scores[i])[1 : k + 2]
            alphas.append((k * d[k] - d[:k].sum()) / 2)
        alpha = np.mean(alphas) / (2 * beta)
        for i in range(n):
            near = [j for j in np.argsort(by_latent[i]) if j != i][:k]
            S[i, near] = project_onto_simplex(
                -(beta * by_latent[i, near] + gamma * by_scores[i, near]) / (4 * alpha * beta)
            )
        S[np.arange(n), np.arange(n)] = 0
        S = (S + S.T) / 2
        L = np.diag(S.sum(axis=1)) - S
        m = len(labelled)
        F[m:] = -np.linalg.lstsq(L[np.ix_(unlabelled, unlabelled)], L[np.ix_(unlabelled, labelled)] @ F[:m])[0]
    return F[[stacked.index(i) for i in range(n)]]


def dense_system_scores(L, labels, trust, anchor=None, opinion=None):
    """min Tr(FᵀLF) + Σ μ_i‖f_i − y_i‖² + Σ a_i‖f_i − q_i‖² component by component, rows with μ = ∞ fixed to y."""
    n, c = labels.shape
    anchor = np.zeros(n) if anchor is None else anchor
    opinion = np.zeros((n, c)) if opinion is None else opinion
    F = np.zeros((n, c))
    frequencies = labels[trust > 0].sum(axis=0) / max(labels[trust > 0].sum(), 1)
    for part in components(-L + np.diag(np.diag(L))):
        part = np.array(sorted(part))
        fixed = part[np.isinf(trust[part])]
        free = part[np.isfinite(trust[part])]
        F[fixed] = labels[fixed]
        springs = trust[free] + anchor[free]
        if not len(fixed) and not springs.any():
            F[free] = frequencies
            continue
        rhs = trust[free, None] * labels[free] + anchor[free, None] * opinion[free] - L[np.ix_(free, fixed)] @ F[fixed]
        F[free] = np.linalg.solve(L[np.ix_(free, free)] + np.diag(springs), rhs)
    return F
