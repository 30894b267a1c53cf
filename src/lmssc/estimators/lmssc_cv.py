"""LMSSCCV: LMSSC with parameters that are chosen by the labelled rows alone."""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from lmssc.core.progress import Progress, TimeLeft
from lmssc.data.dataset import Dataset
from lmssc.data.folds import DEFAULT_FOLDS
from lmssc.data.n_jobs import JOBS_OR_NONE, worker_count
from lmssc.data.parameters import CALLABLE_OR_NONE, COUNT, NOT_NEGATIVE, VERBOSITY, Rule, check_parameters, one_of
from lmssc.data.validation import Masks, ViewSpec
from lmssc.data.views import RawView
from lmssc.estimators.base import MultiViewClassifier
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.output import keep_index
from lmssc.numerics.processes import end_with
from lmssc.persistence.codec import RUNTIME_PARAMS

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None

DEFAULT_GRID: list[dict[str, list[Any]]] = [
    {},
    {"n_neighbors": [5, 20]},
    {"n_components": [20]},
    {"label_weight": [0.5, 4.0]},
]
"""The defaults, and what differs from them in one parameter."""
LEAST_LIKELIHOOD = 1e-3
TIE = 1e-12
"""Scores that differ by less are equal."""


@dataclass(frozen=True)
class SearchProgress:
    """What a callback hears after a fit of the search.

    Attributes
    ----------
    done, total : int
        Fits that are done, and fits in all.
    params : dict
        The setting.
    split : int
        Number of the fold whose labels were hidden.
    score : float
        Score of the hidden labels.
    seconds : float
        Time of the fit.
    """

    done: int
    total: int
    params: dict[str, Any]
    split: int
    score: float
    seconds: float


@dataclass(frozen=True)
class Answers:
    """What a fit with the labels of some rows hidden says of them, and the time it took."""

    row_scores: NDArray  # what is compared, for each row
    row_evidence: NDArray  # log-likelihood of its label, which tells more of a row than right or wrong
    seconds: float


