"""Why samples have their labels: the labelled samples whose votes they are, by weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray
from scipy import sparse

from lmssc._optional import import_optional

# Samples shown by the display; `to_frame` has all.
MAX_SHOWN = 10
# A sample whose best path to a label has an edge below this share of the weights there hangs on it.
WEAK = 0.02
# Weights that differ by less are equal.
SAME_WEIGHT = 1e-3


@dataclass(frozen=True)
class Explanation:
    """Why samples have their labels, as `LMSSC.explain` returns it.

    With the graph fixed, the class scores of a sample are a weighted mean of the given labels and of the second
    opinion: F is `weights @ Y` plus `regression` times Q, before the prior correction, the calibration and the last
    regression of texts.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Rows of the X of `fit`, or of the X that was given.
    names : list of str
        Ids of these samples.
    labels : ndarray of shape (m,)
        Their labels.
    confidence : ndarray of shape (m,)
        Probability of the label.
    weights : csr_array of shape (m, n)
        Weight of each sample of `fit`: not negative, only on labelled ones. With `regression` rows sum to 1, or to 0 if
        no label reaches the sample.
    regression : ndarray of shape (m,)
        Weight of what does not come from labels over the graph: of the second opinion, a regression on all features.
    strongest : ndarray of int of shape (m, n_strongest)
        Samples of `fit` with most weight, −1 where there are fewer.
    given : ndarray of shape (n,)
        Label that each sample of `fit` was given; None without one.
    ids : sequence of str
        Ids of the samples of `fit`.
    view_shares : dict of str to ndarray of shape (m,)
        Share of each view in the edges of the sample: in which views it is close to its neighbours.
    bottleneck : ndarray of shape (m,)
        The weakest edge on the strongest path to a label, as a share of the weights at its better connected end.
    bottleneck_edge : ndarray of int of shape (m, 2)
        The samples of `fit` that it joins; −1 where there is none.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(100, labelled=0.1, random_state=0)
    >>> clf = LMSSC().fit(data.views, data.y)
    >>> why = clf.explain([3, 4], n=2)
    >>> why.strongest.shape, (why.weights.sum(axis=1) + why.regression).round(6)
    ((2, 2), array([1., 1.]))
    >>> list(why.to_frame().columns)
    ['row', 'id', 'label', 'confidence', 'because', 'because_id', 'because_label', 'weight']
    """

    rows: NDArray
    names: list[str]
    labels: NDArray
    confidence: NDArray
    weights: sparse.csr_array
    regression: NDArray
    strongest: NDArray
    given: NDArray
    ids: Sequence[str]
    view_shares: dict[str, NDArray]
    bottleneck: NDArray
    bottleneck_edge: NDArray

    def __len__(self) -> int:
        return len(self.rows)

    def votes(self, i: int) -> list[tuple[int, str, Any, float]]:
        """Row, id, label and weight of the samples that have most weight in sample i of this explanation."""
        weights = self.weights[[i]].toarray()[0]
        return [(int(j), str(self.ids[j]), self.given[j], float(weights[j])) for j in self.strongest[i] if j >= 0]

    def to_frame(self) -> Any:
        """A pandas frame with one row for each sample and each of its strongest votes."""
        pandas = import_optional("pandas", purpose="frames of results", extra="frames")
        nothing: list[tuple[Any, ...]] = [(-1, None, None, np.nan)]
        records = [
            (int(row), self.names[i], self.labels[i], float(self.confidence[i]), *vote)
            for i, row in enumerate(self.rows)
            for vote in self.votes(i) or nothing
        ]
        names = ["row", "id", "label", "confidence", "because", "because_id", "because_label", "weight"]
        return pandas.DataFrame.from_records(records, columns=names)

    def sentences(self, i: int) -> list[str]:
        """What there is to say about sample i of this explanation, in plain words."""
        votes = self.votes(i)
        lines = [
            f"{self.names[i]} is labelled {self.labels[i]}, with a confidence of {100 * self.confidence[i]:.0f} %."
        ]
        if not votes:
            source = (
                "from the regression on the features alone" if self.regression[i] > 0 else "the most frequent class"
            )
            return [*lines, f"No label reaches it over the graph: the label is {source}."]
        if votes[0][3] > 1 - 1e-9 and self.ids[votes[0][0]] == self.names[i]:
            return [*lines, "The label was given."]
        lines.append("Labelled samples that count most:")
        lines += [f"  {100 * weight:4.1f} %  {name} ({label})" for _, name, label, weight in votes]
        rest = 1 - sum(vote[3] for vote in votes) - self.regression[i]
        n_others = self.weights[[i]].nnz - len(votes)
        if n_others > 0 and rest > 0.0005:
            lines.append(f"  {100 * rest:4.1f} %  {n_others:,} others")
        if self.regression[i] > 0.0005:
            lines.append(f"  {100 * self.regression[i]:4.1f} %  the regression on the features")
        lines += self._contradiction(i)
        if len(self.view_shares) > 1:
            shares = sorted(((float(share[i]), name) for name, share in self.view_shares.items()), reverse=True)
            lines.append(
                "Views in which it is close to its neighbours: "
                + ", ".join(f"{n} ({100 * s:.0f} %)" for s, n in shares)
                + "."
            )
        if 0 < self.bottleneck[i] < WEAK:
            one, other = (str(self.ids[j]) for j in self.bottleneck_edge[i])
            lines.append(
                f"Only a weak edge, from {one} to {other}, connects it to the labels: do not rely on its label."
            )
        return lines

    def _contradiction(self, i: int) -> list[str]:
        """A line that says so if more weight is on another class than the label."""
        weights = self.weights[[i]].tocoo()
        totals: dict[Any, float] = {}
        for j, weight in zip(weights.col, weights.data, strict=True):
            totals[self.given[j]] = totals.get(self.given[j], 0.0) + float(weight)
        best = max(totals, key=totals.__getitem__)
        if totals[best] <= totals.get(self.labels[i], 0.0) + self.regression[i] + SAME_WEIGHT:
            return []
        return [
            f"By weight alone it would be {best} ({100 * totals[best]:.0f} %): the correction for class frequencies or "
            "its distance from the samples of fit changed the label."
        ]

    def __str__(self) -> str:
        parts = ["\n".join(self.sentences(i)) for i in range(min(len(self), MAX_SHOWN))]
        if len(self) > MAX_SHOWN:
            parts.append(f"... and {len(self) - MAX_SHOWN} more; to_frame() has all")
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = [Markup("<br>").join(map(escape, self.sentences(i))) for i in range(min(len(self), MAX_SHOWN))]
        return str(Markup("").join(Markup("<p style='white-space: pre-wrap'>{}</p>").format(part) for part in shown))
