"""The form in which measurements enter a fit: a regression on all features proposes one, held-out labels confirm it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core import view_graph
from lmssc.core.begin import begin, same_folds
from lmssc.core.calibration import calibration_sample
from lmssc.core.drawn_order import draw_samples, project_views
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.held_out import MAX_CALIBRATION_SAMPLES, MIN_CALIBRATION_LABELS
from lmssc.core.kernel_ridge import left_out_error
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.data.kept_deviations import KeptDeviations
from lmssc.data.memmap import MappedRows
from lmssc.data.view import MappedView, RawView, View
from lmssc.data.views import Views
from lmssc.data.whitening import PrincipalVariances, Whitening

MIN_GAIN = 0.02
"""Share of their loss by which held-out labels have to be found better: less is chance if the views say nothing."""
MAX_SAMPLES = view_graph.MAX_SAMPLES
"""With more samples, some of them decide. As for the graphs of single views, fits in parts are larger."""
MAX_WHITENED = 1500
"""Limit on the smaller one of samples and features of a view that is whitened, for the time that it takes."""
MAX_PRODUCTS = 10**11
"""Limit on the multiplications that whiten a view: a few seconds."""
MIN_COVARIANCE_ROWS, COVARIANCE_ROWS_PER_COLUMN = 2000, 4
"""Larger views are whitened by the covariance of so many samples, or so many for each column, to save time."""
MIN_LESS_ERROR = {False: 1e-6, True: 0.05}
"""Share of the leave-one-out error by which a form has to be better to be proposed: whitened columns by more than
rounding, centred ones clearly, because columns with about the same deviations are much the same standardised."""
MAX_SHARE = 2 / 3
"""Share of the variance of a view in one column above which columns are standardised: it would decide alone."""
MAX_COMPARED = 500
"""Labels that are enough to propose a form by."""
MIN_HELD_OUT = 5
"""Held-out labels from which on a choice is left to them."""
MIN_LOSS = 0.05
"""Mean loss of held-out labels below which there is nothing to gain."""


class Form(NamedTuple):
    """The form of all views of measurements.

    Attributes
    ----------
    whitening : float
        Strength of the whitening of standardised columns, from 0 to 1.
    keeps_deviations : bool
        Whether columns are only centred, and not standardised.
    """

    whitening: float = 0.0
    keeps_deviations: bool = False


STANDARDISED = Form()
FORMS = (Form(whitening=0.5), Form(whitening=1.0), Form(keeps_deviations=True))
"""Forms to choose from, besides `STANDARDISED`."""


@dataclass(frozen=True)
class FormedViews:
    """The scaled views, and how to change the form of those of measurements.

    Attributes
    ----------
    views : Views
        Scaled, in canonical order; measurements are standardised.
    deviations : mapping of int to ndarray of shape (d_v,)
        Standard deviations of the columns of the views whose form may change.
    """

    views: Views
    deviations: Mapping[int, NDArray]

    @classmethod
    def of(cls, views: Views, config: FitConfig) -> "FormedViews":
        """Measurements may change their form, unless they are sparse: they would become dense."""
        return cls(views, {v: deviations for v, deviations in config.deviations.items() if not _is_sparse(views[v])})

    @cached_property
    def order(self) -> NDArray:
        """The samples in a random order, which their positions in the canonical one do not decide."""
        return draw_samples(project_views(self.views))

    @cached_property
    def spectra(self) -> list[PrincipalVariances | None]:
        """Of each view, by some of the samples if they are many; None for one that is not whitened."""
        whitened = [v in self.deviations and _can_be_whitened(view) for v, view in enumerate(self.views)]
        return [
            PrincipalVariances.of(self._some_rows(view)) if one else None
            for view, one in zip(self.views, whitened, strict=True)
        ]

    def _some_rows(self, view: View) -> View:
        """As many samples as tell the covariance of the columns, in memory."""
        n_samples, width = view.data.shape
        n_rows = min(max(MIN_COVARIANCE_ROWS, COVARIANCE_ROWS_PER_COLUMN * width), MAX_SAMPLES)
        if n_rows < n_samples:
            return Views([view]).take(np.sort(self.order[:n_rows]))[0]
        return Views([view]).take(np.arange(n_samples))[0] if isinstance(view, MappedView) else view

    def changes(self, form: Form) -> list[Whitening | KeptDeviations | None]:
        """What happens to each view, which keeps its mean squared row norm; None for one that stays as it is."""
        if form.keeps_deviations:
            kept = {v: one for v, one in self.deviations.items() if _may_share_unit(one)}
            return [KeptDeviations.of(view, kept[v]) if v in kept else None for v, view in enumerate(self.views)]
        if form.whitening:
            return [None if one is None else one.whitening(form.whitening) for one in self.spectra]
        return [None] * len(self.views)

    def at(self, form: Form, rows: NDArray | None = None) -> Views:
        """The views in this form, of all samples or of some."""
        views = self.views if rows is None else self.views.take(rows)
        if form == STANDARDISED:
            return views
        return Views(
            [
                view if change is None else _changed(view, change)
                for view, change in zip(views, self.changes(form), strict=True)
            ]
        )

    def context(self, context: FitContext, form: Form) -> FitContext:
        """The context of fits to the views in this form."""
        return context if form == STANDARDISED else context.for_data(*context.data_key, form, *self.deviations)


def _can_be_whitened(view: View) -> bool:
    n_directions = min(view.data.shape)
    return n_directions <= MAX_WHITENED and 2 * math.prod(view.data.shape) * n_directions <= MAX_PRODUCTS


def _may_share_unit(deviations: NDArray) -> bool:
    shares = np.square(deviations / max(deviations.max(initial=0), np.finfo(float).tiny))
    return bool(shares.max(initial=0) <= MAX_SHARE * shares.sum())


def _is_sparse(view: View) -> bool:
    return sparse.issparse(view.data.array if isinstance(view.data, MappedRows) else view.data)


def _changed(view: View, change: Whitening | KeptDeviations) -> View:
    if isinstance(view, MappedView):
        return replace(view, scale=partial(_scale_and_change, view.scale, change))
    return replace(view, data=change.apply(view.data))


def _scale_and_change(scale: Callable[[RawView], View], change: Whitening | KeptDeviations, raw: RawView) -> View:
    return _changed(scale(raw), change)


def begin_formed(
    formed: FormedViews,
    targets: Targets,
    config: FitConfig,
    context: FitContext,
    groups: NDArray | None = None,
) -> tuple[Form, Start]:
    """The form of measurements that finds held-out labels better, and what the alternation starts from with it.

    Two judges have to agree, who see the labels in different ways: a regression on all features proposes the form with
    the smallest leave-one-out error, which is cheap. If columns are not just standardised in it, the start is repeated,
    and has to find held-out labels better, by a standard error of the mean difference of losses and by 2 % of the loss.

    Parameters
    ----------
    formed : FormedViews
        The views.
    targets, config, context, groups
        As for `fit`.

    Returns
    -------
    form : Form
        `STANDARDISED` without clear evidence.
    start : Start
    """
    if formed.views.n_samples > MAX_SAMPLES:
        form = _form_of_sample(formed, targets, config, groups) if config.chooses_form else STANDARDISED
        return form, begin(formed.at(form), targets, config, formed.context(context, form), groups)
    plain = begin(formed.views, targets, config, context, groups)
    losses = plain.confidence.losses
    if not formed.deviations or losses is None or len(losses) < MIN_HELD_OUT or plain.mean_loss < MIN_LOSS:
        return STANDARDISED, plain
    form = propose_form(formed, targets)
    if form == STANDARDISED:
        return STANDARDISED, plain
    folds = same_folds(formed.views, plain)
    start = begin(formed.at(form), targets, config, formed.context(context, form), groups, **folds)
    rival = plain
    if config.label_noise != 0:  # both are compared by the labels that count in the new form
        sure = replace(config, label_noise=0.0)
        rival = begin(formed.views, targets.with_trust_of(start.labels), sure, context, groups, **folds)
    better = start.is_better(rival) and start.mean_loss < (1 - MIN_GAIN) * rival.mean_loss
    return (form, start) if better else (STANDARDISED, plain)


def _form_of_sample(formed: FormedViews, targets: Targets, config: FitConfig, groups: NDArray | None) -> Form:
    """The form that is better for some of the samples, as many as judge the confidence of a large fit."""
    order = formed.order
    chosen = calibration_sample(targets.codes[order], MAX_CALIBRATION_SAMPLES, MIN_CALIBRATION_LABELS)
    rows = np.sort(order[chosen[:MAX_SAMPLES]])
    known = targets.take(rows)
    sample = FormedViews(formed.views.take(rows), formed.deviations)
    if not config.calibrate or propose_form(sample, known) == STANDARDISED:
        return STANDARDISED
    return begin_formed(sample, known, config, FitContext(), None if groups is None else groups[rows])[0]


def propose_form(formed: FormedViews, targets: Targets) -> Form:
    """The form with which a regression on all features has the smallest leave-one-out error.

    Parameters
    ----------
    formed : FormedViews
        The views.
    targets : Targets
        Their labels.

    Returns
    -------
    Form
    """
    rows = formed.order[targets.labelled[formed.order]][:MAX_COMPARED]
    known = targets.take(rows)
    errors = {STANDARDISED: left_out_error(formed.at(STANDARDISED, rows), known)}
    for form in FORMS:
        errors[form] = left_out_error(formed.at(form, rows), known) / (1 - MIN_LESS_ERROR[form.keeps_deviations])
    return min(errors, key=lambda form: errors[form])
