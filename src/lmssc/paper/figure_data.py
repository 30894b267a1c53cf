"""Data of the figures, computed once and cached in files, so that a second run resumes where the first ended."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import learn_graph, usual_neighbors
from lmssc.core.initialization import initialize
from lmssc.data.n_jobs import worker_count
from lmssc.data.scaling import WORDS, fit_scalings, scale_views
from lmssc.data.view import RawView
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.neighbor_count import resolve_neighbors
from lmssc.evaluation.comparison import compare
from lmssc.evaluation.methods import fit_and_answer, resolve_methods, scaled_concatenation
from lmssc.evaluation.runs import Data
from lmssc.evaluation.splits import stratified_split
from lmssc.metrics import mean_interval
from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.provenance import version

# The paper names no range of β and γ. This one includes the grid of its program and our defaults.
DIMENSIONS = (5, 10, 15, 20, 25)
PANELS = DIMENSIONS[:3]
SENSITIVITY_RATE = 0.2


@dataclass(frozen=True)
class Grid:
    """Values of r, β and γ, and the number of splits."""

    dimensions: tuple[int, ...]
    betas: tuple[float, ...]
    gammas: tuple[float, ...]
    repeats: int


WIDE = Grid(DIMENSIONS, (0.001, 0.01, 0.1, 1.0, 10.0), (0.001, 0.01, 0.1, 1.0, 10.0), repeats=10)
# Smaller, because Algorithm 1 takes about twenty times as long.
PUBLISHED = Grid(PANELS, (0.01, 0.1, 1.0), (0.1, 1.0, 10.0), repeats=5)

FIT_RATE, FIT_SEED = 0.2, 0
CALIBRATION_METHODS = ("LMSSC", "LabelSpreading", "SVC (RBF)")
CALIBRATION_RATES, CALIBRATION_REPEATS = (0.1, 0.2), 5


@dataclass(frozen=True)
class FigureSet:
    """One data set as the figures need it.

    Attributes
    ----------
    name : str
        Its name.
    data : Data
        Its views and classes.
    class_names : ndarray of str
        Name of each class.
    cache : Path
        Folder of the cached arrays.
    jobs : int
        Number of processes.
    """

    name: str
    data: Data
    class_names: NDArray
    cache: Path
    jobs: int

    @classmethod
    def from_bunch(cls, name: str, bunch: Any, cache: Path, jobs: int) -> "FigureSet":
        """Make one from the Bunch of a loader."""
        data = Data.read(dict(zip(bunch.view_names, bunch.views, strict=True)), bunch.target)
        return cls(name, data, np.array([str(label) for label in bunch.target_names]), cache, jobs)

    def shuffled(self, rate: float, seed: int) -> tuple[NDArray, list[RawView], NDArray]:
        """Shuffle the rows: the order, the views, and the labels with −1 for the held-out ones."""
        order, given = stratified_split(self.data.codes, rate, seed)
        return order, [raw.take(order) for raw in self.data.raws], np.where(given, self.data.codes[order], -1)

    def remember(
        self, what: str, settings: list[Any], compute: Callable[[], Mapping[str, NDArray]]
    ) -> dict[str, NDArray]:
        """Read arrays from the cache, or compute and cache them."""
        content = [version("lmssc"), self.data.key, what, *settings]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
        path = self.cache / f"{what}-{self.name}-{key}.npz"
        if not path.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            arrays = compute()
            with open_atomically(path) as file:
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)


def sensitivity(
    figures: FigureSet, grid: Grid, settings: Mapping[str, Any], *, progress: bool = False
) -> list[dict[str, Any]]:
    """Test accuracy of LMSSC for every r, β and γ of a grid, on the same splits.

    Parameters
    ----------
    figures : FigureSet
        The data.
    grid : Grid
        Values of r, β and γ.
    settings : mapping
        Parameters of `LMSSC` besides these three.
    progress : bool
        Show a progress bar.

    Returns
    -------
    list of dict
        n_components, beta, gamma, repeat, accuracy.
    """
    cells = {
        f"r={r} beta={b:g} gamma={g:g}": {"n_components": r, "beta": b, "gamma": g}
        for r, b, g in product(grid.dimensions, grid.betas, grid.gammas)
    }
    result = compare(
        {raw.name: raw.data for raw in figures.data.raws},
        figures.data.codes,
        {name: LMSSC(**{**settings, **cell}) for name, cell in cells.items()},
        rates=[SENSITIVITY_RATE],
        repeats=grid.repeats,
        n_jobs=figures.jobs,
        out=figures.cache,
        progress=progress,
    )
    failed = next((record for record in result.records if record["error"]), None)
    if failed is not None:
        raise RuntimeError(f"{figures.name}, {failed['method']}: {failed['error']}")
    return [
        {**cells[record["method"]], "repeat": record["repeat"], "accuracy": record["accuracy"]}
        for record in result.records
    ]


def by_dimension(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Accuracy for each r: with the default β and γ, and with the best of the grid by test accuracy of each split.

    Parameters
    ----------
    runs : list of dict
        From `sensitivity`.

    Returns
    -------
    list of dict
        choice ("fixed" or "best_by_test"), n_components, mean, ci_low, ci_high, n.

    Examples
    --------
    >>> runs = [
    ...     {"n_components": 5, "beta": 0.01, "gamma": gamma, "repeat": repeat, "accuracy": accuracy}
    ...     for gamma, repeat, accuracy in [(0.001, 0, 0.7), (0.001, 1, 0.8), (1.0, 0, 0.9), (1.0, 1, 0.6)]
    ... ]
    >>> [(row["choice"], round(row["mean"], 3)) for row in by_dimension(runs)]
    [('fixed', 0.75), ('best_by_test', 0.85)]
    """
    default = LMSSC()
    rows = []
    for r in sorted({run["n_components"] for run in runs}):
        of_r = [run for run in runs if run["n_components"] == r]
        fixed = [run["accuracy"] for run in of_r if (run["beta"], run["gamma"]) == (default.beta, default.gamma)]
        best = [
            max(run["accuracy"] for run in of_r if run["repeat"] == repeat)
            for repeat in sorted({run["repeat"] for run in of_r})
        ]
        for choice, values in (("fixed", fixed), ("best_by_test", best)):
            low, high = mean_interval(values)
            rows.append(
                {
                    "choice": choice,
                    "n_components": r,
                    "mean": float(np.mean(values)),
                    "ci_low": low,
                    "ci_high": high,
                    "n": len(values),
                }
            )
    return rows


