"""Runs of methods on splits of the data: define one, score it, and do many, resuming after an interruption."""

import hashlib
import inspect
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc.data.canonical_order import row_keys
from lmssc.data.folds import labelled_folds
from lmssc.data.graph_view import LinkRows
from lmssc.data.labels import encode_labels
from lmssc.data.link_reading import read_graphs, split_graphs
from lmssc.data.missing_views import make_raw_views
from lmssc.data.validation import name_parts, read_collection
from lmssc.data.view import RawView
from lmssc.evaluation.jobs import do_missing
from lmssc.evaluation.methods import fit_and_answer, scaled_concatenation
from lmssc.evaluation.selection import held_out_accuracy
from lmssc.evaluation.splits import stratified_split
from lmssc.evaluation.store import Store
from lmssc.metrics import METRICS, PeakMemory, score
from lmssc.persistence.provenance import version

RECORD = ("method", "rate", "repeat", *METRICS, "fit_seconds", "peak_megabytes", "error")
"""Columns of the record of a run."""


@dataclass(frozen=True)
class Data:
    """Views and the true class of every row."""

    raws: list[RawView]
    codes: NDArray

    @classmethod
    def read(cls, views: Sequence[Any] | Mapping[str, Any], y: ArrayLike) -> "Data":
        """Validate views and labels; every row needs a label, to be scored."""
        features, graphs = split_graphs(views)
        raws = make_raw_views(read_collection(features, min_samples=2), None)
        links = {
            graph.name: LinkRows(graph.name, graph.links, None) for graph in read_graphs(graphs, raws[0].data.shape[0])
        }
        by_name = {raw.name: raw for raw in raws} | links
        raws = [by_name[name] for name in name_parts(views)]
        codes = encode_labels(y, raws[0].data.shape[0]).codes
        if (codes < 0).any():
            raise ValueError(
                f"y: row {np.flatnonzero(codes < 0)[0]} has no label; a comparison needs all labels to score"
            )
        return cls(raws, codes)

    @cached_property
    def key(self) -> str:
        """Digest of the views and classes."""
        digest = hashlib.sha256(np.ascontiguousarray(self.codes, dtype=np.int64).tobytes())
        for raw in self.raws:
            digest.update(raw.name.encode() + row_keys(raw).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Run:
    """One method on one split.

    It is scored on the rows without a label; or, if `held_out`, on labelled rows that are held out in turn, to choose
    parameters by.
    """

    data: Data
    method: str
    estimator: Any
    rate: float
    repeat: int
    seed: int
    held_out: bool = False

    @cached_property
    def kind(self) -> str:
        """Everything but the split: runs of the same kind take about as long."""
        estimator = f"{type(self.estimator).__name__} {self.estimator.get_params()!r}{source_digest(self.estimator)}"
        return json.dumps([self.data.key, self.method, estimator, self.held_out])

    @cached_property
    def key(self) -> str:
        """Unique key; a run whose record is on disk under this key is not run again.

        It includes the version of lmssc, and the source code of classes outside lmssc and scikit-learn, because a
        method that has changed may answer otherwise.
        """
        content = [version("lmssc"), self.kind, self.rate, self.repeat, self.seed]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]


def source_digest(estimator: Any) -> str:
    """Digest of the source code of an estimator and the estimators in its parameters.

    Only classes outside lmssc and scikit-learn count, with their base classes. The digest is empty if there are none.
    A class without source code, such as one typed into an interpreter, counts by its bytecode and constants.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> source_digest(SVC())
    ''
    """
    parts = [estimator, *estimator.get_params().values()]
    classes = {base for part in parts if hasattr(part, "get_params") for base in type(part).__mro__}
    foreign = [one for one in classes if one.__module__.partition(".")[0] not in ("lmssc", "sklearn", "builtins")]
    sources = sorted(f"{one.__qualname__}\n{_source(one)}" for one in foreign)
    return hashlib.sha256("\n".join(sources).encode()).hexdigest() if sources else ""


def _source(one: type) -> str:
    with suppress(OSError, TypeError):
        return inspect.getsource(one)
    functions = {
        name: getattr(member, "__func__", getattr(member, "fget", member)) for name, member in vars(one).items()
    }
    codes = [(name, function.__code__) for name, function in functions.items() if hasattr(function, "__code__")]
    return repr([(name, code.co_code, code.co_names, _constants(code)) for name, code in codes])


def _constants(code: CodeType) -> list[str]:
    """Constants of a function; nested functions by their bytecode, because their repr has an address."""
    return [f"{one.co_code!r} {_constants(one)}" if isinstance(one, CodeType) else repr(one) for one in code.co_consts]


def do_runs(runs: Sequence[Run], store: Store, n_jobs: int | None = None, *, progress: bool = False) -> None:
    """Run all that `store` does not have yet; each record is on disk as soon as its run has finished.

    Parameters
    ----------
    runs : sequence of Run
        Duplicates run once.
    store : Store
        The records.
    n_jobs : int, optional
        Number of parallel runs, through joblib.
    progress : bool
        Show a progress bar.
    """
    # Repeat by repeat, each in random order: the first runs are a fair sample to estimate the remaining time from.
    do_missing(sorted(runs, key=lambda run: (run.repeat, run.key)), run_and_score, store, n_jobs, progress=progress)


def run_and_score(run: Run) -> dict[str, Any]:
    """The record of one run; a failure is a record too."""
    record = dict.fromkeys(RECORD, float("nan")) | {"method": run.method, "rate": run.rate, "repeat": run.repeat}
    record["error"] = ""
    order, given = stratified_split(run.data.codes, run.rate, run.seed)
    views = [raw.take(order) for raw in run.data.raws]
    truth = run.data.codes[order]
    labels = np.where(given, truth, -1)
    try:
        concatenated = scaled_concatenation(views)
        with _cost(record):
            if run.held_out:
                folds = labelled_folds(views, labels, run.seed)
                record["accuracy"] = held_out_accuracy(run.estimator, views, labels, folds, concatenated)
            else:
                proba, predicted = fit_and_answer(run.estimator, views, labels, concatenated)
        if not run.held_out:
            record |= score(truth[~given], proba, predicted)
    except Exception as error:
        record["error"] = f"{type(error).__name__}: {error}".replace("\n", " ")
    return record


@contextmanager
def _cost(record: dict[str, Any]) -> Iterator[None]:
    """Write seconds and memory of what is done inside into the record."""
    began = time.perf_counter()
    with PeakMemory() as memory:
        yield
    record["fit_seconds"] = time.perf_counter() - began
    record["peak_megabytes"] = memory.megabytes
