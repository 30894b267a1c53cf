"""What a fit is given besides the data: parameters, side effects, and work shared with other fits."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmssc.core.progress import IterationProgress

Result = TypeVar("Result")


@dataclass(frozen=True)
class FitConfig:
    """Parameters of the method, checked and resolved.

    Attributes
    ----------
    n_neighbors : int
        Neighbours k.
    n_components : int or None
        Latent dimensions r; None lets `initialize` choose.
    max_components : int or None
        The most that `initialize` chooses; None is its own limit.
    beta, gamma : float
        Weights β and γ; with the SVD start γ is in units of the spread of Z.
    label_weight : float
        Weight of the expected scores P in the distance, in the same units.
    text : bool
        Whether all views are text, whose singular values have no gap between signal and noise.
    deviations : mapping of int to ndarray
        Standard deviations of the columns of each view of measurements, whose form held-out labels may change.
    chooses_form : bool
        Whether they do. A fit that resumes keeps the form that it began with.
    by_direction : bool
        Whether samples are compared by the direction of their latent position.
    balance : float
        Exponent of the prior correction, from 0 to 1.
    calibrate : bool
        Whether held-out labels calibrate the confidence.
    label_noise : float or None
        Share of the labels that are wrong; None estimates it. With 0 all labels are certain.
    second_opinion : float or None
        Trust in the second opinion, from 0 to below 1; None lets held-out labels choose, or is 0 if none are held out.
    nonnegative : bool
        Whether W ≥ 0; otherwise W is orthonormal.
    random_start : bool
        Whether H and S start at random, as in the paper; otherwise from a truncated SVD.
    random_state : int, RandomState or None
        Seed of the random start.
    shared_alpha, freeze_alpha : bool
        Whether all rows of S share one α, and whether α stays as the first iteration sets it.
    neighbor_recall : float
        Recall of the neighbour search; 1 is exact.
    max_iter : int
        Largest number of iterations.
    tol : float
        Relative change of F at which the loop stops.
    """

    n_neighbors: int
    n_components: int | None = None
    max_components: int | None = None
    beta: float = 0.01
    gamma: float = 0.001
    label_weight: float = 1.5
    text: bool = False
    deviations: Mapping[int, NDArray] = field(default_factory=dict)
    chooses_form: bool = True
    by_direction: bool = False
    balance: float = 0.5
    calibrate: bool = True
    label_noise: float | None = 0.0
    second_opinion: float | None = None
    nonnegative: bool = False
    random_start: bool = False
    random_state: int | np.random.RandomState | None = None
    shared_alpha: bool = False
    freeze_alpha: bool = True
    neighbor_recall: float = 0.95
    max_iter: int = 30
    tol: float = 2e-2


class CheckpointFile(Protocol):
    """File that holds an unfinished fit."""

    path: Path

    def read(self) -> dict[str, Any] | None:
        """Content of the file; None if there is none."""

    def due(self) -> bool:
        """Whether the last write is long enough ago for another."""

    def write(self, content: Mapping[str, Any]) -> None:
        """Replace the content."""

    def remove(self) -> None:
        """Delete the file."""


@dataclass(frozen=True)
class FitHooks:
    """Side effects of a fit.

    Attributes
    ----------
    progress : callable, optional
        Called with an `IterationProgress` after each iteration.
    checkpoint : CheckpointFile, optional
        File that the fit resumes from and saves itself to.
    """

    progress: Callable[[IterationProgress], object] | None = None
    checkpoint: CheckpointFile | None = None


@dataclass(frozen=True)
class FitContext:
    """What a fit shares with other fits to the same data, as in cross-validation.

    Attributes
    ----------
    interruptible : bool
        Whether Ctrl-C ends this fit with the result so far. Not for one of many fits: there it ends them all.
    cache : dict, optional
        Results that fits can reuse, such as the SVD of the views. Nothing is cached by default, which saves memory.
    data_key : tuple
        Identifies how the data were prepared; part of each key of the cache.

    Examples
    --------
    >>> shared = FitContext(interruptible=False, cache={})
    >>> shared.for_data("zscore").reuse("svd", lambda: 1), shared.for_data("zscore").reuse("svd", lambda: 2)
    (1, 1)
    >>> shared.for_data("unit").reuse("svd", lambda: 2), FitContext().reuse("svd", lambda: 3)
    (2, 3)
    """

    interruptible: bool = True
    cache: dict[Hashable, Any] | None = field(default=None, repr=False)
    data_key: tuple[Hashable, ...] = ()

    def for_data(self, *data_key: Hashable) -> "FitContext":
        """The same context for data that were prepared as `data_key` says."""
        return replace(self, data_key=data_key)

    def reuse(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """The cached result of `compute` for these data and this key; computed the first time."""
        if self.cache is None:
            return compute()
        full_key = (*self.data_key, key)
        if full_key not in self.cache:
            self.cache[full_key] = compute()
        return self.cache[full_key]
