"""Saving and loading of fitted classifiers: the classes that a model file may name, and the check of what it holds."""

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from lmssc.estimators.amgl import AMGL
from lmssc.estimators.fitted_state import check_fitted
from lmssc.estimators.gfhf import GFHF
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.lmssc_cv import LMSSCCV
from lmssc.estimators.mlan import MLAN
from lmssc.estimators.serializable import SERIALIZABLE_TYPES
from lmssc.estimators.view_scaling import describe_scalings
from lmssc.estimators.worker_results import local_model
from lmssc.persistence.codec import RUNTIME_PARAMS, TypeTable
from lmssc.persistence.model_file import read_model_file, write_model

MODEL_TYPES = TypeTable({cls.__name__: cls for cls in (AMGL, GFHF, LMSSC, LMSSCCV, MLAN)}, SERIALIZABLE_TYPES)


def save(clf: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file that `load` reads.

    The file appears under its name once it is complete, and replaces an existing one. `callback`, `verbose`,
    `checkpoint` and `n_jobs` belong to one run and are not saved.

    Parameters
    ----------
    clf : classifier of lmssc
        Fitted.
    path : str or path
        Name of the file, by convention ending in ``.lmssc``.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the classifier is not fitted.
    TypeError
        If it holds something that is not data, such as a function or a random generator, or if its class is not one of
        lmssc itself.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lmssc import GFHF
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.2, random_state=0)
    >>> clf = GFHF().fit(data.views, data.y)
    >>> path = Path(tempfile.mkdtemp()) / "model.lmssc"
    >>> save(clf, path)
    >>> bool((load(path).predict(data.views) == clf.transduction_).all())
    True
    """
    if type(clf) in MODEL_TYPES.estimators.values():
        check_is_fitted(clf)
    write_model(path, local_model(clf), MODEL_TYPES)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a classifier that `clf.save(path)` wrote.

    Nothing in the file is run. A file with a wrong checksum is refused.

    Parameters
    ----------
    path : str or path
        Name of the file.

    Returns
    -------
    classifier
        Fitted, with the same answers as when it was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged or truncated, or was written by a later version. It is a `ValueError`.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import lmssc, tempfile
    >>> path = tempfile.mkdtemp() + "/model.lmssc"
    >>> data = lmssc.datasets.make_multiview(60, labelled=0.2, random_state=0)
    >>> lmssc.AMGL().fit(data.views, data.y).save(path)
    >>> lmssc.load(path)
    AMGL()
    """
    return read_model(path)[0]


def read_model(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Read a classifier and what its file records about itself.

    Returns
    -------
    clf : classifier
        As `load` returns it.
    about : dict
        format_version, bytes, the date, and the versions of lmssc and its dependencies that wrote the file.
    """
    return read_model_file(path, MODEL_TYPES, check_fitted)


def describe_model(clf: Any, about: dict[str, Any]) -> dict[str, Any]:
    """Summary of a classifier and its file, in JSON values.

    Parameters
    ----------
    clf : classifier of lmssc
        Fitted.
    about : dict
        What `read_model` returns about the file.

    Returns
    -------
    dict
        class, made, format_version, bytes, samples, labelled, unreached, iterations, converged, views, graphs, classes
        and parameters; None for what is not known.
    """
    labelled = getattr(clf, "_labelled", None)
    scalings = describe_scalings(clf)
    return {
        "class": type(clf).__name__,
        "format_version": about["format_version"],
        "bytes": about["bytes"],
        "made": {name: value for name, value in about.items() if name not in ("format_version", "bytes")},
        "samples": len(clf.transduction_),
        "labelled": None if labelled is None else int(labelled.sum()),
        "unreached": len(clf.unreached_),
        "iterations": int(clf.n_iter_),
        "converged": bool(clf.converged_) if hasattr(clf, "converged_") else None,
        "views": [
            {"name": name, "features": width, "scaling": scalings.get(name)}
            for name, width in zip(clf.view_names_, clf._layout.widths, strict=True)
        ],
        "graphs": [
            {
                "name": name,
                "weight": getattr(clf, "link_weights_", {}).get(name),
                "weighted": getattr(clf, "weighted_links_", {}).get(name),
            }
            for name in clf.graph_names_
        ],
        "classes": [
            {
                "label": label if isinstance(label, bool | int | str) else str(label),
                "labelled": None if labelled is None else int((clf.transduction_[labelled] == label).sum()),
                "samples": int((clf.transduction_ == label).sum()),
            }
            for label in clf.classes_.tolist()
        ],
        "parameters": {
            name: repr(value) for name, value in clf.get_params(deep=False).items() if name not in RUNTIME_PARAMS
        },
    }
