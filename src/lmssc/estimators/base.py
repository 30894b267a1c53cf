"""The base class of all classifiers here: validation, canonical order, answers for known and new samples."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from lmssc.core.fit_config import FitContext
from lmssc.core.one_class_components import shrink_one_class
from lmssc.core.progress import IterationProgress
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import CanonicalOrder, sample_keys
from lmssc.data.dataset import Dataset, frame_columns_by_view, validate
from lmssc.data.imputation import fill_gaps, learn_fills
from lmssc.data.labels import known_labels
from lmssc.data.link_order import link_keys
from lmssc.data.link_reading import split_graphs
from lmssc.data.missing_views import make_raw_views
from lmssc.data.parameters import Rule, check_parameters
from lmssc.data.scorer_guard import warn_of_scored_unlabelled
from lmssc.data.validation import Masks, check_rows, is_view_collection, read_block, read_known
from lmssc.data.view_linkage import group_of_samples, has_linked_view, linked_views
from lmssc.data.views import RawView
from lmssc.estimators.active_learning import ActiveLearningMixin
from lmssc.estimators.documentation import DocumentationLinkMixin
from lmssc.estimators.graph_links import GraphLinksMixin
from lmssc.estimators.notebook import ViewsInNotebookMixin
from lmssc.estimators.origin import OriginMixin
from lmssc.estimators.problem import Problem, Solution, make_problem
from lmssc.estimators.view_scaling import ViewScalingMixin
from lmssc.numerics.matrices import Matrix

# New samples are answered in batches of max(10 000, samples of `fit`), which amortises building the neighbour search.
MIN_BATCH_SIZE = 10_000
# Mean number of labels per class from which on a class with a single label causes a warning.
MEAN_LABELS_TO_WARN = 3


class MultiViewClassifier(
    DocumentationLinkMixin,
    ViewsInNotebookMixin,
    OriginMixin,
    ActiveLearningMixin,
    ViewScalingMixin,
    GraphLinksMixin,
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
    # Whether `_fit_method` accesses views only through their products, so that they can stay on disk.
    _maps_views = False

    def fit(self, X: Any, y: ArrayLike, present: Masks = None) -> Self:
        """Label every sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, Σ d_v), or a list or dict of views
            The parameter `views` divides one 2-D X into views. A sample that lacks a view has NaN in all its
            columns. Links between the samples are a `lmssc.Graph` in a list or dict.
        y : array-like of shape (n,)
            Labels; −1 (integers), None or NaN (anything else) is unlabelled.
        present : list or dict of boolean arrays, optional
            For each view, which samples have it; None for all. An alternative to rows of NaN, meant for sparse
            views. Or a table, an array of shape (n, v) or a data frame with a column for each view, whose rows
            GridSearchCV takes along with the samples if metadata routing is enabled.

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

    def _threads(self) -> AbstractContextManager[None]:
        """Context that limits the threads of a fit or a prediction."""
        return nullcontext()

    def _validate(self, X: Any, y: ArrayLike, present: Masks, sample_weight: ArrayLike | None = None) -> Dataset:
        """The dataset that `fit` was given."""
        dataset = validate(X, y, views=self.views, present=present, sample_weight=sample_weight)
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
        self._set_input(dataset)
        dataset = self._impute(dataset)
        problem, numbering = make_problem(dataset, self._select_rows, context, merge_identical=self._merges_identical())
        self._order, self._nodes, self._class_order = numbering.order, numbering.nodes, numbering.class_order
        self._set_graphs(problem, numbering)
        self._labelled, self._given = dataset.codes >= 0, dataset.codes
        self.classes_ = dataset.classes
        self._warn_of_single_labels(problem.targets)
        unlinked = self._find_unlinked(problem)
        solution = self._fit_method(problem)
        if unlinked.any():
            frequencies = problem.targets.frequencies.astype(np.float32)
            solution = replace(
                solution,
                scores=np.where(unlinked[:, None], frequencies, solution.scores),
                unreached=solution.unreached | unlinked,
            )
        _refuse_empty_rows(solution, type(self).__name__)
        if self._adjusts_confidence():
            solution = self._lower_one_class_confidence(solution, problem.targets)
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
            warnings.warn(
                f"only one labelled sample for {names}: such a class is often predicted too rarely or too often, and "
                "with no label to hide this cannot be measured. Label more of its samples",
                UserWarning,
                stacklevel=5,
            )

    def _find_unlinked(self, problem: Problem) -> NDArray:
        """Samples whose views no labelled sample has, directly or through a chain of samples with several views."""
        self._view_groups = linked_views(problem.views)
        groups = group_of_samples(problem.views, self._view_groups)
        self._linked = np.isin(self._view_groups, groups[problem.targets.labelled])
        unlinked = ~has_linked_view(problem.views, self._linked)
        if unlinked.any():
            alone = sorted(self.view_names_[v] for v, ok in zip(self._order.views, self._linked, strict=True) if not ok)
            warnings.warn(
                f"{int(self._to_input(unlinked).sum())} samples have only views ({', '.join(alone)}) that no labelled "
                "sample has, and no sample has both these and other views. Their labels cannot be inferred: they get "
                "the class frequencies and are listed in unreached_. Label some of them, or add samples that have "
                "views of both kinds",
                UserWarning,
                stacklevel=5,
            )
        return unlinked

    def _adjusts_confidence(self) -> bool:
        """Whether scores are lowered where labels elsewhere show that they are too certain; published methods: no."""
        return False

    def _lower_one_class_confidence(self, solution: Solution, targets: Targets) -> Solution:
        """Lower the confidence in components whose labels are all of one class, as far as labels elsewhere show."""
        scores, changed = shrink_one_class(np.maximum(solution.scores, 0), solution.graph, targets)
        if len(changed.samples):
            rows = np.isin(self._nodes, changed.samples)
            warnings.warn(
                f"{int(rows.sum())} samples are in parts of the graph where all labels are of one class (number of "
                f"labels: {int(changed.n_labels.min())} or more, for up to {int(changed.sizes.max())} distinct "
                "samples). Elsewhere, parts of that size have several classes, so their confidence is lowered. Label "
                "more samples there",
                UserWarning,
                stacklevel=4,
            )
        return replace(solution, scores=scores)

    def _merges_identical(self) -> bool:
        """Whether samples with identical content are one sample."""
        return True

    def _select_rows(self, raw: RawView, rows: NDArray) -> RawView:
        """Some samples of a view, which stays on disk if the method allows it."""
        return raw.map(rows) if self._maps_views else raw.take(rows)

    def _fit_method(self, problem: Problem) -> Solution:
        """Solve the problem, and store the attributes of this method, at least `objective_` and `n_iter_`.

        Everything in the problem and the solution is in canonical order; `fit` restores the order of the input.
        """
        raise NotImplementedError

    def _predict_new(self, raws: list[RawView]) -> NDArray:
        """Class scores of new samples, with a positive score in each row; classes and views in canonical order.

        `_known_distributions` has the answers for the samples of `fit`, `_scale_new` scales the views.
        """
        raise NotImplementedError

    def _known_distributions(self) -> NDArray:
        """Distributions of the distinct samples of `fit`; samples and classes in canonical order."""
        return self.label_distributions_[np.ix_(self._order.samples, self._class_order)]

    def _set_fitted(self, solution: Solution, n_unlinked: int) -> None:
        """Store the solution in the order of the input."""
        scores = np.maximum(solution.scores, 0)
        distributions = np.empty_like(scores)
        distributions[:, self._class_order] = scores / scores.sum(axis=1, keepdims=True)
        self.label_distributions_ = self._to_input(distributions)
        self.transduction_ = self._decide(self.label_distributions_)
        self.graph_ = self._graph_of_samples(solution.graph)
        self.unreached_ = np.flatnonzero(self._to_input(solution.unreached))
        n_cut_off = len(self.unreached_) - n_unlinked
        if n_cut_off:
            warnings.warn(
                f"{n_cut_off} of {len(self._nodes)} samples are in parts of the graph without a label; they "
                "get the frequencies of the labelled classes and are listed in unreached_. Label one of them, or raise "
                "n_neighbors",
                UserWarning,
                stacklevel=5,
            )

    def _graph_of_samples(self, graph: sparse.csr_array) -> sparse.csr_array:
        """Graph of all samples: each has the edges of its distinct sample, to one copy of each neighbour."""
        rows = graph[self._nodes]
        columns = self._order.samples.astype(rows.indices.dtype)[rows.indices]
        result = sparse.csr_array((rows.data, columns, rows.indptr), shape=(len(self._nodes),) * 2)
        result.sort_indices()
        return result

    def _to_input(self, rows: NDArray) -> NDArray:
        """Rows of the distinct samples, for all samples in the order of the input."""
        return rows[self._nodes]

    def _decide(self, distributions: NDArray) -> NDArray:
        """Most likely class of each row; ties are broken in canonical order, not by the names of the classes."""
        return self.classes_[self._class_order[distributions[:, self._class_order].argmax(axis=1)]]

    def _read_views(self, X: Any, *, present: Masks) -> list[RawView]:
        """Views given after `fit`, which must match those of `fit`; in the order of the user."""
        X, present = self._from_frame(X, present)
        check_rows(X, present=present)
        if is_view_collection(X):
            features, graphs = split_graphs(X)
            unknown = [name for name in graphs if name not in self.graph_names_]
            if unknown:
                raise ValueError(f"X has the graphs {unknown}, but the model was fitted with {self.graph_names_}")
            for name in features if isinstance(X, Mapping) else []:
                if name in self.graph_names_:
                    raise ValueError(f"{name!r} was a graph in fit, but is a matrix of features here; pass lmssc.Graph")
            blocks = self._read_known(features if graphs or isinstance(X, Mapping) else X)
            self._match_columns(features)
        else:
            block = read_block(X, "X")
            validate_data(self, X=X if hasattr(X, "shape") else block, reset=False, skip_check_array=True)
            blocks = self._layout.split(block)
        raws = make_raw_views(blocks, present, gaps=bool(self._fills))
        return [fill_gaps(raw, self._fills[raw.name])[0] for raw in raws] if self._fills else raws

    def _read_known(self, X: Any) -> dict[str, Matrix]:
        """Views of a collection in the order of `fit`; a warning names those that are missing."""
        blocks, absent = read_known(X, self._layout.names, self._layout.widths)
        if absent:
            there = [name for name in blocks if name not in absent]
            warnings.warn(
                f"X does not have the view{'s' * (len(absent) > 1)} {', '.join(map(repr, absent))}: missing for all "
                f"samples, the answers come from {', '.join(map(repr, there))} alone",
                UserWarning,
                stacklevel=5,
            )
        return blocks

    def _match_columns(self, X: Any) -> None:
        """Data frames must have the columns of `fit`, in the same order."""
        for name, columns in frame_columns_by_view(X).items():
            fitted = getattr(self, "_view_columns", {}).get(name, columns)
            if columns != fitted:
                raise ValueError(f"view {name!r} has the columns {columns}, but fit had {fitted}, in this order")

    def predict_proba(self, X: Any, present: Masks = None) -> NDArray:
        """Distribution over the classes for each sample, known from fit or new.

        A sample of `fit`, recognised by its exact values, gets its `label_distributions_`; a new sample gets the mean
        over its neighbours among the samples of `fit`. A sample of `fit` with other rounding counts as new. New samples
        are processed in batches of at most as many as `fit` had (or 10,000).

        Parameters
        ----------
        X, present : as in `fit`

        Returns
        -------
        ndarray of shape (n, c)
            Non-negative rows that sum to 1, columns as in `classes_`.
        """
        check_is_fitted(self)
        warn_of_scored_unlabelled()
        raws = self._read_views(X, present=present)
        raws = [raws[v] for v in self._order.views]
        n_samples = raws[0].data.shape[0]
        links = self._read_links(X, n_samples)
        batch_size = max(MIN_BATCH_SIZE, len(self._order.samples))
        if n_samples <= batch_size:
            return self._answer(raws, links)
        result = np.empty((n_samples, len(self.classes_)), dtype=self.label_distributions_.dtype)
        for rows in gen_batches(n_samples, batch_size):
            result[rows] = self._answer([raw.take(rows) for raw in raws], [one[rows] for one in links])
        return result

    def _answer(self, raws: list[RawView], links: list[sparse.csr_array]) -> NDArray:
        """Distributions over the classes; views and graphs in canonical order."""
        with self._threads():
            keys = sample_keys(raws)
            result, new = self._recognise(link_keys(keys, links) if links else keys)
            if new.any():
                unknown_rows = raws if new.all() else [self._select_rows(raw, np.flatnonzero(new)) for raw in raws]
                unknown_links = [one[np.flatnonzero(new)] for one in links]
                found = self._predict_linked(unknown_rows, unknown_links) if links else self._predict_new(unknown_rows)
                scores = np.maximum(found, 0)
                result[np.ix_(new, self._class_order)] = scores / scores.sum(axis=1, keepdims=True)
                if not self._linked.all():
                    lost = np.flatnonzero(new)[~has_linked_view(unknown_rows, self._linked)]
                    result[lost] = self.label_distributions_[self.unreached_[0]]
                wordless = np.flatnonzero(new)[self._lack_words(unknown_rows)]
                if len(wordless):
                    result[wordless] = self.label_distributions_[self._labelled].mean(axis=0)
                    warnings.warn(
                        f"{len(wordless)} new samples have only zeros in their views, all of which are scaled as text: "
                        "they have no word in common with the samples of fit and get the class frequencies",
                        UserWarning,
                        stacklevel=4,
                    )
        return result

    def _recognise(self, keys: NDArray) -> tuple[NDArray, NDArray]:
        """Distributions of the samples that were in `fit`, and a mask of those that were not."""
        known, samples = self._order.keys, self._order.samples
        if self._link_keys is not None:
            by_key = np.argsort(self._link_keys, kind="stable")
            known, samples = self._link_keys[by_key], samples[by_key]
        place = np.searchsorted(known, keys, side="right") - 1
        new = known[place] != keys
        return self.label_distributions_[samples[place]], new

    def predict(self, X: Any, present: Masks = None) -> NDArray:
        """Most likely class of each sample, known from fit or new.

        Parameters
        ----------
        X, present : as in `fit`

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._decide(self.predict_proba(X, present))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, present: Masks = None) -> float:
        """Accuracy of `predict` on the samples of X that have a label in y.

        Parameters
        ----------
        X : as in `fit`
            Samples.
        y : array-like of shape (n,)
            True labels; rows that are unlabelled (−1, None or NaN) do not count.
        sample_weight : array-like of shape (n,), optional
            Weights of the samples.
        present : as in `fit`, optional
            Which samples have which view.

        Returns
        -------
        float
        """
        check_rows(X, y, present, sample_weight)
        predicted = self.predict(X, present)
        labels, known = known_labels(y)
        if len(labels) != len(predicted):
            raise ValueError(f"X has {len(predicted)} rows, y has {len(labels)} labels")
        if not known.any():
            raise ValueError("y has no labelled sample to score")
        unknown = sorted(set(labels[known].tolist()) - set(self.classes_.tolist()), key=str)
        if unknown:
            raise ValueError(f"y has classes that were not in fit: {unknown}; the classes are {self.classes_.tolist()}")
        weight = None if sample_weight is None else np.asarray(sample_weight)
        if weight is not None and weight.shape != known.shape:
            raise ValueError(f"sample_weight has the shape {weight.shape}, but there are {len(known)} samples")
        return float(
            accuracy_score(labels[known], predicted[known], sample_weight=None if weight is None else weight[known])
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `lmssc.load` reads, with any version of Python or numpy.

        The file contains arrays and JSON, and no code. It appears under its name once it is complete. `callback`,
        `verbose`, `checkpoint` and `n_jobs` are not saved.

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
        """Write a page about the fitted model: one HTML file that needs nothing but a browser.

        `lmssc.report.write_report` does the same with names for the samples, a title and more.

        Parameters
        ----------
        path : str or path
            Name of the file; it appears once it is complete.
        X : as in `fit`, optional
            The X of `fit`. With it, labels are hidden and predicted, which measures accuracy and calibration; that
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
        >>> "hidden labels found again" in path.read_text(encoding="utf-8")
        False
        >>> clf.report(path, data.views, data.y)
        >>> "of 15 hidden labels found again" in path.read_text(encoding="utf-8")
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


