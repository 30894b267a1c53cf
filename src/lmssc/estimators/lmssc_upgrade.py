"""Models of LMSSC that earlier versions saved."""

from typing import Any

import numpy as np

from lmssc.core.graph import usual_neighbors
from lmssc.estimators.neighbor_count import upgrade_neighbors
from lmssc.estimators.trust_state import former_targets


def upgrade_lmssc(parameters: dict[str, Any], fitted: dict[str, Any]) -> None:
    """Fill in, in place, what earlier versions did not save, such that the model predicts as it did.

    Examples
    --------
    >>> fitted = {}
    >>> upgrade_lmssc({}, fitted)
    >>> fitted["second_opinion_"], fitted["link_weights_"]
    (0.0, {})
    """
    # Models of versions without `_trust` predict as they did.
    fitted.pop("_confidence", None)
    fitted.update({"_probe": None, "_trust": None, "doubt_": 0.0} | fitted)
    # Models of versions without a second opinion.
    parameters.setdefault("second_opinion", 0.0)
    fitted.update({"_second_opinion": None, "_opinion": None, "second_opinion_": 0.0} | fitted)
    # Models of versions that have no graphs of single views.
    fitted.setdefault("view_graph_weight_", 0.0)
    # Models of versions that whitened no view.
    fitted.setdefault("whitening_", 0.0)
    # Models of versions without graphs.
    fitted.update({"_links": None, "_link_laplacian": None, "link_weights_": {}} | fitted)
    # Models of versions that took the weights of links as given.
    fitted.setdefault("weighted_links_", dict.fromkeys(fitted["link_weights_"], True))
    # Models of versions without `_ridge` have it in the probe.
    fitted.setdefault("_ridge", getattr(fitted["_probe"], "ridge", None))
    if "latent_" in fitted:
        fitted.setdefault("n_components_", fitted["latent_"].shape[1])
        n_labelled, n_classes = len(np.unique(fitted["_nodes"][fitted["_labelled"]])), len(fitted["classes_"])
        default = usual_neighbors(len(fitted["_order"].samples), n_labelled, n_classes)
        upgrade_neighbors(parameters, fitted, default)
        fitted.setdefault("_targets", former_targets(fitted))
