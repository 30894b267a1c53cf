"""Figures of fitted models and of experiments, in scikit-learn's Display style."""

from lmssc.plotting.convergence import ConvergenceDisplay
from lmssc.plotting.graph_matrix import GraphDisplay
from lmssc.plotting.latent_map import LatentMapDisplay, principal_plane
from lmssc.plotting.reliability import CalibrationDisplay
from lmssc.plotting.sensitivity import SensitivityDisplay
from lmssc.plotting.style import COLOURS, LINES, MARKERS
from lmssc.plotting.view_contribution import ViewContributionDisplay

__all__ = [
    "COLOURS",
    "LINES",
    "MARKERS",
    "CalibrationDisplay",
    "ConvergenceDisplay",
    "GraphDisplay",
    "LatentMapDisplay",
    "SensitivityDisplay",
    "ViewContributionDisplay",
    "principal_plane",
]
