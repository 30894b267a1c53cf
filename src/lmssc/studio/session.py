"""One labelling session: answers on disk, the model that they move, and what each annotator is asked next."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import Any
from zlib import crc32

from lmssc.io.media import SampleViewer
from lmssc.model_selection.intervals import wilson
from lmssc.studio.agreement import Disagreement, cohen_kappa, consensus
from lmssc.studio.answer_store import LABEL, NONE, SKIP, AnswerStore, StoredAnswer, StoreError
from lmssc.studio.engine import Engine
from lmssc.studio.names import RequestError, check_annotator, check_label, shortened

# With several annotators, one sample of so many is shown to all of them, to measure how well they agree.
SHARED_EVERY = 5
# Labelled neighbours shown beside a sample.
N_REASONS = 3
# Samples in a list to go through.
LISTED = 50
INFORMATIVE, UNCERTAIN, SUSPECTED, DISAGREEMENTS = "informative", "uncertain", "suspected", "disagreements"
RANDOM = "random"
CHOSEN = "chosen"
LISTS = (INFORMATIVE, UNCERTAIN, SUSPECTED, DISAGREEMENTS, RANDOM)
"""Lists to go through. Only answers about random samples measure accuracy without bias: the others are hard ones."""


class Session:
    """Ties together store, model and annotators; every method may be called from any thread.

    Parameters
    ----------
    ids : sequence of str
        The samples.
    engine : Engine
        The model.
    store : AnswerStore
        The answers.
    viewer : SampleViewer
        What to show of a sample.
    given : mapping of str to str
        Labels that came with the files, by sample; an answer about the same sample has precedence.
    annotators : sequence of str
        Who may answer; anyone if there are none.
    """

    def __init__(
        self,
        ids: Sequence[str],
        engine: Engine,
        store: AnswerStore,
        viewer: SampleViewer,
        given: Mapping[str, str] | None = None,
        annotators: Sequence[str] = (),
    ) -> None:
        self.ids, self.engine, self.store, self.viewer = list(ids), engine, store, viewer
        self.rows = {key: row for row, key in enumerate(self.ids)}
        self.annotators = list(annotators)
        self._given = dict(given or {})
        self._lock = RLock()
        self._asked: dict[str, str] = {}  # the sample in front of each annotator
        self._looked_at: set[tuple[str, str]] = set()  # annotator and sample, of the suspected labels
        self._shown: dict[tuple[str, str], dict[str, Any]] = {}
        self._answers: dict[str, dict[str, StoredAnswer]] = {}  # by sample, then by annotator
        strangers = [answer.sample for answer in store.standing() if answer.sample not in self.rows]
        if strangers:
            raise StoreError(
                f"{store.path} has answers about samples that these files do not have, such as {strangers[0]!r}: "
                "choose another --out for other data"
            )
        for answer in store.standing():
            self._answers.setdefault(answer.sample, {})[answer.annotator] = answer
        store.add_classes(dict.fromkeys(self._given.values()))
        engine.start(store.classes, {self.rows[key]: label for key, label in self._labels().items()})

    @cached_property
    def _shuffled(self) -> list[int]:
        """All rows in an order that is as good as random, and the same after a restart."""
        return sorted(range(len(self.ids)), key=lambda row: crc32(self.ids[row].encode(errors="replace")))

    # ---- what requests ask for

    def label(self, sample: str, label: str, annotator: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Take a label: on disk first, then all answers move; `more` is stored with what was shown."""
        return self._take(sample, check_label(label), annotator, LABEL, more)

    def skip(self, sample: str, annotator: str) -> dict[str, Any]:
        """Leave a sample for later."""
        return self._take(sample, None, annotator, SKIP)

    def none_of_these(self, sample: str, annotator: str) -> dict[str, Any]:
        """A sample is of none of the classes: it gets no label and is not asked for again."""
        return self._take(sample, None, annotator, NONE)

    def _take(
        self, sample: str, label: str | None, annotator: str, kind: str, more: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        annotator = self._check_annotator(annotator)
        if sample not in self.rows:
            raise RequestError(f"there is no sample {shortened(sample)!r}")
        with self._lock:
            shown = self._shown.get((annotator, sample), {}) | dict(more or {})
            answer = self.store.add(sample, label, annotator, kind=kind, shown=shown)
            self._answers.setdefault(sample, {})[annotator] = answer
            if self._asked.get(annotator) == sample:
                del self._asked[annotator]
            if shown.get("why_asked") == SUSPECTED:
                self._looked_at.add((annotator, sample))
            changed = self._update(sample)
            return {"number": answer.number, "id": sample, "label": label, "kind": kind, "changed": changed}

    def undo(self, annotator: str, number: int | None = None) -> dict[str, Any]:
        """Take back the last answer of an annotator, or the one with this number."""
        annotator = self._check_annotator(annotator)
        with self._lock:
            answer = self.store.undo(annotator, number)
            if answer is None:
                return {"undone": None}
            answers = self._answers.get(answer.sample, {})
            if answers.get(annotator, answer).number == answer.number:
                answers.pop(annotator, None)
            changed = self._update(answer.sample)
            self._asked[annotator] = answer.sample
            return {"undone": answer.number, "id": answer.sample, "label": answer.label, "changed": changed}

    def next(self, annotator: str, which: str = INFORMATIVE, sample: str | None = None) -> dict[str, Any]:
        """The next sample for an annotator, with what the model thinks of it and why.

        Parameters
        ----------
        annotator : str
            Who asks.
        which : {"informative", "uncertain", "suspected", "disagreements"}
            The list to go through.
        sample : str, optional
            A certain sample instead of the next one.
        """
        annotator = self._check_annotator(annotator)
        if which not in LISTS:
            raise RequestError(f"list must be one of {', '.join(LISTS)}, got {which!r}")
        if sample is not None and sample not in self.rows:
            raise RequestError(f"there is no sample {shortened(sample)!r}")
        with self._lock:
            if sample is None:
                sample, reason = self._choose(annotator, which)
            elif annotator in self._answers.get(sample, {}):  # to look at it again
                reason = CHOSEN
            else:  # shown again, or chosen by the annotator: then it is no random sample, whatever the list
                reason = self._shown.get((annotator, sample), {}).get("why_asked", CHOSEN)
            if sample is None:
                return {"id": None, "why_asked": "", "left": 0}
            self._asked[annotator] = sample
            row = self.rows[sample]
            self.engine.prepare(row)
            guesses = self.engine.guesses(row)
            self._shown[annotator, sample] = {"why_asked": reason, "guesses": guesses[:2]}
            mine = self._answers.get(sample, {}).get(annotator)
            return {
                "id": sample,
                "content": self.viewer.describe(row),
                "guesses": guesses,
                "reached": self.engine.is_reached(row),
                "because": self._reasons(row),
                "labelled": self._consensus(sample) is not None,
                "why_asked": reason,
                "given": self._given.get(sample),
                "mine": None if mine is None else {"kind": mine.kind, "label": mine.label},
                "others": {} if mine is None else self._other_labels(sample, mine),
                "left": len(self.ids) - len(self._labels()),
            }

    def _other_labels(self, sample: str, mine: StoredAnswer) -> dict[str, str]:
        """What other annotators say, for those who have answered, if it differs."""
        answers = {name: one.label for name, one in self._answers[sample].items() if one.kind == LABEL}
        return {name: str(label) for name, label in answers.items() if label != mine.label}

    def listed(self, which: str, annotator: str) -> list[dict[str, Any]]:
        """A list to go through, most urgent first."""
        annotator = self._check_annotator(annotator)
        if which not in LISTS:
            raise RequestError(f"list must be one of {', '.join(LISTS)}, got {which!r}")
        with self._lock:
            if which == DISAGREEMENTS:
                return [one.as_data() for one in self.disagreements()]
            rows = self._candidates(which)[:LISTED]
            return [
                {"id": self.ids[row], "guesses": self.engine.guesses(row)[:2]} | self._label_of(row) for row in rows
            ]

    def state(self) -> dict[str, Any]:
        """How far the session is: classes, labels, agreement, accuracy, the model."""
        with self._lock:
            labels = self._labels()
            counts = Counter(labels.values())
            kinds = Counter(answer.kind for answers in self._answers.values() for answer in answers.values())
            return {
                "samples": len(self.ids),
                "labelled": len(labels),
                "given": len(self._given),
                "skipped": kinds[SKIP],
                "none_of_these": kinds[NONE],
                "classes": [{"name": name, "labels": counts[name]} for name in self.store.classes],
                "annotators": self._annotator_facts(),
                "kappa": cohen_kappa(self._answers),
                "checked": self._checked(),
                "disagreements": len(self.disagreements()),
                "model": self.engine.facts(),
            }

    def map(self, since: int = 0) -> dict[str, Any]:
        """The map of the learned graph, with the ids of its dots if its positions are new."""
        found = self.engine.map(since)
        if "rows" in found:
            found["ids"] = [self.ids[row] for row in found.pop("rows")]
        return found

    def disagreements(self) -> list[Disagreement]:
        """Samples about which annotators disagree, oldest first."""
        found = []
        for sample, answers in self._answers.items():
            labels = {name: answer.label for name, answer in answers.items() if answer.kind == LABEL}
            if len(set(labels.values())) > 1:
                found.append(Disagreement(sample, {name: str(label) for name, label in labels.items()}))
        return found

    def labels(self) -> dict[str, str]:
        """The label of each sample that has one: that of its answers, else the given one."""
        with self._lock:
            return self._labels()

    # ---- inside

    def _check_annotator(self, name: str) -> str:
        name = check_annotator(name)
        if self.annotators and name not in self.annotators:
            raise RequestError(f"annotator must be one of {', '.join(self.annotators)}, got {name!r}")
        return name

    def _labels(self) -> dict[str, str]:
        found = {sample: self._consensus(sample) for sample in dict.fromkeys([*self._given, *self._answers])}
        return {sample: label for sample, label in found.items() if label is not None}

    def _consensus(self, sample: str) -> str | None:
        """The label that counts for the model: of the majority; none in a tie, and none if all say "none of these"."""
        answers = [answer for answer in self._answers.get(sample, {}).values() if answer.kind != SKIP]
        if not answers:
            return self._given.get(sample)
        return consensus([answer.label for answer in answers])

    def _update(self, sample: str) -> int:
        """Let the model know the label of a sample; return how many answers change."""
        return self.engine.set_label(self.rows[sample], self._consensus(sample), self.store.classes)

    def _label_of(self, row: int) -> dict[str, Any]:
        return {"label": self._consensus(self.ids[row])}

    def _checked(self) -> dict[str, Any] | None:
        """How often the model was right about samples drawn at random, just before they were labelled."""
        said = [answer for answers in self._answers.values() for answer in answers.values() if answer.kind == LABEL]
        said = [one for one in said if one.shown.get("why_asked") == RANDOM and one.shown.get("guesses")]
        if not said:
            return None
        right = sum(one.shown["guesses"][0]["label"] == one.label for one in said)
        low, high = wilson(right / len(said), len(said))
        return {"samples": len(said), "right": right, "low": round(low, 4), "high": round(high, 4)}

    def _annotator_facts(self) -> list[dict[str, Any]]:
        names = Counter(dict.fromkeys(self.annotators, 0))
        for answers in self._answers.values():
            names.update(name for name, answer in answers.items() if answer.kind == LABEL)
        return [{"name": name, "labels": count} for name, count in names.items()]

    def _reasons(self, row: int) -> list[dict[str, Any]] | None:
        """The labelled samples that had most weight in the answer about a sample, and what they look like."""
        found = self.engine.reasons(row, N_REASONS)
        if found is None:
            return None
        return [
            {
                "id": self.ids[other],
                "label": self._consensus(self.ids[other]),
                "weight": round(weight, 4),
                "content": self.viewer.describe(other),
            }
            for other, weight in found
        ]

    def _choose(self, annotator: str, which: str) -> tuple[str | None, str]:
        """The next sample for an annotator, and why."""
        busy = {sample for name, sample in self._asked.items() if name != annotator}
        mine = self._asked.get(annotator)
        if which == INFORMATIVE and mine is not None and annotator not in self._answers.get(mine, {}):
            return mine, INFORMATIVE  # a page that was loaded again
        if which == DISAGREEMENTS:
            open_ones = [one.sample for one in self.disagreements() if one.sample != mine]
            return (open_ones[0] if open_ones else None), DISAGREEMENTS
        if which == SUSPECTED:
            samples = [self.ids[row] for row in self._candidates(which)]
            left = [one for one in samples if (annotator, one) not in self._looked_at and one not in busy]
            return (left[0] if left else None), SUSPECTED
        shared = self._shared_sample(annotator, busy)
        if which == INFORMATIVE and shared is not None:
            return shared, "agreement"
        for row in self._candidates(which):
            sample = self.ids[row]
            if sample not in busy and not self._answers.get(sample) and sample not in self._given:
                return sample, which
        return self._postponed(annotator, busy), SKIP

    def _shared_sample(self, annotator: str, busy: set[str]) -> str | None:
        """A sample that another annotator has labelled, and that is for all of them."""
        if len(self.annotators) < 2:
            return None
        for sample, answers in self._answers.items():
            others = [name for name, answer in answers.items() if answer.kind == LABEL]
            if (
                others
                and annotator not in answers
                and sample not in busy
                and crc32(sample.encode()) % SHARED_EVERY == 0
            ):
                return sample
        return None

    def _postponed(self, annotator: str, busy: set[str]) -> str | None:
        """A sample that was skipped, once nothing else is left: that of the annotator last."""
        skipped = [
            (answers[annotator].number if annotator in answers else 0, sample)
            for sample, answers in self._answers.items()
            if all(answer.kind == SKIP for answer in answers.values()) and answers and sample not in busy
        ]
        return min(skipped)[1] if skipped else None

    def _candidates(self, which: str) -> list[int]:
        if which == SUSPECTED:
            return self.engine.suspected()
        if which == RANDOM:
            return self._shuffled
        return self.engine.uncertain(LISTED) if which == UNCERTAIN else self.engine.queue()
