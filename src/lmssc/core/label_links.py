"""Links that were made from the labels, such as "same class", among others that were not.

They find every held-out label, and say nothing about unlabelled samples.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.link_evidence import reaches_unlabelled
from lmssc.core.targets import Targets

MAX_ODDS = 3.0
MIN_LINKS = 15
"""Links among labelled samples are doubted if there are at least so many, and more than so many times as many as by
chance, relative to links between labelled and unlabelled samples."""


def has_links_from_labels(links: sparse.csr_array, targets: Targets) -> bool:
    """Whether labelled samples are linked among themselves far more often than if the labels were given at random.

    Some links were then made from the labels, such as "same class", and the others were not. If all were, none is used
    anyway (`lmssc.core.link_evidence.reaches_unlabelled`).

    Examples
    --------
    >>> y = np.repeat([0, 1, -1], [8, 8, 64])
    >>> anyone = np.random.default_rng(0).random((80, 80)) < 0.05
    >>> same_class = (y[:, None] == y) & (y >= 0)
    >>> targets = Targets.from_codes(y, 2)
    >>> [has_links_from_labels(sparse.csr_array(one), targets) for one in (anyone, anyone | same_class)]
    [False, True]
    """
    both = ((links + links.T) != 0).astype(np.float64)
    if not reaches_unlabelled(both, targets):
        return False
    among = both[targets.labelled]
    n_ends = among[:, targets.labelled].nnz  # two for each link
    n_across = among.nnz - n_ends
    share = (targets.n_labelled - 1) / (len(targets) - 1)  # of labelled samples among those that one can be linked to
    return bool(n_ends >= 2 * MIN_LINKS and n_ends * (1 - share) > MAX_ODDS * n_across * share)


def without_links_among(links: sparse.csr_array, chosen: NDArray) -> sparse.csr_array:
    """The links of which at least one end is not among the chosen samples.

    Examples
    --------
    >>> without_links_among(sparse.csr_array(np.ones((3, 3))), np.array([True, True, False])).toarray()
    array([[0., 0., 1.],
           [0., 0., 1.],
           [1., 1., 1.]])
    """
    entries = links.tocoo()
    kept = ~(chosen[entries.row] & chosen[entries.col])
    return sparse.csr_array((entries.data[kept], (entries.row[kept], entries.col[kept])), shape=links.shape)
