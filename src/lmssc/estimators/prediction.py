"""Answers for samples known from `fit` and for new ones: `predict_proba`, `predict` and `score`."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics import accuracy_score
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from lmssc.cluster.dask_views import map_blocks
from lmssc.core.sparse_scores import largest_entries, rename_columns, replace_rows
from lmssc.data.canonical_order import sample_keys
from lmssc.data.labels import known_labels
from lmssc.data.link_order import link_keys
from lmssc.data.missing_views import has_any_view
from lmssc.data.scorer_guard import warn_of_scored_unlabelled
from lmssc.data.validation import Masks, check_rows, has_dask
from lmssc.data.view import RawView
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.graph_links import GraphLinksMixin
from lmssc.estimators.new_input import NewInputMixin
from lmssc.estimators.view_scaling import ViewScalingMixin
from lmssc.estimators.worker_results import local_model

# New samples are answered in batches of max(10 000, samples of `fit`), which amortises building the neighbour search.
MIN_BATCH_SIZE = 10_000


class PredictionMixin(NewInputMixin, ViewScalingMixin, GraphLinksMixin):
    """Recognises the samples of `fit`, and asks the method for the scores of all others."""

    # Whether `_fit_method` accesses views only through their products, so that they can stay on disk.
    _maps_views = False
    classes_: NDArray
    label_distributions_: NDArray
    unreached_: NDArray
    _class_order: NDArray
    _labelled: NDArray
    _linked: NDArray

    @property
    def _counted(self) -> NDArray:
        """Which samples of `fit` have a label that counts."""
        return self._labelled

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
            Non-negative rows that sum to 1, columns as in `classes_`. A CSR array if `label_distributions_` is one.
        """
        check_is_fitted(self)
        if has_dask(X):
            return map_blocks(local_model(self), "predict_proba", X, {"present": present})
        if local_model(self) is not self:
            return local_model(self).predict_proba(X, present)
        warn_of_scored_unlabelled()
        raws = self._read_views(X, present=present)
        raws = [raws[v] for v in self._order.views]
        n_samples = raws[0].data.shape[0]
        links = self._read_links(X, raws)
        batch_size = max(MIN_BATCH_SIZE, len(self._order.samples))
        if n_samples <= batch_size:
            return self._answer(raws, links)
        batches = gen_batches(n_samples, batch_size)
        parts = (self._answer([raw.take(rows) for raw in raws], [one[rows] for one in links]) for rows in batches)
        if sparse.issparse(self.label_distributions_):
            return sparse.vstack(list(parts), format="csr")
        result = np.empty((n_samples, len(self.classes_)), dtype=self.label_distributions_.dtype)
        for rows, part in zip(gen_batches(n_samples, batch_size), parts, strict=True):
            result[rows] = part
        return result

    def _answer(self, raws: list[RawView], links: list[sparse.csr_array]) -> NDArray:
        """Distributions over the classes; views and graphs in canonical order."""
        with self._threads():
            keys = sample_keys(raws)
            result, new = self._known_answers(link_keys(keys, links) if links else keys)
            if new.any():
                unknown_rows = raws if new.all() else [self._select_rows(raw, np.flatnonzero(new)) for raw in raws]
                unknown_links = [one[np.flatnonzero(new)] for one in links]
                found = self._predict_linked(unknown_rows, unknown_links) if links else self._predict_new(unknown_rows)
                result = self._put_scores(result, np.flatnonzero(new), found)
                if not self._linked.all():
                    lost = np.flatnonzero(new)[~has_any_view(unknown_rows, self._linked)]
                    result = _put_rows(result, lost, self.label_distributions_[self.unreached_[:1]])
                wordless = np.flatnonzero(new)[self._lack_words(unknown_rows)]
                if len(wordless):
                    usual = self.label_distributions_[self._counted].mean(axis=0)[None]
                    result = _put_rows(result, wordless, usual)
                    warn_caller(
                        f"{len(wordless)} new samples have only zeros in their views, all of which are scaled as text: "
                        "they have no word in common with the samples of fit and get the class frequencies",
                    )
        return result

    def _put_scores(self, result: Any, rows: NDArray, found: Any) -> Any:
        """The result with the scores of some rows, whose classes are in canonical order, as distributions."""
        if sparse.issparse(found):
            return replace_rows(result, rows, rename_columns(found, self._class_order))
        scores = np.maximum(found, 0)
        result[np.ix_(rows, self._class_order)] = scores / scores.sum(axis=1, keepdims=True)
        return result

    def _known_answers(self, keys: NDArray) -> tuple[NDArray, NDArray]:
        """Distributions of samples of `fit` by their hashes, and a mask of samples that are new, whose row is any."""
        nodes, new = self._recognise(keys)
        return self.label_distributions_[self._order.samples[nodes]], new

    def _recognise(self, keys: NDArray) -> tuple[NDArray, NDArray]:
        """Nodes of `fit` by the hashes of samples, and a mask of samples that are new, whose node is any."""
        known, nodes = self._order.keys, np.arange(len(self._order.keys))
        if self._link_keys is not None:  # sorted by content, and not by these
            nodes = np.argsort(self._link_keys, kind="stable")
            known = self._link_keys[nodes]
        place = np.searchsorted(known, keys, side="right") - 1
        return nodes[place], known[place] != keys

    def predict(self, X: Any, present: Masks = None) -> NDArray:
        """Most likely class of each sample, known from fit or new.

        Parameters
        ----------
        X, present : as in `fit`

        Returns
        -------
        ndarray of shape (n,)
        """
        if has_dask(X):
            check_is_fitted(self)
            return map_blocks(local_model(self), "predict", X, {"present": present})
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
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"y has {np.shape(y)[1]} columns: score needs one true label for each sample, not a distribution; use "
                "the most likely class of each row"
            )
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

    def _decide(self, distributions: NDArray) -> NDArray:
        """Most likely class of each row; ties are broken in canonical order, not by the names of the classes."""
        if sparse.issparse(distributions):
            best = largest_entries(rename_columns(distributions, np.argsort(self._class_order)), 1).indices
        else:
            best = distributions.take(self._class_order, axis=1).argmax(axis=1)
        return self.classes_[self._class_order[best]]

    def _threads(self) -> AbstractContextManager[None]:
        """Context that limits the threads of a fit or a prediction."""
        return nullcontext()

    def _select_rows(self, raw: RawView, rows: NDArray) -> RawView:
        """Some samples of a view, which stays on disk if the method allows it."""
        return raw.map(rows) if self._maps_views else raw.take(rows)

    def _predict_new(self, raws: list[RawView]) -> NDArray:
        """Class scores of new samples, with a positive score in each row; classes and views in canonical order.

        `_known_distributions` has the answers for the samples of `fit`, `_scale_new` scales the views.
        """
        raise NotImplementedError

    def _known_distributions(self) -> NDArray:
        """Distributions of the distinct samples of `fit`; samples and classes in canonical order."""
        if sparse.issparse(self.label_distributions_):
            return rename_columns(self.label_distributions_[self._order.samples], np.argsort(self._class_order))
        return self.label_distributions_[np.ix_(self._order.samples, self._class_order)]


def _put_rows(result: Any, rows: NDArray, usual: Any) -> Any:
    """The result with one distribution, a single row, in some rows."""
    if sparse.issparse(result):
        usual = sparse.csr_array(usual)
        return replace_rows(result, rows, largest_entries(usual)[np.zeros(len(rows), dtype=np.intp)])
    result[rows] = usual
    return result
