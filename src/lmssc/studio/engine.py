"""The model behind the page: answers that move at once, full fits in the background, and what to ask next."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Condition, RLock, Thread, get_native_id
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lmssc.core.active import sigma_optimal_batch
from lmssc.core.fit_config import FitContext
from lmssc.core.progress import IterationProgress
from lmssc.core.unlabelled import first_to_label
from lmssc.data.dataset import make_dataset
from lmssc.data.labels import ClassName
from lmssc.data.link_reading import read_graphs, split_graphs
from lmssc.data.missing_views import check_views
from lmssc.data.validation import Masks, read_collection
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.unlabelled_fit import SampleGraph, graph_without_labels
from lmssc.numerics.scale import is_large
from lmssc.studio.going_on import worth_going_on
from lmssc.studio.held_out_accuracy import held_out_accuracy, quiet
from lmssc.studio.live_answers import LiveAnswers, calibration_of
from lmssc.studio.live_map import LiveMap, MapDots

# Samples chosen at a time: the next batch knows the labels of the last.
BATCH = 10
# A full fit after so many new labels, or once nothing was labelled for so many seconds.
REFIT_LABELS, REFIT_SECONDS = 5, 2.0
# How long a fit that runs is waited for at the end.
CLOSE_SECONDS = 3.0
# What a key waits for comes before the fits.
FIT_NICENESS = 2
# Samples in front of annotators, and next in the queue, whose solves are done beforehand.
MAX_SHOWN, N_AHEAD = 4, 3
# Labels are suspected if the others give their class less than this probability.
SUSPICIOUS = 0.5


class _ClosedError(Exception):
    """Ends a fit that nobody waits for."""


class Engine:
    """Fits, answers and chooses; every method may be called from any thread.

    Parameters
    ----------
    views : dict of str to array, sparse matrix or Graph
        The samples, and links between them.
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
        features, links = split_graphs(dict(views))
        checked = check_views(read_collection(features, 2), present)
        n_samples = checked[0].raw.data.shape[0]
        unlabelled = np.empty(0, dtype=object), np.full(n_samples, -1)
        self._dataset = make_dataset(checked, *unlabelled, graphs=read_graphs(links, n_samples))
        self._context = FitContext(interruptible=False, cache={})
        self._lock = RLock()
        self._wake = Condition(self._lock)
        self._background, self._closed = background, False
        self._threads: list[Thread] = []
        self._version = 0  # of the labels
        self._fitted_version = self._queue_version = self._held_out_version = -1
        self._last_label = 0.0
        self._queue: list[int] = []
        self._shown: list[int] = []
        self._solving: int | None = None  # the node whose column is being solved for
        self._suspects: tuple[int, dict[int, NDArray]] | None = None  # version of the labels, rows, and what others say
        self._suspects_wanted = False
        self._curve: dict[int, float] = {}
        self._model: dict[str, Any] = {"status": "none", "fits": 0, "labels_in_fit": 0, "error": None}
        self._held_out: dict[str, Any] | None = None
        self._map: LiveMap | None = None

    # ---- what the session asks for

    def start(self, classes: Sequence[str], labels: Mapping[int, str]) -> None:
        """Make the graph of the samples, and begin with these classes and labels."""
        with quiet():
            graph = graph_without_labels(self._estimator, self._dataset, self._context)
        self._live = LiveAnswers(graph, classes, labels)
        self._queue = self._first_queue()
        if labels:
            self._version += 1
            self._note_progress()
        if self._background:
            for work, niceness in ((self._work, FIT_NICENESS), (self._work_ahead, 0)):
                thread = Thread(target=self._run, args=(work, niceness), name="lmssc studio", daemon=True)
                self._threads.append(thread)
                thread.start()

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        with self._lock:
            return list(self._live.classes)

    def set_label(self, row: int, label: str | None, classes: Sequence[str]) -> int:
        """Give a sample a label or take it away; return for how many samples the answer changes."""
        with self._lock:
            while self._solving is not None and self._solving == self._live.graph.nodes[row]:
                self._wake.wait(timeout=0.1)  # what this label needs is nearly there
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
        """The classes with their probabilities for a sample, most likely first; none without labels.

        Of a sample that has a label they are those without that label: what the others say of it.
        """
        with self._lock:
            if not self._live.labels:
                return []
            shares = self._live.of_sample(row)
            if self._live.labelled[self._live.graph.nodes[row]]:
                known = {} if self._suspects is None or self._suspects[0] != self._version else self._suspects[1]
                shares = known[row] if row in known else self._live.without_own(row)
            order = np.argsort(-shares, kind="stable")
            names = self._live.classes
            return [{"label": names[i], "probability": round(float(shares[i]), 4)} for i in order if shares[i] > 0]

    def reasons(self, row: int, n: int) -> list[tuple[int, float]] | None:
        """The labelled samples with most weight in the answer about a sample; None while they are computed."""
        with self._lock:
            if self._background and is_large(self._dataset.n_samples) and self._live.missing_columns([row]):
                return None
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
        """Rows whose label the others do not support, most suspect first.

        With large data they are those of a moment ago, and are found anew in the background.
        """
        with self._lock:
            version, found = self._version, self._suspects
            stale = found is None or found[0] != version
            if found is not None and stale and self._background and is_large(self._dataset.n_samples):
                self._suspects_wanted, stale = True, False
                self._wake.notify_all()
        if stale:
            self._suspect()
        with self._lock:
            return [] if self._suspects is None else [row for row in self._suspects[1] if row in self._live.labels]

    def _suspect(self) -> None:
        """Ask of each label what the others say of its sample."""
        with self._lock:
            live, version, self._suspects_wanted = self._live, self._version, False
            rows = {int(live.graph.nodes[row]): row for row in live.labels}
            codes = {node: int(live._codes[node]) for node in rows}
            solve = live.all_without_own() if len({*live.labels.values()}) > 1 else None
        found: dict[int, NDArray] = {}
        if solve is not None:
            nodes, opinions = solve()
            known = [
                (opinion[codes[node]], rows[node], opinion)
                for node, opinion in zip(nodes.tolist(), opinions, strict=True)
                if node in rows and opinion.any()
            ]
            found = {
                row: opinion for share, row, opinion in sorted(known, key=lambda one: one[:2]) if share < SUSPICIOUS
            }
        with self._lock:
            self._suspects = version, found

    def facts(self) -> dict[str, Any]:
        """How far the model is: fits, accuracy on held-out labels, the curve, and whether to go on."""
        with self._lock:
            return {
                **self._model,
                "up_to_date": self._fitted_version == self._version or not self._can_fit(),
                "hidden": self._held_out,
                "expected": self._curve.get(len(self._live.labels)),
                "curve": [[n, self._curve[n]] for n in sorted(self._curve)],
                "going_on": worth_going_on(self._curve),
                "map_version": 0 if self._map is None else self._map.version,
            }

    def map(self, since: int = 0) -> dict[str, Any]:
        """Positions of the samples on the map, from 0 to 1000, their most likely classes, and which have labels.

        Positions are left out if they are those of the version `since`.
        """
        with self._lock:
            known, dots = self._map, MapDots(self._live)
        if known is None:
            return {"version": 0, "label": [], "sure": [], "given": []}
        return known.draw(dots, since)

    def predictions(self, rows: Sequence[int]) -> tuple[NDArray, list[str]]:
        """Probabilities of some samples, and the names of the columns."""
        with self._lock:
            return np.array([self._live.of_sample(row) for row in rows]), list(self._live.classes)

    # ---- the background

    def settle(self) -> None:
        """Do now everything that the background would do in time."""
        while self._work_ahead(idle=True) or self._work(idle=True):
            pass

    def close(self) -> bool:
        """Stop the background; return whether it ended within a few seconds."""
        with self._lock:
            self._closed = True
            self._wake.notify_all()
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)
        return not any(thread.is_alive() for thread in self._threads)

    def _stop_if_closed(self, progress: IterationProgress) -> None:
        if self._closed:
            raise _ClosedError

    def _run(self, work: Callable[..., bool], niceness: int) -> None:
        with suppress(OSError, AttributeError):  # of this thread alone, on Linux
            os.setpriority(os.PRIO_PROCESS, get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + niceness)
        while True:
            with self._lock:
                if self._closed:
                    return
                idle = time.monotonic() - self._last_label > REFIT_SECONDS
            try:
                busy = work(idle=idle)
            except _ClosedError:
                return
            if not busy:
                with self._lock:
                    if not self._closed:
                        self._wake.wait(timeout=0.5)

    def _work(self, *, idle: bool) -> bool:
        """Do the most urgent piece of slow work, a fit before anything else; return whether there was any."""
        with self._lock:
            n_new = self._version - self._fitted_version
            fit_due = n_new > 0 and self._can_fit() and (idle or n_new >= REFIT_LABELS or self._fitted_version < 0)
            map_due = self._map is None or self._map.graph is not self._live.graph
            held_out_due = idle and self._held_out_version != self._fitted_version and self._model["fits"]
        if fit_due:
            self._fit()
        elif map_due:
            self._lay_out()
        elif held_out_due:
            self._hold_out_labels()
        else:
            return False
        return True

    def _work_ahead(self, *, idle: bool) -> bool:
        """Solve for the labels that come next, or choose the next batch; return whether there was anything to do."""
        with self._lock:
            live = self._live
            queue = [row for row in self._queue if row not in live.labels]
            wanted = [*self._shown, *queue[:N_AHEAD]]
            missing = live.missing_columns(wanted)
            batch_due = len(queue) < N_AHEAD and self._queue_version != self._version
            suspects_due = self._suspects_wanted
            solve = live.column_solve(missing[0]) if missing else None
            self._solving = missing[0] if missing else None
        if solve is not None:
            column = solve()
            with self._lock:
                self._solving = None
                live.keep_column(column, wanted)
                self._wake.notify_all()
        elif batch_due:
            self._choose(queue)
        elif suspects_due:
            self._suspect()
        return bool(missing) or batch_due or suspects_due

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
        clf = clone(self._estimator).set_params(callback=self._stop_if_closed)
        try:
            with quiet():
                clf._fit_dataset(dataset, self._context)
            clf.set_params(callback=None)  # copies of it are made later
            with self._lock:
                labels_now, classes = self._live.copy_labels(), list(self._live.classes)
            live = LiveAnswers(SampleGraph.of(clf), classes, labels_now, calibration_of(clf))
            queue = _most_informative(live.graph, live.labelled, live.uncertainty)
            with self._lock:
                wanted = [*self._shown, *queue[:N_AHEAD]]
            live.prepare(wanted)
        except (ValueError, ArithmeticError, MemoryError) as problem:
            with self._lock:
                status = "fitted" if self._model["fits"] else "none"
                self._fitted_version = version
                self._model |= {"status": status, "error": f"{type(problem).__name__}: {problem}"}
            return
        self._swap_in(live, queue)
        with self._lock:
            self._clf, self._fitted_version = clf, version
            self._model |= {"status": "fitted", "error": None, "fits": self._model["fits"] + 1}
            self._model["labels_in_fit"] = len(labels)
            self._note_progress()

    def _swap_in(self, live: LiveAnswers, queue: list[int]) -> None:
        """Show new answers instead of the present ones, with all labels that came meanwhile."""
        while True:
            with self._lock:
                old = self._live
                changes = [row for row in {*live.labels, *old.labels} if live.labels.get(row) != old.labels.get(row)]
                if not changes and live.classes == old.classes:
                    self._live, self._queue, self._queue_version = live, queue, self._version
                    self._wake.notify_all()
                    return
                labels, classes = old.copy_labels(), list(old.classes)
            live.add_classes(classes)
            for row in changes:  # nobody waits for this
                live.set_label(row, labels.get(row))

    def _choose(self, queue: list[int]) -> None:
        """Choose the next batch, with the labels and answers so far, as if those of the queue were known."""
        with self._lock:
            live, version = self._live, self._version
            if not live.labels:
                self._queue, self._queue_version = self._first_queue(), version
                return
            known, uncertainty = live.labelled, live.uncertainty
        known[live.graph.nodes[queue]] = True
        chosen = _most_informative(live.graph, known, uncertainty)
        with self._lock:
            if self._live is live:
                self._queue, self._queue_version = [*queue, *chosen], version

    def _first_queue(self) -> list[int]:
        return self._live.graph.samples[first_to_label(self._live.graph.graph, BATCH)].tolist()

    def _lay_out(self) -> None:
        """Lay out the graph."""
        found = LiveMap(self._live.graph, self._map)
        with self._lock:
            self._map = found

    def _hold_out_labels(self) -> None:
        """Hold out labels and fit again, to see how many are found."""
        dataset, labels, _ = self._labelled_dataset()
        version = self._fitted_version
        found = held_out_accuracy(self._clf, dataset)
        with self._lock:
            self._held_out_version = version
            self._held_out = None if found is None else {"labels": len(labels), **found}

    def _note_progress(self) -> None:
        """Add a point to the curve: the mean probability of the answers about samples without a label.

        Before the first fit there is none: the scores are not calibrated yet.
        """
        live = self._live
        free = ~live.labelled
        if self._model["fits"] and len(set(live.labels.values())) > 1 and free.any():
            self._curve[len(live.labels)] = round(float(live.probabilities[free].max(axis=1).mean()), 4)


def _most_informative(graph: SampleGraph, labelled: NDArray, uncertainty: NDArray) -> list[int]:
    """Rows of the next batch."""
    return graph.samples[sigma_optimal_batch(graph.graph, uncertainty, labelled, ~labelled, BATCH)].tolist()