@keep_index
class LMSSCCV(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiViewClassifier):
    """LMSSC with parameters chosen by cross-validation on the labelled rows.

    The labels of a fold of the labelled rows are hidden, LMSSC is fitted to all rows, as it is in the end, and the
    hidden labels are compared with what it found. Rows without a label are never scored.

    A few held-out labels are a noisy judge: the best of many settings is often the luckiest, and worse than the
    defaults. So the first setting is kept unless another has a better score and, on the same held-out rows, a mean
    log-likelihood of the labels that is larger by more than `margin` standard errors of the difference.

    Parameters
    ----------
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X fall into views, as for `LMSSC`.
    estimator : LMSSC, optional
        The classifier whose parameters are chosen, with all its other parameters; any other of this package will do.
        Its callback hears of the last fit only.
    param_grid : dict of name → list of values, or list of such dicts, optional
        Settings to choose among, as for scikit-learn's `GridSearchCV`. The first is taken in a tie and if nothing can
        be held out: let it be the usual one (``{}`` in a list is the estimator as it is). By default the defaults and
        a few others of the neighbours, components and β, where the data have room for them.
    n_splits : int, default=3
        Folds; fewer if no class has so many labels. A class with fewer is held out in some of them, and the only label
        of a class in none.
    n_repeats : int, default=2
        Times that all of it is done, with other folds.
    scoring : {"accuracy", "balanced_accuracy", "log_loss"}, default="accuracy"
        What is compared; log-loss with a minus, so that larger is better for all.
    margin : float or None, default=1.0
        Standard errors of the log-likelihood by which a setting must be better than the first. None takes the best
        score, whatever the noise.
    n_jobs : int, optional
        Fits at the same time, through joblib, never more than there are cores; −1 for one a core. The result is the
        same for any.
    random_state : int, default=0
        Decides the folds.
    callback : callable, optional
        Called after each fit of the search with a `SearchProgress`: done, total, params, split, score, seconds.
    verbose : int
        Show on stderr how far the search is.

    Attributes
    ----------
    best_estimator_ : LMSSC
        The classifier with the chosen setting, fitted with all labels.
    best_params_ : dict
        The chosen setting.
    best_score_ : float
        Its score on the held-out labels; NaN if nothing could be held out.
    best_index_ : int
        Its number in `cv_results_`.
    cv_results_ : dict of str to array
        A table with a row for each setting, for ``pandas.DataFrame(clf.cv_results_)``: "params", "param_<name>",
        "split<i>_test_score", "mean_test_score" (over all held-out labels; folds may differ in size),
        "std_test_score" (between splits), "rank_test_score", "mean_fit_time", "std_fit_time"; and by how much the mean
        log-likelihood is larger than that of the first setting, "mean_evidence", with the standard error
        "evidence_error". A likelihood below 0.001 counts as 0.001 there, so that no single row decides.
    n_splits_ : int
        Folds that were held out, over all repeats.
    classes_, transduction_, label_distributions_, latent_, loadings_, graph_, objective_, n_iter_, …
        All that `best_estimator_` has.

    See Also
    --------
    lmssc.model_selection.LabelledKFold : For `GridSearchCV`, which scores samples never seen.

    Examples
    --------
    >>> from lmssc import LMSSCCV
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(200, labelled=0.2, random_state=0)
    >>> clf = LMSSCCV(param_grid=[{}, {"n_neighbors": [150]}], n_repeats=1).fit(data.views, data.y)
    >>> clf.best_params_, clf.cv_results_["rank_test_score"]
    ({}, array([1, 2]))
    >>> clf.transduction_.shape
    (200,)
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "estimator": Rule(
            lambda v: v is None or (isinstance(v, MultiViewClassifier) and not isinstance(v, LMSSCCV)),
            "None, an LMSSC or another classifier of lmssc",
        ),
        "n_splits": Rule(lambda v: COUNT.accepts(v) and v >= 2, "an integer of at least 2"),
        "n_repeats": COUNT,
        "scoring": one_of("accuracy", "balanced_accuracy", "log_loss"),
        "margin": Rule(lambda v: v is None or NOT_NEGATIVE.accepts(v), f"None or {NOT_NEGATIVE.wanted}"),
        "random_state": Rule(
            lambda v: isinstance(v, int | np.integer) and not isinstance(v, bool) and bool(0 <= v < 2**32),
            "an integer from 0 to 2³² − 1",
        ),
        "n_jobs": JOBS_OR_NONE,
        "callback": CALLABLE_OR_NONE,
        "verbose": VERBOSITY,
    }

    def __init__(
        self,
        views: ViewSpec = None,
        *,
        estimator: MultiViewClassifier | None = None,
        param_grid: Grid = None,
        n_splits: int = DEFAULT_FOLDS,
        n_repeats: int = 2,
        scoring: str = "accuracy",
        margin: float | None = 1.0,
        n_jobs: int | None = None,
        random_state: int = 0,
        callback: Callable[[SearchProgress], object] | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.scoring = scoring
        self.margin = margin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        # It has all that `best_estimator_` has, which was upgraded before.
        best = fitted.get("best_estimator_")
        if isinstance(best, MultiViewClassifier):
            for name, value in learned(best).items():
                fitted.setdefault(name, value)
        super()._upgrade(parameters, fitted, saved_by)

    def _fit(self, dataset: Dataset) -> None:
        base = LMSSC() if self.estimator is None else self.estimator
        if base.views is not None:
            raise ValueError("views must be given to LMSSCCV itself, not to its estimator")
        if not self._allows_gaps():
            dataset.refuse_gaps()
        settings = (
            default_settings(base, dataset.views) if self.param_grid is None else read_grid(self.param_grid, base)
        )
        candidates = [clone(base).set_params(**setting) for setting in settings]
        for setting, candidate in zip(settings, candidates, strict=True):
            with _naming(setting):
                check_parameters(candidate, candidate._rules)

        # Rows in canonical order, so that sums over them do not depend on the order of the input.
        place = np.argsort(dataset.order.samples)
        folds = [
            fold[np.argsort(place[fold])]
            for repeat in range(self.n_repeats)
            for fold in dataset.folds(int(self.random_state) + repeat * 2**32, self.n_splits)
        ]
        if not folds:
            warnings.warn(
                "no class has 2 labelled samples, so no label can be held out: the first setting of the grid is taken",
                UserWarning,
                stacklevel=3,
            )
        answers = self._search(settings, candidates, dataset, folds)
        results = tabulate(settings, answers, folds, dataset.codes, place, balanced=self.scoring == "balanced_accuracy")
        best = choose(results, self.margin)

        fitted = candidates[best].set_params(views=self.views)._fit_dataset(dataset)
        for name in learned(getattr(self, "best_estimator_", fitted)):
            self.__dict__.pop(name, None)  # an earlier fit may have had another estimator
        self.__dict__.update(learned(fitted))
        self.best_estimator_ = fitted
        self.best_index_ = best
        self.best_params_ = settings[best]
        self.best_score_ = float(results["mean_test_score"][best])
        self.cv_results_ = results
        self.n_splits_ = len(folds)

    def _allows_gaps(self) -> bool:
        grids = self.param_grid if isinstance(self.param_grid, list | tuple) else [self.param_grid]
        chosen = any(isinstance(grid, Mapping) and "impute" in grid for grid in grids)
        return chosen or getattr(self.estimator, "impute", None) is not None

    def _search(
        self,
        settings: list[dict[str, Any]],
        candidates: list[MultiViewClassifier],
        dataset: Dataset,
        folds: list[NDArray],
    ) -> list[list[Answers]]:
        """Answers of each setting for each fold."""
        quiet = {"callback": None, "checkpoint": None, "verbose": 0}
        quiet = {name: value for name, value in quiet.items() if hasattr(candidates[0], name)}
        candidates = [clone(candidate).set_params(**quiet) for candidate in candidates]
        tasks = [(number, split) for number in range(len(settings)) for split in range(len(folds))]
        search = uuid4().hex
        n_jobs = worker_count(self.n_jobs)
        found: list[list[Answers]] = [[] for _ in settings]
        meter = Progress(
            len(tasks),
            0,
            TimeLeft((number for number, _ in tasks), effective_n_jobs(n_jobs)),
            show=bool(self.verbose),
        )
        answers = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_answer)(
                candidates[number], settings[number], dataset, folds[split], self.scoring, os.getpid(), search
            )
            for number, split in tasks
        )
        # Closed at once if the user interrupts or the callback raises, so that no worker goes on.
        with meter, closing(answers), _forgetting():
            for done, ((number, split), answer) in enumerate(zip(tasks, answers, strict=True), 1):
                found[number].append(answer)
                meter.advance(number, answer.seconds)
                if self.callback is not None:
                    score = score_rows(
                        answer.row_scores, dataset.codes[folds[split]], self.scoring == "balanced_accuracy"
                    )
                    self.callback(
                        SearchProgress(done, len(tasks), dict(settings[number]), split, score, answer.seconds)
                    )
        return found

    def predict_proba(self, X: Any, present: Masks = None) -> NDArray:
        """Distribution over the classes for each sample, known from fit or new, by `best_estimator_`.

        Parameters
        ----------
        X : as in `fit`
            Samples; views that a sample lacks are NaN.
        present : as in `fit`, optional
            Which samples have which view.

        Returns
        -------
        ndarray of shape (n, c)
            Non-negative rows that sum to 1, columns as in `classes_`.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, present)

    def transform(self, X: Any, present: Masks = None) -> NDArray:
        """Latent positions of samples, by `best_estimator_`.

        Parameters
        ----------
        X : as in `fit`
            Samples; views that a sample lacks are NaN.
        present : as in `fit`, optional
            Which samples have which view.

        Returns
        -------
        ndarray of shape (n, r)
        """
        check_is_fitted(self)
        return self.best_estimator_.transform(X, present)

    def fit_transform(self, X: Any, y: ArrayLike | None = None, present: Masks = None) -> NDArray:
        """Fit, then `transform` the same samples.

        Parameters
        ----------
        X : as in `fit`
            Samples.
        y : array-like of shape (n,)
            Labels, as in `fit`.
        present : as in `fit`, optional
            Which samples have which view.

        Returns
        -------
        ndarray of shape (n, r)
        """
        return self.fit(X, y, present).transform(X, present)  # type: ignore[arg-type]

    @property
    def _n_features_out(self) -> int:
        return self.best_estimator_._n_features_out

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.pairwise = self.estimator.__sklearn_tags__().input_tags.pairwise
        return tags


