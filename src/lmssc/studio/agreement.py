"""How far annotators agree: the label of the majority, disagreements, and kappa."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lmssc.studio.answer_store import LABEL, StoredAnswer


@dataclass(frozen=True)
class Disagreement:
    """A sample about which annotators disagree, and what each says."""

    sample: str
    labels: Mapping[str, str]

    def as_data(self) -> dict[str, Any]:
        """The same as a dict that can be written as JSON."""
        return {"id": self.sample, "labels": dict(self.labels)}


def consensus(labels: Sequence[str | None]) -> str | None:
    """The label that more annotators gave than any other; None in a tie.

    Examples
    --------
    >>> consensus(["a", "b", "a"]), consensus(["a", "b"]), consensus(["a", None, None])
    ('a', None, None)
    """
    counts = Counter(labels).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def cohen_kappa(answers: Mapping[str, Mapping[str, StoredAnswer]]) -> dict[str, Any] | None:
    """Agreement beyond chance of two annotators on samples that both labelled, over all pairs of annotators.

    With p the share of agreement and e the share that two annotators with these frequencies would reach by chance,
    kappa is (p − e) / (1 − e). With more than two annotators it is the mean over the pairs, each with the weight of its
    samples.

    Parameters
    ----------
    answers : mapping
        The answers that stand, by sample, then by annotator.

    Returns
    -------
    dict or None
        `kappa` (None if all used one and the same class, which says nothing), `samples` and `agree`; None if no two
        annotators labelled a common sample.

    Examples
    --------
    >>> def said(label):
    ...     return StoredAnswer(0, "", LABEL, label, "", "")
    >>> both = {str(i): {"ann": said(a), "bob": said(b)} for i, (a, b) in enumerate(["xx", "xx", "yy", "xy"])}
    >>> cohen_kappa(both)
    {'kappa': 0.5, 'samples': 4, 'agree': 3}
    """
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for said in answers.values():
        labels = {name: answer.label for name, answer in said.items() if answer.kind == LABEL and answer.label}
        for one, other in combinations(sorted(labels), 2):
            pairs.setdefault((one, other), []).append((str(labels[one]), str(labels[other])))
    if not pairs:
        return None
    n_samples = sum(map(len, pairs.values()))
    n_agree = sum(a == b for both in pairs.values() for a, b in both)
    kappas = [(value, len(both)) for both in pairs.values() if (value := _kappa(both)) is not None]
    weight = sum(n for _, n in kappas)
    kappa = round(sum(value * n for value, n in kappas) / weight, 4) if weight else None
    return {"kappa": kappa, "samples": n_samples, "agree": n_agree}


def _kappa(both: Sequence[tuple[str, str]]) -> float | None:
    n = len(both)
    first, second = Counter(a for a, _ in both), Counter(b for _, b in both)
    by_chance = sum(first[name] * second[name] for name in first) / n**2
    if by_chance == 1:
        return None
    return (sum(a == b for a, b in both) / n - by_chance) / (1 - by_chance)
