"""An unfinished fit: what its checkpoint holds, and how it resumes from there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from lmssc.core.begin import make_objective
from lmssc.core.confidence import StartConfidence
from lmssc.core.fit_config import CheckpointFile, FitConfig, FitHooks
from lmssc.core.links import LinkChoice, Links
from lmssc.core.objective import IterationState
from lmssc.core.permutation import Permutation
from lmssc.core.saving import History, Saver, field_values
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.core.view_forms import Form
from lmssc.core.view_graph import add_view_graph
from lmssc.data.views import Views
from lmssc.numerics.knn.approximate import choose_search

# Parts of a state that are computed from the others, or saved separately.
_NOT_SAVED = ("XtH", "laplacian", "search")
# What the start adds to the objective and leaves for the end.
_SAVED_OBJECTIVE = ("gamma", "targets", "expected", "ridge", "opinion")
_SAVED_START = (
    "embedding",
    "regressor",
    "initially_disconnected",
    "second_opinion",
    "view_weight",
    "candidates",
    "placement",
)


class FitSaver(Saver[Start, IterationState]):
    """Saves everything that `resume_with_links` needs."""

    def __init__(self, start: Start, hooks: FitHooks, choice: LinkChoice, form: Form) -> None:
        super().__init__(start, hooks)
        self.choice, self.form = choice, form

    def _write(self, checkpoint: CheckpointFile, state: IterationState, history: History) -> None:
        start, objective = self.start, self.start.objective
        checkpoint.write(
            {
                "state": {name: part for name, part in field_values(state).items() if name not in _NOT_SAVED},
                "search": state.search.state(),
                "objective": {name: getattr(objective, name) for name in _SAVED_OBJECTIVE},
                "order": start.permutation.order,
                "drawn": start.permutation.drawn,
                "start": {name: getattr(start, name) for name in _SAVED_START},
                "confidence": field_values(start.confidence),
                "history": list(history),
                "links": None if self.choice.weights is None else field_values(self.choice.weights),
                "refused_links": self.choice.refused,
                "form": list(self.form),
            }
        )


def resume(
    views: Views,
    targets: Targets,
    config: FitConfig,
    groups: NDArray | None,
    saved: Mapping[str, Any],
    links: Links | None = None,
) -> Start:
    """What an interrupted fit to the same data with the same parameters continues from.

    Parameters
    ----------
    views, targets, config, groups
        As for `fit`.
    saved : mapping
        Content of the checkpoint.
    links : Links, optional
        Links between the samples.

    Returns
    -------
    Start
    """
    permutation = Permutation(saved["order"], saved["drawn"])
    objective = make_objective(views, targets, config, groups, permutation, saved["start"]["embedding"], links)
    objective = add_view_graph(replace(objective, **saved["objective"]), saved["start"].get("view_weight", 0.0))
    search = choose_search(views.n_samples, config.neighbor_recall)
    search.set_state(saved["search"])
    state = IterationState(
        XtH=objective.views.transpose_dot(saved["state"]["latent"]),
        laplacian=objective.laplacian(saved["state"]["graph"]),
        search=search,
        **saved["state"],
    )
    confidence = StartConfidence(**saved["confidence"])
    return Start(objective, state, permutation, confidence=confidence, history=saved["history"], **saved["start"])