def learned(estimator: MultiViewClassifier) -> dict[str, Any]:
    """All that an estimator has and that is not one of its parameters.

    Examples
    --------
    >>> learned(LMSSC(beta=0.2))
    {}
    """
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in parameters}


def read_grid(param_grid: Any, estimator: MultiViewClassifier) -> list[dict[str, Any]]:
    """Settings of a grid in the order of scikit-learn's `ParameterGrid`, without repetition.

    Examples
    --------
    >>> read_grid([{}, {"beta": [0.1, 0.2], "n_neighbors": [5]}], LMSSC())
    [{}, {'beta': 0.1, 'n_neighbors': 5}, {'beta': 0.2, 'n_neighbors': 5}]
    >>> read_grid({"beta": []}, LMSSC())
    Traceback (most recent call last):
        ...
    ValueError: param_grid has no values for 'beta'; give at least one, or leave it out
    """
    wanted = "param_grid must be a dict of parameter name → list of values, or a list of such dicts"
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    if not isinstance(grids, Sequence) or isinstance(grids, str) or not all(isinstance(g, Mapping) for g in grids):
        raise TypeError(f"{wanted}, got {param_grid!r}")
    if not grids:
        raise ValueError(f"{wanted}; it is empty")
    names = [name for name in type(estimator)._get_param_names() if name not in ("views", *RUNTIME_PARAMS)]
    for grid in grids:
        for name, values in grid.items():
            if name not in names:
                raise ValueError(
                    f"param_grid has {name!r}, which is no parameter of {type(estimator).__name__} to choose; these "
                    f"are: {', '.join(names)}"
                )
            if isinstance(values, str | Mapping) or not isinstance(values, Sequence | np.ndarray):
                raise TypeError(f"{wanted}; {name!r} has {values!r}, which is no list: put [ ] around it")
            if len(values) == 0:
                raise ValueError(f"param_grid has no values for {name!r}; give at least one, or leave it out")
    settings: list[dict[str, Any]] = []
    for setting in ParameterGrid([dict(grid) for grid in grids]):
        if setting not in settings:
            settings.append(setting)
    return settings


