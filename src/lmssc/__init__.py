"""Labels for every sample from several views and a few labels."""

from lmssc.estimators.lmssc import LMSSC, paper_settings
from lmssc.inputs import stack_views

__all__ = ["LMSSC", "paper_settings", "stack_views"]
