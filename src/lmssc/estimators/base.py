"""What all classifiers here share: views, labels, order, the answer for known and for new samples."""

import os
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from lmssc.core.active import doubts, sigma_optimal_batch
from lmssc.core.fit_config import FitContext
from lmssc.core.progress import IterationProgress
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import CanonicalOrder, canonical_order, first_copies, sample_keys, splitmix64
from lmssc.data.imputation import fill_gaps, learn_fills
from lmssc.data.labels import encode_labels, known_labels
from lmssc.data.parameters import COUNT, Rule, check_parameters
from lmssc.data.scaling import fit_scalings, scale_views, scaling_by_view
from lmssc.data.scorer_guard import warn_of_scored_unlabelled
from lmssc.data.validation import (
    Layout,
    Masks,
    check_rows,
    frame_columns,
    is_frame,
    is_view_collection,
    make_raw_views,
    name_parts,
    read_block,
    read_collection,
    read_known,
    read_layout,
)
from lmssc.data.view_linkage import group_of_samples, has_linked_view, linked_views
from lmssc.data.views import RawView, Views, stored_like
from lmssc.numerics.parallel import threaded_map

# New samples that are answered at a time, unless the fit had more: what a search needs is then made once for many.
FEWEST_AT_ONCE = 10_000
# Labels per class, on average, from which on a class with one label is warned of.
MEAN_LABELS_TO_WARN = 3


@dataclass(frozen=True)
class Problem:
    """What a method solves: views and targets of the distinct samples, in canonical order.

    `context` is what the fit shares with other fits to the same data.
    """

    views: list[RawView]
    targets: Targets
    context: FitContext = field(default_factory=FitContext)


@dataclass(frozen=True)
class Solution:
    """What a method answers: class scores F, the graph S, and the samples that no label reaches."""

    scores: NDArray
    graph: sparse.csr_array
    unreached: NDArray


