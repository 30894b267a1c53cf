"""Data sets that rules are developed and judged on, by name, as views and classes.

The sets of `lmssc datasets`, two of scikit-learn, four more files with links and texts (Cora, ACM, 3Sources, Movies; in
the folder that `$LMSSC_DATA` names), the sets of wheel_data.py, and principal components of three of them, which stand
in for data that come as components, such as genomes. `STAND_INS` are simulated: many weak views, as of proteins, and a
signal that is spread thinly over all features, as of gene expression.
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
TEXTS = ("bbc", "bbcsport", "reuters", "3sources", "movies", "books", "opinions", "r8", "r52", "ng20", "cora", "acm")
NAMES = [*sorted({*KNOWN, *FILES, *COLUMNS, *DATASETS, *COMPONENTS} - {*SLOW}), *SLOW]


def _weak_views() -> tuple[dict[str, Any], Any]:
    """694 samples of 27 classes of unequal size in 12 views: factors of their own, and some say nothing at all."""
    rng = np.random.default_rng(1)
    target = rng.choice(27, 694, p=rng.dirichlet(np.full(27, 3.0)))
    views = {}
    for v in range(12):
        means = rng.choice([0, 0.3, 0.6, 1.0]) * rng.normal(size=(27, 4)) @ rng.normal(size=(4, 21)) / 2
        factors = 0.8 * rng.standard_t(5, size=(694, 6)) @ rng.normal(size=(6, 21))
        views[f"v{v}"] = means[target] + factors + rng.standard_t(5, size=(694, 21))
    return views, target


def _thin_signal() -> tuple[dict[str, Any], Any]:
    """400 samples of two classes in three views of 200 features, below 15 factors that all views share."""
    rng = np.random.default_rng(0)
    target = (rng.random(400) < 0.4).astype(int)
    factors = rng.normal(size=(400, 15)) * np.linspace(0.2, 2, 15)
    views = {}
    for v in range(3):
        effects = 0.24 * rng.normal(size=200) * (rng.random(200) < 0.5)
        noise = factors @ rng.normal(size=(15, 200)) * 0.5 + rng.normal(size=(400, 200))
        views[f"v{v}"] = target[:, None] * effects + noise
    return views, target


STAND_INS = {"weak_views": _weak_views, "thin_signal": _thin_signal}


def load_views(name: str, wheels: Path = WHEELS) -> tuple[dict[str, Any], Any]:
    """Views by name, and the class of each sample."""
    if name in STAND_INS:
        return STAND_INS[name]()
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
