"""Which samples to check, and which to label next."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from lmssc.core.active import sigma_optimal_batch, uncertainties
from lmssc.data.canonical_order import CanonicalOrder
from lmssc.data.parameters import COUNT
from lmssc.estimators.worker_results import local_model


class ActiveLearningMixin:
    """Ranks the unlabelled samples of `fit`."""

    label_distributions_: NDArray
    graph_: sparse.csr_array
    unreached_: NDArray
    _order: CanonicalOrder
    _nodes: NDArray
    _labelled: NDArray

    def most_uncertain(self, n: int) -> NDArray:
        """The unlabelled samples whose predictions are least certain: check them before you use the predictions.

        Parameters
        ----------
        n : int
            Number of samples; all unlabelled ones if there are fewer.

        Returns
        -------
        ndarray of int
            Rows of the X of `fit`, the least certain first: samples that no label reaches, then those whose two most
            likely classes are closest. They are often alike; to choose samples to label, use `most_informative`.

        Examples
        --------
        >>> from lmssc import LMSSC
        >>> from lmssc.datasets import make_multiview
        >>> data = make_multiview(200, labelled=0.1, random_state=2)
        >>> clf = LMSSC().fit(data.views, data.y)
        >>> rows = clf.most_uncertain(20)
        >>> bool((clf.transduction_ == data.target)[rows].mean() < (clf.transduction_ == data.target).mean())
        True
        """
        return self._by_uncertainty(self._uncertainties(n))[:n]

    def most_informative(self, n: int) -> NDArray:
        """The unlabelled samples to label next: their labels would remove most uncertainty about all samples.

        They are uncertain, have many uncertain neighbours in `graph_`, and differ from each other; samples in large
        components of the graph that no label reaches come first. Label them, fit again and ask again: several batches
        are better than one large batch.

        Parameters
        ----------
        n : int
            As for `most_uncertain`.

        Returns
        -------
        ndarray of int
            Rows of the X of `fit`, the most informative first. Copies of a chosen or labelled sample come after all
            others.

        Notes
        -----
        Greedy Σ-optimal design on the graph, weighted by the uncertainty of each sample; see
        `lmssc.core.active.sigma_optimal_batch`. Each sample takes one sparse solve: half a second at 100,000 samples.

        Examples
        --------
        >>> from lmssc import LMSSC
        >>> from lmssc.datasets import make_multiview
        >>> data = make_multiview(200, labelled=0.1, random_state=0)
        >>> clf = LMSSC().fit(data.views, data.y)
        >>> before = (clf.transduction_ == data.target).mean()
        >>> rows = clf.most_informative(20)
        >>> data.y[rows] = data.target[rows]  # ask someone
        >>> bool((clf.fit(data.views, data.y).transduction_ == data.target).mean() > before)
        True
        """
        uncertainty, samples = self._uncertainties(n), self._order.samples
        labelled = np.isin(np.arange(len(samples)), self._nodes[self._labelled])
        graph = self.graph_[samples][:, samples].tocsr()
        chosen = samples[sigma_optimal_batch(graph, uncertainty, labelled, ~labelled, n)]
        rest = self._by_uncertainty(uncertainty)
        return np.concatenate([chosen, rest[~np.isin(rest, chosen)]])[:n]

    def _uncertainties(self, n: int) -> NDArray:
        """Uncertainty of each distinct sample, after a check of the batch size n."""
        check_is_fitted(self)
        if not COUNT.accepts(n):
            raise ValueError(f"n must be {COUNT.wanted}, got {n!r}")
        return uncertainties(local_model(self).label_distributions_, self.unreached_)[self._order.samples]

    def _by_uncertainty(self, uncertainty: NDArray) -> NDArray:
        """Rows without a label, the most uncertain first; ties in canonical order."""
        rows = np.flatnonzero(~self._labelled)
        nodes = self._nodes[rows]
        return rows[np.lexsort((nodes, -uncertainty[nodes]))]
