"""Weights of the views that AMGL and MLAN learn."""

import numpy as np
from numpy.typing import NDArray


def self_weights(energies: NDArray) -> NDArray:
    """Weights 1/(2·√e_v) of the views, which lower Σ_v √e_v by turns; none more than 10⁶ times another.

    Examples
    --------
    >>> self_weights(np.array([1.0, 4.0, 0.0]))
    array([5.0e-01, 2.5e-01, 2.5e+05])
    """
    least = max(1e-12 * float(energies.max()), float(np.finfo(np.float64).tiny))
    return 1 / (2 * np.sqrt(np.maximum(energies, least)))
