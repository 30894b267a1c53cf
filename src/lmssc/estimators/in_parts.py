"""Whether a fit is divided into parts."""

import os
from pathlib import Path

from lmssc.core.fit_config import FitConfig
from lmssc.core.parts.parted_fit import refuse_unsupported
from lmssc.core.parts.plan import Plan, parse_bytes
from lmssc.core.targets import Targets
from lmssc.data.views import Views


def choose_plan(
    memory_limit: str | int | None,
    views: Views,
    targets: Targets,
    config: FitConfig,
    has_graphs: bool,
    checkpoint: str | os.PathLike[str] | None,
) -> Plan | None:
    """Where a fit keeps its parts; None if it fits into memory as a whole.

    Parameters
    ----------
    memory_limit : str, int or None
        The parameter of LMSSC.
    views, targets, config
        The problem.
    has_graphs : bool
        Whether the samples have links.
    checkpoint : str or path, optional
        File of the checkpoint: the parts live beside it, so that saving them takes no time.

    Returns
    -------
    Plan or None
    """
    if memory_limit is None:
        return None
    folder = None if checkpoint is None else str(Path(checkpoint).absolute().parent)
    plan = Plan(parse_bytes(memory_limit), folder)
    if plan.is_enough_for_all(views, config, targets.n_classes):
        return None
    if has_graphs:
        raise ValueError(
            "memory_limit would divide the fit into parts, which does not support graphs: raise it, or leave it out"
        )
    refuse_unsupported(views, targets, config)
    return plan
