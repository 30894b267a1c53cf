"""Runs of methods on splits of the data: define one, score it, and do many, resuming after an interruption."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc.data.canonical_order import row_keys
from lmssc.data.folds import labelled_folds
from lmssc.data.labels import encode_labels
from lmssc.data.missing_views import make_raw_views
from lmssc.data.validation import read_collection
from lmssc.data.views import RawView
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
        raws = make_raw_views(read_collection(views, min_samples=2), None)
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

    It is scored on the rows without a label; or, if `held_out`, on labelled rows that are hidden in turn, which is what
    parameters may be chosen by.
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
        """What it has in common with runs that take as long: all but the split."""
        estimator = f"{type(self.estimator).__name__} {self.estimator.get_params()!r}"
        return json.dumps([self.data.key, self.method, estimator, self.held_out])

    @cached_property
    def key(self) -> str:
        """What tells this run from any other; a run that is on disk under it need not be done again.

        Another version of lmssc may answer otherwise, so its runs are others.
        """
        content = [version("lmssc"), self.kind, self.rate, self.repeat, self.seed]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]


def do_runs(runs: Sequence[Run], store: Store, n_jobs: int | None = None, *, progress: bool = False) -> None:
    """Do all runs that `store` does not have yet; each is in it, and on disk, as soon as it is done.

    Parameters
    ----------
    runs : sequence of Run
        One that is there twice is done once.
    store : Store
        The records.
    n_jobs : int, optional
        Runs at the same time, through joblib.
    progress : bool
        Show a progress bar.
    """
    # Repeat by repeat, each in an order by chance: what is done first is a fair sample to judge the time left by.
    do_missing(sorted(runs, key=lambda run: (run.repeat, run.key)), _do, store, n_jobs, progress=progress)


def _do(run: Run) -> dict[str, Any]:
    """The record of one run; a failure is a record too."""
    record = dict.fromkeys(RECORD, float("nan")) | {"method": run.method, "rate": run.rate, "repeat": run.repeat}
    record["error"] = ""
    order, given = stratified_split(run.data.codes, run.rate, run.seed)
    raws = [raw.take(order) for raw in run.data.raws]
    truth = run.data.codes[order]
    labels = np.where(given, truth, -1)
    try:
        joined = scaled_concatenation(raws)
        with _cost(record):
            if run.held_out:
                folds = labelled_folds(raws, labels, run.seed)
                record["accuracy"] = held_out_accuracy(run.estimator, raws, labels, folds, joined)
            else:
                proba, predicted = fit_and_answer(run.estimator, raws, labels, joined)
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
