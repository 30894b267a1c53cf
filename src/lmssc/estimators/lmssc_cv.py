"""LMSSCCV: LMSSC with parameters chosen by cross-validation on the labelled rows."""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from lmssc.core.fit_config import FitContext
from lmssc.core.progress import ProgressMeter, TimeLeft, in_notebook
from lmssc.data.dataset import Dataset
from lmssc.data.folds import DEFAULT_FOLDS
from lmssc.data.n_jobs import JOBS_OR_NONE, worker_count
from lmssc.data.parameters import CALLABLE_OR_NONE, COUNT, NOT_NEGATIVE, VERBOSITY, Rule, check_parameters, one_of
from lmssc.data.validation import Masks, ViewSpec
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.base import MultiViewClassifier
from lmssc.estimators.cv_results import FoldScores, choose, score_rows, tabulate
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.output import LatentTransformerMixin, keep_index
from lmssc.estimators.parameter_grid import Grid, default_settings, read_grid
from lmssc.estimators.trust import TrustMixin
from lmssc.estimators.weighted_fit import WeightedFitMixin
from lmssc.numerics.processes import end_with

# Likelihoods are raised to this, so that no single row decides.
MIN_LIKELIHOOD = 1e-3


@dataclass(frozen=True)
class SearchProgress:
    """Progress of a search, passed to the callback after each fit.

    Attributes
    ----------
    done, total : int
        Number of finished fits and of all fits.
    params : dict
        The setting.
    split : int
        Index of the fold whose labels were held out.
    score : float
        Score of the held-out labels.
    seconds : float
        Time of the fit.
    """

    done: int
    total: int
    params: dict[str, Any]
    split: int
    score: float
    seconds: float


@keep_index
class LMSSCCV(TrustMixin, WeightedFitMixin, LatentTransformerMixin, MultiViewClassifier):
    """LMSSC with parameters chosen by cross-validation on the labelled rows.

    The labels of one fold of the labelled rows are held out, LMSSC is fitted to all rows, and its answers are compared
    with the held-out labels. Rows without a label are never scored.

    With few held-out labels the scores are noisy: the best of many settings is often just lucky, and worse than the
    defaults. The first setting is therefore kept unless another one has a better score and, on the same held-out rows,
    a mean log-likelihood of the labels that is larger by more than `margin` standard errors of the difference.

    Parameters
    ----------
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X are divided into views, as for `LMSSC`.
    estimator : LMSSC, optional
        The classifier whose parameters are chosen; its other parameters are kept. Any other classifier of lmssc can
        be used. Its callback is called in the final fit only.
    param_grid : dict of name → list of values, or list of such dicts, optional
        Settings to choose from, as for scikit-learn's `GridSearchCV`. The first one wins ties, and is used if nothing
        can be held out, so put your usual setting first (``{}`` in a list is the estimator as it is). By default, the
        defaults and a few other values of `n_neighbors`, `n_components` and `label_weight`, if the data allow them.
    n_splits : int, default=3
        Number of folds; fewer if no class has as many labels. A class with fewer labels is held out in some folds only,
        and the only label of a class is never held out.
    n_repeats : int, default=2
        Number of repetitions, each with other folds.
    scoring : {"accuracy", "balanced_accuracy", "log_loss"}, default="accuracy"
        The score; the negative log-loss for "log_loss", so that larger is always better.
    margin : float or None, default=1.0
        By how many standard errors of the log-likelihood a setting must be better than the first. None takes the best
        score, significant or not.
    n_jobs : int, optional
        Number of parallel fits, through joblib, at most one per core; −1 for one per core. The result does not depend
        on it.
    random_state : int, default=0
        Seed of the folds.
    callback : callable, optional
        Called after each fit of the search with a `SearchProgress`: done, total, params, split, score, seconds.
    verbose : int, optional
        If positive, show the progress: a bar on a terminal or in a notebook, otherwise lines on stderr. None does so in
        a notebook only.

    Attributes
    ----------
    best_estimator_ : LMSSC
        The classifier with the chosen setting, fitted with all labels.
    best_params_ : dict
        The chosen setting.
    best_score_ : float
        Score of the chosen setting on the held-out labels; NaN if nothing could be held out.
    best_index_ : int
        Index of the chosen setting in `cv_results_`.
    cv_results_ : dict of str to array
        A table with a row for each setting, for ``pandas.DataFrame(clf.cv_results_)``: "params", "param_<name>",
        "split<i>_test_score", "mean_test_score" (over all held-out labels; folds may differ in size),
        "std_test_score" (between splits), "rank_test_score", "mean_fit_time", "std_fit_time"; and "mean_evidence", the
        difference in mean log-likelihood to the first setting, with its standard error "evidence_error". Likelihoods
        are clipped to at least 0.001 there, so that no single row decides.
    n_splits_ : int
        Number of folds that were held out, over all repeats.
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
    >>> grid = [{}, {"n_neighbors": [150], "second_opinion": [0.0]}]
    >>> clf = LMSSCCV(param_grid=grid, n_repeats=1).fit(data.views, data.y)
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
        "verbose": Rule(lambda v: v is None or VERBOSITY.accepts(v), f"None or {VERBOSITY.wanted}"),
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
        verbose: int | None = None,
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
        # All attributes of `best_estimator_`, which has been upgraded already.
        best = fitted.get("best_estimator_")
        if isinstance(best, MultiViewClassifier):
            for name, value in learned(best).items():
                fitted.setdefault(name, value)
        super()._upgrade(parameters, fitted, saved_by)

    def _fit(self, dataset: Dataset, context: FitContext) -> None:
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
            warn_caller(
                "no class has 2 labelled samples, so no label can be held out: the first setting of the grid is used",
            )
        answers = self._search(settings, candidates, dataset, folds)
        results = tabulate(settings, answers, folds, dataset.codes, place, balanced=self.scoring == "balanced_accuracy")
        best = choose(results, self.margin)

        fitted = candidates[best].set_params(views=self.views)._fit_dataset(dataset, context)
        for name in learned(getattr(self, "best_estimator_", fitted)):
            self.__dict__.pop(name, None)  # an earlier fit may have used another estimator
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
    ) -> list[list[FoldScores]]:
        """Scores of each setting on each fold."""
        quiet = {"callback": None, "checkpoint": None, "verbose": 0}
        quiet = {name: value for name, value in quiet.items() if hasattr(candidates[0], name)}
        candidates = [clone(candidate).set_params(**quiet) for candidate in candidates]
        tasks = [(number, split) for number in range(len(settings)) for split in range(len(folds))]
        search = uuid4().hex
        n_jobs = worker_count(self.n_jobs)
        found: list[list[FoldScores]] = [[] for _ in settings]
        meter = ProgressMeter(
            len(tasks),
            0,
            TimeLeft((number for number, _ in tasks), effective_n_jobs(n_jobs)),
            show=in_notebook() if self.verbose is None else bool(self.verbose),
        )
        answers = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_answer)(
                candidates[number], settings[number], dataset, folds[split], self.scoring, os.getpid(), search
            )
            for number, split in tasks
        )
        # Closed at once if the user interrupts or the callback raises, so that no worker continues.
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
        """Distribution over the classes for each sample: `predict_proba` of `best_estimator_`."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, present)

    def transform(self, X: Any, present: Masks = None) -> NDArray:
        """Latent positions of samples: `transform` of `best_estimator_`."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X, present)

    @property
    def _n_features_out(self) -> int:
        return self.best_estimator_._n_features_out

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.pairwise = self.estimator.__sklearn_tags__().input_tags.pairwise
        return tags


def learned(estimator: MultiViewClassifier) -> dict[str, Any]:
    """Attributes of an estimator that are not parameters.

    Examples
    --------
    >>> learned(LMSSC(beta=0.2))
    {}
    """
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in parameters}


@contextmanager
def _naming(setting: dict[str, Any]) -> Iterator[None]:
    """Context that adds the setting of the grid to the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        if not setting:
            raise
        raise ValueError(f"param_grid, {setting}: {error}") from error


