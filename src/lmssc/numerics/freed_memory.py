"""Memory that the C library keeps for the next array."""

import numpy as np

# The largest array after which glibc adapts; a little less than 32 MB, because it adds a header and whole pages.
LARGEST = (1 << 25) - (1 << 13)


def keep_freed_memory() -> None:
    """Let glibc keep up to 64 MB of freed memory, as it does in any program that has freed an array of 32 MB.

    Otherwise it returns arrays of a few hundred samples to the kernel, which has to clear the memory when it is asked
    for again: a tenth of the time of a small fit. The array is not written to, so it takes no memory itself. Other C
    libraries ignore this.

    Examples
    --------
    >>> keep_freed_memory()
    """
    np.empty(LARGEST, dtype=np.uint8)
