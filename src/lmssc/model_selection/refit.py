"""A fit done again with some labels hidden, or with a view left out: how right it is, and what each view is worth."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from lmssc.core.fit_config import FitContext
from lmssc.data.folds import FOLDS, hide, labelled_folds
from lmssc.data.labels import encode_labels
from lmssc.data.n_jobs import worker_count
from lmssc.data.validation import check_rows, make_raw_views, read_collection
from lmssc.data.views import RawView
from lmssc.numerics.processes import end_with


class HeldOut(NamedTuple):
    """Answers for rows whose labels were hidden.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Numbers of the rows; none if nothing could be hidden.
    codes : ndarray of int of shape (m,)
        Their true classes, as columns of `distributions`.
    distributions : ndarray of shape (m, c)
        Distributions over the classes, in sorted order; NaN for a row of which nothing was left.
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
        """Share of the rows that are right; NaN if there are none."""
        return float(self.right.mean()) if len(self.rows) else float("nan")


def hold_out(
    clf: Any,
    views: Sequence[Any] | Mapping[str, Any],
    y: ArrayLike,
    present: Any = None,
    *,
    without: Sequence[str | None] = (None,),
    n_folds: int = FOLDS,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str | None, HeldOut]:
    """Hide the labels in three turns, fit all rows again each time, and collect the answers for the hidden ones.

    Parameters
    ----------
    clf : classifier of lmssc
        Not changed; its parameters are used. Of one that chooses parameters, those that were chosen.
    views : list or dict of views
        As given to `fit`.
    y : array-like of shape (n,)
        As given to `fit`.
    present : list or dict of boolean arrays, optional
        As given to `fit`.
    without : sequence of str or None
        Views to be left out, one at a time; None stands for leaving out none. Where fewer features are left than
        `n_components` says, as many are taken as there are.
    n_folds : int
        How many of the three folds are hidden; the labels of the others stay given.
    random_state : int
        Decides which labels are hidden together; the same for all of `without`.
    n_jobs : int, optional
        Fits at the same time, through joblib.
    progress : callable, optional
        Called with the number of fits that are done and of all, after each.

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
    check_rows(views, y, present)
    blocks = read_collection(views)
    raws = make_raw_views(blocks, present, gaps=True)  # each fit fills them in, or refuses them
    classes, codes = encode_labels(y, raws[0].data.shape[0])
    folds = labelled_folds(raws, codes, random_state)[:n_folds]
    jobs = [(name, fold) for name in without for fold in folds]
    fits = Parallel(n_jobs=worker_count(n_jobs), return_as="generator")(
        delayed(_answer)(
            _prepare(clf, raws, name),
            [raw for raw in raws if raw.name != name],
            codes,
            fold,
            len(classes),
            os.getpid(),
        )
        for name, fold in jobs
    )
    answers: dict[str | None, list[NDArray]] = {name: [] for name in without}
    for done, ((name, _), answer) in enumerate(zip(jobs, fits, strict=True), 1):
        answers[name].append(answer)
        if progress is not None:
            progress(done, len(jobs))
    rows = np.concatenate([*folds, np.array([], dtype=np.intp)]).astype(np.intp)
    nothing = np.empty((0, len(classes)))
    return {name: HeldOut(rows, codes[rows], np.vstack([nothing, *parts])) for name, parts in answers.items()}


def _prepare(clf: Any, raws: Sequence[RawView], without: str | None) -> Any:
    """A classifier with the same parameters for the other views, that says nothing."""
    fresh = clone(getattr(clf, "best_estimator_", clf))
    parameters = fresh.get_params(deep=False)
    # The views come as a dict, whatever form they had.
    changes = {"views": None, "callback": None, "checkpoint": None, "verbose": 0}
    fresh.set_params(**{name: value for name, value in changes.items() if name in parameters})
    scaling = parameters.get("scaling")
    names = [raw.name for raw in raws]
    if isinstance(scaling, Mapping):
        fresh.set_params(scaling={name: one for name, one in scaling.items() if str(name) != without})
    elif isinstance(scaling, list | tuple):
        fresh.set_params(scaling=[one for name, one in zip(names, scaling, strict=True) if name != without])
    return fresh


def _answer(clf: Any, raws: list[RawView], codes: NDArray, fold: NDArray, n_classes: int, main: int) -> NDArray:
    """Distributions of the rows of `fold`, whose labels are hidden; NaN where none of the views is there.

    `main` is the process that asked for it.
    """
    end_with(main)
    n = len(codes)
    kept = np.flatnonzero(np.any([np.ones(n, bool) if raw.present is None else raw.present for raw in raws], axis=0))
    labels = hide(codes, fold)
    everyone = np.full((n, n_classes), np.nan)
    if len(np.unique(labels[kept][labels[kept] >= 0])) > 1:
        parts = [raw.take(kept) for raw in raws]
        _make_room(clf, len(kept), sum(raw.data.shape[1] for raw in raws))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit with fewer labels warns of is not about the data
            views, present = {raw.name: raw.data for raw in parts}, {raw.name: raw.present for raw in parts}
            # Ctrl-C ends all fits, not this one alone.
            clf._fit_in_context(views, labels[kept], present, FitContext(interruptible=False))
        everyone[kept] = 0.0
        everyone[np.ix_(kept, clf.classes_)] = clf.label_distributions_
    return everyone[fold]


def _make_room(clf: Any, n_samples: int, n_features: int) -> None:
    """Lower, in place, numbers of components and neighbours that are more than there are without a view."""
    most = {"n_components": min(n_samples, n_features), "n_neighbors": n_samples - 1}
    parameters = clf.get_params(deep=False)
    for name, limit in most.items():
        if isinstance(parameters.get(name), int | np.integer) and parameters[name] > limit:
            clf.set_params(**{name: limit})


def shortened(clf: Any, max_iter: int) -> Any:
    """The same classifier for answers alone: not fitted, at most `max_iter` iterations, confidence not calibrated.

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
    """What each view has to do with the answer, by what the method itself learned.

    Parameters
    ----------
    clf : classifier of lmssc
        Fitted. Of `LMSSC`, the share of each view in the reconstruction from the latent positions, ‖H·W^vᵀ‖² over the
        sum for all views; of `AMGL` and `MLAN`, the learned weights over their sum.

    Returns
    -------
    dict of str to float
        Sum to 1; empty for a method that does not weigh views.

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


def sample_rows(codes: NDArray, most: int, random_state: int) -> NDArray:
    """At most `most` rows, labelled and unlabelled in the proportion that they have.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Class of each row, −1 without a label.
    most : int
        Rows that are wanted; all are taken if there are no more.
    random_state : int
        Decides which.

    Returns
    -------
    ndarray of int
        Row numbers, sorted.

    Examples
    --------
    >>> codes = np.repeat([-1, 0, 1], [80, 10, 10])
    >>> rows = sample_rows(codes, 50, random_state=0)
    >>> np.bincount(codes[rows] + 1)
    array([40,  5,  5])
    """
    if len(codes) <= most:
        return np.arange(len(codes))
    rng = np.random.default_rng(random_state)
    chosen = []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        # Two labels a class, where there are, can still be hidden in turn.
        wanted = max(round(len(members) * most / len(codes)), min(2, len(members)) if code >= 0 else 0)
        chosen.append(rng.choice(members, wanted, replace=False))
    return np.sort(np.concatenate(chosen))
