"""How many refits a report may do: chosen so that they cost at most three times the fit itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RefitBudget:
    """What the refits of a report may cost, in units of the fit that the report is about.

    The costs are upper ends of what was measured on digits (1,797 samples, 1 to 6 views) and on 300, 5,000, 20,000
    and 200,000 synthetic samples in 1 to 3 views.
    """

    max_cost: float = 3.0
    """All refits together."""
    full_cost: float = 1.1
    """One refit with a third of the labels held out."""
    short_cost: float = 0.42
    """One refit with few iterations and without calibration, which is most of the work of a fit."""
    growth: float = 0.7
    """The cost of a refit on a share s of the samples is s**growth."""
    short_max_iter: int = 5
    """Iterations of a short refit: the labels hardly change after the first few."""
    max_samples: int = 5000
    """Refits use at most this many samples."""
    samples_per_refit: int = 35_000
    """Beyond `max_samples`, so many more samples of the fit take as long as a refit: the solvers are less exact."""
    min_samples: int = 100
    """A refit on fewer samples saves no time worth having."""
    min_hidden: int = 20
    """If one fold holds out fewer labels than this, a second one is held out, whatever it costs."""


@dataclass(frozen=True)
class RefitPlan:
    """Refits of one report.

    Attributes
    ----------
    n_folds : int
        Folds of labels that are held out to measure accuracy and confidence, one refit each.
    n_samples : int
        Samples in these refits.
    n_view_folds : int
        Folds of labels that are held out to compare views; each takes a refit with all views and one without each view.
    n_view_samples : int
        Samples in these refits.
    """

    n_folds: int
    n_samples: int
    n_view_folds: int
    n_view_samples: int


def plan_refits(
    n_samples: int,
    n_folds: int,
    n_removable: int,
    *,
    calibrated: bool,
    n_labels: int = 0,
    budget: RefitBudget | None = None,
) -> RefitPlan:
    """Choose the refits of a report.

    Accuracy and confidence are measured on two of three folds of the labels. The comparison of views has the rest of
    the budget: with many views it is done on fewer samples and, if that is not enough, only one fold of many labels is
    held out. Large data leave room for more of both, because refits use only some of the samples.

    Parameters
    ----------
    n_samples : int
        Samples of the fit.
    n_folds : int
        Folds of the labelled samples; 0 if no label can be held out.
    n_removable : int
        Views that can be left out.
    calibrated : bool
        Whether the fit calibrated its confidence.
    n_labels : int
        Labels of the fit.
    budget : RefitBudget, optional
        The default one if None.

    Returns
    -------
    RefitPlan

    Examples
    --------
    >>> plan_refits(1797, 3, 0, calibrated=True)
    RefitPlan(n_folds=2, n_samples=1797, n_view_folds=0, n_view_samples=0)
    >>> plan_refits(1797, 3, 2, calibrated=True)
    RefitPlan(n_folds=2, n_samples=1797, n_view_folds=1, n_view_samples=939)
    >>> plan_refits(300, 3, 6, calibrated=True, n_labels=90)
    RefitPlan(n_folds=1, n_samples=300, n_view_folds=1, n_view_samples=160)
    >>> plan_refits(50_000, 3, 6, calibrated=True)
    RefitPlan(n_folds=3, n_samples=5000, n_view_folds=1, n_view_samples=5000)
    """
    budget = RefitBudget() if budget is None else budget
    n_rows = min(n_samples, budget.max_samples)
    scale = 1 / (1 + (n_samples - n_rows) / budget.samples_per_refit)
    full = budget.full_cost * scale
    if not n_folds or not n_removable:
        return RefitPlan(min(n_folds, int(budget.max_cost / full)), n_rows, 0, 0)
    view_fold = (n_removable + 1) * (budget.short_cost if calibrated else budget.full_cost) * scale
    cheapest = view_fold * min(1.0, budget.min_samples / n_rows) ** budget.growth
    one_is_enough = n_labels >= budget.min_hidden * n_folds and cheapest + 2 * full > budget.max_cost
    n_full = int(min(n_folds, max(1 if one_is_enough else 2, (budget.max_cost - view_fold) / full)))
    left = (budget.max_cost - n_full * full) / view_fold
    n_view_rows = max(budget.min_samples, int(n_rows * min(1.0, left) ** (1 / budget.growth)))
    return RefitPlan(n_full, n_rows, int(min(n_folds, max(1, left))), min(n_rows, n_view_rows))
