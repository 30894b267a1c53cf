"""Whether and how much a fit uses the links between the samples: held-out labels decide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.begin import begin, same_folds
from lmssc.core.fit_checkpoint import resume
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.link_evidence import weigh_graphs, weights_tell
from lmssc.core.linked_samples import LinkMemory
from lmssc.core.links import LinkChoice, Links, LinkWeights, join_affinities, weigh_links
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.data.view import MappedView, View
from lmssc.data.views import Views

WEIGHTS = (0.03, 0.3, 3.0)
"""Weights w of the links beside S; the first unless held-out labels prefer more."""
MAX_TEXT_COMPONENTS = 50
"""Components of text with links, or two for each class: smoothed text lies in fewer dimensions."""


@dataclass(frozen=True)
class LinkedViews:
    """Scaled views and the links between their samples, in canonical order.

    Attributes
    ----------
    views : Views
        Scaled views.
    graphs : sequence of csr_array of shape (n, n)
        Links.
    """

    views: Views
    graphs: Sequence[sparse.csr_array]

    _cache: dict[tuple[float, ...], tuple[LinkMemory, list[View]]] = field(default_factory=dict)

    def memory(self, weights: LinkWeights) -> tuple[LinkMemory, list[View]]:
        """What new samples need, and the smoothed views; views on disk are not smoothed."""
        if any(isinstance(view, MappedView) for view in self.views):
            return LinkMemory(weights, [], [], [], np.empty(0)), []
        key = weights_key(weights)
        if key not in self._cache:
            self._cache[key] = LinkMemory.of(self.views, weights.apply(self.graphs), weights)
        memory, smoothed = self._cache[key]
        return replace(memory, weights=weights), smoothed

    def smoothed(self, weights: LinkWeights | None) -> Views:
        """The views, and beside them their smoothed copies."""
        return self.views if weights is None else Views([*self.views, *self.memory(weights)[1]])

    def links(self, weights: LinkWeights | None) -> Links | None:
        """The links in the objective."""
        return None if weights is None else join_affinities(weights.apply(self.graphs), weights, self.views.dtype)


def begin_with_links(
    linked: LinkedViews,
    plain: Start,
    targets: Targets,
    config: FitConfig,
    context: FitContext,
    groups: NDArray | None = None,
    dealt_by: Views | None = None,
) -> tuple[Start, LinkChoice]:
    """What the alternation starts from, with or without the links: whatever finds held-out labels better.

    A graph has a share if samples are more alike along its links than by chance. If any has, the links are used with
    the smallest weight, unless held-out labels are found better with a larger one, or without links, by more than one
    standard error of the mean difference of their losses. If the weights of links seem to say less than the links
    alone, held-out labels decide whether they count.

    Parameters
    ----------
    linked : LinkedViews
        Views and links.
    plain : Start
        What it starts from without links.
    targets, config, context, groups
        As for `fit`.
    dealt_by : Views, optional
        The views that dealt the labels of `plain` to folds, if not those of `linked`.

    Returns
    -------
    start : Start
    choice : LinkChoice
    """
    refused = np.zeros(len(linked.graphs), dtype=bool)
    if not linked.graphs:
        return plain, LinkChoice(None, refused)
    embedded = plain.embedding.embed(plain.permutation.undo(plain.state.latent))
    trusted = targets.with_trust_of(plain.labels)
    folds = same_folds(linked.views if dealt_by is None else dealt_by, plain)
    telling = np.array([weights_tell(graph, embedded) for graph in linked.graphs])
    found: list[tuple[Start, Start, LinkWeights]] = []
    for weighted in [telling] if telling.all() else [telling, np.ones_like(telling)]:
        strengths = weigh_graphs(weigh_links(linked.graphs, weighted), embedded, trusted)
        refused |= strengths > 0
        if strengths.any():
            weights = LinkWeights.of(linked.graphs, strengths, WEIGHTS[0], weighted)
            found.append(_begin_with(weights, plain, linked, targets, config, context, groups, folds))
    if not found:
        return plain, LinkChoice(None, refused)
    plain, start, weights = min(found, key=lambda one: one[1].mean_loss)
    if plain.is_better(start):
        return plain, LinkChoice(None, refused)
    return start, LinkChoice(weights, refused & (weights.shares == 0))


def _begin_with(
    weights: LinkWeights,
    plain: Start,
    linked: LinkedViews,
    targets: Targets,
    config: FitConfig,
    context: FitContext,
    groups: NDArray | None,
    folds: dict[str, Any],
) -> tuple[Start, Start, LinkWeights]:
    """The start without links, that with links, both judged by the same labels, and the weights of the links."""
    views = linked.smoothed(weights)
    # All weights share one SVD.
    plain_context, context = context, replace(context, cache={} if context.cache is None else context.cache)
    context = context.for_data(*context.data_key, "links", *weights_key(weights))
    plain_config, config = config, _with_components(config, targets)
    attempt = partial(begin, views, targets, config, context, groups, **folds)
    start = attempt(links=linked.links(weights))
    if config.label_noise != 0:
        # Starts are compared by the same labels: those that count if links have a say.
        targets, sure = targets.with_trust_of(start.labels), replace(config, label_noise=0.0)
        attempt = partial(begin, views, targets, sure, context, groups, **folds)
        plain = begin(linked.views, targets, replace(plain_config, label_noise=0.0), plain_context, groups, **folds)
    for weight in WEIGHTS[1:] if config.calibrate else ():
        heavier = replace(weights, weight=weight)
        candidate = attempt(links=linked.links(heavier))
        if candidate.is_better(start):
            start, weights = candidate, heavier
    return plain, start, weights


def weights_key(weights: LinkWeights) -> tuple[float, ...]:
    """What the smoothed views depend on, for a cache."""
    return (*weights.shares.tolist(), *([] if weights.weighted is None else weights.weighted.astype(float).tolist()))


def _with_components(config: FitConfig, targets: Targets) -> FitConfig:
    if config.n_components is not None or not config.text:
        return config
    return replace(config, max_components=max(MAX_TEXT_COMPONENTS, 2 * targets.n_classes))


def resume_with_links(
    linked: LinkedViews, targets: Targets, config: FitConfig, groups: NDArray | None, saved: Mapping[str, Any]
) -> tuple[Start, LinkChoice]:
    """What an interrupted fit continues from, with the links as they were used.

    Parameters
    ----------
    linked : LinkedViews
        Views and links.
    targets, config, groups
        As for `fit`.
    saved : mapping
        Content of the checkpoint.

    Returns
    -------
    start : Start
    choice : LinkChoice
    """
    weights = None if saved["links"] is None else LinkWeights(**saved["links"])
    refused = saved.get("refused_links", np.zeros(len(linked.graphs), dtype=bool))
    start = resume(linked.smoothed(weights), targets, config, groups, saved, linked.links(weights))
    return start, LinkChoice(weights, refused)
