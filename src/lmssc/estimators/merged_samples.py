"""Numbering of samples of a fit and of new ones together: distinct samples in canonical order, and their labels."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmssc.core.targets import Targets
from lmssc.data.canonical_order import CanonicalOrder


@dataclass(frozen=True)
class MergedSamples:
    """Distinct samples of a fit and of new rows, merged.

    Attributes
    ----------
    order : CanonicalOrder
        Order of all distinct samples; their rows are numbered over the rows of the fit, then the new ones.
    nodes : ndarray of int of shape (n + m,)
        Distinct sample of each row.
    position : ndarray of int
        Place in `order` of each distinct sample of the fit, and then of the distinct new ones.
    added : ndarray of int
        New rows that are the distinct new samples, in canonical order.
    """

    order: CanonicalOrder
    nodes: NDArray
    position: NDArray
    added: NDArray

    @classmethod
    def of(cls, order: CanonicalOrder, nodes: NDArray, keys: NDArray, codes: NDArray) -> "MergedSamples":
        """Merge the rows of a fit with new rows, of which `keys` are the hashes and `codes` the labels.

        Examples
        --------
        >>> fit = CanonicalOrder(np.array([0, 1]), [0], np.array([4, 7], dtype=np.uint64))
        >>> new = np.array([7, 5, 5], dtype=np.uint64)
        >>> merged = MergedSamples.of(fit, np.array([0, 1]), new, np.array([-1, -1, 1]))
        >>> merged.nodes, merged.position, merged.added, merged.order.samples
        (array([0, 2, 2, 1, 1]), array([0, 2, 1]), array([2]), array([0, 4, 1]))
        """
        n_rows, known = len(nodes), order.keys
        place = np.searchsorted(known, keys, side="right") - 1
        unknown = np.flatnonzero(known[place] != keys)
        # Of identical samples the last stands for all: it has a label if any of them has.
        by_key = unknown[np.lexsort((codes[unknown], keys[unknown]))]
        last = np.append(keys[by_key][1:] != keys[by_key][:-1], np.ones(min(1, len(by_key)), dtype=bool))
        added = by_key[last]
        all_keys = np.concatenate([known, keys[added]])
        canonical = np.argsort(all_keys, kind="stable")
        position = np.argsort(canonical)
        place[unknown] = len(known) + np.searchsorted(keys[added], keys[unknown])
        samples = np.concatenate([order.samples, n_rows + added])[canonical]
        merged = CanonicalOrder(samples, order.views, all_keys[canonical])
        return cls(merged, position[np.concatenate([nodes, place])], position, added)

    def take_former(self, inner: NDArray) -> "MergedSamples":
        """The same with the distinct samples of the fit in another order, before the new ones."""
        return replace(self, position=np.concatenate([self.position[inner], self.position[len(inner) :]]))

    def reorder(self, rows: NDArray) -> NDArray:
        """Rows of the distinct samples, those of the fit first, in the merged order."""
        result = np.empty_like(rows)
        result[self.position] = rows
        return result

    def targets(self, former: Targets, given: NDArray, before: NDArray, class_order: NDArray) -> Targets:
        """Labels of the distinct samples, those of the fit first.

        Parameters
        ----------
        former : Targets
            Labels of the distinct samples of the fit. Where no label changed, they stay as they are, soft or doubted.
        given, before : ndarray of int of shape (n + m,)
            Index in the sorted classes of the label of each row, −1 without one; and before the update.
        class_order : ndarray of int of shape (c,)
            Index in the sorted classes of each class in canonical order.
        """
        n_nodes, n_former = len(self.position), len(former)
        place = np.argsort(self.position)[self.nodes]
        labelled = given >= 0
        # If all samples are repeated equally often, the copies count as one.
        repeats = int(np.gcd.reduce(np.unique(place * (len(class_order) + 1) + given, return_counts=True)[1]))
        codes = np.argsort(class_order)[given[labelled]]
        fresh = Targets.from_labels(place[labelled], codes, n_nodes, len(class_order), repeats)
        same = np.zeros(n_nodes, dtype=bool)
        same[:n_former] = True
        same[place[given != before]] = False
        return _keep(fresh, former, same)


def _keep(fresh: Targets, former: Targets, same: NDArray) -> Targets:
    """The fresh targets, but the former ones of the samples that are the `same`."""
    kept = same[: len(former)]
    codes = fresh.codes.copy()
    codes[: len(former)][kept] = former.codes[kept]
    parts = [(fresh.mixed, fresh.shares, ~same[fresh.mixed]), (former.mixed, former.shares, kept[former.mixed])]
    mixed = np.concatenate([nodes[chosen] for nodes, _, chosen in parts])
    shares = np.concatenate([rows[chosen] for _, rows, chosen in parts])
    order = np.argsort(mixed, kind="stable")
    trust = None
    if former.trust is not None:
        trust = np.full(len(fresh), np.inf)
        trust[: len(former)][kept] = former.trust[kept]
    return replace(fresh, codes=codes, mixed=mixed[order], shares=shares[order], trust=trust)
