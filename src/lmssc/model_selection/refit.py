"""Refits with held-out labels or without a view: how accurate a classifier is, and what each view contributes."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from lmssc.core.fit_config import FitContext
from lmssc.data.dataset import Dataset, validate
from lmssc.data.folds import DEFAULT_FOLDS
from lmssc.data.missing_views import has_any_view
from lmssc.data.n_jobs import worker_count
from lmssc.data.validation import Masks, is_view_collection
from lmssc.numerics.processes import end_with


class HeldOut(NamedTuple):
    """Predictions for rows whose labels were held out.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Rows; empty if no label could be held out.
    codes : ndarray of int of shape (m,)
        Their true classes, as columns of `distributions`.
    distributions : ndarray of shape (m, c)
        Distributions over the classes, in sorted order; NaN for a row that had no view left.
    """

    rows: NDArray
    codes: NDArray
    distributions: NDArray

    @property
    def answered(self) -> NDArray:
        """Which rows have an answer."""
        return ~np.isnan(self.distributions).any(axis=1)

    @property
    def confidence(self) -> NDArray:
        """Largest probability of each row."""
        return self.distributions.max(axis=1)

    @property
    def right(self) -> NDArray:
        """Whether the most likely class of each row is the true one; a row without an answer is not right."""
        return np.nan_to_num(self.distributions, nan=-1.0).argmax(axis=1) == np.where(self.answered, self.codes, -1)

    @property
    def accuracy(self) -> float:
        """Share of the rows that are right; NaN without rows."""
        return float(self.right.mean()) if len(self.rows) else float("nan")


def hold_out(
    clf: Any,
    views: Any,
    y: ArrayLike | None = None,
    present: Masks = None,
    *,
    without: Sequence[str | None] = (None,),
    n_folds: int = DEFAULT_FOLDS,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str | None, HeldOut]:
    """Hold out the labels of each of three folds in turn, fit to all rows, and collect the answers for these labels.

    Parameters
    ----------
    clf : classifier of lmssc
        Only its parameters are used, for an `LMSSCCV` those that it chose; it is not changed.
    views : as X in `fit`, or Dataset
        As given to `fit`; a validated dataset, with its labels, is hashed once for all fits.
    y : array-like of shape (n,), optional
        As given to `fit`; a dataset has it already.
    present : list or dict of boolean arrays, optional
        As given to `fit`.
    without : sequence of str or None
        Views to leave out, one at a time; None leaves out none. `n_components` and `n_neighbors` are lowered if too few
        features or samples are left.
    n_folds : int
        Number of folds to hold out, one after the other, of the three.
    random_state : int
        Seed of the folds, which are the same for all of `without`.
    n_jobs : int, optional
        Number of parallel fits, through joblib.
    progress : callable, optional
        Called after each fit with the number of finished fits and of all fits.

    Returns
    -------
    dict of str or None to HeldOut
        One for each of `without`.

    Examples
    --------
    >>> from lmssc import GFHF
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(200, labelled=0.3, random_state=0)
    >>> views = {"a": data.views[0], "b": data.views[1]}
    >>> found = hold_out(GFHF(), views, data.y, without=[None, "b"])
    >>> len(found[None].rows), found[None].accuracy > found["b"].accuracy > 0.5
    (60, True)
    """
    if isinstance(views, Dataset):
        dataset = views
    else:
        dataset = validate(
            views, cast(ArrayLike, y), views=None if is_view_collection(views) else clf.views, present=present
        )
    folds = dataset.folds(random_state)[:n_folds]
    jobs = [(name, fold) for name in without for fold in folds]
    datasets = {name: dataset if name is None else dataset.without_view(name) for name in without}
    fits = Parallel(n_jobs=worker_count(n_jobs), return_as="generator")(
        delayed(_answer)(_prepare(clf, dataset.names, name), datasets[name], fold, os.getpid()) for name, fold in jobs
    )
    answers: dict[str | None, list[NDArray]] = {name: [] for name in without}
    for done, ((name, _), answer) in enumerate(zip(jobs, fits, strict=True), 1):
        answers[name].append(answer)
        if progress is not None:
            progress(done, len(jobs))
    rows = np.concatenate([*folds, np.array([], dtype=np.intp)]).astype(np.intp)
    nothing = np.empty((0, len(dataset.classes)))
    return {name: HeldOut(rows, dataset.codes[rows], np.vstack([nothing, *parts])) for name, parts in answers.items()}


def _prepare(clf: Any, names: Sequence[str], without: str | None) -> Any:
    """Clone the classifier without output or checkpoints, with the parameters for all views except `without`."""
    fresh = clone(getattr(clf, "best_estimator_", clf))
    parameters = fresh.get_params(deep=False)
    changes = {"views": None, "callback": None, "checkpoint": None, "verbose": 0}
    fresh.set_params(**{name: value for name, value in changes.items() if name in parameters})
    scaling = parameters.get("scaling")
    if isinstance(scaling, Mapping):
        fresh.set_params(scaling={name: one for name, one in scaling.items() if str(name) != without})
    elif isinstance(scaling, list | tuple):
        fresh.set_params(scaling=[one for name, one in zip(names, scaling, strict=True) if name != without])
    return fresh


def _answer(clf: Any, dataset: Dataset, fold: NDArray, parent: int) -> NDArray:
    """Distributions of the rows of `fold`, whose labels are held out; NaN for rows without a view.

    `parent` is the id of the process that started this one.
    """
    end_with(parent)
    answers = np.full((dataset.n_samples, len(dataset.classes)), np.nan)
    kept = np.flatnonzero(has_any_view(dataset.views))
    part = dataset.without_labels(fold)
    if len(kept) < dataset.n_samples:
        part = part.take(kept)
    if len(part.classes) > 1:
        _lower_to_limits(clf, part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the held-out labels, not about the data
            # Ctrl-C ends all fits, not this one alone.
            clf._fit_dataset(part, FitContext(interruptible=False))
        answers[kept] = 0.0
        answers[np.ix_(kept, np.searchsorted(dataset.classes, clf.classes_))] = clf.label_distributions_
    return answers[fold]


def _lower_to_limits(clf: Any, dataset: Dataset) -> None:
    """Lower, in place, `n_components` and `n_neighbors` to what the samples and features that are left allow."""
    limits = {
        "n_components": min(dataset.n_samples, sum(dataset.layout.widths)),
        "n_neighbors": dataset.n_samples - 1,
    }
    parameters = clf.get_params(deep=False)
    for name, limit in limits.items():
        if isinstance(parameters.get(name), int | np.integer) and parameters[name] > limit:
            clf.set_params(**{name: limit})


def shortened(clf: Any, max_iter: int) -> Any:
    """An unfitted classifier for quick comparisons: at most `max_iter` iterations, confidence not calibrated.

    Examples
    --------
    >>> from lmssc import GFHF, LMSSC
    >>> shortened(LMSSC(), 5), shortened(GFHF(), 5)
    (LMSSC(calibrate=False, max_iter=5), GFHF())
    """
    fresh = clone(getattr(clf, "best_estimator_", clf))
    if "max_iter" in fresh.get_params():
        fresh.set_params(max_iter=min(fresh.max_iter, max_iter))
    if "calibrate" in fresh.get_params():
        fresh.set_params(calibrate=False)
    return fresh


def view_shares(clf: Any) -> dict[str, float]:
    """Share of each view in the fitted model.

    Parameters
    ----------
    clf : classifier of lmssc
        Fitted. For `LMSSC`, the share of each view in the reconstruction from the latent positions, ‖H·W^vᵀ‖² over the
        sum for all views; for `AMGL` and `MLAN`, the learned weights over their sum.

    Returns
    -------
    dict of str to float
        Shares that sum to 1; empty for a method that does not weight views.

    Examples
    --------
    >>> from lmssc import AMGL
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(300, noise_views=1, labelled=0.1, random_state=1)
    >>> shares = view_shares(AMGL().fit(data.views, data.y))
    >>> min(shares, key=shares.get), round(sum(shares.values()), 6)  # the last view is noise
    ('view2', 1.0)
    """
    fitted = getattr(clf, "best_estimator_", clf)
    if hasattr(fitted, "loadings_"):
        gram = fitted.latent_.T.astype(float) @ fitted.latent_
        energies = np.array([float(np.vdot(loading @ gram, loading)) for loading in fitted.loadings_])
    elif hasattr(fitted, "view_weights_"):
        energies = np.asarray(fitted.view_weights_, dtype=float)
    else:
        return {}
    total = max(float(energies.sum()), np.finfo(float).tiny)
    return dict(zip(fitted.view_names_, (energies / total).tolist(), strict=True))


def sample_rows(codes: NDArray, max_rows: int, random_state: int) -> NDArray:
    """A stratified sample of about `max_rows` rows, with the same share of labelled rows.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Class of each row, −1 without a label.
    max_rows : int
        Size of the sample; all rows are taken if there are no more.
    random_state : int
        Seed of the sample.

    Returns
    -------
    ndarray of int
        Rows, sorted.

    Examples
    --------
    >>> codes = np.repeat([-1, 0, 1], [80, 10, 10])
    >>> rows = sample_rows(codes, 50, random_state=0)
    >>> np.bincount(codes[rows] + 1)
    array([40,  5,  5])
    """
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    rng = np.random.default_rng(random_state)
    chosen = []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        # At least two labels per class, if it has them, so that one can be held out.
        wanted = max(round(len(members) * max_rows / len(codes)), min(2, len(members)) if code >= 0 else 0)
        chosen.append(rng.choice(members, wanted, replace=False))
    return np.sort(np.concatenate(chosen))
