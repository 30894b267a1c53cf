"""What all classifiers here share: views, labels, order, the answer for known and for new samples."""

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from lmssc.alternation import Progress
from lmssc.inputs import (
    Layout,
    Masks,
    frame_columns,
    is_frame,
    is_view_collection,
    make_raw_views,
    name_parts,
    read_block,
    read_collection,
    read_layout,
)
from lmssc.labels import encode_labels, known_labels
from lmssc.order import ContentOrder, content_order, duplicate_groups, sample_keys
from lmssc.parameters import COUNT, Rule, check_parameters
from lmssc.queries import doubts, informative
from lmssc.scaling import fit_scalings, scale_views, scaling_by_view
from lmssc.threads import threaded_map
from lmssc.views import RawView, Views, stored_like

# New samples that are answered at a time, unless the fit had more: what a search needs is then made once for many.
FEWEST_AT_ONCE = 10_000


@dataclass(frozen=True)
class Problem:
    """What a method solves: views and class codes, with samples, views and classes in an order of their own."""

    views: list[RawView]
    codes: NDArray
    n_classes: int


@dataclass(frozen=True)
class Solution:
    """What a method answers: class scores F, the graph S, and the samples that no label reaches."""

    scores: NDArray
    graph: sparse.csr_array
    unreached: NDArray