class MultiViewClassifier(ClassifierMixin, BaseEstimator):
    """Semi-supervised classifier of several views.

    A subclass says how a `Problem` becomes a `Solution` (`_fit_method`) and what new samples get (`_predict_new`); or
    it has a `_fit` and `predict_proba` of its own. Inside, samples, views and classes are numbered by content, so that
    permuting the input permutes the answer and nothing else. Identical samples are one: they share their labels and
    the answer.
    """

    _rules: ClassVar[dict[str, Rule]] = {}
    # Whether the method needs no more of the views than the two products, so that they can stay on disk.
    _maps_views = False

    def fit(self, X: Any, y: ArrayLike, present: Masks = None) -> Self:
        """Label every sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, Σ d_v), or a list or dict of views
            One 2-D X is cut into views by the parameter `views`. A sample that lacks a view has NaN in all of
            its block.
        y : array-like of shape (n,)
            Labels; −1 (integers), None or NaN (anything else) is unlabelled.
        present : list or dict of boolean arrays, optional
            For each view, which samples have it; None for all. Another way to say that views are missing,
            needed for sparse views only.

        Returns
        -------
        self
        """
        return self._fit_in_context(X, y, present, FitContext())

    def _fit_in_context(self, X: Any, y: ArrayLike, present: Masks, context: FitContext) -> Self:
        """`fit`, as one of several fits that share work."""
        check_parameters(self, self._rules)
        before = dict(vars(self))
        try:
            with self._threads():
                self._fit(X, y, present, context)
        except BaseException:
            # Nothing half-done: what was fitted before stays, and nothing of this attempt does.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _threads(self) -> AbstractContextManager[None]:
        """What a fit and a prediction are within: a limit of the threads."""
        return nullcontext()

    def _fit(self, X: Any, y: ArrayLike, present: Masks, context: FitContext) -> None:
        raws = self._read_views(X, y=y, present=present, reset=True)
        classes, codes = encode_labels(y, raws[0].data.shape[0])
        order = canonical_order(raws, codes)
        first = first_copies(order.keys) if self._merges_identical() else np.ones(len(codes), dtype=bool)
        ends = np.append(np.flatnonzero(first)[1:], len(first))
        # Labelled copies come last.
        distinct = CanonicalOrder(order.samples[ends - 1], order.views, order.keys[first])
        node = np.cumsum(first) - 1
        targets, class_order = find_targets(node, codes[order.samples], distinct.keys, len(classes))
        views = threaded_map(lambda v: self._select_rows(raws[v], distinct.samples), order.views)
        problem = Problem(views, targets, context)

        self._order, self._class_order = distinct, class_order
        self._nodes = np.empty_like(node)
        self._nodes[order.samples] = node
        self._labelled = codes >= 0
        self.classes_ = classes
        self._warn_of_lone_labels(problem.targets)
        unlinked = self._find_unlinked(problem)
        solution = self._fit_method(problem)
        if unlinked.any():
            solution = replace(
                solution,
                scores=np.where(unlinked[:, None], targets.frequencies.astype(np.float32), solution.scores),
                unreached=solution.unreached | unlinked,
            )
        self._set_fitted(solution, n_unlinked=int(self._to_input(unlinked).sum()))

    def _warn_of_lone_labels(self, targets: Targets) -> None:
        """Name the classes that have one label only, where others have several."""
        lone = np.flatnonzero(np.bincount(targets.counts[1], minlength=targets.n_classes) == 1)
        if len(lone) and targets.n_labelled >= MEAN_LABELS_TO_WARN * targets.n_classes and not targets.labelled.all():
            names = ", ".join(repr(name) for name in self.classes_[np.sort(self._class_order[lone])].tolist())
            warnings.warn(
                f"only one labelled sample for {names}: such a class is often missed or overrated, and no label of it "
                "can be hidden to find out how often. Label more of its samples",
                UserWarning,
                stacklevel=5,
            )

    def _find_unlinked(self, problem: Problem) -> NDArray:
        """Samples that nothing links to a label, because no labelled sample and no chain of samples has their views."""
        self._view_groups = linked_views(problem.views)
        groups = group_of_samples(problem.views, self._view_groups)
        self._linked = np.isin(self._view_groups, groups[problem.targets.labelled])
        unlinked = ~has_linked_view(problem.views, self._linked)
        if unlinked.any():
            alone = sorted(self.view_names_[v] for v, ok in zip(self._order.views, self._linked, strict=True) if not ok)
            warnings.warn(
                f"{int(self._to_input(unlinked).sum())} samples have only views ({', '.join(alone)}) that no labelled "
                "sample has, and no sample links these views to the others by having both. Nothing tells their labels: "
                "they get the class frequencies and are listed in unreached_. Label some of them, or add samples that "
                "have views of both kinds",
                UserWarning,
                stacklevel=5,
            )
        return unlinked

    def _merges_identical(self) -> bool:
        """Whether samples with the same numbers are the same."""
        return True

    def _select_rows(self, raw: RawView, rows: NDArray) -> RawView:
        """Some samples of a view, which stays on disk if it is there and the method can do without the whole."""
        return raw.map(rows) if self._maps_views else raw.take(rows)

    def _fit_method(self, problem: Problem) -> Solution:
        """Solve the problem and store what only this method has."""
        raise NotImplementedError

    def _predict_new(self, raws: list[RawView]) -> NDArray:
        """Class scores of new samples, classes and views in content order."""
        raise NotImplementedError

    def _fit_scalings(self, problem: Problem, *, used: Sequence[int] | None = None, equalise: bool = True) -> Views:
        """Learn the scalings that the parameter `scaling` asks for, and apply them.

        `used` are the numbers, in content order, of the views that `problem` has, if not all.
        """
        wanted = scaling_by_view(self.scaling, self.view_names_)
        numbers = [self._order.views[v] for v in (range(len(wanted)) if used is None else used)]
        self._scalings = fit_scalings(problem.views, [wanted[v] for v in numbers], equalise=equalise)
        kinds = {self.view_names_[v]: scaling.kind for v, scaling in zip(numbers, self._scalings, strict=True)}
        self.scalings_ = {name: kinds[name] for name in self.view_names_ if name in kinds}
        for v, scaling in zip(numbers, self._scalings, strict=True):
            if scaling.outliers is not None:
                warnings.warn(
                    f"view {self.view_names_[v]!r} has {scaling.outliers.describe(self._column_names(v))}, far from "
                    "all others there. They do not count for the scale; codes for unknown values, such as -999, count "
                    "as the mean if they are rare, and other values as the largest or smallest of the rest. To use "
                    "them as they are, scale the view yourself and pass scaling=None for it",
                    UserWarning,
                    stacklevel=6,
                )
        self._storage = [raw.data[:0].copy() for raw in problem.views]
        # They are copies in an order of their own, and no one else's.
        return scale_views(problem.views, self._scalings, in_place=True)

    def _column_names(self, v: int) -> list[str] | None:
        """Names of the columns of a view, if it came as a frame; `v` as the user counts."""
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_[self._layout.columns[v]]]
        names = getattr(self, "_view_columns", {}).get(self.view_names_[v])
        return None if names is None else [str(name) for name in names]

    def _scale_new(self, raws: Sequence[RawView]) -> Views:
        """New samples, scaled and stored like those of fit, so that their `points` are shifted alike."""
        alike = [
            replace(raw, data=stored_like(example, raw.data)) for raw, example in zip(raws, self._storage, strict=True)
        ]
        return scale_views(alike, self._scalings)

    def _set_fitted(self, solution: Solution, n_unlinked: int) -> None:
        """Store the answer in the user's order."""
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
        """The graph of the distinct samples for all: each has the edges of its copy, to one copy of each neighbour."""
        rows = graph[self._nodes]
        columns = self._order.samples.astype(rows.indices.dtype)[rows.indices]
        result = sparse.csr_array((rows.data, columns, rows.indptr), shape=(len(self._nodes),) * 2)
        result.sort_indices()
        return result

    def _to_input(self, rows: NDArray) -> NDArray:
        """Rows of the distinct samples, for all samples as they came."""
        return rows[self._nodes]

    def _decide(self, distributions: NDArray) -> NDArray:
        """Most likely class of each row; a tie goes by content, not by the names of the classes."""
        return self.classes_[self._class_order[distributions[:, self._class_order].argmax(axis=1)]]

    def _read_views(self, X: Any, *, present: Masks, reset: bool, y: Any = "no_validation") -> list[RawView]:
        """Views of X in the order of the user; `reset` in fit, else they must match those of fit."""
        least = 2 if reset else 1
        check_rows(X, y, present)
        if is_view_collection(X):
            if reset:
                blocks = read_collection(X, least)
                if self.views is not None:
                    raise ValueError(
                        "views says how the columns of one 2-D X fall into views; X is a collection of views"
                    )
                ends = np.cumsum([block.shape[1] for block in blocks.values()])
                columns = np.split(np.arange(ends[-1]), ends[:-1])
                self._layout, self.n_features_in_ = Layout(list(blocks), columns), int(ends[-1])
                self._view_columns = _columns_of_frames(X)
                if hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
            else:
                blocks = self._read_known(X)
                self._match_columns(X)
        else:
            block = read_block(X, "X", least)
            validate_data(self, X=X if hasattr(X, "shape") else block, y=y, reset=reset, skip_check_array=True)
            if reset:
                self._view_columns = {}
                self._layout = read_layout(self.views, block.shape[1], frame_columns(X) if is_frame(X) else None)
            blocks = {
                name: _columns(block, columns)
                for name, columns in zip(self._layout.names, self._layout.columns, strict=True)
            }
        self.view_names_ = list(self._layout.names)
        return self._impute(make_raw_views(blocks, present, gaps=self._takes_gaps(reset)), reset)

    def _takes_gaps(self, reset: bool) -> bool:
        """Whether single values may be missing."""
        return self.impute is not None if reset else bool(self._fills)

    def _impute(self, raws: list[RawView], reset: bool) -> list[RawView]:
        """Fill in single missing values; `reset` in fit, where what to fill in is learned."""
        if reset:
            self._fills, self.imputed_ = {}, {}
            if self.impute is not None:
                for v, raw in enumerate(raws):
                    self._fills[raw.name] = learn_fills(raw, self.impute, self._column_names(v))
        if not self._fills:
            return raws
        filled = [fill_gaps(raw, self._fills[raw.name]) for raw in raws]
        if reset:
            self.imputed_ = {raw.name: counts for raw, counts in filled}
        return [raw for raw, _ in filled]

    def _read_known(self, X: Any) -> dict[str, Any]:
        """Views given after fit, in the order of fit; a note on those that are not there."""
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
        """Frames given after fit have the columns of fit, in the same order."""
        found = _columns_of_frames(X)
        for name, columns in found.items():
            fitted = getattr(self, "_view_columns", {}).get(name, columns)
            if columns != fitted:
                raise ValueError(f"view {name!r} has the columns {columns}, but fit had {fitted}, in this order")

    def predict_proba(self, X: Any, present: Masks = None) -> NDArray:
        """Distribution over the classes for each sample, known from fit or new.

        A sample that was in fit, recognised by its exact numbers, gets its `label_distributions_`; any other the mean
        of its neighbours' among the samples of fit. The same sample with another rounding is a new one. No more
        samples than fit had (or 10,000) are worked on at a time.

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
        warn_of_scored_unlabelled()
        raws = self._read_views(X, present=present, reset=False)
        raws = [raws[v] for v in self._order.views]
        n_samples = raws[0].data.shape[0]
        at_once = max(FEWEST_AT_ONCE, len(self._order.samples))
        if n_samples <= at_once:
            return self._answer(raws)
        result = np.empty((n_samples, len(self.classes_)), dtype=self.label_distributions_.dtype)
        for first in range(0, n_samples, at_once):
            rows = slice(first, first + at_once)
            result[rows] = self._answer([raw.take(rows) for raw in raws])
        return result

    def _answer(self, raws: list[RawView]) -> NDArray:
        """Distributions over the classes of samples, views in content order."""
        with self._threads():
            result, new = self._recognise(sample_keys(raws))
            if new.any():
                strangers = raws if new.all() else [self._select_rows(raw, np.flatnonzero(new)) for raw in raws]
                scores = np.maximum(self._predict_new(strangers), 0)
                result[np.ix_(new, self._class_order)] = scores / scores.sum(axis=1, keepdims=True)
                if not self._linked.all():
                    lost = np.flatnonzero(new)[~has_linked_view(strangers, self._linked)]
                    result[lost] = self.label_distributions_[self.unreached_[0]]
        return result

    def _recognise(self, keys: NDArray) -> tuple[NDArray, NDArray]:
        """Distributions of the samples that were in fit, and which were not."""
        known = self._order.keys
        place = np.searchsorted(known, keys, side="right") - 1
        new = known[place] != keys
        return self.label_distributions_[self._order.samples[place]], new

    def predict(self, X: Any, present: Masks = None) -> NDArray:
        """Most likely class of each sample, known from fit or new.

        Parameters
        ----------
        X : as in `fit`
            Samples; views that a sample lacks are NaN.
        present : as in `fit`, optional
            Which samples have which view.

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
        check_rows(X, y, present)
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
        """Write the fitted model to a file that `lmssc.load` reads, whatever the version of Python or numpy.

        The file has arrays and JSON and runs nothing when it is read; it appears under its name once it is complete.
        `callback`, `verbose`, `checkpoint` and `n_jobs` are not kept.

        Parameters
        ----------
        path : str or path
            Name of the file, by custom ending in ``.lmssc``.
        """
        from lmssc.persistence.model_file import save

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
            The X of `fit`. With it, labels are hidden and the model has to find them again, which tells how right
            the labels and how deserved the confidence are; that takes some fits. Without it, the page has what the
            model itself knows: confidence, map, graph, and the samples to look at first.
        y : array-like of shape (n,), optional
            The y of `fit`; needed with X.
        present : as in `fit`, optional
            The `present` of `fit`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from lmssc import LMSSC
        >>> from lmssc.datasets import make_multiview
        >>> data = make_multiview(100, labelled=0.2, random_state=0)
        >>> clf = LMSSC(max_iter=2).fit(data.views, data.y)
        >>> path = Path(tempfile.mkdtemp()) / "report.html"
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
        """Change, in place, what an earlier version of lmssc (`saved_by`) saved into what this one would have saved.

        Called by `lmssc.load` for every model. A parameter that is missing gets its default without it; a fitted
        attribute that `predict` needs and that earlier versions did not have is to be filled in here.
        """
        if "_order" in fitted:
            fitted.setdefault("_nodes", np.argsort(fitted["_order"].samples))
            fitted.setdefault("_linked", np.ones(len(fitted["_order"].views), dtype=bool))
            if "latent_" in fitted:
                fitted.setdefault("_groups", None)
            fitted.setdefault("_view_groups", np.zeros(len(fitted["_order"].views), dtype=np.intp))
        fitted.setdefault("_fills", {})
        fitted.setdefault("imputed_", {})

    def most_uncertain(self, n: int) -> NDArray:
        """The unlabelled samples about which least is certain: those to be looked at before an answer is used.

        Parameters
        ----------
        n : int
            How many; all that there are if there are fewer.

        Returns
        -------
        ndarray of int
            Rows of the X of `fit`, the least certain first: samples that no label reaches, then those whose two
            likeliest classes are closest. They are often alike: to choose labels, take `most_informative`.

        Examples
        --------
        >>> from lmssc import LMSSC
        >>> from lmssc.datasets import make_multiview
        >>> data = make_multiview(200, labelled=0.1, random_state=2)
        >>> clf = LMSSC().fit(data.views, data.y)
        >>> rows = clf.most_uncertain(20)
        >>> bool((clf.transduction_ == data.target)[rows].mean() < (clf.transduction_ == data.target).mean())
        True
        """
        return self._by_doubt(self._doubts(n))[:n]

    def most_informative(self, n: int) -> NDArray:
        """The unlabelled samples to be labelled next: those whose labels would settle most doubt about all samples.

        They are uncertain, have many uncertain samples near them in `graph_`, and do not say the same as one another;
        large parts of the graph that no label reaches come first. Label them, fit again, and ask again: several batches
        are better than a large one.

        Parameters
        ----------
        n : int
            How many; all that there are if there are fewer.

        Returns
        -------
        ndarray of int
            Rows of the X of `fit`, the most informative first; of identical samples one, and none if one of them
            has a label, until all others are in.

        Notes
        -----
        Greedy, by a form of Σ-optimality on the graph that is weighted by the doubt about each sample; see
        `lmssc.core.active.sigma_optimal_batch`. Each choice takes one sparse solve: half a second at 100,000 samples.

        Examples
        --------
        >>> from lmssc import LMSSC
        >>> from lmssc.datasets import make_multiview
        >>> data = make_multiview(200, labelled=0.1, random_state=0)
        >>> clf = LMSSC().fit(data.views, data.y)
        >>> before = (clf.transduction_ == data.target).mean()
        >>> rows = clf.most_informative(20)
        >>> data.y[rows] = data.target[rows]  # ask someone
        >>> bool((clf.fit(data.views, data.y).transduction_ == data.target).mean() > before)
        True
        """
        doubt, samples = self._doubts(n), self._order.samples
        labelled = np.isin(np.arange(len(samples)), self._nodes[self._labelled])
        graph = self.graph_[samples][:, samples].tocsr()
        chosen = samples[sigma_optimal_batch(graph, doubt, labelled, ~labelled, n)]
        rest = self._by_doubt(doubt)
        return np.concatenate([chosen, rest[~np.isin(rest, chosen)]])[:n]

    def _doubts(self, n: int) -> NDArray:
        """The doubt about each distinct sample, of which a batch of n is wanted."""
        check_is_fitted(self)
        if not COUNT.accepts(n):
            raise ValueError(f"n must be {COUNT.wanted}, got {n!r}")
        return doubts(self.label_distributions_, self.unreached_)[self._order.samples]

    def _by_doubt(self, doubt: NDArray) -> NDArray:
        """Rows without a label, those of most doubt first; ties go by content."""
        rows = np.flatnonzero(~self._labelled)
        nodes = self._nodes[rows]
        return rows[np.lexsort((nodes, -doubt[nodes]))]

    def _progress(self) -> Any:
        """The user's callback, after a printed line if `verbose`."""

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
        # One X without `views` is one view: a row of NaN would be a sample without any.
        tags.input_tags.allow_nan = self.views is not None or self._takes_gaps(reset=True)
        return tags


