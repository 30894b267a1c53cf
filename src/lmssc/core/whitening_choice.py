"""How far the columns of measurements are decorrelated: held-out labels decide."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmssc.core import view_graph
from lmssc.core.begin import begin, same_folds
from lmssc.core.drawn_order import draw_samples, project_views
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.second_opinion import left_out_error
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.data.view import MappedView, View
from lmssc.data.views import Views
from lmssc.data.whitening import PrincipalVariances, Whitening

STRENGTHS = (0.5, 1.0)
"""Strengths of the whitening to choose from."""
N_ERRORS = 0.5
"""Standard errors by which held-out labels have to be found better."""
MIN_GAIN = 0.02
"""Share of their loss by which held-out labels have to be found better: less is chance if the views say nothing."""
MAX_SAMPLES = view_graph.MAX_SAMPLES
"""As for the graphs of single views: fits in parts, which are larger, have neither."""
MAX_SIZE = 1500
"""Limit on the smaller one of samples and features of a view, for the time that it takes."""
MAX_COMPARED = 500
"""Labels that are enough to propose a strength by."""
MIN_HELD_OUT = 10
"""Held-out labels from which on a choice is left to them."""
MIN_LOSS = 0.01
"""Mean loss of held-out labels below which there is nothing to gain."""


@dataclass(frozen=True)
class WhitenedViews:
    """The scaled views, and how to whiten those of measurements.

    Attributes
    ----------
    views : Views
        Scaled, in canonical order.
    allowed : sequence of bool
        Which of them may be whitened.
    """

    views: Views
    allowed: Sequence[bool]

    @classmethod
    def of(cls, views: Views, config: FitConfig) -> "WhitenedViews":
        """Those of measurements that are not too large may be whitened."""
        small = views.n_samples <= MAX_SAMPLES
        return cls(views, [small and v in config.measurements and _is_small(view) for v, view in enumerate(views)])

    @cached_property
    def spectra(self) -> list[PrincipalVariances | None]:
        """Of each view; None for a view that stays as it is."""
        pairs = zip(self.views, self.allowed, strict=True)
        return [PrincipalVariances.of(view) if allowed else None for view, allowed in pairs]

    def whitenings(self, strength: float) -> list[Whitening | None]:
        """The whitening of each view, with which it keeps its mean squared row norm."""
        if not strength:
            return [None] * len(self.allowed)
        return [None if spectrum is None else _with_energy(spectrum, strength) for spectrum in self.spectra]

    def at(self, strength: float, rows: NDArray | None = None) -> Views:
        """The views with this strength, of all samples or of some."""
        views = self.views if rows is None else self.views.take(rows)
        if not strength:
            return views
        return Views(
            [
                view if one is None else View(one.apply(view.data), None, view.present)
                for view, one in zip(views, self.whitenings(strength), strict=True)
            ]
        )

    def context(self, context: FitContext, strength: float) -> FitContext:
        """The context of fits to the views with this strength."""
        return context.for_data(*context.data_key, "whitened", strength, *self.allowed) if strength else context


def _is_small(view: View) -> bool:
    dense = isinstance(view.data, np.ndarray) and not isinstance(view, MappedView) and view.offset is None
    return dense and view.data.shape[1] >= 2 and min(view.data.shape) <= MAX_SIZE


def _with_energy(spectrum: PrincipalVariances, strength: float) -> Whitening:
    whitening = spectrum.whitening(strength)
    before = float(spectrum.variances.sum())
    after = float((spectrum.variances * whitening.factors**2).sum())
    scale = np.sqrt(before / after) if after > 0 else 1.0
    return replace(whitening, factors=whitening.factors * scale, rest=float(whitening.rest * scale))


def begin_whitened(
    whitened: WhitenedViews,
    targets: Targets,
    config: FitConfig,
    context: FitContext,
    groups: NDArray | None = None,
) -> tuple[float, Start]:
    """The strength of whitening that finds held-out labels better, and what the alternation starts from with it.

    Two judges have to agree, who see the labels in different ways: a regression on all features proposes the strength
    with the smallest leave-one-out error, which is cheap. If that is not 0, the start is repeated with it, and has to
    find held-out labels better, by half a standard error of the mean difference of losses and by 2 % of the loss.

    Parameters
    ----------
    whitened : WhitenedViews
        The views.
    targets, config, context, groups
        As for `fit`.

    Returns
    -------
    strength : float
        0 without clear evidence.
    start : Start
    """
    plain = begin(whitened.views, targets, config, context, groups)
    losses = plain.confidence.losses
    if not any(whitened.allowed) or losses is None or len(losses) < MIN_HELD_OUT or plain.mean_loss < MIN_LOSS:
        return 0.0, plain
    strength = propose_strength(whitened, targets)
    if not strength:
        return 0.0, plain
    folds = same_folds(whitened.views, plain)
    start = begin(whitened.at(strength), targets, config, whitened.context(context, strength), groups, **folds)
    rival = plain
    if config.label_noise != 0:  # both are compared by the labels that count with whitening
        sure = replace(config, label_noise=0.0)
        rival = begin(whitened.views, targets.with_trust_of(start.labels), sure, context, groups, **folds)
    better = start.is_better(rival, N_ERRORS) and start.mean_loss < (1 - MIN_GAIN) * rival.mean_loss
    return (strength, start) if better else (0.0, plain)


def propose_strength(whitened: WhitenedViews, targets: Targets) -> float:
    """The strength with which a regression on all features has the smallest leave-one-out error.

    Parameters
    ----------
    whitened : WhitenedViews
        The views.
    targets : Targets
        Their labels.

    Returns
    -------
    float
    """
    order = draw_samples(project_views(whitened.views))
    rows = order[targets.labelled[order]][:MAX_COMPARED]
    known = targets.take(rows)
    return min((0.0, *STRENGTHS), key=lambda strength: left_out_error(whitened.at(strength, rows), known))
