"""A fit to dask arrays, whose results stay with the workers: what the estimator keeps of them here."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.cluster.dask_fit import find_client, open_client
from lmssc.cluster.dask_readers import DaskReaders
from lmssc.cluster.dask_results import SharedFolder, as_dask_array
from lmssc.cluster.dask_views import spool
from lmssc.core.one_class_components import shrink_some
from lmssc.core.parts.results import leave_rows
from lmssc.core.targets import Targets
from lmssc.data.file_lock import LockedFolder
from lmssc.data.shared_files import read_by, readers_of
from lmssc.data.validation import has_dask
from lmssc.estimators.problem import Solution, to_distributions


def local_model(model: Any) -> Any:
    """A model whose arrays can be read here: the same, or a twin that has memory maps in place of dask arrays."""
    twin: Twin | None = vars(model).get("_local")
    return model if twin is None else twin.model


@dataclass
class Twin:
    """A model with memory maps of the files that its dask arrays read; the labels are read when they are first needed.

    Attributes
    ----------
    fitted : LMSSC
        The model, without labels.
    codes : ndarray of int of shape (n,)
        Memory map of the classes of all samples.
    folder : SharedFolder
        Where the files are.
    """

    fitted: Any
    codes: NDArray
    folder: SharedFolder

    @cached_property
    def model(self) -> Any:
        """The model with labels, in memory."""
        self.fitted.transduction_ = self.fitted.classes_[self.codes]
        return self.fitted


class WorkerResultsMixin:
    """Fits dask arrays on a cluster; `transduction_`, `label_distributions_` and `latent_` are then dask arrays."""

    @contextmanager
    def _on_disk(self, X: Any) -> Iterator[Any]:
        """Views to fit: dask arrays are written to files by the workers of the cluster that the fit runs on."""
        vars(self).pop("_local", None)
        if not has_dask(X):
            yield X
            return
        checkpoint = self.checkpoint  # type: ignore[attr-defined]
        parent = None if checkpoint is None else str(Path(checkpoint).absolute().parent)
        results = SharedFolder(parent)
        with (
            open_client(find_client(self.client)) as client,  # type: ignore[attr-defined]
            LockedFolder("lmssc-views-", parent) as views,
            read_by(DaskReaders(client, results.path), views.path, results.path),
        ):
            self._client, self._shared = client, results.path
            try:
                yield spool(X, views.path)
            finally:
                del self._client, self._shared
        self._show_as_dask(results)

    def _accept(self, solution: Solution, targets: Targets, unlinked: NDArray) -> None:
        """Store a solution; one that is with the workers stays there, in the order of the input."""
        readers = readers_of(solution.scores)
        if readers is None:
            super()._accept(solution, targets, unlinked)  # type: ignore[misc]
            return
        model: Any = self
        model._refuse_empty_rows(solution)
        width = (len(model.classes_),)
        normalise = partial(to_distributions, class_order=model._class_order)
        rows = leave_rows(readers, normalise, solution.scores, model._nodes, width, solution.scores.dtype)
        if model._adjusts_confidence():
            self._lower_some(solution, targets, rows)
        model.label_distributions_ = rows
        everything = np.arange(len(rows))
        decide = partial(_codes, class_order=model._class_order)
        self._codes = leave_rows(readers, decide, rows, everything, (), np.dtype(np.int32))
        model.graph_ = model._graph_of_samples(solution.graph)
        model._set_unreached(solution.unreached, n_unlinked=0)

    def _lower_some(self, solution: Solution, targets: Targets, rows: NDArray) -> None:
        """Lower the confidence in components whose labels are all of one class, in the file of the distributions."""
        model: Any = self
        samples, shrunk, changed = shrink_some(solution.scores, solution.graph, targets, solution.one_class)
        model._warn_of_one_class(changed)
        if not len(samples):
            return
        order = np.argsort(samples)
        copies = np.flatnonzero(np.isin(model._nodes, samples))
        new = shrunk[order][np.searchsorted(samples[order], model._nodes[copies])]
        target = np.memmap(rows.filename, rows.dtype, "r+", 0, rows.shape)  # type: ignore[attr-defined, call-overload]
        target[copies[:, None], model._class_order] = new / new.sum(axis=1, keepdims=True)
        target.flush()

    def _show_as_dask(self, folder: SharedFolder) -> None:
        """Show the large results as dask arrays; a twin with memory maps answers what needs them here."""
        model: Any = self
        codes = vars(self).pop("_codes")
        model._local = Twin(copy(model), codes, folder)
        used = [
            codes,
            model.label_distributions_,
            model.latent_,
            model._embedded,
            model.graph_.data,
            model.graph_.indices,
        ]
        folder.keep([*used, *([] if model._opinion is None else [model._opinion.scores])])
        model.label_distributions_ = as_dask_array(model.label_distributions_, folder)
        model.latent_ = as_dask_array(model.latent_, folder)
        model.transduction_ = as_dask_array(codes, folder, model.classes_.__getitem__, model.classes_.dtype)


def _codes(distributions: NDArray, class_order: NDArray) -> NDArray:
    """Most likely class; ties are broken in canonical order."""
    return class_order[distributions[:, class_order].argmax(axis=1)]
