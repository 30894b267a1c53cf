"""An iteration of Algorithm 1 by the formulas of the paper, dense, and by LMSSC from the same state."""

import numpy as np
from stopwatch import Stopwatch


def dense_formulas(args, data):
    """The dense formulas on random rows of HW. Of the quadratic programs, one per row of S, only two are solved."""
    from scipy.linalg import solve_sylvester
    from scipy.optimize import nnls
    from scipy.spatial.distance import cdist

    model, state, new, fast = last_iteration(*some_handwritten(args.samples))

    watch = Stopwatch(args.samples)
    X = [view.data for view in model.views]
    W = [np.array([nnls(state.latent, column)[0] for column in view.T]) for view in X]
    A = sum(loading.T @ loading for loading in W)
    B = sum(view @ loading for view, loading in zip(X, W, strict=True))
    H = solve_sylvester(model.beta * state.laplacian.toarray(), A, B)
    distances = model.beta * cdist(H, H, "sqeuclidean") + model.gamma * cdist(state.scores, state.scores, "sqeuclidean")
    before_rows = np.array(watch.read())

    rows, worst = (0, args.samples // 2), 0.0
    watch = Stopwatch()
    for i in rows:
        others = np.delete(np.arange(len(H)), i)
        weights = nearest_on_simplex(-distances[i, others] / 2, 2 * float(new.alpha[0]) * model.beta)
        worst = max(worst, float(np.abs(new.graph[[i]].toarray().ravel()[others] - weights).max()))
    a_row = np.array(watch.read()) / len(rows)

    watch = Stopwatch()
    laplacian, known = new.laplacian.toarray(), model.targets.codes >= 0
    unknown = ~known & ~new.unreached
    F = np.linalg.solve(
        laplacian[np.ix_(unknown, unknown)], -laplacian[np.ix_(unknown, known)] @ np.eye(10)[model.targets.codes[known]]
    )
    last = np.array(watch.read())

    without, whole = before_rows + last, before_rows + last + a_row * len(H)
    detail = {
        "W, H and distances": round(before_rows[0], 2),
        "a QP": round(a_row[0], 3),
        "F": round(last[0], 2),
        "LMSSC, an iteration": round(fast, 3),
        "× LMSSC": float(f"{whole[0] / fast:.4g}"),
        "× LMSSC without the QPs": float(f"{without[0] / fast:.3g}"),
        "difference of H": largest(new.latent - H, H),
        "of S": float(f"{worst:.0e}"),
        "of F": largest(new.scores[unknown] - F, F),
    }
    return tuple(map(float, whole)), None, detail


def nearest_on_simplex(gains, curvature):
    """The quadratic program of a row of S."""
    import quadprog

    n = len(gains)
    constraints = np.hstack([np.ones((n, 1)), np.eye(n)])
    return quadprog.solve_qp(curvature * np.eye(n), gains, constraints, np.r_[1.0, np.zeros(n)], 1)[0]


def some_handwritten(samples):
    """Rows of HW drawn at random, and a tenth of their labels."""
    from lmssc.datasets import load

    data = load("handwritten")
    random = np.random.default_rng(0)
    rows = random.permutation(len(data.target))[:samples]
    hidden = random.random(samples) > 0.1
    return [view[rows] for view in data.views], np.where(hidden, -1, np.asarray(data.target)[rows])


def last_iteration(views, y):
    """The last of four iterations with the paper's settings: the model, the state before and after, and the seconds."""
    from lmssc import LMSSC, paper_settings
    from lmssc.core.objective import Objective

    done, original = [], Objective.step

    def step(model, state):
        watch = Stopwatch(len(y))
        new = original(model, state)
        done.append((model, state, new, watch.read()[0]))
        return new

    Objective.step = step
    # With a large γ no unlabelled sample, with F = 0 at the start, ever gets an edge to a labelled one.
    settings = {**paper_settings(), "gamma": 1e-4, "scaling": "auto", "random_state": 0, "max_iter": 4}
    LMSSC(**settings).fit(views, y)
    return done[-1]


def largest(difference, of):
    """Largest absolute entry of a difference, relative to the largest entry of what is compared."""
    return float(f"{np.abs(difference).max() / np.abs(of).max():.0e}")
