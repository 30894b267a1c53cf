"""Labels that may be wrong: how likely each is, and how far it is to be trusted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lmssc.core.held_out_folds import HeldOutFolds, LatentProblem
from lmssc.core.noise_estimate import NoiseEstimate, estimate_noise, held_out_logs
from lmssc.core.targets import STIFFNESS, Targets

FIRST_NOISE = 0.15
"""Share of wrong labels before anything is known."""
MAX_LABELS_TWICE = 100
"""With more labels, wrong ones mislead the others so little that these need not be judged first; and it is better to
drop those that are likely wrong than to trust all others less."""
MAX_ODDS = 20.0
"""Odds of being right beyond which no label is trusted, once labels are trusted by their odds."""


@dataclass(frozen=True)
class LabelDoubt:
    """What labels that were held out in turn say about each label.

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Class distribution of each labelled sample without its own label; NaN without a label, and for labels that were
        never held out.
    wrong : ndarray of shape (n,)
        Probability that the label of each sample is wrong; 0 without a label, NaN if it was never held out.
    noise : float
        Estimated share of wrong labels; 0 if the labels are more likely without any.
    by_odds : bool
        Whether labels are trusted by their odds of being right; otherwise those that are likely wrong do not count, and
        the others are certain.
    """

    scores: NDArray
    wrong: NDArray
    noise: float
    by_odds: bool = True


def doubt_labels(
    problem: LatentProblem, targets: Targets, folds: HeldOutFolds, noise: float | None = None
) -> LabelDoubt:
    """How likely each label is wrong, by how much the others disagree.

    Labels are held out in turn, and judged by the others. If these are few, wrong ones among them mislead: so they are
    judged twice, by the others as they are, and by the others trusted by their odds of being right. These odds come
    from labels of which neither the judged one is known nor the one that it is to judge: labels that confirm each other
    would otherwise seem more likely than they are. The judgement that makes the labels more likely counts.

    Parameters
    ----------
    problem : LatentProblem
        The samples.
    targets : Targets
        Their labels.
    folds : HeldOutFolds
        Which labels are held out together.
    noise : float, optional
        Share of wrong labels; estimated if it is not given.

    Returns
    -------
    LabelDoubt
    """
    members = {fold: np.flatnonzero(targets.labelled & (folds.number == fold)) for fold in folds.used}
    members = {fold: rows for fold, rows in members.items() if len(rows)}
    rows = np.concatenate([np.empty(0, dtype=np.intp), *members.values()])
    codes = targets.codes[rows]
    if not len(rows):
        nothing = np.full((len(targets), targets.n_classes), np.nan)
        return LabelDoubt(nothing, np.where(targets.labelled, np.nan, 0.0), 0.0 if noise is None else noise)

    def judge(trusted: Callable[[int], Targets]) -> NoiseEstimate:
        heard = [held_out_logs(problem, trusted(fold).without_labels(own), own) for fold, own in members.items()]
        return estimate_noise(np.concatenate(heard, axis=1), codes, noise)

    verdict, few = judge(lambda fold: targets), targets.n_labelled <= MAX_LABELS_TWICE
    if few and len(members) > 2:
        trusted = _trust_without_each_fold(problem, targets, members, noise)
        verdict = max(verdict, judge(trusted.__getitem__), key=lambda found: found.evidence)
    doubt = _doubt(verdict, targets, rows, by_odds=few)
    if doubt.noise and len(members) == 2:
        # Each half judges the other, with so many labels that hardly any two confirm each other.
        trusted_all = trust_labels(targets, replace(doubt, by_odds=True))
        doubt = _doubt(judge(lambda fold: trusted_all), targets, rows, by_odds=few)
    return doubt


def _doubt(verdict: NoiseEstimate, targets: Targets, rows: NDArray, *, by_odds: bool) -> LabelDoubt:
    """The doubt in each label that a verdict on those of `rows` gives."""
    # One wrong label more is always possible: the ranking is worth having.
    noise = verdict.noise or 1 / (targets.n_labelled + 2)
    scores = np.full((len(targets), targets.n_classes), np.nan)
    scores[rows] = verdict.distributions
    return LabelDoubt(scores, wrong_probability(scores, targets, noise), verdict.noise, by_odds)


def _trust_without_each_fold(
    problem: LatentProblem, targets: Targets, members: dict[int, NDArray], noise: float | None
) -> dict[int, Targets]:
    """For each fold, the labels trusted by their odds, which do not know the labels of that fold."""
    share = FIRST_NOISE if noise is None else noise
    alike = trust_labels(targets, LabelDoubt(np.empty(0), np.where(targets.labelled, share, 0.0), share))
    heard: dict[tuple[int, int], NDArray] = {}
    for one, other in combinations(members, 2):
        both = np.concatenate([members[one], members[other]])
        known = alike.without_labels(both)
        logs = held_out_logs(problem, known, both)
        # Of a class without any other label nothing can be said.
        logs[:, np.bincount(known.codes[known.labelled], minlength=known.n_classes)[targets.codes[both]] == 0] = np.nan
        heard[one, other], heard[other, one] = np.split(logs, [len(members[one])], axis=1)
    result = {}
    for fold in members:
        others = [other for other in members if other != fold]
        rows = np.concatenate([members[other] for other in others])
        logs = np.concatenate([heard[other, fold] for other in others], axis=1)
        seen = ~np.isnan(logs).any(axis=(0, 2))
        rows, logs = rows[seen], logs[:, seen]
        doubt = _doubt(estimate_noise(logs, targets.codes[rows], noise), targets, rows, by_odds=True)
        result[fold] = trust_labels(targets, replace(doubt, noise=share))
    return result


def wrong_probability(scores: NDArray, targets: Targets, noise: float) -> NDArray:
    """Probability that each label is wrong, given the class distribution g of its sample without it.

    A label is right with probability 1 − ν, otherwise any other class is as likely. So the label y is wrong with
    probability 1 − (1 − ν)·g_y / ((1 − ε)·g_y + ε/c), ε = ν·c/(c − 1).

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        g, NaN for some.
    targets : Targets
        The labels.
    noise : float
        ν.

    Returns
    -------
    ndarray of shape (n,)
        0 without a label, NaN where g is.

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0, 0, -1]), 2)
    >>> wrong_probability(np.array([[0.95, 0.05], [0.05, 0.95], [0.5, 0.5]]), targets, noise=0.1).round(3)
    array([0.006, 0.679, 0.   ])
    """
    n_classes = targets.n_classes
    doubt = noise * n_classes / (n_classes - 1)
    rows = np.flatnonzero(targets.labelled)
    given = scores[rows, targets.codes[rows]]
    likelihood = (1 - doubt) * given + doubt / n_classes
    result = np.zeros(len(targets))
    result[rows] = np.clip(1 - (1 - noise) * given / np.maximum(likelihood, np.finfo(float).tiny), 0, 1)
    return result


def trust_labels(targets: Targets, doubt: LabelDoubt) -> Targets:
    """The targets with as much trust in each label as it deserves; labels never held out stay certain.

    Trust by the odds that a label is right, or none in those that are likely wrong; the last labels of a class
    are trusted all the same. Without noise nothing changes.

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0, 1, 1, -1]), 2)
    >>> doubt = LabelDoubt(np.zeros((4, 2)), np.array([0.5, np.nan, 0.9, 0.0]), 0.1)
    >>> trust_labels(targets, doubt).trust.round(3)
    array([0.3  ,   inf, 0.033,   inf])
    >>> trust_labels(targets, replace(doubt, by_odds=False)).trust
    array([inf, inf,  0., inf])
    """
    if not doubt.noise:
        return targets
    if doubt.by_odds:
        odds = np.minimum((1 - doubt.wrong) / np.maximum(doubt.wrong, np.finfo(float).tiny), MAX_ODDS)
        doubted = targets.labelled & ~np.isnan(doubt.wrong)
    else:
        doubted = targets.labelled & (np.nan_to_num(doubt.wrong) > 0.5)
        left = np.bincount(targets.codes[targets.labelled & ~doubted], minlength=targets.n_classes)
        doubted &= left[targets.codes] > 0
        odds = np.zeros(len(targets))
    trust = np.where(doubted, STIFFNESS * odds, np.inf)
    return replace(targets, trust=trust if targets.trust is None else np.minimum(trust, targets.trust))
