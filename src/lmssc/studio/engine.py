"""The model behind the page: answers that move at once, full fits in the background, and what to ask next."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, RLock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lmssc.core.active import sigma_optimal_batch
from lmssc.core.calibration import Calibration, balance
from lmssc.core.fit_config import FitContext
from lmssc.core.unlabelled import first_to_label
from lmssc.data.dataset import make_dataset
from lmssc.data.labels import ClassName
from lmssc.data.missing_views import check_views
from lmssc.data.validation import Masks, read_collection
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.unlabelled_fit import SampleGraph, graph_without_labels
from lmssc.model_selection.intervals import wilson
from lmssc.model_selection.refit import hold_out_labels, sample_rows, shortened
from lmssc.numerics.graph_layout import graph_layout
from lmssc.report.charts import place_names
from lmssc.studio.going_on import worth_going_on
from lmssc.studio.live_answers import Calibrate, LiveAnswers

# Samples chosen at a time: the next batch knows the labels of the last.
BATCH = 10
# A full fit after so many new labels, or once nothing was labelled for so many seconds.
REFIT_LABELS, REFIT_SECONDS = 5, 2.0
# Samples in front of annotators, and next in the queue, whose solves are done beforehand.
MAX_SHOWN, N_AHEAD = 4, 3
# How often labels that came during a fit are solved for together before it is swapped in.
MAX_CATCH_UPS = 3
# Iterations, folds and samples of the fits with hidden labels.
HIDDEN_ITERATIONS, HIDDEN_FOLDS, MAX_HIDDEN_SAMPLES = 5, 3, 5000
# Labels are suspected if the others give their class less than this probability.
SUSPICIOUS = 0.5
# Samples on the map.
MAX_DOTS = 100_000


class Engine:
    """Fits, answers and chooses; every method may be called from any thread.

    Parameters
    ----------
    views : dict of str to array or sparse matrix
        The samples.
    present : dict of str to ndarray of bool, optional
        Which samples have which view.
    estimator : LMSSC, optional
        Its parameters are used.
    background : bool
        Whether a thread fits while the user labels; without it `settle` does it.

    Examples
    --------
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(90, random_state=0)
    >>> engine = Engine(dict(zip("ab", data.views)), background=False)
    >>> engine.start([], {})
    >>> for row in engine.queue()[:6]:
    ...     names = sorted({*engine.classes, str(data.target[row])})
    ...     _ = engine.set_label(row, str(data.target[row]), names)
    >>> engine.settle()
    >>> engine.facts()["status"], engine.facts()["labels_in_fit"]
    ('fitted', 6)
    """

    def __init__(
        self,
        views: Mapping[str, Any],
        present: Masks = None,
        *,
        estimator: LMSSC | None = None,
        background: bool = True,
    ) -> None:
        self._estimator = LMSSC() if estimator is None else estimator
        checked = check_views(read_collection(dict(views), 2), present)
        n_samples = checked[0].raw.data.shape[0]
        self._dataset = make_dataset(checked, np.empty(0, dtype=object), np.full(n_samples, -1))
        self._context = FitContext(interruptible=False, cache={})
        self._lock = RLock()
        self._wake = Condition(self._lock)
        self._background, self._closed = background, False
        self._version = 0  # of the labels
        self._fitted_version = self._queue_version = self._hidden_version = -1
        self._last_label = 0.0
        self._queue: list[int] = []
        self._shown: list[int] = []
        self._curve: dict[int, float] = {}
        self._model: dict[str, Any] = {"status": "none", "fits": 0, "labels_in_fit": 0, "error": None}
        self._hidden: dict[str, Any] | None = None
        self._positions: NDArray | None = None
        self._map_of: SampleGraph | None = None
        self._map_version = 0

    # ---- what the session asks for

    def start(self, classes: Sequence[str], labels: Mapping[int, str]) -> None:
        """Make the graph of the samples, and begin with these classes and labels."""
        with _quiet():
            graph = graph_without_labels(self._estimator, self._dataset, self._context)
        self._live = LiveAnswers(graph, classes, labels)
        self._queue = self._first_queue()
        if labels:
            self._version += 1
            self._note_progress()
        if self._background:
            for work in (self._work, self._work_ahead):
                Thread(target=self._run, args=(work,), name="lmssc studio", daemon=True).start()

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        with self._lock:
            return list(self._live.classes)

    def set_label(self, row: int, label: str | None, classes: Sequence[str]) -> int:
        """Give a sample a label or take it away; return for how many samples the answer changes."""
        with self._lock:
            if list(classes) != self._live.classes:
                self._live.add_classes(classes)
            n_before = len(self._live.labels)
            if self._live.labels.get(row) == label:
                return 0
            changed = self._live.set_label(row, label)
            if self._live.labels.get(row) is not None and row in self._queue:
                self._queue.remove(row)
            for n in [n for n in self._curve if n > len(self._live.labels)]:
                del self._curve[n]
            if len(self._live.labels) >= n_before:
                self._note_progress()
            self._version += 1
            self._last_label = time.monotonic()
            self._wake.notify_all()
            return changed

    def prepare(self, row: int) -> None:
        """Say which sample is in front of someone: what its label needs is solved in the background."""
        with self._lock:
            self._shown = [row, *[one for one in self._shown if one != row]][:MAX_SHOWN]
            self._wake.notify_all()

    def guesses(self, row: int) -> list[dict[str, Any]]:
        """The classes with their probabilities for a sample, most likely first; without labels there are none."""
        with self._lock:
            if not self._live.labels:
                return []
            shares = self._live.of_sample(row)
            order = np.argsort(-shares, kind="stable")
            names = self._live.classes
            return [{"label": names[i], "probability": round(float(shares[i]), 4)} for i in order if shares[i] > 0]

    def reasons(self, row: int, n: int) -> list[tuple[int, float]]:
        """The labelled samples with most weight in the answer about a sample."""
        with self._lock:
            return self._live.reasons(row, n)

    def is_reached(self, row: int) -> bool:
        """Whether a label reaches a sample."""
        with self._lock:
            return self._live.is_reached(row)

    def queue(self) -> list[int]:
        """Rows to ask for next, most useful first: the batch that was chosen, then the least certain."""
        with self._lock:
            chosen = [row for row in self._queue if row not in self._live.labels]
            return chosen + [row for row in self.uncertain(4 * BATCH) if row not in chosen]

    def uncertain(self, n: int) -> list[int]:
        """Rows without a label whose answers are least certain; of identical samples one."""
        with self._lock:
            uncertainty = np.where(self._live.labelled, -1, self._live.uncertainty)
            n = min(n, int((uncertainty >= 0).sum()))
            nodes = np.argpartition(-uncertainty, max(n - 1, 0))[:n]
            nodes = nodes[np.lexsort((nodes, -uncertainty[nodes]))]
            return self._live.graph.samples[nodes].tolist()

    def suspected(self) -> list[int]:
        """Rows whose label the others do not support, most suspect first."""
        with self._lock:
            live = self._live
            if len({*live.labels.values()}) < 2:
                return []
            nodes, opinions = live.opinions_without_own()
            codes = np.array([live.classes.index(str(live._label_of_node(int(node)))) for node in nodes])
            own = np.nan_to_num(opinions[np.arange(len(nodes)), codes], nan=1.0)
            order = np.argsort(own, kind="stable")
            doubted = [int(nodes[i]) for i in order if own[i] < SUSPICIOUS]
            rows = {int(live.graph.nodes[row]): row for row in live.labels}
            return [rows[node] for node in doubted if node in rows]

    def facts(self) -> dict[str, Any]:
        """How far the model is: fits, accuracy on hidden labels, the curve, and whether to go on."""
        with self._lock:
            return {
                **self._model,
                "up_to_date": self._fitted_version == self._version or not self._can_fit(),
                "hidden": self._hidden,
                "expected": self._curve.get(len(self._live.labels)),
                "curve": [[n, self._curve[n]] for n in sorted(self._curve)],
                "going_on": worth_going_on(self._curve),
                "map_version": self._map_version,
            }

    def map(self, since: int = 0) -> dict[str, Any]:
        """Positions of the samples on the map, from 0 to 1000, their most likely classes, and which have labels.

        Positions are left out if they are those of the version `since`.
        """
        with self._lock:
            if self._positions is None:
                return {"version": 0, "label": [], "sure": [], "given": []}
            rows = np.arange(len(self._live.graph.nodes))
            rows = rows[:: max(1, -(-len(rows) // MAX_DOTS))]
            nodes = self._live.graph.nodes[rows]
            shares = self._live.probabilities[nodes]
            known = bool(self._live.labels)
            found = {
                "version": self._map_version,
                "label": shares.argmax(axis=1).tolist() if known else [-1] * len(rows),
                "sure": np.rint(100 * shares.max(axis=1)).astype(int).tolist(),
                "given": self._live.labelled[nodes].astype(int).tolist(),
            }
            codes = np.array(found["label"])
            found["names"] = place_names(self._positions[rows], codes, self._live.classes) if known else []
            if since != self._map_version:
                x, y = self._positions[rows].T.tolist()
                found |= {"rows": rows.tolist(), "x": x, "y": y}
            return found

    def predictions(self, rows: Sequence[int]) -> tuple[NDArray, list[str]]:
        """Probabilities of some samples, and the names of the columns."""
        with self._lock:
            return np.array([self._live.of_sample(row) for row in rows]), list(self._live.classes)

    # ---- the background

    def settle(self) -> None:
        """Do now everything that the background would do in time."""
        while self._work_ahead(idle=True) or self._work(idle=True):
            pass

    def close(self) -> None:
        """Stop the background; a fit that runs is not waited for."""
        with self._lock:
            self._closed = True
            self._wake.notify_all()

    def _run(self, work: Callable[..., bool]) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                idle = time.monotonic() - self._last_label > REFIT_SECONDS
            if not work(idle=idle):
                with self._lock:
                    if not self._closed:
                        self._wake.wait(timeout=0.5)

    def _work(self, *, idle: bool) -> bool:
        """Do the most urgent piece of slow work, a fit before anything else; return whether there was any."""
        with self._lock:
            n_new = self._version - self._fitted_version
            fit_due = n_new > 0 and self._can_fit() and (idle or n_new >= REFIT_LABELS or self._fitted_version < 0)
            map_due = self._map_of is not self._live.graph
            hidden_due = idle and self._hidden_version != self._fitted_version and self._model["fits"]
        if fit_due:
            self._fit()
        elif map_due:
            self._lay_out()
        elif hidden_due:
            self._hide_labels()
        else:
            return False
        return True

    def _work_ahead(self, *, idle: bool) -> bool:
        """Solve for the labels that come next, or choose the next batch; return whether there was anything to do."""
        with self._lock:
            live, version = self._live, self._version
            wanted = [*self._shown, *[row for row in self._queue if row not in live.labels][:N_AHEAD]]
            missing = live.missing_columns(wanted)
            batch_due = not [row for row in self._queue if row not in live.labels] and self._queue_version != version
        if missing:
            column = live.solve_column(missing[0])
            with self._lock:
                if self._live is live and self._version == version:
                    live.keep_columns({missing[0]: column}, wanted)
            return True
        if batch_due:
            self._choose()
        return batch_due

    def _can_fit(self) -> bool:
        return len(set(self._live.labels.values())) > 1

    def _labelled_dataset(self) -> tuple[Any, dict[int, str], int]:
        """The samples with their present labels, these labels, and their version."""
        with self._lock:
            labels, version = self._live.copy_labels(), self._version
        names = sorted(set(labels.values()))
        codes = np.full(self._dataset.n_samples, -1)
        codes[list(labels)] = np.searchsorted(names, list(labels.values()))
        classes = np.array([ClassName(name) for name in names], dtype=object)
        return self._dataset.with_labels(classes, codes), labels, version

    def _fit(self) -> None:
        """Fit the model to the labels so far; labels that came meanwhile are added when it is swapped in."""
        dataset, labels, version = self._labelled_dataset()
        with self._lock:
            self._model["status"] = "fitting"
        clf = clone(self._estimator)
        error = live = None
        try:
            with _quiet():
                clf._fit_dataset(dataset, self._context)
            graph = SampleGraph.of(clf)
            for _ in range(MAX_CATCH_UPS):  # labels that come meanwhile are solved for together
                with self._lock:
                    labels_now, classes = self._live.copy_labels(), list(self._live.classes)
                live = LiveAnswers(graph, classes, labels_now, _calibration(clf))
                with self._lock:
                    if len(labels_now.items() ^ self._live.labels.items()) <= 2:
                        break
        except (ValueError, ArithmeticError, MemoryError) as problem:
            error = f"{type(problem).__name__}: {problem}"
        with self._lock:
            self._fitted_version = version
            self._model["error"] = error
            if live is None or error:
                self._model["status"] = "fitted" if self._model["fits"] else "none"
                return
            self._clf, old = clf, self._live
            live.add_classes(old.classes)
            for row in {*live.labels, *old.labels}:
                live.set_label(row, old.labels.get(row))
            self._live = live
            self._model |= {"status": "fitted", "fits": self._model["fits"] + 1, "labels_in_fit": len(labels)}
            self._note_progress()
            self._queue_version = -1
            self._queue = []

    def _choose(self) -> None:
        """Choose the next batch, with the labels and answers so far."""
        with self._lock:
            live, version = self._live, self._version
            if not live.labels:
                self._queue, self._queue_version = self._first_queue(), version
                return
            graph, labelled, uncertainty = live.graph, live.labelled.copy(), live.uncertainty
        nodes = sigma_optimal_batch(graph.graph, uncertainty, labelled, ~labelled, BATCH)
        with self._lock:
            if self._live is live:
                self._queue, self._queue_version = graph.samples[nodes].tolist(), version

    def _first_queue(self) -> list[int]:
        return self._live.graph.samples[first_to_label(self._live.graph.graph, BATCH)].tolist()

    def _lay_out(self) -> None:
        """Lay out the graph, turned so that it looks like the last map."""
        graph = self._live.graph
        positions = graph_layout(graph.graph)
        positions = _scaled(positions)[graph.nodes]
        with self._lock:
            if self._positions is not None:
                positions = _aligned(positions, self._positions)
            self._positions, self._map_of = positions, graph
            self._map_version += 1

    def _hide_labels(self) -> None:
        """Hide labels and fit again, to see how many are found."""
        dataset, labels, _ = self._labelled_dataset()
        version = self._fitted_version
        rows = sample_rows(dataset.codes, min(dataset.n_samples, MAX_HIDDEN_SAMPLES), 0)
        clf = shortened(self._clf, HIDDEN_ITERATIONS).set_params(calibrate=False)
        with _quiet():
            found = hold_out_labels(clf, dataset.take(rows), n_folds=HIDDEN_FOLDS, random_state=0)[None]
        with self._lock:
            self._hidden_version = version
            self._hidden = None
            if len(found.rows):
                low, high = wilson(found.accuracy, len(found.rows))
                self._hidden = {
                    "labels": len(labels),
                    "hidden": len(found.rows),
                    "found": int(found.right.sum()),
                    "accuracy": round(found.accuracy, 4),
                    "low": round(low, 4),
                    "high": round(high, 4),
                }

    def _note_progress(self) -> None:
        """Add a point to the curve: the mean probability of the answers about samples without a label.

        Before the first fit there is none: the scores are not calibrated yet.
        """
        live = self._live
        free = ~live.labelled
        if self._model["fits"] and len(set(live.labels.values())) > 1 and free.any():
            self._curve[len(live.labels)] = round(float(live.probabilities[free].max(axis=1).mean()), 4)


def _calibration(clf: LMSSC) -> Calibrate:
    """How the last fit turned scores into probabilities."""
    calibration = Calibration(clf.temperature_, clf.doubt_)

    def calibrate(scores: NDArray, codes: NDArray) -> NDArray:
        return calibration(balance(scores, codes, clf.balance))

    return calibrate


class _quiet(warnings.catch_warnings):  # noqa: N801 (a context manager)
    """Warnings of a fit are for those who call it; the page says what matters in its own words."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")


def _scaled(positions: NDArray) -> NDArray:
    """Positions from 0 to 1000, proportions kept, the second coordinate downwards."""
    centred = positions - (positions.min(axis=0) + positions.max(axis=0)) / 2
    span = max(float(np.ptp(positions, axis=0).max()), 1e-9)
    return (centred * [1, -1] * (980 / span) + 500).round(1)


def _aligned(positions: NDArray, like: NDArray) -> NDArray:
    """Positions turned or mirrored to lie as near as possible to others (Procrustes)."""
    left, _, right = np.linalg.svd((positions - 500).T @ (like - 500))
    turned = (positions - 500) @ left @ right
    return (turned * min(490 / max(float(np.abs(turned).max()), 1.0), 1.0) + 500).round(1)
