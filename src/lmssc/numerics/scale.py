"""What counts as a large problem: one threshold for everything that pays off only there."""

MIN_SAMPLES_FOR_LARGE_SCALE = 10_000
"""From this size on neighbours come from an approximate index, samples are renumbered by position in space, and label
propagation has a coarse level. Measured on two cores: smaller problems fit into the cache and are faster without."""


def is_large(n_samples: int) -> bool:
    """Whether a problem of `n_samples` samples is solved with the methods for many samples.

    Examples
    --------
    >>> is_large(9_999), is_large(10_000)
    (False, True)
    """
    return n_samples >= MIN_SAMPLES_FOR_LARGE_SCALE