# Context of the search that this process works for, by the name of the search: worker processes have no other memory.
_CONTEXTS: dict[str, FitContext] = {}


@contextmanager
def _forgetting() -> Iterator[None]:
    """Context after which the shared starts are dropped."""
    try:
        yield
    finally:
        _CONTEXTS.clear()


def _context_of(search: str) -> FitContext:
    """The context that the fits of this search share; that of an earlier search is dropped."""
    if search not in _CONTEXTS:
        _CONTEXTS.clear()
        _CONTEXTS[search] = FitContext(interruptible=False, cache={})
    return _CONTEXTS[search]


def _answer(
    candidate: MultiViewClassifier,
    setting: dict[str, Any],
    dataset: Dataset,
    fold: NDArray,
    scoring: str,
    parent: int,
    search: str,
) -> FoldScores:
    """Scores of a fit with the labels of a fold held out; `parent` is the process that asked, `search` its id."""
    end_with(parent)
    began = time.perf_counter()
    # One thread, so that the result does not depend on `n_jobs`.
    with warnings.catch_warnings(), threadpool_limits(limits=1), _naming(setting):
        warnings.simplefilter("ignore")  # about the held-out labels, not about the data
        fitted = clone(candidate)._fit_dataset(dataset.without_labels(fold), _context_of(search))
    seconds = time.perf_counter() - began
    truth = dataset.codes[fold]  # folds leave each class a label, so the codes are those of the fit, too
    likelihood = fitted.label_distributions_[fold, truth].astype(float)
    if scoring == "log_loss":
        row_scores = np.log(np.maximum(likelihood, np.finfo(float).eps))
    else:
        row_scores = (fitted.transduction_[fold] == dataset.classes[truth]).astype(float)
    return FoldScores(row_scores, np.log(np.maximum(likelihood, MIN_LIKELIHOOD)), seconds)
