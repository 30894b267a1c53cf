"""Graph methods whose default number of neighbours is a constant."""

from typing import Any, ClassVar

from lmssc.data.imputation import IMPUTE
from lmssc.data.parameters import CALLABLE_OR_NONE, COUNT, COUNT_OR_AUTO, NOT_NEGATIVE, VERBOSITY, Rule
from lmssc.estimators.base import MultiViewClassifier
from lmssc.estimators.neighbor_count import resolve_neighbors, upgrade_neighbors

ITERATIVE_RULES: dict[str, Rule] = {
    "impute": IMPUTE,
    "n_neighbors": COUNT_OR_AUTO,
    "max_iter": COUNT,
    "tol": NOT_NEGATIVE,
    "callback": CALLABLE_OR_NONE,
    "verbose": VERBOSITY,
}
"""Rules for the parameters that the methods with iterations share."""


class FixedNeighborsClassifier(MultiViewClassifier):
    """Classifier with a parameter `n_neighbors` whose "auto" is a constant of the method."""

    _default_neighbors: ClassVar[int]
    n_neighbors: int | str

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        super()._upgrade(parameters, fitted, saved_by)
        if parameters.get("graph") != "precomputed":
            upgrade_neighbors(parameters, fitted, cls._default_neighbors)

    def _choose_neighbors(self, n_distinct: int) -> int:
        """Number of neighbours k for that many distinct samples."""
        return resolve_neighbors(self.n_neighbors, n_distinct, self._default_neighbors, len(self._nodes))
