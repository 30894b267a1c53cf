"""The base class of all classifiers here: `fit`, which validates, restores the order of the input and warns."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from lmssc.core.fit_config import FitContext
from lmssc.core.one_class_components import OneClassSamples, shrink_one_class
from lmssc.core.parts.results import renumber_graph, take_in_order
from lmssc.core.progress import IterationProgress
from lmssc.core.sparse_scores import largest_entries, rename_columns, replace_rows
from lmssc.core.targets import Targets
from lmssc.data.dataset import Dataset, validate
from lmssc.data.id_columns import warn_of_ids
from lmssc.data.imputation import fill_gaps, learn_fills
from lmssc.data.label_leaks import warn_of_leaks
from lmssc.data.memmap import memory_map
from lmssc.data.missing_views import has_any_view
from lmssc.data.parameters import Rule, check_parameters
from lmssc.data.shared_files import map_slices
from lmssc.data.validation import Masks, is_view_collection
from lmssc.data.view_groups import connected_views, group_of_samples, labels_in_shared_views
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.active_learning import ActiveLearningMixin
from lmssc.estimators.documentation import DocumentationLinkMixin
from lmssc.estimators.notebook import ViewsInNotebookMixin
from lmssc.estimators.prediction import PredictionMixin
from lmssc.estimators.problem import Problem, Solution, make_problem, to_distributions
from lmssc.numerics.freed_memory import keep_freed_memory

# Mean number of labels per class from which on a class with a single label causes a warning.
MEAN_LABELS_TO_WARN = 3


class MultiViewClassifier(
    DocumentationLinkMixin,
    ViewsInNotebookMixin,
    PredictionMixin,
    ActiveLearningMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Semi-supervised classifier of several views.

    A subclass implements `_fit_method`, which turns a `Problem` into a `Solution`, and `_predict_new`, which scores new
    samples; or it has its own `_fit` and `predict_proba`. Samples, views and classes are numbered in canonical order
    inside, so that permuting the input permutes the answer and changes nothing else. Identical samples are merged: they
    share their labels and the answer.
    """

    _rules: ClassVar[dict[str, Rule]] = {}

    def fit(self, X: Any, y: ArrayLike, present: Masks = None) -> Self:
        """Label every sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, Σ d_v), or a list or dict of views
            The parameter `views` divides one 2-D X into views. If a sample lacks a view, all its values there are NaN.
            Pass links between the samples as a `lmssc.Graph` in a list or dict.
        y : array-like of shape (n,)
            Labels; −1 (integers), None or NaN (anything else) is unlabelled.
        present : list or dict of boolean arrays, optional
            For each view, which samples have it; None for all. An alternative to rows of NaN, meant for sparse views.
            It may also be an array of shape (n, v) or a data frame with a column for each view, which GridSearchCV
            splits together with the samples if metadata routing is enabled.

        Returns
        -------
        self
        """
        with self._fitting():
            self._fit(self._validate(X, y, present), FitContext())
            self._set_origin(X)
        return self

    def _fit_dataset(self, dataset: Dataset, context: FitContext | None = None) -> Self:
        """`fit` to a validated dataset, as one of several fits that share work."""
        with self._fitting():
            self._fit(dataset, FitContext() if context is None else context)
        return self

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Context of a fit: checks the parameters, limits the threads, and undoes everything if the fit fails."""
        check_parameters(self, self._rules)
        before = dict(vars(self))
        try:
            with self._threads():
                yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _on_disk(self, X: Any) -> AbstractContextManager[Any]:
        """Views to fit: here as they are."""
        return nullcontext(X)

    def _validate(self, X: Any, y: ArrayLike, present: Masks, sample_weight: ArrayLike | None = None) -> Dataset:
        """The dataset that `fit` was given."""
        dataset = self._with_names(X, validate(X, y, views=self.views, present=present, sample_weight=sample_weight), y)
        warn_of_leaks(dataset)
        warn_of_ids(dataset)
        return dataset

    def _with_names(self, X: Any, dataset: Dataset, y: ArrayLike) -> Dataset:
        """The dataset with the names of the columns of one 2-D X, which scikit-learn wants to be checked by it."""
        if is_view_collection(X):
            return dataset
        placeholder = np.broadcast_to(0.0, (dataset.n_samples, sum(dataset.layout.widths)))
        known = dataset.codes if dataset.shares is not None else y
        validate_data(self, X=X if hasattr(X, "shape") else placeholder, y=known, reset=True, skip_check_array=True)
        return replace(dataset, feature_names=getattr(self, "feature_names_in_", None))

    def _set_input(self, dataset: Dataset) -> None:
        """Store what predictions have to match: names and columns of the views."""
        self._layout, self._view_columns = dataset.layout, dataset.column_names
        self.view_names_ = list(dataset.names)
        self._check_graphs(dataset)
        self.n_features_in_ = sum(dataset.layout.widths)
        if dataset.feature_names is not None:
            self.feature_names_in_ = dataset.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fit(self, dataset: Dataset, context: FitContext) -> None:
        keep_freed_memory()
        self._set_input(dataset)
        dataset = self._impute(dataset)
        problem, numbering = make_problem(dataset, self._select_rows, context, merge_identical=self._merges_identical())
        self._order, self._nodes, self._class_order = numbering.order, numbering.nodes, numbering.class_order
        self._set_graphs(problem, numbering)
        self._labelled, self._given = dataset.codes >= 0, dataset.codes
        self._soft = dataset.shares is not None or dataset.trust is not None
        self.classes_ = dataset.classes
        if self._merges_identical() and (self._order.keys == self._order.keys[0]).all():
            warn_caller(
                f"all {len(self._nodes)} samples are identical: each gets the frequencies of the labelled classes. "
                "Check how the features were read",
            )
        self._warn_of_single_labels(problem.targets)
        unlinked = self._find_unlinked(problem)
        solution = self._fit_method(problem)
        self._accept(solution, problem.targets if solution.targets is None else solution.targets, unlinked)

    def _accept(self, solution: Solution, targets: Targets, unlinked: NDArray) -> None:
        """Store a solution: class frequencies for samples that views do not link to labels, confidence adjusted."""
        if unlinked.any() and sparse.issparse(solution.scores):
            rows = np.flatnonzero(unlinked)
            usual = largest_entries(sparse.csr_array(targets.frequencies[None]))[np.zeros(len(rows), dtype=np.intp)]
            scores = replace_rows(solution.scores, rows, usual)
            solution = replace(solution, scores=scores, unreached=solution.unreached | unlinked)
        elif unlinked.any():
            frequencies = targets.frequencies.astype(np.float32)
            solution = replace(
                solution,
                scores=np.where(unlinked[:, None], frequencies, solution.scores),
                unreached=solution.unreached | unlinked,
            )
        self._refuse_empty_rows(solution)
        if self._adjusts_confidence():
            solution = self._lower_one_class_confidence(solution, targets)
        self._set_fitted(solution, n_unlinked=int(self._to_input(unlinked).sum()))

    def _allows_gaps(self) -> bool:
        """Whether `fit` accepts single missing values."""
        return self.impute is not None

    def _impute(self, dataset: Dataset) -> Dataset:
        """Learn what to fill in for single missing values, and fill it in."""
        self._fills, self.imputed_ = {}, {}
        if not self._allows_gaps():
            dataset.refuse_gaps()
            return dataset
        self._fills = {
            raw.name: learn_fills(raw, self.impute, self._column_names(v)) for v, raw in enumerate(dataset.views)
        }
        filled = [fill_gaps(raw, self._fills[raw.name]) for raw in dataset.views]
        self.imputed_ = {raw.name: counts for raw, counts in filled}
        return dataset.with_filled_gaps([raw for raw, _ in filled])

    def _warn_of_single_labels(self, targets: Targets) -> None:
        """Warn if a class has only one label and others have several."""
        single = np.flatnonzero(np.bincount(targets.counts[1], minlength=targets.n_classes) == 1)
        if len(single) and targets.n_labelled >= MEAN_LABELS_TO_WARN * targets.n_classes and not targets.labelled.all():
            names = ", ".join(repr(name) for name in self.classes_[np.sort(self._class_order[single])].tolist())
            warn_caller(
                f"only one labelled sample for {names}: such a class is often predicted too rarely or too often, and "
                "with no label to hold out this cannot be measured. Label more of its samples",
            )

    def _find_unlinked(self, problem: Problem) -> NDArray:
        """Samples whose views no labelled sample has, directly or through a chain of samples with several views."""
        self._view_groups = connected_views(problem.views)
        groups = group_of_samples(problem.views, self._view_groups)
        self._linked = np.isin(self._view_groups, groups[problem.targets.labelled])
        unlinked = ~has_any_view(problem.views, self._linked)
        if unlinked.any():
            alone = sorted(self.view_names_[v] for v, ok in zip(self._order.views, self._linked, strict=True) if not ok)
            warn_caller(
                f"{int(self._to_input(unlinked).sum())} samples have only views ({', '.join(alone)}) that no labelled "
                "sample has, and no sample has both these and other views. Their labels cannot be inferred: they get "
                "the class frequencies and are listed in unreached_. Label some of them, or add samples that have "
                "views of both kinds",
            )
        self._warn_of_weak_links(problem, ~unlinked)
        return unlinked

    def _warn_of_weak_links(self, problem: Problem, linked: NDArray) -> None:
        """Warn if the views of some samples have few labels, and those of others several times as many."""
        n_labels = labels_in_shared_views(problem.views, problem.targets.labelled)
        weak = linked & (n_labels < min(2 * problem.targets.n_classes, problem.targets.n_labelled / 4))
        if weak.any():
            warn_caller(
                f"{int(self._to_input(weak).sum())} samples have only views that few labelled samples have "
                f"({int(n_labels[weak].min())} for some of them). Their answers depend on the samples that also "
                "have other views, and may be wrong although they look certain. Label some of them",
            )

    def _adjusts_confidence(self) -> bool:
        """Whether scores are lowered where labels elsewhere show that they are too certain; published methods: no."""
        return False

    def _lower_one_class_confidence(self, solution: Solution, targets: Targets) -> Solution:
        """Lower the confidence in components whose labels are all of one class, as far as labels elsewhere show."""
        scores = solution.scores
        if memory_map(scores) is None and not sparse.issparse(scores):
            scores = np.maximum(scores, 0)
        scores, changed = shrink_one_class(scores, solution.graph, targets, solution.one_class)
        self._warn_of_one_class(changed)
        return replace(solution, scores=scores)

    def _warn_of_one_class(self, changed: OneClassSamples) -> None:
        if len(changed.samples):
            rows = np.isin(self._nodes, changed.samples)
            warn_caller(
                f"{int(rows.sum())} samples are in parts of the graph where all labels are of one class (number of "
                f"labels: {int(changed.n_labels.min())} or more, for up to {int(changed.sizes.max())} distinct "
                "samples). Elsewhere, parts of that size have several classes, so their confidence is lowered. Label "
                "more samples there",
            )

    def _merges_identical(self) -> bool:
        """Whether samples with identical content are one sample."""
        return True

    def _fit_method(self, problem: Problem) -> Solution:
        """Solve the problem, and store the attributes of this method, at least `objective_` and `n_iter_`.

        Everything in the problem and the solution is in canonical order; `fit` restores the order of the input.
        """
        raise NotImplementedError

    def _refuse_empty_rows(self, solution: Solution) -> None:
        """Every sample needs a class with a positive score; otherwise its distribution would be NaN."""
        n_empty = sum(found for _, found in map_slices(_count_empty, solution.scores))
        if n_empty:
            raise ValueError(
                f"{type(self).__name__}._fit_method returned no positive score for {n_empty} of "
                f"{solution.scores.shape[0]} samples; give them problem.targets.frequencies and mark them in "
                "Solution.unreached"
            )

    def _set_fitted(self, solution: Solution, n_unlinked: int) -> None:
        """Store the solution in the order of the input."""
        if sparse.issparse(solution.scores):
            self.label_distributions_ = self._to_input(rename_columns(solution.scores, self._class_order))
        else:
            normalise = partial(to_distributions, class_order=self._class_order)
            self.label_distributions_ = take_in_order(solution.scores, self._nodes, normalise)
        self.transduction_ = self._decide(self.label_distributions_)
        self.graph_ = self._graph_of_samples(solution.graph)
        self._set_unreached(solution.unreached, n_unlinked)

    def _set_unreached(self, unreached: NDArray, n_unlinked: int) -> None:
        """Store which samples no label reaches, and say so."""
        self.unreached_ = np.flatnonzero(self._to_input(unreached))
        n_cut_off = len(self.unreached_) - n_unlinked
        if n_cut_off:
            warn_caller(
                f"{n_cut_off} of {len(self._nodes)} samples are in parts of the graph without a label; they "
                "get the frequencies of the labelled classes and are listed in unreached_. Label one of them, or raise "
                "n_neighbors",
            )

    def _graph_of_samples(self, graph: sparse.csr_array) -> sparse.csr_array:
        """Graph of all samples: each has the edges of its distinct sample, to one copy of each neighbour."""
        return renumber_graph(graph, self._nodes, self._order.samples)

    def _to_input(self, rows: NDArray) -> NDArray:
        """Rows of the distinct samples, for all samples in the order of the input."""
        return take_in_order(rows, self._nodes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `lmssc.load` reads, with any version of Python or numpy.

        The file contains arrays and JSON, and no code. It appears under its name once it is complete. `callback`,
        `verbose`, `checkpoint`, `memory_limit` and `n_jobs` are not saved.

        Parameters
        ----------
        path : str or path
            Name of the file, by convention ending in ``.lmssc``.
        """
        from lmssc.estimators.serialization import save

        save(self, path)

    def report(
        self, path: str | os.PathLike[str], X: Any = None, y: ArrayLike | None = None, present: Masks = None
    ) -> None:
        """Write a web page about the fitted model: one HTML file that needs only a browser.

        `lmssc.report.write_report` does the same with names for the samples, a title and more.

        Parameters
        ----------
        path : str or path
            Name of the file, which appears only when it is complete.
        X : as in `fit`, optional
            The X of `fit`. With it, labels are held out and predicted, which measures accuracy and calibration; that
            takes some fits. Without it, the page shows what the model itself knows: confidence, map, graph, and the
            samples to look at first.
        y : array-like of shape (n,), optional
            The y of `fit`; needed with X.
        present : as in `fit`, optional
            The `present` of `fit`.

        Examples
        --------
        >>> import lmssc, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
        >>> data = lmssc.datasets.make_multiview(100, labelled=0.2, random_state=0)
        >>> clf = lmssc.LMSSC(max_iter=2).fit(data.views, data.y)
        >>> clf.report(path)
        >>> "were predicted correctly" in path.read_text(encoding="utf-8")
        False
        >>> clf.report(path, data.views, data.y)
        >>> "Of 15 held-out labels" in path.read_text(encoding="utf-8")
        True
        """
        from lmssc.report import write_report

        write_report(path, self, X, y, present=present)

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        """Change, in place, what version `saved_by` of lmssc saved into what this version would have saved.

        `lmssc.load` calls it for every model. Missing parameters get their default anyway; fitted attributes that
        `predict` needs and that earlier versions lacked are filled in here.
        """
        if "_order" in fitted:
            fitted.setdefault("_nodes", np.argsort(fitted["_order"].samples))
            fitted.setdefault("_linked", np.ones(len(fitted["_order"].views), dtype=bool))
            if "latent_" in fitted:
                fitted.setdefault("_groups", None)
            fitted.setdefault("_view_groups", np.zeros(len(fitted["_order"].views), dtype=np.intp))
            fitted.update({"graph_names_": [], "_graph_order": [], "_link_columns": {}, "_link_keys": None} | fitted)
        fitted.setdefault("_fills", {})
        fitted.setdefault("imputed_", {})

    def _progress(self) -> Any:
        """A callback that prints a line if `verbose` and calls the user's callback."""

        def report(progress: IterationProgress) -> None:
            if self.verbose:
                left = progress.seconds_left
                print(
                    f"[{type(self).__name__}] iteration {progress.iteration}: J = {progress.objective:.6g}, "
                    f"change of F = {progress.change:.2e}, {progress.seconds:.1f} s"
                    + (f", {left:.0f} s left" if left > 0.5 else "")
                )
            if self.callback is not None:
                self.callback(progress)

        return report

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # One X without `views` is one view: a row of NaN would be a sample without any view.
        tags.input_tags.allow_nan = self.views is not None or self._allows_gaps()
        return tags


def _count_empty(scores: NDArray | sparse.csr_array, _: int) -> int:
    """Number of rows without a positive score."""
    positive = scores if sparse.issparse(scores) else np.maximum(scores, 0)
    return int(np.count_nonzero(~(np.asarray(positive.sum(axis=1)) > 0)))
