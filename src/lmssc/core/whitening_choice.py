"""How far the columns of measurements are decorrelated: held-out labels decide."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmssc.core.begin import begin, same_folds
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.data.view import MappedView, View
from lmssc.data.views import Views
from lmssc.data.whitening import PrincipalVariances, Whitening

STRENGTHS = (0.5, 1.0)
"""Strengths of the whitening that are tried."""
N_ERRORS = 1.5
"""Standard errors by which held-out labels have to be found better: with two strengths to try, one is chance."""
MAX_SAMPLES = 4000
MAX_SIZE = 1500
"""Limits on the samples, and on the smaller one of samples and features of a view, for the time that it takes."""
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
    spectra : list of PrincipalVariances or None
        One for each view; None for a view that stays as it is.
    """

    views: Views
    spectra: list[PrincipalVariances | None]

    @classmethod
    def of(cls, views: Views, config: FitConfig) -> "WhitenedViews":
        """Those that `config` and their size allow to whiten."""
        small = views.n_samples <= MAX_SAMPLES
        allowed = [small and v in config.measurements and _is_small(view) for v, view in enumerate(views)]
        spectra = [PrincipalVariances.of(view) if ok else None for view, ok in zip(views, allowed, strict=True)]
        return cls(views, spectra)

    def whitenings(self, strength: float) -> list[Whitening | None]:
        """The whitening of each view, with which it keeps its mean squared row norm."""
        return [
            None if spectrum is None or not strength else _with_energy(spectrum, view, strength)
            for spectrum, view in zip(self.spectra, self.views, strict=True)
        ]

    def at(self, strength: float) -> Views:
        """The views with this strength."""
        if not strength:
            return self.views
        return Views(
            [
                view if one is None else View(one.apply(view.data), None, view.present)
                for view, one in zip(self.views, self.whitenings(strength), strict=True)
            ]
        )

    def context(self, context: FitContext, strength: float) -> FitContext:
        """The context of fits to the views with this strength."""
        return context.for_data(*context.data_key, "whitened", strength) if strength else context


def _is_small(view: View) -> bool:
    dense = isinstance(view.data, np.ndarray) and not isinstance(view, MappedView) and view.offset is None
    return dense and view.data.shape[1] >= 2 and min(view.data.shape) <= MAX_SIZE


def _with_energy(spectrum: PrincipalVariances, view: View, strength: float) -> Whitening:
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

    Half of the whitening has to be better than none by 1.5 standard errors of the mean difference of losses, because
    two strengths are tried. All of it has to be better than half by one more, or than none if half is not better.

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
    none = all(spectrum is None for spectrum in whitened.spectra)
    if none or losses is None or len(losses) < MIN_HELD_OUT or plain.mean_loss < MIN_LOSS:
        return 0.0, plain
    folds = same_folds(whitened.views, plain)

    def attempt(strength: float) -> Start:
        return begin(whitened.at(strength), targets, config, whitened.context(context, strength), groups, **folds)

    strength, best = 0.0, plain
    for more in STRENGTHS:
        start = attempt(more)
        if start.is_better(best, N_ERRORS if best is plain else 1.0):
            strength, best = more, start
        elif plain.is_better(start, N_ERRORS):
            break  # more would be worse
    return strength, best
