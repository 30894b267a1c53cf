"""`lmssc.read_anndata`: views, labels, ids and masks of AnnData and MuData; `lmssc.annotate`: the answers go back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.data.graph_view import Graph
from lmssc.data.view_dict import ViewDict
from lmssc.data.warn_caller import warn_caller
from lmssc.io.cells import Cells, is_links, open_cells
from lmssc.io.errors import InputFileError
from lmssc.io.match_model import order_features
from lmssc.io.outputs import prediction_columns
from lmssc.io.table import some


@dataclass(frozen=True)
class CellData:
    """Cells as `fit` takes them: ``clf.fit(cells.views, cells.labels, cells.present)``.

    Attributes
    ----------
    views : dict of str to array, csr_array or Graph
        A row for each cell; a cell that lacks a dense view has a row of NaN there.
    labels : ndarray of shape (n,), or None
        None where a cell has no label; None if no labels were asked for.
    ids : ndarray of str of shape (n,)
        Names of the cells, `obs_names`.
    present : dict of str to ndarray of bool
        Which cells have which view, for views that some cells lack.
    features : dict of str to list of str
        Names of the columns (`var_names`) of the views that have them.
    """

    views: ViewDict
    labels: NDArray | None
    ids: NDArray
    present: dict[str, NDArray]
    features: dict[str, list[str]]


def read_anndata(
    data: Any,
    views: Sequence[str] | Mapping[str, str] | str | None = None,
    labels: str | None = None,
    unlabelled: str | None = None,
    *,
    features: Mapping[str, Sequence[str]] | None = None,
) -> CellData:
    """Take views and labels from AnnData or MuData, in memory or in a file.

    Neither anndata nor mudata is needed: objects are read through their attributes, and files with h5py (``.zarr`` with
    zarr).

    Parameters
    ----------
    data : AnnData, MuData, str or path
        The cells, or a file that ends in .h5ad, .h5mu or .zarr.
    views : list of str, or dict of str to str, optional
        Matrices, each a view: ``"X"``, ``"raw"``, ``"layers:counts"``, ``"obsm:X_pca"``, ``"obsp:connectivities"``
        (links between cells, a :class:`Graph`), and in MuData ``"mod:rna"`` or ``"mod:rna/obsm:X_pca"``. A dict gives
        them other names: ``{"pca": "obsm:X_pca"}``. By default X, or the X of each modality.
    labels : str, optional
        Column of obs with the labels, such as ``"cell_type"``; in MuData also ``"mod:rna/obs:cell_type"``.
    unlabelled : str, optional
        Value that marks a cell without a label, besides missing values: ``"Unknown"``.
    features : dict of str to list of str, optional
        For each view, the columns that it must have, in this order: pass the `features` of the cells that a model was
        fitted to, and the views of new cells are put into the order of the model.

    Returns
    -------
    CellData
        Cells that have none of the views are left out, with a warning.

    See Also
    --------
    annotate : Writes the answers back.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import pandas as pd
    >>> obs = pd.DataFrame({"kind": ["T", "Unknown", "B"]}, index=["c1", "c2", "c3"])
    >>> adata = SimpleNamespace(obs=obs, obs_names=obs.index, obsm={"X_pca": np.eye(3)})
    >>> cells = read_anndata(adata, views=["obsm:X_pca"], labels="kind", unlabelled="Unknown")
    >>> list(cells.views), cells.labels, cells.ids
    (['obsm:X_pca'], array(['T', None, 'B'], dtype=object), array(['c1', 'c2', 'c3'], dtype=object))
    """
    cells = open_cells(data)
    keys = _view_keys(cells, views)
    blocks = {name: cells.matrix(key) for name, key in keys.items()}
    masks = {name: cells.present(key) for name, key in keys.items()}
    found = {name: cells.features(key) for name, key in keys.items()}
    for name, wanted in (features or {}).items():
        if name in blocks:
            blocks[name] = order_features(blocks[name], found[name] or [], wanted, f"{cells.path}: view {name!r}")
            found[name] = list(wanted)
    y = None if labels is None else _labels(cells, labels, unlabelled)
    keep = np.any(list(masks.values()), axis=0)
    ids = cells.names
    if not keep.all():
        warn_caller(
            f"{int((~keep).sum())} of {len(keep)} cells have none of the views {', '.join(keys)}; they are left out",
        )
        ids, y = ids[keep], None if y is None else y[keep]
        masks = {name: mask[keep] for name, mask in masks.items()}
        blocks = {n: b[keep][:, keep] if is_links(keys[n]) else b[keep] for n, b in blocks.items()}
    made = {name: Graph(block) if is_links(keys[name]) else block for name, block in blocks.items()}
    named = {name: list(names) for name, names in found.items() if names is not None}
    return CellData(
        ViewDict(made, ids=ids.tolist(), columns=named),
        y,
        ids,
        {name: mask for name, mask in masks.items() if not mask.all()},
        named,
    )


def _view_keys(cells: Cells, views: Sequence[str] | Mapping[str, str] | str | None) -> dict[str, str]:
    """Name → key of the views."""
    if views is None:
        if not cells.default:
            raise InputFileError(
                f"{cells.path} has no X; name the views: {some(cells.matrices, 12) or 'there are none'}"
            )
        return {key: key for key in cells.default}
    named = (
        views if isinstance(views, Mapping) else {key: key for key in ([views] if isinstance(views, str) else views)}
    )
    if not named:
        raise ValueError(f"views is empty; there are {some(cells.matrices, 12)}")
    return {str(name): cells.find_matrix(key) for name, key in named.items()}


def _labels(cells: Cells, name: str, unlabelled: str | None) -> NDArray:
    """Labels as objects, None for cells without one."""
    key = cells.find_column(name)
    if cells.columns[key] == "other":
        raise InputFileError(f"{cells.path}: obs column {name!r} holds neither numbers nor text")
    values = cells.column(key)
    whole = values.dtype.kind == "f" and bool((np.isnan(values) | (values == np.rint(values))).all())
    found = np.empty(len(values), dtype=object)
    for row, value in enumerate(values.tolist()):
        missing = value is None or value != value or str(value) == unlabelled
        found[row] = None if missing else int(value) if whole else value
    return found


@dataclass(frozen=True)
class Annotation:
    """What is known of cells, to be written: a row for each of `ids`.

    Attributes
    ----------
    ids : ndarray of str
        Names of the cells.
    labels, confidence, given : ndarray of shape (n,)
        Label as text, its probability, and whether it was given.
    distributions : ndarray of shape (n, c)
        A probability for each class.
    latent : ndarray of shape (n, r), or None
        Latent positions.
    about : dict of str to object
        Classes, method, version.
    """

    ids: NDArray
    labels: NDArray
    confidence: NDArray
    given: NDArray
    distributions: NDArray
    latent: NDArray | None
    about: dict[str, Any]

    def at(self, names: NDArray, where: str) -> "Annotation":
        """Bring the rows into the order of some cells; cells that the classifier has not seen are blank.

        Parameters
        ----------
        names : ndarray of str
            Names of the cells to annotate.
        where : str
            How messages call them.

        Returns
        -------
        Annotation
        """
        numbers = {name: row for row, name in enumerate(self.ids.tolist())}
        places = np.array([numbers.get(name, -1) for name in names.tolist()], dtype=np.int64)
        known = places >= 0
        if not known.any():
            raise ValueError(
                f"{where}: none of its cells is one that clf was fitted to (the first is {names[0]!r}, that of clf "
                f"{self.ids[0]!r}). To label new cells: clf.predict(lmssc.read_anndata(new, views=...).views)"
            )

        def spread(values: NDArray) -> NDArray:
            filled = np.full((len(names), *values.shape[1:]), np.nan)
            filled[known] = values[places[known]]
            return filled

        return Annotation(
            names,
            np.array([self.labels[row] if row >= 0 else None for row in places.tolist()], dtype=object),
            spread(self.confidence),
            known & self.given[places],
            spread(self.distributions),
            None if self.latent is None else spread(self.latent),
            self.about,
        )


def annotation(clf: Any, ids: NDArray) -> Annotation:
    """Gather what a fitted classifier knows of its cells.

    Parameters
    ----------
    clf : classifier
        Fitted.
    ids : ndarray of str
        Names of its samples.

    Returns
    -------
    Annotation
    """
    best = getattr(clf, "best_estimator_", clf)
    labels = best.transduction_
    confidence, _ = prediction_columns(best.label_distributions_, best.classes_, labels)
    about = {
        "classes": [str(name) for name in best.classes_.tolist()],
        "method": type(best).__name__,
        "version": metadata.version("lmssc"),
        "views": list(best.view_names_),
    }
    return Annotation(
        ids,
        np.array([str(label) for label in labels.tolist()], dtype=object),
        confidence.astype(np.float64),
        best._labelled,
        best.label_distributions_,
        getattr(best, "latent_", None),
        about,
    )


def annotate(adata: Any, clf: Any, key_added: str = "lmssc", *, ids: Sequence[str] | None = None) -> None:
    """Write the answers of a classifier into AnnData or MuData, aligned by `obs_names`.

    Adds, for ``key_added="lmssc"``: ``obs["lmssc_label"]`` (a category), ``obs["lmssc_confidence"]``,
    ``obs["lmssc_given"]`` (whether the label was given), ``obsm["lmssc_proba"]`` (a column for each of
    ``uns["lmssc"]["classes"]``), ``obsm["X_lmssc"]`` (latent positions) and ``uns["lmssc"]``. Cells that `clf` was not
    fitted to stay blank. Nothing else is changed.

    Parameters
    ----------
    adata : AnnData or MuData
        The cells, in any order.
    clf : classifier
        Fitted to the views of :func:`read_anndata`.
    key_added : str
        Prefix of all names that are added.
    ids : sequence of str, optional
        Names of the samples that `clf` was fitted to; needed if it was fitted to other arrays.

    See Also
    --------
    read_anndata : Views and labels from AnnData.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import pandas as pd
    >>> from lmssc import LMSSC, annotate, read_anndata
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat(["B", "T"], 20)
    >>> obs = pd.DataFrame({"kind": np.where(np.arange(40) % 4, None, kind)}, index=[f"c{i}" for i in range(40)])
    >>> pca = rng.normal(size=(40, 5)) + 3 * (kind == "T")[:, None]
    >>> adata = SimpleNamespace(obs=obs, obs_names=obs.index, obsm={"X_pca": pca}, uns={})
    >>> cells = read_anndata(adata, views=["obsm:X_pca"], labels="kind")
    >>> annotate(adata, LMSSC().fit(cells.views, cells.labels))
    >>> bool((adata.obs["lmssc_label"] == kind).all()), list(adata.obsm)
    (True, ['X_pca', 'lmssc_proba', 'X_lmssc'])
    """
    pandas = import_optional("pandas", purpose="annotations", extra="frames")
    if not hasattr(adata, "obs_names"):
        raise TypeError(
            f"adata must be an AnnData or MuData object, got {type(adata).__name__}; for a file: "
            "lmssc classify FILE --in-place"
        )
    names = np.array([str(name) for name in adata.obs_names], dtype=object)
    found = annotation(clf, _ids_of(clf, ids)).at(names, "adata")
    adata.obs[f"{key_added}_label"] = pandas.Categorical(found.labels, categories=found.about["classes"])
    adata.obs[f"{key_added}_confidence"] = found.confidence
    adata.obs[f"{key_added}_given"] = found.given
    adata.obsm[f"{key_added}_proba"] = found.distributions
    if found.latent is not None:
        adata.obsm[f"X_{key_added}"] = found.latent
    adata.uns[key_added] = {
        name: np.array(value, dtype=object) if isinstance(value, list) else value for name, value in found.about.items()
    }


def _ids_of(clf: Any, ids: Sequence[str] | None) -> NDArray:
    best = getattr(clf, "best_estimator_", clf)
    if not hasattr(best, "transduction_"):
        raise ValueError("clf is not fitted; fit it to the views of read_anndata first")
    own = getattr(clf, "ids_", None)
    if ids is None and own is None:
        raise ValueError(
            "clf does not know the names of its samples: fit it to the views of lmssc.read_anndata, or pass ids="
        )
    given: Sequence[str] = own if ids is None else ids  # type: ignore[assignment]
    names = np.array([str(name) for name in given], dtype=object)
    if len(names) != len(best.transduction_):
        raise ValueError(f"ids has {len(names)} names, but clf was fitted to {len(best.transduction_)} samples")
    return names
