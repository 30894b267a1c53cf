"""How much each of several models counts in their mixture."""

import numpy as np
from numpy.typing import NDArray

# Samples that count as explained by all models alike: a Dirichlet prior, which keeps a few labels from choosing one.
PRIOR_SAMPLES = 2.0
# Steps of expectation maximisation; the likelihood hardly rises afterwards.
N_STEPS = 100


def mixture_shares(likelihoods: NDArray, weights: NDArray | None = None) -> NDArray:
    """Shares that maximise the likelihood of a mixture, by expectation maximisation.

    Parameters
    ----------
    likelihoods : ndarray of shape (M, n)
        Probability of the class of each sample by each model, which has not seen it.
    weights : ndarray of shape (n,), optional
        Weight of each sample; by default 1.

    Returns
    -------
    ndarray of shape (M,)
        They sum to 1.

    Examples
    --------
    >>> mixture_shares(np.array([[0.9] * 20, [0.1] * 20])).round(2)
    array([0.95, 0.05])
    >>> mixture_shares(np.array([[0.9] * 10 + [0.1] * 10, [0.1] * 10 + [0.9] * 10])).round(2)
    array([0.5, 0.5])
    """
    n_models = len(likelihoods)
    shares = np.full(n_models, 1 / n_models)
    likelihoods = np.maximum(likelihoods, np.finfo(np.float32).tiny)
    weights = np.ones(likelihoods.shape[1]) if weights is None else weights
    for _ in range(N_STEPS):
        joint = shares[:, None] * likelihoods
        shares = (joint / joint.sum(axis=0)) @ weights + PRIOR_SAMPLES / n_models
        shares /= shares.sum()
    return shares
