"""Data sets that rules are developed and judged on, by name, as views and classes.

The sets of `lmssc datasets`, two of scikit-learn, four more files with links and texts (Cora, ACM, 3Sources, Movies; in
the folder that `$LMSSC_DATA` names), the sets of wheel_data.py, and principal components of three of them, which stand
in for data that come as components, such as genomes.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from scipy import io, sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from wheel_data import DATASETS

from lmssc.datasets import load

WHEELS = pooch.os_cache("lmssc") / "wheels"
KNOWN = ("bbc", "sonar", "handwritten", "reuters", "msrc", "bbcsport", "leaves", "digits")
FILES = {"cora": "Cora.mat", "acm": "ACM.mat", "3sources": "3Sources.mat", "movies": "Movies.mat"}
COLUMNS: dict[str, tuple[Callable[[], Any], dict[str, slice]]] = {
    "cancer": (load_breast_cancer, {"mean": slice(10), "error": slice(10, 20), "worst": slice(20, 30)}),
    "wine": (load_wine, {"acids": slice(5), "phenols": slice(5, 9), "colours": slice(9, 13)}),
}
COMPONENTS = {"handwritten_pca": "handwritten", "msrc_pca": "msrc", "mnist_pca": "mnist"}
N_COMPONENTS = 60
# The slowest come last, so that a run that is stopped has most of the sets.
SLOW = ("leaves", "ng20", "r8", "r52", "handwritten", "reuters", "cora", "acm")
NAMES = [*sorted({*KNOWN, *FILES, *COLUMNS, *DATASETS, *COMPONENTS} - {*SLOW}), *SLOW]


def load_views(name: str, wheels: Path = WHEELS) -> tuple[dict[str, Any], Any]:
    """Views by name, and the class of each sample."""
    if name in COMPONENTS:
        views, target = load_views(COMPONENTS[name], wheels)
        return {view: _components(data, len(target)) for view, data in views.items()}, target
    if name in KNOWN:
        data = load(name)
        return dict(zip(data.view_names, data.views, strict=True)), data.target
    if name in COLUMNS:
        data, columns = COLUMNS[name][0](), COLUMNS[name][1]
        return {view: data.data[:, part] for view, part in columns.items()}, data.target
    return _matlab(FILES[name]) if name in FILES else DATASETS[name](wheels)


def _components(view: Any, n_samples: int) -> Any:
    """Scores of the first principal components of a view."""
    view = np.asarray(view.toarray() if sparse.issparse(view) else view, dtype=float)
    return PCA(min(N_COMPONENTS, view.shape[1], n_samples // 3), random_state=0).fit_transform(view)


def _matlab(file: str) -> tuple[dict[str, Any], Any]:
    """The views `X` and classes `y` of a MATLAB file; views that are mostly zeros as CSR."""
    content = io.loadmat(Path(os.environ["LMSSC_DATA"]) / file)
    target = content["y"].ravel()
    views = {}
    for i, view in enumerate(content["X"].ravel()):
        dense = np.asarray(view.toarray() if sparse.issparse(view) else view, dtype=float)
        dense = dense if len(dense) == len(target) else dense.T
        views[f"v{i}"] = sparse.csr_array(dense) if (dense != 0).mean() < 0.2 else dense
    return views, target
