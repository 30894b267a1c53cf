"""What a model of very many classes does not do: whatever needs a dense array of samples × classes."""

from typing import Any

import numpy as np
from scipy import sparse

from lmssc.core.many_classes import one_label_of_each_class
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.problem import Problem


def check_many_classes(model: Any, problem: Problem, *, in_parts: bool) -> None:
    """Refuse what a fit to very many classes does not support, and warn if no held-out label can calibrate it.

    Parameters
    ----------
    model : LMSSC
        With checked parameters.
    problem : Problem
        The data.
    in_parts : bool
        Whether the fit is on disk or on a cluster.
    """
    n_samples, n_classes = len(problem.targets), problem.targets.n_classes
    about = f"{n_classes:,} classes of {n_samples:,} distinct samples are fitted with sparse scores"
    wanted = {
        "a fit in parts": "leave memory_limit and client out" if in_parts else None,
        "graphs": "leave the graphs out" if problem.graphs else None,
        "uncertain labels": "leave sample_weight out" if problem.targets.trust is not None else None,
        f"label_noise={model.label_noise!r}": "use label_noise=0" if model.label_noise != 0 else None,
        f"init={model.init!r}": "use init='svd'" if model.init != "svd" else None,
        "a checkpoint": "leave checkpoint out" if model.checkpoint is not None else None,
        f"second_opinion={model.second_opinion!r}": (
            "use 'auto' or 0" if model.second_opinion not in ("auto", 0) else None
        ),
    }
    for what, instead in wanted.items():
        if instead is not None:
            raise ValueError(f"{about}, which does not support {what}: {instead}, or fit fewer classes")
    if model.calibrate and not len(one_label_of_each_class(problem.targets.codes, np.arange(len(problem.targets)))):
        warn_caller(
            f"{about}, and no class has two labels, so that none can be held out: the confidence is not calibrated. "
            "Label a second sample of some classes",
        )


def need_dense(model: Any, what: str) -> None:
    """Raise an error if the distributions of a fitted model are sparse.

    Parameters
    ----------
    model : classifier
        Fitted.
    what : str
        What needs them, as the subject of a sentence.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(label_distributions_=sparse.csr_array((30_000, 2_000)))
    >>> need_dense(model, "explain")
    Traceback (most recent call last):
        ...
    ValueError: explain needs a dense array of 30,000 samples × 2,000 classes (0.4 GiB), and this model has sparse ...
    """
    distributions = model.label_distributions_
    if sparse.issparse(distributions):
        n_samples, n_classes = distributions.shape
        raise ValueError(
            f"{what} needs a dense array of {n_samples:,} samples × {n_classes:,} classes "
            f"({8 * n_samples * n_classes / 2**30:.1f} GiB), and this model has sparse distributions because of its "
            "many classes: use transduction_, label_distributions_, predict and predict_proba"
        )