class MultiViewClassifier(ClassifierMixin, BaseEstimator):
    """Semi-supervised classifier of several views.

    A subclass says how a `Problem` becomes a `Solution` (`_solve`) and what new samples get (`_extend`); or it has a
    `_fit` and `predict_proba` of its own. Inside, samples, views and classes are numbered by content, so that permuting
    the input permutes the answer and nothing else.
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
        check_parameters(self, self._rules)
        before = dict(vars(self))
        try:
            with self._threads():
                self._fit(X, y, present)
        except BaseException:
            # Nothing half-done: what was fitted before stays, and nothing of this attempt does.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _threads(self) -> AbstractContextManager[None]:
        """What a fit and a prediction are within: a limit of the threads."""
        return nullcontext()

    def _fit(self, X: Any, y: ArrayLike, present: Masks) -> None:
        raws = self._read_views(X, y=y, present=present, reset=True)
        classes, codes = encode_labels(y, raws[0].data.shape[0])
        order = content_order(raws, codes)
        ranked = codes[order.samples]
        first_seen = np.unique(ranked[ranked >= 0], return_index=True)[1]
        class_order = np.argsort(first_seen)
        rank = np.append(np.argsort(class_order), -1)
        views = threaded_map(lambda v: self._pick(raws[v], order.samples), order.views)
        problem = Problem(views, rank[ranked], len(classes))

        self._order, self._class_order = order, class_order
        self._labelled = codes >= 0
        self.classes_ = classes
        self._store(self._solve(problem), problem)

    def _pick(self, raw: RawView, rows: NDArray) -> RawView:
        """Some samples of a view, which stays on disk if it is there and the method can do without the whole."""
        return raw.map(rows) if self._maps_views else raw.take(rows)

    def _solve(self, problem: Problem) -> Solution:
        """Solve the problem and store what only this method has."""
        raise NotImplementedError

    def _extend(self, raws: list[RawView]) -> NDArray:
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
        self._storage = [raw.data[:0].copy() for raw in problem.views]
        # They are copies in an order of their own, and no one else's.
        return scale_views(problem.views, self._scalings, in_place=True)

    def _scale_new(self, raws: Sequence[RawView]) -> Views:
        """New samples, scaled and stored like those of fit, so that their `points` are shifted alike."""
        alike = [
            replace(raw, data=stored_like(example, raw.data)) for raw, example in zip(raws, self._storage, strict=True)
        ]
        return scale_views(alike, self._scalings)

    def _store(self, solution: Solution, problem: Problem) -> None:
        """Store the answer in the user's order."""
        groups = duplicate_groups(self._order.keys, problem.codes)
        scores = np.maximum(solution.scores, 0)
        if groups[-1] + 1 < len(groups):
            # Identical samples get identical answers, whichever way ties between them were broken.
            sums = np.zeros((groups[-1] + 1, scores.shape[1]), dtype=scores.dtype)
            np.add.at(sums, groups, scores)
            scores = sums[groups]
        distributions = np.empty_like(scores)
        distributions[:, self._class_order] = scores / scores.sum(axis=1, keepdims=True)
        self.label_distributions_ = self._to_input(distributions)
        self.transduction_ = self._decide(self.label_distributions_)
        position = self._to_input(np.arange(len(scores)))
        self.graph_ = solution.graph[position][:, position].tocsr()
        self.graph_.sort_indices()
        self.unreached_ = np.sort(self._order.samples[solution.unreached])
        if len(self.unreached_):
            warnings.warn(
                f"{len(self.unreached_)} of {len(scores)} samples are in parts of the graph without a label; they get "
                "the frequencies of the labelled classes and are listed in unreached_. Label one of them, or raise "
                "n_neighbors",
                UserWarning,
                stacklevel=4,
            )

    def _to_input(self, rows: NDArray) -> NDArray:
        """Rows in content order, put into the order in which the samples came."""
        restored = np.empty_like(rows)
        restored[self._order.samples] = rows
        return restored

    def _decide(self, distributions: NDArray) -> NDArray:
        """Most likely class of each row; a tie goes by content, not by the names of the classes."""
        return self.classes_[self._class_order[distributions[:, self._class_order].argmax(axis=1)]]

    def _read_views(self, X: Any, *, present: Masks, reset: bool, y: Any = "no_validation") -> list[RawView]:
        """Views of X in the order of the user; `reset` in fit, else they must match those of fit."""
        least = 2 if reset else 1
        if is_view_collection(X):
            blocks = read_collection(X, least)
            if reset:
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
                blocks = self._match(blocks, by_name=not isinstance(X, list | tuple))
                self._match_columns(X)
        else:
            block = read_block(X, "X", least)
            validate_data(self, X=X if hasattr(X, "shape") else block, y=y, reset=reset, skip_check_array=True)
            if reset:
                self._layout = read_layout(self.views, block.shape[1], frame_columns(X) if is_frame(X) else None)
            blocks = {
                name: _columns(block, columns)
                for name, columns in zip(self._layout.names, self._layout.columns, strict=True)
            }
        self.view_names_ = list(self._layout.names)
        return make_raw_views(blocks, present)

    def _match(self, blocks: dict[str, Any], by_name: bool) -> dict[str, Any]:
        """Blocks given after fit, in the order of fit; an error if they are not the views of fit."""
        names, widths = self._layout.names, self._layout.widths
        if len(blocks) != len(names):
            raise ValueError(
                f"X has {len(blocks)} views, but {type(self).__name__} was fitted with {len(names)}: {names}"
            )
        if by_name and set(blocks) != set(names):
            raise ValueError(f"X has the views {sorted(blocks)}, but {type(self).__name__} was fitted with {names}")
        chosen = [blocks[name] for name in names] if by_name else list(blocks.values())
        for name, width, block in zip(names, widths, chosen, strict=True):
            if block.shape[1] != width:
                raise ValueError(
                    f"view {name!r} has {block.shape[1]} features, but {type(self).__name__} was fitted with {width}"
                )
        return dict(zip(names, chosen, strict=True))

    def _match_columns(self, X: Any) -> None:
        """Frames given after fit have the columns of fit, in the same order."""
        names = self._layout.names
        found = _columns_of_frames(X)
        if not isinstance(X, Mapping):
            found = {name: found[f"view{v}"] for v, name in enumerate(names) if f"view{v}" in found}
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
                strangers = raws if new.all() else [self._pick(raw, np.flatnonzero(new)) for raw in raws]
                scores = np.maximum(self._extend(strangers), 0)
                result[np.ix_(new, self._class_order)] = scores / scores.sum(axis=1, keepdims=True)
        return result

    def _recognise(self, keys: NDArray) -> tuple[NDArray, NDArray]:
        """Distributions of the samples that were in fit, and which were not."""
        known = self._order.keys
        # Of identical samples the labelled ones come last, and a label says more than what was propagated.
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
        from lmssc.persistence import save

        save(self, path)

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        """Change, in place, what an earlier version of lmssc (`saved_by`) saved into what this one would have saved.

        Called by `lmssc.load` for every model. A parameter that is missing gets its default without it; a fitted
        attribute that `predict` needs and that earlier versions did not have is to be filled in here.
        """

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
        samples, labelled, doubt = self._doubts(n)
        order = np.argsort(-doubt, kind="stable")
        return samples[order[~labelled[order]]][:n]

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
        `lmssc.queries.informative`. Each choice takes one sparse solve: half a second at 100,000 samples.

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
        samples, labelled, doubt = self._doubts(n)
        keys = self._order.keys
        news = np.concatenate([[True], keys[1:] != keys[:-1]]) & ~np.isin(keys, keys[labelled])
        graph = self.graph_[samples][:, samples].tocsr()
        chosen = informative(graph, doubt, labelled, news, n)
        rest = np.argsort(-doubt, kind="stable")
        rest = rest[~labelled[rest] & ~np.isin(rest, chosen)]
        return samples[np.concatenate([chosen, rest])][:n]

    def _doubts(self, n: int) -> tuple[NDArray, NDArray, NDArray]:
        """Rows in content order, so that ties go by it; in that order, which have a label, and the doubt about each."""
        check_is_fitted(self)
        if not COUNT.accepts(n):
            raise ValueError(f"n must be {COUNT.wanted}, got {n!r}")
        samples = self._order.samples
        return samples, self._labelled[samples], doubts(self.label_distributions_, self.unreached_)[samples]

    def _progress(self) -> Any:
        """The user's callback, after a printed line if `verbose`."""

        def report(progress: Progress) -> None:
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
        return tags


def _columns(block: Any, columns: NDArray) -> Any:
    """Some columns; if they are adjacent as a slice, which copies and reads nothing."""
    adjacent = isinstance(block, np.ndarray) and (np.diff(columns) == 1).all()
    return block[:, columns[0] : columns[-1] + 1] if adjacent else block[:, columns]


def _columns_of_frames(X: Any) -> dict[str, list[str]]:
    return {name: frame_columns(part) for name, part in name_parts(X).items() if is_frame(part)}


def resolve_neighbors(n_neighbors: int | str, n_samples: int, default: int) -> int:
    """k: the number given, or `default` where there are enough samples.

    Examples
    --------
    >>> resolve_neighbors("auto", 1000, 10), resolve_neighbors("auto", 6, 10)
    (10, 4)
    """
    if isinstance(n_neighbors, str):
        return max(1, min(default, n_samples - 2))
    if n_neighbors >= n_samples:
        raise ValueError(f"n_neighbors={n_neighbors} must be less than the number of samples, {n_samples}")
    return int(n_neighbors)


def in_input_order(items: Sequence[Any] | NDArray, order: ContentOrder) -> list[Any]:
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