def default_settings(estimator: MultiViewClassifier, raws: Sequence[RawView]) -> list[dict[str, Any]]:
    """Settings of `DEFAULT_GRID` that the estimator has, and that the data have room for.

    Examples
    --------
    >>> view = RawView("a", np.zeros((12, 20)), None)
    >>> default_settings(LMSSC(), [view])
    [{}, {'n_neighbors': 5}, {'label_weight': 0.5}, {'label_weight': 4.0}]
    """
    n_samples = raws[0].data.shape[0]
    most = {
        "n_neighbors": n_samples - 2,
        "n_components": min(n_samples, sum(raw.data.shape[1] for raw in raws)) - 1,
        "label_weight": np.inf,
    }
    return [
        setting
        for setting in ParameterGrid(DEFAULT_GRID)
        if all(hasattr(estimator, name) and value <= most[name] for name, value in setting.items())
    ]


@contextmanager
def _naming(setting: dict[str, Any]) -> Iterator[None]:
    """Context in which a ValueError says with which setting of the grid it came."""
    try:
        yield
    except ValueError as error:
        if not setting:
            raise
        raise ValueError(f"param_grid, {setting}: {error}") from error


# What the fits of one search can share in this process.
_STARTS: dict[str, dict[tuple, Any]] = {}


@contextmanager
def _forgetting() -> Iterator[None]:
    """Context after which this process holds nothing of the search."""
    try:
        yield
    finally:
        _STARTS.clear()


def _starts_of(search: str) -> dict[tuple, Any]:
    """What the fits of this search share; that of an earlier one is forgotten."""
    if search not in _STARTS:
        _STARTS.clear()
        _STARTS[search] = {}
    return _STARTS[search]


def _answer(
    candidate: MultiViewClassifier,
    setting: dict[str, Any],
    dataset: Dataset,
    fold: NDArray,
    scoring: str,
    main: int,
    search: str,
) -> Answers:
    """Fit with the labels of a fold hidden. `main` is the process that asked for it, `search` names what it is for."""
    end_with(main)
    began = time.perf_counter()
    # One thread, so that the result does not depend on how many fits are done at the same time.
    with warnings.catch_warnings(), threadpool_limits(limits=1), _naming(setting):
        warnings.simplefilter("ignore")  # what a fit with fewer labels warns of is not about the data
        estimator = clone(candidate)
        if isinstance(estimator, LMSSC):
            estimator._starts, estimator._interruptible = _starts_of(search), False
        fitted = estimator._fit_dataset(dataset.hide(fold))
    seconds = time.perf_counter() - began
    truth = dataset.codes[fold]  # folds leave each class a label, so the codes are those of the fit, too
    likelihood = fitted.label_distributions_[fold, truth].astype(float)
    if scoring == "log_loss":
        row_scores = np.log(np.maximum(likelihood, np.finfo(float).eps))
    else:
        row_scores = (fitted.transduction_[fold] == dataset.classes[truth]).astype(float)
    return Answers(row_scores, np.log(np.maximum(likelihood, LEAST_LIKELIHOOD)), seconds)