def _refuse_empty_rows(solution: Solution, method: str) -> None:
    """Every sample needs a class with a positive score; otherwise its distribution would be NaN."""
    empty = ~(np.maximum(solution.scores, 0).sum(axis=1) > 0)
    if empty.any():
        raise ValueError(
            f"{method}._fit_method returned no positive score for {int(empty.sum())} of {len(empty)} samples; give "
            "them problem.targets.frequencies and mark them in Solution.unreached"
        )


def resolve_neighbors(n_neighbors: int | str, n_distinct: int, default: int, n_samples: int | None = None) -> int:
    """k: the given number or `default`, at most the number of other distinct samples.

    Examples
    --------
    >>> resolve_neighbors("auto", 1000, 10), resolve_neighbors("auto", 6, 10), resolve_neighbors(7, 4, 10, 1000)
    (10, 4, 3)
    """
    if isinstance(n_neighbors, str):
        return max(1, min(default, n_distinct - 2))
    n_samples = n_distinct if n_samples is None else n_samples
    if n_neighbors >= n_samples:
        raise ValueError(f"n_neighbors={n_neighbors} must be less than the number of samples, {n_samples}")
    return min(int(n_neighbors), n_distinct - 1)


def upgrade_neighbors(parameters: dict[str, Any], fitted: dict[str, Any], default: int) -> None:
    """Fill in, in place, `n_neighbors_` of a model that an earlier version of lmssc saved without it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> fitted = {"_order": SimpleNamespace(samples=np.arange(6)), "_nodes": np.arange(6)}
    >>> upgrade_neighbors({"n_neighbors": "auto"}, fitted, default=10)
    >>> fitted["n_neighbors_"]
    4
    """
    if "n_neighbors_" not in fitted and "_order" in fitted:
        k, n_distinct = parameters.get("n_neighbors", "auto"), len(fitted["_order"].samples)
        fitted["n_neighbors_"] = resolve_neighbors(k, n_distinct, default, len(fitted["_nodes"]))


def in_input_order(items: Sequence[Any] | NDArray, order: CanonicalOrder) -> list[Any]:
    """Items of the views in canonical order, brought into the order of the input."""
    return [items[order.views.index(v)] for v in range(len(items))]


def self_weights(energies: NDArray) -> NDArray:
    """Weights 1/(2·√e_v) of the views, which lower Σ_v √e_v by turns; none more than 10⁶ times another.

    Examples
    --------
    >>> self_weights(np.array([1.0, 4.0, 0.0]))
    array([5.0e-01, 2.5e-01, 2.5e+05])
    """
    least = max(1e-12 * float(energies.max()), float(np.finfo(np.float64).tiny))
    return 1 / (2 * np.sqrt(np.maximum(energies, least)))
