"""Graph methods whose default number of neighbours is a constant."""

from typing import Any, ClassVar

from lmssc.estimators.base import MultiViewClassifier, resolve_neighbors, upgrade_neighbors


class FixedNeighborsClassifier(MultiViewClassifier):
    """Classifier with a parameter `n_neighbors`, of which "auto" is a constant of the method."""

    _default_neighbors: ClassVar[int]
    n_neighbors: int | str

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        super()._upgrade(parameters, fitted, saved_by)
        if parameters.get("graph") != "precomputed":
            upgrade_neighbors(parameters, fitted, cls._default_neighbors)

    def _choose_neighbors(self, n_distinct: int) -> int:
        """K for so many distinct samples."""
        return resolve_neighbors(self.n_neighbors, n_distinct, self._default_neighbors, len(self._nodes))
