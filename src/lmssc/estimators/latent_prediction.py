"""How LMSSC scores new samples: positions from their views and links, then a mean over neighbours."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.chance import unsupported
from lmssc.core.embedding import Embedding
from lmssc.core.label_placement import LabelPlacement
from lmssc.core.label_regression import LabelRegressor
from lmssc.core.link_evidence import Unused, why_unused
from lmssc.core.linked_samples import LinkedEncoder, LinkMemory
from lmssc.core.new_samples import NewSampleProbe, Trust, find_distant
from lmssc.core.predict import FittedSamples, NeighborAverage, ViewEncoder, predict_new
from lmssc.core.second_opinion import Opinion, SecondOpinion
from lmssc.core.targets import Targets
from lmssc.data.view import RawView
from lmssc.data.view_groups import group_of_samples
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.base import MultiViewClassifier
from lmssc.estimators.view_scaling import FAR

# Why links are not used.
UNUSED_LINKS = {
    Unused.EMPTY: "there are none, except links of samples to themselves",
    Unused.FROM_LABELS: "labelled samples are linked among themselves, and hardly to unlabelled ones, as if links were "
    "made from the labels. Such links say nothing about samples without a label",
    Unused.DENSE: "most samples are linked to most others, which says nothing about a single one. Keep only the "
    "strongest links of each sample",
    Unused.CHANCE: "linked samples are no more alike than others, neither in their features nor in their labels. If "
    "that is a surprise, check that they link the right samples: their ids, or the order of rows and columns. If "
    "samples of a class are linked to the same others, but not to each other, add the rows of the matrix as a view",
    Unused.HARMFUL: "held-out labels are predicted better without them",
}


class LatentClassifier(MultiViewClassifier):
    """Classifier that stores latent positions, and scores new samples by them."""

    # Set by fit, for predictions: the coordinates [Z, P] of the samples, how new samples get theirs, and how reliable
    # predictions are.
    _embedded: NDArray
    _embedding: Embedding
    _label_regressor: LabelRegressor | None
    _groups: NDArray | None
    _ridge: NDArray | None
    _second_opinion: SecondOpinion | None
    _opinion: Opinion | None
    _probe: NewSampleProbe | None
    _trust: Trust | None
    _links: LinkMemory | None
    _targets: Targets
    loadings_: list[NDArray]
    link_weights_: dict[str, float]
    weighted_links_: dict[str, bool]
    alpha_: NDArray | float
    n_neighbors_: int
    neighbor_recall: float

    @property
    def _counted(self) -> NDArray:
        return self._labelled & self._targets.counted.labelled[self._nodes]

    def _encoder(self, links: list[sparse.csr_array] | None = None) -> ViewEncoder:
        """Embeds new samples, by their links too if they have any."""
        loadings = [self.loadings_[v] for v in self._order.views]
        if self._links is None:
            return ViewEncoder(self._scalings, loadings, self._ridge, self._second_opinion)
        loadings += self._links.loadings
        links = self._links.weights.apply(links) if links else links
        return LinkedEncoder(self._scalings, loadings, self._ridge, self._second_opinion, links, memory=self._links)

    def _average(self) -> NeighborAverage:
        """Averages over the neighbours of new samples."""
        samples = self._order.samples
        return NeighborAverage(
            self._embedded[samples],
            self._embedding,
            self._label_regressor,
            self.n_neighbors_,
            self.alpha_ if isinstance(self.alpha_, float) else None,
            self.neighbor_recall,
            None if self._groups is None else self._groups[samples],
        )

    def _predict_new(self, raws: list[RawView]) -> NDArray:
        return self._predict_linked(raws, [])

    def _predict_linked(self, raws: list[RawView], links: list[sparse.csr_array]) -> NDArray:
        samples = self._order.samples
        fitted = FittedSamples(
            self._known_distributions(),
            np.isin(samples, self.unreached_),
            np.bincount(self._nodes[self._counted], minlength=len(samples)),
        )
        groups = None if self._groups is None else group_of_samples(raws, self._view_groups)
        reach, told = (None, False) if self._probe is None else self._check_values(raws)
        scores, remoteness = predict_new(
            raws, self._encoder(links), self._average(), fitted, groups, self._probe, self._trust, reach
        )
        if reach is not None and not told:
            self._warn_of_distance(raws, find_distant(np.where(reach > FAR, 0, remoteness)))
        return scores

    def _set_links(self, memory: LinkMemory | None) -> None:
        """Assign what was learned about the graphs, and what new samples need of the samples of `fit`."""
        none = np.zeros(len(self.graph_names_))
        self.link_weights_ = self._by_graph(none if memory is None else memory.weights.shares * memory.weights.weight)
        weighted = None if memory is None else memory.weights.weighted
        self.weighted_links_ = self._by_graph(~none.astype(bool) if weighted is None else weighted)
        self._links = memory

    def _warn_of_unused_links(self, links: list[sparse.csr_array], targets: Targets, refused: NDArray | None) -> None:
        """Warn of graphs whose links are not used, each with the reason; `links`, `refused` in canonical order."""
        refusals = np.zeros(len(links), dtype=bool) if refused is None else refused
        names = [self.graph_names_[g] for g in self._graph_order]
        reasons = {
            name: UNUSED_LINKS[why_unused(graph, targets, harmful=bool(harmful))]
            for name, graph, harmful in zip(names, links, refusals, strict=True)
            if not self.link_weights_[name]
        }
        for reason in dict.fromkeys(reasons[name] for name in self.graph_names_ if name in reasons):
            alike = [name for name in self.graph_names_ if reasons.get(name) == reason]
            warn_caller(
                f"the links of {', '.join(map(repr, alike))} are not used: {reason}",
            )

    def _warn_of_chance(self, held_out: tuple[NDArray, NDArray] | None, targets: Targets, scores: NDArray) -> None:
        """Warn of confident answers if held-out labels are found no more often than by chance."""
        found = unsupported(held_out, targets, scores)
        if found is not None:
            warn_caller(
                f"only {found.n_right} of {found.n_labels} labels are found if they are held out, which may be "
                f"chance, but the mean confidence of the answers is {found.confidence:.2f}: do not rely on it. The "
                "views may say nothing about the classes, or there are too few labels to tell",
            )

    def _warn_of_placement(self, placement: LabelPlacement | None, targets: Targets, scores: NDArray) -> None:
        """Warn of confident answers if the labelled samples cannot be a random sample."""
        if placement is not None and not placement.is_random:
            others = scores[~targets.labelled]
            confidence = (others.max(axis=1) / others.sum(axis=1)).mean()
            warn_caller(
                f"labelled samples lie among themselves: {placement.share:.0%} of their neighbours have a label; of "
                f"random samples of these classes it would be {placement.expected:.0%}. So other samples may differ "
                f"from all that have a label. The mean confidence of their answers is {confidence:.2f}: it may be far "
                "too high, and so may accuracy on held-out labels. Label a random sample. If samples come in groups, "
                'such as patients, pass groups= to predict_set (see "Limits" in the guide to confidence)',
            )
