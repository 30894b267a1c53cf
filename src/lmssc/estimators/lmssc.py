"""LMSSC: latent positions, neighbour graph and labels, learned together."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lmssc.core.alternation import Progress, alternate
from lmssc.core.calibration import (
    Calibration,
    GroupedCalibration,
    balance,
    calibration_sample,
    fit_groups,
    held_out_scores,
    rarities,
)
from lmssc.core.embedding import PLAIN, Embedding
from lmssc.core.graph import connect, laplacian, neighbor_distance, usual_neighbors
from lmssc.core.initialization import RANDOM_COMPONENTS, latent_start, most_components, random_graph
from lmssc.core.label_regression import LabelRegressor, NystroemRows
from lmssc.core.new_samples import (
    Answers,
    NewSampleProbe,
    Trust,
    choose_probe,
    gram_of,
    leftovers,
    mean_squared_distances,
    place,
    without_own,
)
from lmssc.core.objective import Objective, State
from lmssc.core.targets import Targets
from lmssc.core.warm_start import WarmStart, warm_start
from lmssc.data.imputation import IMPUTE
from lmssc.data.memmap import release, slices, stored_bytes
from lmssc.data.n_jobs import JOBS_OR_NONE, thread_count
from lmssc.data.parameters import (
    BOOLEAN,
    CALLABLE_OR_NONE,
    COUNT,
    COUNT_OR_AUTO,
    FROM_0_TO_1,
    NOT_NEGATIVE,
    PATH_OR_NONE,
    POSITIVE,
    SHARE,
    VERBOSITY,
    Rule,
    one_of,
)
from lmssc.data.scaling import WORDS, scale_views
from lmssc.data.validation import Masks, ViewSpec
from lmssc.data.view_linkage import group_of_samples
from lmssc.data.views import RawView, Views, presence_patterns
from lmssc.estimators.base import (
    MultiViewClassifier,
    Problem,
    Solution,
    in_input_order,
    resolve_neighbors,
)
from lmssc.estimators.output import keep_index
from lmssc.estimators.serializable import CHECKPOINT_TYPES
from lmssc.numerics.knn.approximate import choose_search
from lmssc.numerics.parallel import threads
from lmssc.numerics.spatial_order import FEWEST_SAMPLES, spatial_order
from lmssc.persistence.checkpoint import Checkpoint, identify
from lmssc.persistence.codec import RUNTIME_PARAMS

# γ is in units of the spread of Z, or of so many squared distances to the neighbours if that is less: in tight clusters
# F would otherwise decide alone who is a neighbour, and labelled samples would turn to each other.
MAX_NEIGHBOR_DISTANCES = 3.0
# Fields of the `Objective` that the start sets.
LEARNED_AT_START = ("gamma", "targets", "embedding", "expected", "initially_disconnected")
# Samples that the confidence is calibrated on, at most.
MOST_CALIBRATED = 3000
# Beyond these, single precision cannot tell the samples apart, or has no graph.
SMOOTHNESS = Rule(lambda v: POSITIVE.accepts(v) and 1e-6 <= v <= 1e6, "a positive number, from 1e-06 to 1e+06")


@keep_index
class LMSSC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiViewClassifier):
    """Latent multi-view semi-supervised classification.

    Learns latent positions H shared by all views, a graph S of each sample's neighbours, and class scores F that
    are propagated over it, together, by lowering

        J = Σ_v ‖X^v − H·W^vᵀ‖² + β·( Tr(ZᵀLZ) + Tr(PᵀLP) + Σ_i α_i‖s_i‖² ) + γ·Tr(FᵀLF)

    in W, H, S and F by turns, with F fixed to the labels where they are known. Z are the latent positions H as the
    graph sees them: H itself, or if all views are words its directions. P are the class scores that are expected of a
    sample from where it is, by a ridge regression of F on Z: with them in the distance, directions that tell the
    classes apart count more. P is set at the start, in three rounds of graph, labels and P, and then fixed, so that J
    never rises.

    Parameters
    ----------
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X fall into views: widths, slices, or column numbers or names. None for a single
        view, or if X is a list or dict of views.
    n_components : int or "auto", default="auto"
        Latent dimensions r. "auto" takes those that stand out from noise (by the threshold of Gavish and Donoho; at
        least 10, at most 80), all of at most 20 features, or 150 if all views are words; fewer if there are fewer
        features or fewer than four samples to each; 20 with `init="random"`.
    n_neighbors : int or "auto", default="auto"
        Neighbours k of a sample in the graph, from which α is set. "auto" is the root of the samples per class, from 10
        to 15 (10 if there are few labels), but no more than half of them (or 5).
    beta : float, default=0.01
        Weight β of the smoothness of H over the graph; beyond 1 neighbours flow together.
    gamma : float, default=0.001
        Weight γ of the smoothness of F over the graph; with `init="svd"` in units of the mean squared distance of Z
        from its centre at the start, so that it means the same on all data, or of three times the median squared
        distance to the neighbours where that is smaller.
    label_weight : float, default=1.5
        Weight of P in the distance, in the same units. 0 leaves P out, as the paper does; used with `init="svd"` only.
    compare_by : {"auto", "position", "direction"}, default="auto"
        What Z is: the latent positions, as in the paper, or their directions, with more weight for those of more
        energy. "auto" takes directions if all views are words. Used with `init="svd"` only.
    balance : float from 0 to 1, default=0.5
        Propagated labels favour classes that have many, and those whose few labels lie well. With 0.5 the answers are
        the class scores weighted so that each class has about as much in all as the root of its number of labels, with
        1 about as much as any other; 0 leaves them as they are, as the paper does.
    calibrate : bool, default=True
        Let labels that are hidden in turn decide how sure the answers are: the class scores are raised to the power
        1/`temperature_`, mixed with `doubt_`, and lowered for classes that have less than a tenth of the labels of the
        largest, if they are answered too often; no other label changes. New samples that lack views or are far from
        all samples of fit get less sure answers. Used with `init="svd"` only.
    scaling : "auto", "zscore", "mixed", "unit", "tfidf", "sample" or None, or a list or dict of these by view
        "auto" takes a view for text ("tfidf" for counts, else "unit" rows) if all speaks for it: less than 20 %
        non-zeros, nothing negative, many columns, sizes that say little, columns that are non-zero together. It
        standardises the columns ("zscore") of any other view, without outliers; "mixed" does so for numbers, and lets
        columns of 0 and 1 count less than they would; "sample" standardises the rows. Scaled views then get equal mean
        squared row norms; None leaves them as they are.
    impute : {"median", "mean"} or None, default=None
        What single missing values (NaN in a row that has other numbers) are replaced by: the median or the mean of
        their column over the samples that have it, learned in `fit`. None refuses them.
    loadings : {"orthonormal", "nonnegative"}, default="orthonormal"
        Constraint on W: orthonormal columns over all views, which fixes the scale that W and H share, or W ≥ 0 as in
        the paper.
    init : {"svd", "random"}, default="svd"
        Start: H from a truncated SVD, the graph on it, one propagation, and three rounds of P, graph and labels; or
        random H and S and F = 0 for the unlabelled, as in the paper.
    alpha : {"row", "mean"}, default="row"
        α: one for each row of S, the largest that gives it at most k neighbours; or their mean for all, as in the
        paper, with which rows in dense regions get many neighbours and outliers one.
    freeze_alpha : bool, default=True
        Set α once, in the first iteration, so that J is one objective that never rises; or in each iteration, as in
        the paper.
    neighbor_recall : float, default=0.95
        Share of the nearest neighbours that the search has to find. From 10,000 samples on, with faiss
        (``pip install 'lmssc[large]'``), it looks into as many clusters nearby as that takes, measured on some samples;
        with 1, with fewer samples or without faiss it is exact.
    max_iter : int, default=30
        Most iterations.
    tol : float, default=2e-2
        Stop when F changes by less than this share of itself.
    random_state : int, RandomState or None
        For `init="random"`; nothing else is random.
    callback : callable, optional
        Called after each iteration with a `lmssc.core.alternation.Progress`: iteration, max_iter, objective, change,
        seconds, seconds_left.
    verbose : int
        Print a line after each iteration.
    checkpoint : str or path, optional
        File in which how far the fit is is kept, written once the start is done and then every two minutes. A fit to
        the same data with the same parameters that finds it goes on from there; it is removed at the end, and left
        if the fit is interrupted.
    n_jobs : int, optional
        Most threads, never more than there are cores; −1 for all cores, −2 for all but one. By default as many as the
        numerical libraries may have. The answer does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        Classes, sorted.
    transduction_ : ndarray of shape (n,)
        Label of each sample.
    label_distributions_ : ndarray of shape (n, c)
        Distribution over the classes of each sample; rows sum to 1.
    unreached_ : ndarray of int
        Samples in parts of the graph without a label; they have the frequencies of the labelled classes.
    latent_ : ndarray of shape (n, r)
        H.
    loadings_ : list of ndarray of shape (d_v, r)
        W^v.
    graph_ : csr_array of shape (n, n)
        S: rows sum to 1, no self-loops.
    objective_ : ndarray of shape (n_iterations,)
        J after each iteration.
    objective_terms_ : dict of str to ndarray
        Its terms: "fit", "smoothness", "graph" and "labels".
    alpha_ : ndarray of shape (n,), or float for `alpha="mean"`
        α.
    n_iter_ : int
        Iterations that were run.
    converged_ : bool
        Whether F changed by less than `tol` at the end; if not, `max_iter` ended it.
    neighbor_recall_ : float
        Share of the nearest neighbours that the last graph was made from, measured on some samples; 1 for an exact
        search.
    temperature_ : float
        What the confidence was calibrated with; below 1 makes the answers surer than the scores, above 1 less sure.
    doubt_ : float
        Share of an answer, from 0 to 1, that calibration spread evenly over the classes.
    scalings_ : dict of str to str
        Scaling of each view.
    imputed_ : dict of str to ndarray of shape (d_v,)
        Values that were filled in, for each column of each view; empty without `impute`.
    view_names_ : list of str
        Names of the views.

    See Also
    --------
    paper_settings : Algorithm 1 to the letter.
    stack_views : One X from a list or dict of views.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(500, labelled=0.1, random_state=1)
    >>> clf = LMSSC().fit(data.views, data.y)
    >>> clf.transduction_.shape, clf.label_distributions_.shape
    ((500,), (500, 3))
    >>> unlabelled = data.y == -1
    >>> bool((clf.transduction_ == data.target)[unlabelled].mean() > 0.9)
    True
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "impute": IMPUTE,
        "n_components": COUNT_OR_AUTO,
        "n_neighbors": COUNT_OR_AUTO,
        "beta": SMOOTHNESS,
        "gamma": POSITIVE,
        "label_weight": NOT_NEGATIVE,
        "compare_by": one_of("auto", "position", "direction"),
        "balance": FROM_0_TO_1,
        "calibrate": BOOLEAN,
        "loadings": one_of("orthonormal", "nonnegative"),
        "init": one_of("svd", "random"),
        "alpha": one_of("row", "mean"),
        "freeze_alpha": BOOLEAN,
        "neighbor_recall": SHARE,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "callback": CALLABLE_OR_NONE,
        "verbose": VERBOSITY,
        "checkpoint": PATH_OR_NONE,
        "n_jobs": JOBS_OR_NONE,
    }

    # What `LMSSCCV` lets its fits share.
    _maps_views = True
    # Whether Ctrl-C ends this fit alone; not where it is one of many.
    _interruptible = True
    _label_regressor: LabelRegressor | None
    # Samples that the last answers are calibrated on, and what the calibrated first ones say of them.
    _followed: tuple[NDArray, NDArray] | None
    _calibration: GroupedCalibration
    # Samples of fit that are taken for new ones, and what answers to new samples with all views are worth.
    _probe: NewSampleProbe | None
    _trust: Trust | None
    _starts: dict[tuple, tuple[NDArray, list[NDArray]]] | None = None

    def __init__(
        self,
        views: ViewSpec = None,
        *,
        n_components: int | str = "auto",
        n_neighbors: int | str = "auto",
        beta: float = 0.01,
        gamma: float = 0.001,
        label_weight: float = 1.5,
        compare_by: str = "auto",
        balance: float = 0.5,
        calibrate: bool = True,
        scaling: str | Sequence[str | None] | Mapping[str, str | None] | None = "auto",
        impute: str | None = None,
        loadings: str = "orthonormal",
        init: str = "svd",
        alpha: str = "row",
        freeze_alpha: bool = True,
        neighbor_recall: float = 0.95,
        max_iter: int = 30,
        tol: float = 2e-2,
        random_state: int | np.random.RandomState | None = None,
        callback: Callable[[Progress], object] | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.views = views
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.gamma = gamma
        self.label_weight = label_weight
        self.compare_by = compare_by
        self.balance = balance
        self.calibrate = calibrate
        self.scaling = scaling
        self.impute = impute
        self.loadings = loadings
        self.init = init
        self.alpha = alpha
        self.freeze_alpha = freeze_alpha
        self.neighbor_recall = neighbor_recall
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        super()._upgrade(parameters, fitted, saved_by)
        # Models from before trust predict as they did.
        fitted.pop("_confidence", None)
        fitted.update({"_probe": None, "_trust": None, "doubt_": 0.0} | fitted)

    def _threads(self) -> AbstractContextManager[None]:
        return threads(thread_count(self.n_jobs))

    def _fit_method(self, problem: Problem) -> Solution:
        views = self._fit_scalings(problem)
        kept = self._open_checkpoint(problem)
        content = None if kept is None else kept.read()
        history: list[dict[str, float]] = []
        if content is None:
            model, state, order = self._start(views, problem)
        else:
            model, state, order, history = self._continue(views, problem, content)

        def keep(state: State, history: list[dict[str, float]]) -> None:
            if kept is not None and (kept.due() or not history):
                kept.write(self._unfinished(model, state, order, history))

        if content is None:
            keep(state, history)
        state, terms, self.converged_ = alternate(
            state,
            model.step,
            model.objective,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self._progress(),
            history=history,
            keep=keep,
            interruptible=self._interruptible,
        )
        history = [dict(zip(terms, map(float, record), strict=True)) for record in zip(*terms.values(), strict=True)]
        if kept is not None:
            if self.converged_ or len(history) == self.max_iter:
                kept.remove()
            else:  # interrupted: the same fit can go on from here
                kept.write(self._unfinished(model, state, order, history))
        if state.alpha is None:  # interrupted before the first iteration was done
            state = replace(state, alpha=model.update_graph(state).alpha)
        if order is not None:
            model.moving.keep(None)
            model, state = model.renumbered(np.argsort(order)), state.renumbered(np.argsort(order))
        self.latent_ = self._to_input(state.latent)
        self._embedded = self._to_input(model.places(state.latent))
        self._groups = None if model.groups is None else self._to_input(model.groups)
        self.loadings_ = in_input_order(state.loadings, self._order)
        self.objective_terms_ = terms
        self.objective_ = np.sum(list(terms.values()), axis=0) if terms else np.empty(0)
        alpha = self._to_input(np.asarray(state.alpha))
        self.alpha_ = float(alpha[0]) if self.alpha == "mean" else alpha
        self.n_iter_ = len(self.objective_)
        self.neighbor_recall_ = getattr(model.moving, "recall", 1.0)
        state = model.rescue_disconnected(state)
        scores = self._calibrate(state.scores, model.targets.codes, state.unreached, views.missing_counts())
        self._probe = self._trust = None
        if self.calibrate and self.init == "svd":
            chosen = choose_probe(model.targets.codes, state.unreached)
            self._probe = NewSampleProbe.of(views, state.latent, state.loadings, chosen)
            everything = np.ones(len(views), dtype=bool)
            distributions = scores / scores.sum(axis=1, keepdims=True)
            self._trust = self._trust_in(self._probe, everything, distributions)
        return Solution(scores, state.graph, state.unreached)

    def _calibrate(self, scores: NDArray, codes: NDArray, unreached: NDArray, missing: NDArray) -> NDArray:
        """The answers: balanced scores as sure as the calibrated first ones let them be; labels are as they are.

        `missing` is the number of views that each sample lacks.
        """
        answers, rare = balance(scores, codes, self.balance), self._rarities(codes, scores.shape[1])
        if self._followed is not None:
            # The iterations make the scores sharper, but the answers not more often right by as much.
            rows, targets = self._followed
            there = ~unreached[rows]
            rows, targets, usual = rows[there], targets[there], self._calibration.overall.temperature
            self._calibration = fit_groups(answers[rows], targets, missing[rows], rare, usual, cautious=False)
        calibration = self._calibration
        del self._followed, self._calibration  # which only a fit needs
        self.temperature_, self.doubt_ = calibration.overall.temperature, calibration.overall.doubt
        settled = (codes >= 0) | unreached
        return np.where(settled[:, None], scores, calibration(answers, missing, rare))

    @staticmethod
    def _rarities(codes: NDArray, n_classes: int) -> NDArray:
        return rarities(np.bincount(codes[codes >= 0], minlength=n_classes))

    def _open_checkpoint(self, problem: Problem) -> Checkpoint | None:
        """The file that is named by `checkpoint`, for this problem."""
        if self.checkpoint is None:
            return None
        about = {name: value for name, value in self.get_params(deep=False).items() if name not in RUNTIME_PARAMS}
        return Checkpoint(self.checkpoint, identify(about, self._order.keys, *problem.targets.counts), CHECKPOINT_TYPES)

    def _unfinished(
        self, model: Objective, state: State, order: NDArray | None, history: list[dict[str, float]]
    ) -> dict[str, Any]:
        """All that `_continue` needs."""
        parts = {field.name: getattr(state, field.name) for field in fields(state)}
        return {
            "state": {name: part for name, part in parts.items() if name not in ("XtH", "laplacian")},
            "model": {name: getattr(model, name) for name in LEARNED_AT_START},
            "start": {
                "calibration": self._calibration,
                "followed": self._followed,
                "expectation": self._label_regressor,
                "geometry": self._embedding,
            },
            "lists": model.moving.kept(),
            "order": order,
            "history": history,
        }

    def _continue(
        self, views: Views, problem: Problem, content: dict[str, Any]
    ) -> tuple[Objective, State, NDArray | None, list[dict[str, float]]]:
        """The model and the state of a fit that was stopped."""
        start, order = content["start"], content["order"]
        self._calibration, self._followed, self._label_regressor, self._embedding = (
            start[name] for name in ("calibration", "followed", "expectation", "geometry")
        )
        model = self._model(views, problem)
        model = replace(model if order is None else model.renumbered(order), **content["model"])
        model.moving.keep(content["lists"])
        graph, latent = content["state"]["graph"], content["state"]["latent"]
        state = State(XtH=model.views.transpose_dot(latent), laplacian=laplacian(graph), **content["state"])
        return model, state, order, content["history"]

    def _model(self, views: Views, problem: Problem) -> Objective:
        """The objective, as the parameters have it."""
        return Objective(
            views,
            problem.targets,
            self._resolve_neighbors(views.n_samples, problem.targets.n_labelled, problem.targets.n_classes),
            self.beta,
            float(self.gamma),
            self.loadings == "nonnegative",
            self.alpha == "mean",
            self.freeze_alpha,
            groups=group_of_samples(problem.views, self._view_groups) if self._view_groups.any() else None,
            moving=choose_search(views.n_samples, self.neighbor_recall),
        )

    def _start(self, views: Views, problem: Problem) -> tuple[Objective, State, NDArray | None]:
        """The model and its first state, by `init`, and the order in which they have the samples if it is another."""
        self._embedding, self._calibration = PLAIN, GroupedCalibration(Calibration(), {})
        self._followed = self._label_regressor = None
        model = self._model(views, problem)
        if self.init == "svd":
            return self._start_from_svd(model)
        random = check_random_state(self.random_state)
        n_components = self._resolve_components(views, min(RANDOM_COMPONENTS, views.n_samples, views.n_features))
        latent = random.uniform(size=(views.n_samples, n_components)).astype(views.dtype)
        loadings = [np.zeros((view.data.shape[1], n_components), views.dtype) for view in views]
        graph = random_graph(views.n_samples, model.n_neighbors, random, views.dtype)
        return model, model.first_state(latent, loadings, graph), None

    def _start_from_svd(self, model: Objective) -> tuple[Objective, State, NDArray | None]:
        """H from the SVD; then by turns the graph, labels propagated over it, and what these let expect of a place."""
        views = model.views
        words = all(scaling.kind in WORDS for scaling in self._scalings)
        n_components = self._resolve_components(views, most_components(views.n_samples, views.n_features, words=words))
        # The spectrum of words has no such edge.
        above_noise = isinstance(self.n_components, str) and not words
        latent, loadings = self._first_positions(views, n_components, above_noise)
        directions = words if self.compare_by == "auto" else self.compare_by == "direction"
        self._embedding = Embedding.of_directions(latent) if directions else PLAIN
        model = replace(model, embedding=self._embedding)
        order = by_content = None
        if views.complete and len(latent) >= FEWEST_SAMPLES:
            order = spatial_order(latent)
            by_content = np.argsort(order)
            model, latent = model.renumbered(order), latent[order]
        places = model.places(latent)
        graph = model.connect(places)
        rows = NystroemRows(places, by_content)
        near = neighbor_distance(graph, places, _first_by_content(len(places), by_content))
        model = replace(model, gamma=model.gamma * min(rows.features.energy, MAX_NEIGHBOR_DISTANCES * near))
        weight = self.label_weight * rows.features.energy
        tol = model.tolerance(change=1.0)
        settled = warm_start(places, graph, model.targets, weight, model.connect, rows, tol)
        targets = trusted_targets(model.targets, settled)
        if targets is not model.targets:
            model = replace(model, targets=targets)
            settled = warm_start(places, graph, model.targets, weight, model.connect, rows, tol)
        self._label_regressor = settled.expectation
        if settled.expected is not None:
            model = replace(model, expected=settled.expected, initially_disconnected=settled.initially_disconnected)
        if self.calibrate:
            self._calibration = self._first_calibration(model, places, graph, rows, weight, by_content)
            first = np.arange(min(len(places), MOST_CALIBRATED))
            own = first if by_content is None else by_content[first]
            in_doubt = (model.targets.codes[own] < 0) & ~settled.unreached[own]
            answers = balance(settled.scores, model.targets.codes, self.balance)[own[in_doubt]]
            rare = self._rarities(model.targets.codes, model.targets.n_classes)
            missing = views.missing_counts()[first[in_doubt]]
            self._followed = first[in_doubt], self._calibration(answers, missing, rare)
        state = model.first_state(latent, loadings, settled.graph)
        return model, replace(state, scores=settled.scores, unreached=settled.unreached), order

    def _first_positions(self, views: Views, n_components: int, above_noise: bool) -> tuple[NDArray, list[NDArray]]:
        """The truncated SVD, which does not depend on the labels: fits to the same views can share it."""
        if self._starts is None:
            return latent_start(views, n_components, above_noise=above_noise)
        key = (n_components, above_noise, self.impute, *self.scalings_.items())
        if key not in self._starts:
            self._starts[key] = latent_start(views, n_components, above_noise=above_noise)
        return self._starts[key]

    def _first_calibration(
        self,
        model: Objective,
        places: NDArray,
        graph: sparse.csr_array,
        rows: NystroemRows,
        weight: float,
        by_content: NDArray | None,
    ) -> GroupedCalibration:
        """How sure the scores are to be, by labels that are hidden in turn while the first rounds are done again."""
        targets, missing, tol = model.targets, model.views.missing_counts(), model.tolerance(change=1.0)
        model = replace(model, moving=choose_search(len(places), self.neighbor_recall))
        if by_content is not None or len(places) > MOST_CALIBRATED:
            in_order = np.arange(len(places)) if by_content is None else by_content
            chosen = in_order[calibration_sample(targets.codes[in_order], MOST_CALIBRATED)]
            targets, missing, places = targets.take(chosen), missing[chosen], places[chosen]
            graph, rows = model.connect(places), NystroemRows(places)

        def refit(hidden: NDArray) -> NDArray:
            known = targets.hide(np.flatnonzero(hidden < 0))
            scores = warm_start(places, graph, known, weight, model.connect, rows, tol).scores
            return balance(scores, hidden, self.balance)

        scores, held = held_out_scores(targets.codes, refit)
        rare = self._rarities(targets.codes, targets.n_classes)
        return fit_groups(scores, targets.matrix(scores.dtype)[held], missing[held], rare)

    def _resolve_neighbors(self, n_samples: int, n_labels: int, n_classes: int) -> int:
        """k: the number given, or the usual one."""
        default = usual_neighbors(n_samples, n_labels, n_classes)
        return resolve_neighbors(self.n_neighbors, n_samples, default, len(self._nodes))

    def _resolve_components(self, views: Views, default: int) -> int:
        """r: the number given, or `default`."""
        if isinstance(self.n_components, str):
            return default
        if self.init == "random" and self.loadings == "nonnegative":
            return int(self.n_components)
        n_samples = len(self._nodes)
        if self.n_components > min(n_samples, views.n_features):
            raise ValueError(
                f"n_components={self.n_components} must be at most {min(n_samples, views.n_features)}, the smaller of "
                f"the number of samples ({n_samples}) and of features ({views.n_features})"
            )
        return min(int(self.n_components), views.n_samples)

    def _position(self, raws: list[RawView]) -> tuple[NDArray, NDArray]:
        """Latent positions of samples from the loadings, over the views that each has, and what they leave; by blocks.

        What they leave is the squared norm of what the position does not explain.
        """
        n_samples = raws[0].data.shape[0]
        dtype = np.result_type(self.loadings_[0].dtype, *(raw.data.dtype for raw in raws))
        positions = np.empty((n_samples, self.latent_.shape[1]), dtype=dtype)
        left = np.empty(n_samples)
        for rows in slices(n_samples, sum(stored_bytes(raw.data) for raw in raws) / n_samples):
            positions[rows], left[rows] = self._position_block([raw.take(rows) for raw in raws])
            for raw in raws:
                release(raw.data)
        return positions, left

    def _position_block(self, raws: list[RawView]) -> tuple[NDArray, NDArray]:
        views, loadings = scale_views(raws, self._scalings), self._loadings
        products = views.dot(loadings)
        energies = np.sum([view.row_energies() for view in views], axis=0)
        positions, left = np.empty_like(products), np.empty_like(energies)
        for rows, has in views.patterns():
            gram = gram_of(loadings, has)
            ridge = None if has.all() or self._probe is None else self._probe.ridge
            positions[rows] = place(products[rows], gram, ridge)
            left[rows] = leftovers(energies[rows], positions[rows], products[rows], gram)
        return positions, left

    @property
    def _loadings(self) -> list[NDArray]:
        """W^v in content order."""
        return [self.loadings_[v] for v in self._order.views]

    def _predict_new(self, raws: list[RawView]) -> NDArray:
        distributions = self.label_distributions_[np.ix_(self._order.samples, self._class_order)]
        positions, left = self._position(raws)
        groups = None if self._groups is None else group_of_samples(raws, self._view_groups)
        unreached = np.isin(self._order.samples, self.unreached_)[:, None].astype(distributions.dtype)
        found, distances = self._answer_at(positions, np.hstack([distributions, unreached]), groups)
        scores, unknown = found[:, :-1], found[:, -1:]
        if self._probe is None:
            return scores
        counts = np.bincount(self._nodes[self._labelled], minlength=len(distributions))
        frequencies = (distributions * counts[:, None]).sum(axis=0) / counts.sum()
        for rows, has in presence_patterns([raw.present for raw in raws], len(scores)):
            trust = self._trust if has.all() else self._trust_in(self._probe, has, distributions)
            if trust is not None:
                answers = Answers(scores[rows], distances[rows], left[rows])
                trusted = trust(answers, frequencies)
                # What neighbours say that no label reaches is no answer, and stays what it is.
                scores[rows] = np.where(unknown[rows] > 0.5, scores[rows], trusted)
        if self._embedding.stretch is not None:  # a text without a known word has no direction
            scores[~positions.any(axis=1)] = frequencies
        return scores

    def _trust_in(self, newcomers: NewSampleProbe, has: NDArray, distributions: NDArray) -> Trust | None:
        """What answers to new samples with certain views are worth."""
        groups = None if self._groups is None else self._groups[self._order.samples]

        def answer(positions: NDArray, own: NDArray) -> tuple[NDArray, NDArray]:
            return self._answer_at(positions, distributions, None if groups is None else groups[own], own)

        return newcomers.trust(has, self._loadings, distributions, answer)

    def _answer_at(
        self, positions: NDArray, distributions: NDArray, groups: NDArray | None, own: NDArray | None = None
    ) -> tuple[NDArray, NDArray]:
        """Scores of samples by their neighbours in fit, and squared distances to these.

        `groups` are the groups of linked views of the samples, if there are several. `own` are the numbers, by content,
        of the samples of fit that they are, which are no neighbours of themselves.
        """
        samples = self._order.samples
        points, places = self._embedded[samples], self._embedding.embed_new(positions)
        if self._label_regressor is not None:
            places = np.hstack([places, self._label_regressor(places)])
        if groups is not None and self._groups is not None:
            # Samples that cannot be compared are further apart than any that can.
            far = 10 * np.sqrt(max((points**2).sum(axis=1).max(), (places**2).sum(axis=1).max()))
            points, places = (
                np.hstack([rows, (far * group[:, None]).astype(rows.dtype)])
                for rows, group in ((points, self._groups[samples]), (places, groups))
            )
        n_labelled = len(np.unique(self._nodes[self._labelled]))
        n_neighbors = self._resolve_neighbors(len(samples), n_labelled, len(self.classes_))
        weights = connect(
            points,
            places,
            n_neighbors if own is None else min(n_neighbors + 1, len(samples) - 1),
            alpha=self.alpha_ if isinstance(self.alpha_, float) else None,
            recall=self.neighbor_recall,
        )
        if own is not None:
            weights = without_own(weights, own)
        return weights @ distributions, mean_squared_distances(weights, points, places)

    def transform(self, X: Any, present: Masks = None) -> NDArray:
        """Latent positions of samples from the loadings of the views that each has, by least squares.

        For a sample that lacks views with a ridge, which keeps it where the samples of fit are.

        Parameters
        ----------
        X : as in `fit`
            Samples; views that a sample lacks are NaN.
        present : as in `fit`, optional
            Which samples have which view.

        Returns
        -------
        ndarray of shape (n, r)
            For samples of fit this is not `latent_`, which is smoothed over the graph.
        """
        check_is_fitted(self)
        raws = self._read_views(X, present=present)
        return self._position([raws[v] for v in self._order.views])[0]

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
        return self.latent_.shape[1]


def trusted_targets(targets: Targets, settled: WarmStart) -> Targets:
    """Targets as far as repeated labels can be trusted, given what the neighbours of each node say."""
    opinions = settled.graph @ np.maximum(settled.scores, 0)
    return targets.shrink(opinions / opinions.sum(axis=1, keepdims=True))


def _first_by_content(n_samples: int, by_content: NDArray | None) -> NDArray:
    """The samples that confidence is calibrated on: by content the first are as good as any."""
    return (np.arange(n_samples) if by_content is None else by_content)[:MOST_CALIBRATED]


def paper_settings() -> dict[str, Any]:
    """Parameters of `LMSSC` that make it Algorithm 1 of the paper, to the letter.

    Random H and S, F = 0 for the unlabelled, k = 15, the mean α in each iteration, W ≥ 0, views as they are, at most
    100 iterations, stop at a change of F of 1e-5. The paper gives no single r, β and γ; these are from the middle of
    the range that its program searches. A random S is one with k random neighbours a sample.

    Returns
    -------
    dict

    Examples
    --------
    >>> from lmssc import LMSSC, paper_settings
    >>> clf = LMSSC(**paper_settings())
    >>> clf.n_neighbors, clf.max_iter, clf.tol
    (15, 100, 1e-05)
    """
    return {
        "n_components": 20,
        "n_neighbors": 15,
        "beta": 0.1,
        "gamma": 1.0,
        "label_weight": 0.0,
        "compare_by": "position",
        "balance": 0.0,
        "calibrate": False,
        "scaling": None,
        "loadings": "nonnegative",
        "init": "random",
        "alpha": "mean",
        "freeze_alpha": False,
        "max_iter": 100,
        "tol": 1e-5,
    }
