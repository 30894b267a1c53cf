"""Labels that the other labels contradict."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from lmssc._optional import import_optional

# Labels that are more likely wrong than right are listed as suspect.
SUSPECT = 0.5
MAX_SHOWN = 10


@dataclass(frozen=True)
class Suspects:
    """Labelled samples, the most suspect label first, as `LMSSC.suspect_labels` returns them.

    Attributes
    ----------
    rows : ndarray of int of shape (l,)
        Rows of the X of `fit`: all labelled samples.
    given : ndarray of shape (l,)
        The labels that they were given.
    proposed : ndarray of shape (l,)
        The class that the other labels make most likely; it may be the given one.
    probability : ndarray of shape (l,)
        Probability that the given label is wrong; NaN if it could not be held out, because its class has no other.
    noise : float
        Estimated share of wrong labels.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(300, labelled=0.3, random_state=0)
    >>> labelled = (data.y >= 0).nonzero()[0]
    >>> data.y[labelled[:9]] = (data.y[labelled[:9]] + 1) % 3
    >>> found = LMSSC().fit(data.views, data.y).suspect_labels()
    >>> len(set(found.rows[:9]) & set(labelled[:9])) >= 7
    True
    """

    rows: NDArray
    given: NDArray
    proposed: NDArray
    probability: NDArray
    noise: float

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def suspect(self) -> NDArray:
        """Rows whose label is more likely wrong than right."""
        return self.rows[self.probability > SUSPECT]

    def to_frame(self) -> Any:
        """A pandas frame with one row for each labelled sample."""
        pandas = import_optional("pandas", purpose="frames of results", extra="frames")
        columns = {"row": self.rows, "given": self.given, "proposed": self.proposed, "probability": self.probability}
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        n_suspect = len(self.suspect)
        head = (
            f"{n_suspect:,} of {len(self):,} labels are more likely wrong than right; estimated share of wrong labels: "
            f"{100 * self.noise:.0f} %"
        )
        lines = [
            f"  row {row}: {given} → {proposed} ({100 * probability:.0f} %)"
            for row, given, proposed, probability in zip(
                *(part[:MAX_SHOWN] for part in (self.rows, self.given, self.proposed, self.probability)), strict=True
            )
            if probability > SUSPECT
        ]
        return "\n".join([head, *lines])