def _columns(block: Any, columns: NDArray) -> Any:
    """Some columns; if they are adjacent as a slice, which copies and reads nothing."""
    adjacent = isinstance(block, np.ndarray) and (np.diff(columns) == 1).all()
    return block[:, columns[0] : columns[-1] + 1] if adjacent else block[:, columns]


def _columns_of_frames(X: Any) -> dict[str, list[str]]:
    return {name: frame_columns(part) for name, part in name_parts(X).items() if is_frame(part)}


def resolve_neighbors(n_neighbors: int | str, n_distinct: int, default: int, n_samples: int | None = None) -> int:
    """k: the number given, or `default`; no more than there are other distinct samples.

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


def find_targets(nodes: NDArray, codes: NDArray, keys: NDArray, n_classes: int) -> tuple[Targets, NDArray]:
    """Targets of the distinct samples, and the classes in an order by content: by which samples have them.

    Parameters
    ----------
    nodes : ndarray of int of shape (n,)
        The distinct sample that each sample is a copy of, ascending.
    codes : ndarray of int of shape (n,)
        Class of each, −1 without a label.
    keys : ndarray of shape (m,)
        Keys of the distinct samples.
    n_classes : int
        Number of classes.

    Returns
    -------
    targets : Targets
        Classes in that order.
    class_order : ndarray of int of shape (n_classes,)

    Examples
    --------
    >>> targets, order = find_targets(np.array([0, 0, 0, 1]), np.array([0, 1, 1, -1]), np.array([5, 7], np.uint64), 2)
    >>> order, targets.shares.round(2)
    (array([1, 0]), array([[0.67, 0.33]]))
    """
    pairs, numbers = np.unique(nodes.astype(np.int64) * (n_classes + 1) + codes + 1, return_counts=True)
    # Where all samples are repeated alike, so many copies count as one.
    repeats = int(np.gcd.reduce(numbers))
    numbers //= repeats
    node, code = np.divmod(pairs, n_classes + 1)
    labels = code > 0
    node, code, number = node[labels], code[labels] - 1, numbers[labels]
    # By the first sample that has the class, then by how many copies of it do, then by all samples that have it.
    first = np.unique(code, return_index=True)[1]
    signature = np.zeros(n_classes, dtype=np.uint64)
    np.add.at(signature, code, splitmix64(keys[node] ^ number.astype(np.uint64)))
    class_order = np.lexsort((signature, -number[first], node[first]))
    rank = np.argsort(class_order)
    labelled = codes >= 0
    where, ranks = nodes[labelled], rank[codes[labelled]]
    if (keys == keys[0]).all():  # two copies stand for all
        where, ranks = np.repeat([0, 1], len(ranks)), np.tile(ranks, 2)
    return Targets.from_labels(where, ranks, len(keys), n_classes, repeats), class_order


def in_input_order(items: Sequence[Any] | NDArray, order: CanonicalOrder) -> list[Any]:
    """Things of the views in content order, put into the order in which the views came."""
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