@dataclass(frozen=True)
class Fit:
    """One fit of LMSSC with its defaults, with the samples in the order of the data set.

    The terms of J are of a fit without the stopping rule. `n_iter` is the iteration at which the rule stops.
    """

    terms: dict[str, NDArray]
    predicted: NDArray
    given: NDArray
    n_iter: int
    before: sparse.csr_array
    after: sparse.csr_array


def fit_once(figures: FigureSet) -> Fit:
    """Fit LMSSC on one split: the terms of J, the predictions, the graphs before and after learning."""
    model = LMSSC()
    # The stopping rule ends a fit before J has changed much.
    to_the_end = LMSSC(tol=0.0, calibrate=False)
    n_samples = len(figures.data.codes)

    def compute() -> dict[str, NDArray]:
        order, raws, labels = figures.shuffled(FIT_RATE, FIT_SEED)
        back = np.argsort(order)
        with _quietly():
            model.fit({raw.name: raw.data for raw in raws}, labels)
            to_the_end.fit({raw.name: raw.data for raw in raws}, labels)
            before = first_graph(raws, labels)[back][:, back]
        after = model.graph_[back][:, back]
        arrays = {
            "predicted": model.transduction_[back],
            "given": (labels >= 0)[back],
            "n_iter": np.array(model.n_iter_),
            **{f"term_{name}": values for name, values in to_the_end.objective_terms_.items()},
        }
        for name, graph in (("before", before), ("after", after)):
            arrays |= {f"{name}_data": graph.data, f"{name}_indices": graph.indices, f"{name}_indptr": graph.indptr}
        return arrays

    arrays = figures.remember("fit", [repr(model.get_params()), "to the end", FIT_RATE, FIT_SEED], compute)
    graphs = {
        name: sparse.csr_array(
            tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr")), shape=(n_samples, n_samples)
        )
        for name in ("before", "after")
    }
    return Fit(
        {name.removeprefix("term_"): values for name, values in arrays.items() if name.startswith("term_")},
        arrays["predicted"],
        arrays["given"],
        int(arrays["n_iter"]),
        **graphs,
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Use one thread and ignore warnings about unreached samples, whose answers are scored like all others."""
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        yield


def first_graph(raws: list[RawView], codes: NDArray) -> sparse.csr_array:
    """The initial graph of LMSSC: on the truncated SVD of the scaled views, before any label is used.

    Parameters
    ----------
    raws : list of RawView
        The views.
    codes : ndarray of shape (n,)
        Class of each sample, −1 if unlabelled. The number of labels determines the number of neighbours.

    Returns
    -------
    csr_array of shape (n, n)
    """
    scalings = fit_scalings(raws, ["auto"] * len(raws))
    views = scale_views(raws, scalings)
    text = all(scaling.kind in WORDS for scaling in scalings)
    known = codes[codes >= 0]
    default = usual_neighbors(views.n_samples, len(known), len(np.unique(known)))
    n_neighbors = resolve_neighbors("auto", views.n_samples, default=default)
    latent, _, embedding, _ = initialize(views, FitConfig(n_neighbors, text=text, by_direction=text))
    return learn_graph(embedding.embed(latent), n_neighbors, 1.0)[0]


def confidences(figures: FigureSet) -> dict[float, dict[str, tuple[NDArray, NDArray]]]:
    """For each label rate and method: which answers for held-out labels are right, and their confidence.

    The answers of all splits are put together.
    """
    methods = resolve_methods(CALIBRATION_METHODS, [raw.name for raw in figures.data.raws], 0)
    tasks = list(product(CALIBRATION_RATES, methods, range(CALIBRATION_REPEATS)))
    done = Parallel(n_jobs=worker_count(figures.jobs))(
        delayed(_confidence)(figures, name, methods[name], rate, seed) for rate, name, seed in tasks
    )
    result: dict[float, dict[str, tuple[NDArray, NDArray]]] = {rate: {} for rate in CALIBRATION_RATES}
    for rate, name in product(CALIBRATION_RATES, methods):
        parts = [arrays for task, arrays in zip(tasks, done, strict=True) if task[:2] == (rate, name)]
        result[rate][name] = (
            np.concatenate([part["right"] for part in parts]),
            np.concatenate([part["confidence"] for part in parts]),
        )
    return result


def _confidence(figures: FigureSet, name: str, estimator: Any, rate: float, seed: int) -> dict[str, NDArray]:
    """One method on one split."""

    def compute() -> dict[str, NDArray]:
        order, raws, labels = figures.shuffled(rate, seed)
        truth = figures.data.codes[order][labels < 0]
        with _quietly():
            proba, predicted = fit_and_answer(estimator, raws, labels, scaled_concatenation(raws))
        return {"right": predicted == truth, "confidence": proba[np.arange(len(truth)), predicted]}

    return figures.remember("confidence", [name, repr(estimator.get_params()), rate, seed], compute)
