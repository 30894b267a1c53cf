"""LMSSC: latent positions, neighbour graph and labels, learned together."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from lmssc.cluster.dask_fit import fit_on_cluster
from lmssc.cluster.dask_views import map_blocks
from lmssc.core.copies import doubt_copies
from lmssc.core.fit import fit
from lmssc.core.fit_config import FitConfig, FitHooks
from lmssc.core.fit_result import FitResult
from lmssc.core.incremental import UpdateMemory
from lmssc.core.many_classes import fit_many_classes, has_many_classes
from lmssc.core.parts.parted_fit import fit_in_parts
from lmssc.core.progress import IterationProgress
from lmssc.core.view_forms import MAX_SAMPLES
from lmssc.data.canonical_order import in_input_order
from lmssc.data.n_jobs import thread_count
from lmssc.data.parameters import Rule
from lmssc.data.scaling import WORDS
from lmssc.data.validation import Masks, ViewSpec, has_dask
from lmssc.data.view_groups import group_of_samples
from lmssc.data.views import Views
from lmssc.estimators.dense_only import check_many_classes
from lmssc.estimators.in_parts import choose_plan
from lmssc.estimators.latent_prediction import LatentClassifier
from lmssc.estimators.lmssc_parameters import LMSSC_RULES, make_config
from lmssc.estimators.lmssc_upgrade import upgrade_lmssc
from lmssc.estimators.output import LatentTransformerMixin, keep_index
from lmssc.estimators.partial_update import PartialUpdateMixin
from lmssc.estimators.problem import Problem, Solution
from lmssc.estimators.serializable import CHECKPOINT_TYPES
from lmssc.estimators.trust import TrustMixin
from lmssc.estimators.weighted_fit import WeightedFitMixin
from lmssc.estimators.worker_results import WorkerResultsMixin, local_model
from lmssc.numerics.parallel import threads
from lmssc.persistence.checkpoint import Checkpoint, identify
from lmssc.persistence.codec import RUNTIME_PARAMS


@keep_index
class LMSSC(
    WorkerResultsMixin, PartialUpdateMixin, TrustMixin, WeightedFitMixin, LatentTransformerMixin, LatentClassifier
):
    """Latent multi-view semi-supervised classification.

    Jointly learns latent positions H that all views share, a graph S of the neighbours of each sample, and class scores
    F that are propagated over the graph. It minimises

        J = Σ_v ‖X^v − H·W^vᵀ‖² + β·( Tr(ZᵀLZ) + Tr(PᵀLP) + Σ_i α_i‖s_i‖² ) + γ·( Tr(FᵀLF) + η·Σ_u‖f_u − q_u‖² )

    alternately in W, H, S and F, with F fixed to the known labels. The graph measures distances in the coordinates Z: H
    itself, or its directions if all views are text. P are the class scores that a ridge regression of F on Z predicts.
    They are part of the distance, so that directions that separate the classes count more. A warm start sets P in up to
    three rounds of propagation, regression and graph; after that P is fixed, so that J never rises. Q is a second
    opinion, the prediction of kernel ridge regressions on all features. Held-out labels choose its weight η, which is
    often small.

    Parameters
    ----------
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X are split into views: widths, slices, or column indices or names. None for a
        single view, or if X is a list or dict of views.
    n_components : int or "auto", default="auto"
        Number of latent dimensions r. "auto" takes as many as there are singular values above the noise threshold of
        Gavish and Donoho (at least 10, at most 80), all if there are at most 20 features, or 150 if all views are text.
        It takes fewer if there are fewer features or fewer than four samples per component, and 20 with
        `init="random"`.
    n_neighbors : int or "auto", default="auto"
        Number of neighbours k of a sample in the graph, from which α is set. "auto" is the square root of the number of
        samples per class, from 10 to 15 (10 with few labels), but at most half of that number (or 5).
    beta : float, default=0.01
        Weight β of the smoothness of H over the graph. Above 1, neighbours merge.
    gamma : float, default=0.001
        Weight γ of the smoothness of F over the graph. With `init="svd"` it is relative to the variance of Z at the
        start, or to three times the squared distance between neighbours that a tenth of the samples fall below if that
        is smaller, so that one value suits all data.
    label_weight : float, default=1.5
        Weight of P in the distance, relative to the variance of Z. 0 leaves P out, as in the paper. Used with
        `init="svd"` only.
    compare_by : {"auto", "position", "direction"}, default="auto"
        Whether Z are the latent positions, as in the paper, or their directions, with more weight on components with
        large singular values. "auto" takes directions if all views are text. Used with `init="svd"` only.
    balance : float from 0 to 1, default=0.5
        Prior correction. Propagation favours classes with many labels, and classes whose few labels are central. With
        0.5 the class scores are reweighted so that the total of each class is about proportional to the root of its
        number of labels, with 1 so that the totals are about equal; 0 does not correct, as in the paper.
    calibrate : bool, default=True
        Calibrate the confidence on held-out labels: the class scores are raised to the power 1/`temperature_` and mixed
        with a uniform distribution by `doubt_`. Classes with less than a third of the labels of the largest class are
        lowered if they are predicted too often; otherwise the most likely class does not change. Predictions for new
        samples that lack views or are far from all samples of fit become less certain (with `init="svd"` only), and so
        do those in components of the graph whose labels are all of one class. False leaves the scores as propagation
        and `balance` give them.
    label_noise : float from 0 to 1 or "auto", default=0.0
        Share of the given labels that are wrong; "auto" estimates it. Labels are held out in turn, and a label that the
        others contradict is trusted less: its neighbours can then overrule it (`overruled_`). "auto" changes nothing
        if the labels are more likely without noise. With 0.0, given labels are certain, as in the paper. Other values
        need `init="svd"`.
    second_opinion : "auto" or float from 0 to 0.99, default="auto"
        Trust in a second opinion besides the graph: kernel ridge regressions of the labels on all features. 0 leaves
        it out, as in the paper; with 0.5 it counts as much as the neighbours of a sample. "auto" takes the value that
        makes the held-out labels most likely. Without clear evidence, a little remains with up to 3,000 samples, in
        proportion to the share of labels; it is 0 with more samples, without `calibrate`, or if nearly all held-out
        labels are found. Used with `init="svd"` only.
    scaling : "auto", None or the name of a scaling, or a list or dict of these by view
        "auto" chooses by the values of each view, without labels: "log" or "logidf" for word counts, "unit" for
        weighted words, "sqrt" for amounts that are mostly zero, "center" for components such as those of PCA, and
        "zscore", robust against outliers, for other measurements. These are only centred or also whitened
        (`whitening_`) if held-out labels are found better (not without `calibrate`). `scaling_reasons_` says why.
        Other names are "tfidf"; "mixed", which standardises numbers and reduces the weight of columns of 0 and 1; and
        "sample", which standardises the rows. Scaled views are then given equal mean squared row norms. None does not
        scale.
    impute : {"median", "mean"} or None, default=None
        What replaces single missing values (NaN in a row that has other numbers): the median or the mean of the column,
        learned in `fit`. With None, they are an error.
    loadings : {"orthonormal", "nonnegative"}, default="orthonormal"
        Constraint on W: orthonormal columns over all views, which fixes the scale that W and H share, or W ≥ 0 as in
        the paper.
    init : {"svd", "random"}, default="svd"
        Start from a truncated SVD, the graph on it and the warm start; or from random H and S, and F = 0 for unlabelled
        samples, as in the paper.
    alpha : {"row", "mean"}, default="row"
        "row" sets α for each row of S, to the largest value that gives the row at most k neighbours. "mean" uses the
        mean of these for all rows, as in the paper; rows in dense regions then have many neighbours, and outliers one.
    freeze_alpha : bool, default=True
        Whether to set α only in the first iteration, so that J is one objective that never rises. False sets it in each
        iteration, as in the paper.
    neighbor_recall : float, default=0.95
        Share of the nearest neighbours that the search has to find. From 10,000 samples on, the search is approximate
        and probes as many clusters as this recall needs, measured on some samples. With fewer samples, or with 1, it is
        exact.
    max_iter : int, default=30
        Largest number of iterations.
    tol : float, default=2e-2
        Stop when the relative change of F is below this.
    random_state : int, RandomState or None
        Seed for `init="random"`; nothing else is random.
    callback : callable, optional
        Called after each iteration with a `lmssc.core.progress.IterationProgress`, which has `iteration`, `max_iter`,
        `objective`, `change`, `seconds` and `seconds_left`.
    verbose : int
        If positive, print a line after each iteration.
    checkpoint : str or path, optional
        File to save an unfinished fit to, after the warm start and then every two minutes. A fit to the same data with
        the same parameters resumes from it. The file is removed at the end, but stays if the fit is interrupted.
    memory_limit : str or int, optional
        Memory that the fit may use, such as "8GB" or a number of bytes, in addition to data that are already in memory.
        If it would need more, the samples are divided into parts that live in temporary files, with one of them in
        memory at a time. The answers do not depend on the limit, up to rounding, but other forms of measurements are
        only tried up to 5,000 samples; `latent_` and `graph_` are then memory maps. None sets no limit. Does not
        support graphs, samples that lack views, uncertain labels, `label_noise` or `init="random"`.
    client : distributed.Client or str, optional
        Dask cluster, or the address of its scheduler, whose workers hold the parts of the samples. It has the same
        limits as `memory_limit`, and tries neither other forms of measurements nor neighbour graphs of single views. By
        default, dask arrays are fitted on the current client. Workers and this process must share the folder of
        `checkpoint`, or that of temporary files. The results of dask arrays stay in files there: `transduction_`,
        `label_distributions_` and `latent_` are dask arrays, and `graph_` is a memory map.
    n_jobs : int, optional
        Number of threads, at most one per core; −1 for all cores, −2 for all but one. By default the limit of the
        numerical libraries. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        Classes, sorted.
    transduction_ : ndarray of shape (n,)
        Label of each sample.
    label_distributions_ : ndarray of shape (n, c)
        Class distribution of each sample; rows sum to 1. With more than 1,000 classes and 25 million numbers, a CSR
        array of the 64 largest values of each row; the rest, up to 1, belongs to classes that are not stored.
    unreached_ : ndarray of int
        Samples in components of the graph without a label; they get the class frequencies of the labelled samples.
    overruled_ : ndarray of int
        Labelled samples whose label was overruled: they got another one. See `label_noise`.
    novelty_ : ndarray of shape (n,)
        P-value of each sample, small if it is unlike every labelled class. See `novelty`.
    latent_ : ndarray of shape (n, r)
        H.
    loadings_ : list of ndarray of shape (d_v, r)
        W^v, for the scaled columns, which may be whitened (`whitening_`).
    graph_ : csr_array of shape (n, n)
        S: rows sum to 1, without self-loops.
    objective_ : ndarray of shape (n_iterations,)
        J after each iteration.
    objective_terms_ : dict of str to ndarray
        Its terms: "fit", "smoothness", "graph" and "labels"; "trust" if labels are uncertain, "opinion" if
        `second_opinion_` is not 0, and "ridge" if samples lack views.
    alpha_ : ndarray of shape (n,), or float for `alpha="mean"`
        α, which decides how many neighbours a sample has; see `freeze_alpha`.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether F changed by less than `tol` at the end; if not, the fit stopped at `max_iter`.
    n_components_ : int
        Number of latent dimensions r, given or chosen.
    n_neighbors_ : int
        Number of neighbours k, given or chosen.
    neighbor_recall_ : float
        Measured recall of the last neighbour search; 1 if it is exact.
    temperature_ : float
        Temperature of the calibration of the final scores (samples that lack views may have another). Below 1,
        predictions are more certain than the scores; above 1, less.
    second_opinion_ : float
        Trust in the second opinion, given or chosen.
    whitening_ : float
        How far the columns of measurements are decorrelated, from 0 to 1, chosen by held-out labels.
    view_graph_weight_ : float
        Weight of the mean neighbour graph of the single views, relative to the graph on the latent positions, chosen by
        held-out labels; 0 if it is not used.
    doubt_ : float
        Share of the uniform distribution, from 0 to 1, that the calibration mixes in.
    scalings_ : dict of str to str
        Scaling of each view.
    scaling_reasons_ : dict of str to str
        Why "auto" chose it.
    imputed_ : dict of str to ndarray of shape (d_v,)
        Number of imputed values in each column of each view; empty without `impute`.
    view_names_ : list of str
        Names of the views of features.
    graph_names_ : list of str
        Names of the graphs.
    link_weights_ : dict of str to float
        Weight of the links of each graph, relative to S; 0 for a graph that is not used.
    weighted_links_ : dict of str to bool
        Whether the weights of the links of each graph count; False if they say less than the links alone.

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

    _rules: ClassVar[dict[str, Rule]] = LMSSC_RULES
    _maps_views = True
    _takes_graphs = True

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
        label_noise: float | str = 0.0,
        second_opinion: float | str = "auto",
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
        callback: Callable[[IterationProgress], object] | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        memory_limit: str | int | None = None,
        client: Any = None,
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
        self.label_noise = label_noise
        self.second_opinion = second_opinion
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
        self.memory_limit = memory_limit
        self.client = client
        self.n_jobs = n_jobs

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        super()._upgrade(parameters, fitted, saved_by)
        upgrade_lmssc(parameters, fitted)

    def _threads(self) -> AbstractContextManager[None]:
        return threads(thread_count(self.n_jobs))

    def _fit_method(self, problem: Problem) -> Solution:
        views = self._fit_scalings(problem)
        links = self._informative_links(problem)
        result = self._fit_views(views, problem, links)
        self._set_result(result)
        self._set_links(result.links)
        self._warn_of_unused_links(links, problem.targets, result.refused_links)
        if result.links is not None:
            n_views = len(views) + len(result.links.loadings)
            self._warn_of_unlinked(result.kinds, n_views, problem.targets.labelled)
        targets = problem.targets.with_trust_of(result.targets)
        scores = doubt_copies(result.scores, targets, result.held_out, self._nodes, self._counted)
        self._warn_of_chance(result.held_out, targets, result.scores)
        self._warn_of_placement(result.placement, targets, result.scores)
        return Solution(scores, result.graph, result.unreached, result.one_class, targets)

    def _fit_views(self, views: Views, problem: Problem, links: list[csr_array]) -> FitResult:
        """The fit to scaled views: on a cluster, in parts, with sparse scores of very many classes, or in memory."""
        targets, config = problem.targets, self._config(views, problem)
        # `_client` and `_shared` are there while dask arrays are fitted: see `WorkerResultsMixin._on_disk`.
        client, has_graphs, plan = getattr(self, "_client", self.client), bool(problem.graphs), None
        if client is None:
            plan = choose_plan(self.memory_limit, views, targets, config, has_graphs, self.checkpoint)
        in_parts = client is not None or plan is not None
        many_classes = has_many_classes(views.n_samples, targets.n_classes)
        if many_classes:
            check_many_classes(self, problem, in_parts=in_parts)
        hooks = FitHooks(self._progress(), self._open_checkpoint(problem, self.checkpoint, in_parts=in_parts))
        context = problem.context.for_data(self.impute, *self.scalings_.items())
        if client is not None:
            if has_graphs:
                raise ValueError("client divides the fit into parts, which does not support graphs: leave it out")
            make_checkpoint = partial(self._open_checkpoint, problem, in_parts=True)
            shared = getattr(self, "_shared", None)
            return fit_on_cluster(views, targets, config, client, hooks, context, make_checkpoint, shared)
        if plan is not None:
            return fit_in_parts(views, targets, config, plan, hooks, context)
        groups = group_of_samples(problem.views, self._view_groups) if self._view_groups.any() else None
        if many_classes:
            return fit_many_classes(views, targets, config, hooks, context, groups)
        return fit(views, targets, config, hooks, context, groups, links)

    def _adjusts_confidence(self) -> bool:
        return self.calibrate

    def _config(self, views: Views, problem: Problem) -> FitConfig:
        """The parameters as the method needs them, with "auto" resolved as far as it can be without a fit."""
        text = all(scaling.kind in WORDS for scaling in self._scalings)
        config = make_config(vars(self), views, problem.targets, len(self._nodes), text=text)
        # Not with a limit, as in parts, so that the limit does not change the answers.
        chooses_form = self.memory_limit is None or views.n_samples <= MAX_SAMPLES
        return replace(config, deviations=self._deviations(), chooses_form=chooses_form)

    def _open_checkpoint(
        self, problem: Problem, path: str | os.PathLike[str] | None, *, in_parts: bool
    ) -> Checkpoint | None:
        """A checkpoint file, for a fit to these data with these parameters."""
        if path is None:
            return None
        about = {name: value for name, value in self.get_params(deep=False).items() if name not in RUNTIME_PARAMS}
        if in_parts:
            about["in_parts"] = True
        links = [] if self._link_keys is None else [self._link_keys]
        identity = identify(about, self._order.keys, *problem.targets.counts, *links)
        return Checkpoint(path, identity, CHECKPOINT_TYPES)

    def _set_result(self, result: FitResult) -> None:
        """Assign the fitted attributes that only LMSSC has, samples and views in the order of the input."""
        average = result.average
        self.n_neighbors_ = average.n_neighbors
        self.n_components_ = result.latent.shape[1]
        self.latent_ = self._to_input(result.latent)
        self.loadings_ = in_input_order(result.loadings, self._order)
        self.alpha_ = self._to_input(result.alpha) if average.alpha is None else average.alpha
        self.objective_terms_ = result.terms
        self.objective_ = np.sum(list(result.terms.values()), axis=0) if result.terms else np.empty(0)
        self.n_iter_ = len(self.objective_)
        self.converged_ = result.converged
        self.neighbor_recall_ = result.neighbor_recall
        self.temperature_, self.doubt_ = result.calibration.overall.temperature, result.calibration.overall.doubt
        self._embedded = self._to_input(average.points)
        self._embedding, self._label_regressor = average.embedding, average.regressor
        self._groups = None if average.groups is None else self._to_input(average.groups)
        self._ridge, self._probe, self._trust = result.ridge, result.probe, result.trust
        self._targets, self._link_laplacian = result.targets, result.link_laplacian
        self._memory = UpdateMemory(
            float(result.gamma),
            result.calibration,
            result.kinds if result.kinds.any() else None,
            len(result.latent),
            int(self._labelled.sum()),
        )
        # Absent where a fit has none: nothing of an earlier fit may stay.
        optional = {"_raw_scores": result.raw_scores, "_inner": result.order, "_candidates": result.candidates}
        for name in ("_novelty", *optional):
            self.__dict__.pop(name, None)
        self.__dict__.update({name: value for name, value in optional.items() if value is not None})
        self._second_opinion = result.second_opinion
        self._opinion = None if result.opinion is None else result.opinion.take(self._to_input)
        self.second_opinion_ = 0.0 if result.second_opinion is None else result.second_opinion.trust
        self.view_graph_weight_ = result.view_weight
        self._set_form(result.changes)

    def transform(self, X: Any, present: Masks = None) -> NDArray:
        """Latent positions of samples from the loadings of the views that each has, by least squares.

        For samples that lack views, a ridge penalty is added: the prior of the positions in fit.

        Parameters
        ----------
        X, present : as in `fit`

        Returns
        -------
        ndarray of shape (n, r)
            For samples of fit it differs from `latent_`, which is smoothed over the graph.
        """
        check_is_fitted(self)
        if has_dask(X):
            return map_blocks(local_model(self), "transform", X, {"present": present})
        raws = self._read_views(X, present=present)
        raws = [raws[v] for v in self._order.views]
        return self._encoder(self._read_links(X, raws))(raws)[0]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