def score_rows(row_scores: NDArray, codes: NDArray, balanced: bool) -> float:
    """Mean over the rows, or over the means of the classes.

    Examples
    --------
    >>> row_scores, codes = np.array([1.0, 1.0, 0.0]), np.array([0, 0, 1])
    >>> round(score_rows(row_scores, codes, balanced=False), 3), score_rows(row_scores, codes, balanced=True)
    (0.667, 0.5)
    """
    return float(np.average(row_scores, weights=row_weights(codes) if balanced else None))


def row_weights(codes: NDArray) -> NDArray:
    """Weights of the rows that make all classes count the same; their mean is 1.

    Examples
    --------
    >>> row_weights(np.array([0, 0, 0, 2]))
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return len(codes) / (len(counts) * counts[inverse])


def tabulate(
    settings: list[dict[str, Any]],
    answers: list[list[Answers]],
    folds: list[NDArray],
    codes: NDArray,
    place: NDArray,
    *,
    balanced: bool,
) -> dict[str, Any]:
    """What `LMSSCCV.cv_results_` has."""
    results: dict[str, Any] = {"params": settings}
    for name in sorted({name for setting in settings for name in setting}):
        given = np.array([name in setting for setting in settings])
        column = np.ma.MaskedArray(np.empty(len(settings), dtype=object), mask=~given)
        for number in np.flatnonzero(given):
            column[number] = settings[number][name]
        results[f"param_{name}"] = column
    if not folds:
        for name in (
            "mean_test_score",
            "std_test_score",
            "mean_evidence",
            "evidence_error",
            "mean_fit_time",
            "std_fit_time",
        ):
            results[name] = np.full(len(settings), np.nan)
        return results | {"rank_test_score": np.ones(len(settings), dtype=int)}
    by_split = np.array(
        [
            [score_rows(one.row_scores, codes[fold], balanced) for one, fold in zip(row, folds, strict=True)]
            for row in answers
        ]
    )
    rows = np.concatenate(folds)
    held, position = np.unique(place[rows], return_inverse=True)
    weights = row_weights(codes[np.argsort(place)[held]]) if balanced else np.ones(len(held))

    def by_row(parts: list[NDArray]) -> NDArray:
        """Means over the repeats of what the folds have, weighted."""
        return np.bincount(position, np.concatenate(parts)) / np.bincount(position) * weights

    means = np.array([by_row([one.row_scores for one in row]).mean() for row in answers])
    evidence = np.array([by_row([one.row_evidence for one in row]) for row in answers])
    seconds = np.array([[one.seconds for one in row] for row in answers])
    return (
        results
        | {f"split{split}_test_score": column for split, column in enumerate(by_split.T)}
        | {
            "mean_test_score": means,
            "std_test_score": by_split.std(axis=1),
            "rank_test_score": 1 + (means[:, None] < means - TIE).sum(axis=1),
            "mean_evidence": (evidence - evidence[0]).mean(axis=1),
            "evidence_error": (evidence - evidence[0]).std(axis=1, ddof=1) / np.sqrt(len(held)),
            "mean_fit_time": seconds.mean(axis=1),
            "std_fit_time": seconds.std(axis=1),
        }
    )


def choose(results: Mapping[str, Any], margin: float | None) -> int:
    """Number of the setting with the best score of those that are surely better than the first; else the first.

    Examples
    --------
    >>> results = {
    ...     "mean_test_score": np.array([0.80, 0.84, 0.82]),
    ...     "mean_evidence": np.array([0.0, 0.02, 0.01]),
    ...     "evidence_error": np.array([0.0, 0.03, 0.005]),
    ... }
    >>> choose(results, margin=1.0), choose(results, margin=3.0), choose(results, margin=None)
    (2, 0, 1)
    """
    gain = np.nan_to_num(results["mean_test_score"] - results["mean_test_score"][0])
    if margin is not None:
        sure = results["mean_evidence"] > np.maximum(margin * results["evidence_error"], TIE)
        gain = np.where(sure, gain, 0.0)
    return int(np.argmax(gain >= gain.max() - TIE))
