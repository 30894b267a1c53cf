"""The page about one fitted model: what went in, how sure the labels are, a map, and what to look at first."""

import base64
import hashlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from lmssc.data.folds import count_folds
from lmssc.data.labels import encode_labels
from lmssc.data.validation import check_rows, is_view_collection
from lmssc.data.views import RawView
from lmssc.model_selection.refit import hold_out, sample_rows, shortened, view_shares
from lmssc.persistence.atomic import open_atomically, readable
from lmssc.persistence.provenance import version
from lmssc.report import page
from lmssc.report.html import style_sheet
from lmssc.report.refit_plan import RefitBudget, plan_refits
from lmssc.report.subject import Subject

__all__ = ["write_report"]

BUDGET = RefitBudget()


def write_report(
    path: str | os.PathLike[str],
    clf: Any,
    views: Any = None,
    y: ArrayLike | None = None,
    *,
    ids: Sequence[str] | None = None,
    title: str | None = None,
    command: str | None = None,
    present: Any = None,
    notes: Sequence[str] = (),
    first: Sequence[int] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> None:
    """Write a page about a fitted model: one file that needs nothing but a browser.

    With `views` and `y` it also measures how right the labels are: it hides some of the given labels, a third at a
    time, and fits again; then the same without each view, with few iterations. These refits take at most about three
    times as long as the fit. Without `views` and `y` the page shows what the model itself knows.

    Parameters
    ----------
    path : str or path
        Name of the file; it appears once it is complete.
    clf : classifier of lmssc
        Fitted.
    views : as X in `fit`, optional
        As given to `fit`. Without them nothing is fitted again.
    y : array-like of shape (n,), optional
        As given to `fit`; needed with `views`.
    ids : sequence of str, optional
        Names of the samples. Without them, those of the index of a pandas frame among `views`, or row numbers from 0.
    title : str, optional
        Heading of the page; else it names the class of the model and the number of samples.
    command : str, optional
        What to type to run it again; else the line of Python.
    present : as in `fit`, optional
        As given to `fit`.
    notes : sequence of str
        What was understood about the input, a sentence each.
    first : sequence of int, optional
        Rows of the samples to look at first, if they are known; else `clf.most_informative` finds them.
    random_state : int
        Decides which labels are hidden together, and which samples are shown if there are many.
    n_jobs : int, optional
        Fits at the same time, through joblib.
    progress : callable, optional
        Called after each refit with the number of refits done and of all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.3, random_state=0)
    >>> clf = LMSSC(max_iter=2).fit(data.views, data.y)
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, clf, data.views, data.y, title="Made up", ids=[f"s{i}" for i in range(60)])
    >>> "of 12 hidden labels found again" in path.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(clf)
    n_samples = len(clf.transduction_)
    raws = _raw_views(clf, views, y, present)
    if ids is None:
        ids = _row_names(views, n_samples)
    if len(ids) != n_samples:
        raise ValueError(f"ids must have one name for each of the {n_samples} samples, got {len(ids)}")
    codes = _given_codes(clf, y)
    if first is None:
        first = clf.most_informative(page.LISTED) if (codes < 0).any() else []
    subject = Subject(
        clf=clf,
        ids=ids,
        codes=codes,
        widths=dict(zip(clf._layout.names, clf._layout.widths, strict=True)),
        missing=None
        if raws is None
        else {raw.name: 0 if raw.present is None else int((~raw.present).sum()) for raw in raws},
        notes=notes,
        command=f"{clf!r}.fit(X, y)" if command is None else command,
        **({} if raws is None else _hide_labels(clf, raws, codes, random_state, n_jobs, progress)),
        first=[int(row) for row in first[: page.LISTED]],
        shares=view_shares(clf),
        random_state=random_state,
    )
    if title is None:
        title = f"{type(clf).__name__}: labels for {n_samples:,} samples"
    with open_atomically(Path(path)) as file:
        # Half of a character, which text from a file may have, has no encoding.
        file.write(readable(_fill(subject, title)).encode(errors="replace"))


def _raw_views(clf: Any, views: Any, y: ArrayLike | None, present: Any) -> list[RawView] | None:
    """The views in the order of fit, which they must match; None without them."""
    if views is None and y is None and present is None:
        return None
    if views is None or y is None:
        raise ValueError("views and y belong together: give both, as they were given to fit, or neither")
    check_rows(views, y, present)
    raws = clf._read_views(views, present=present, reset=False)
    n_samples, n_fitted = raws[0].data.shape[0], len(clf.transduction_)
    if n_samples != n_fitted:
        raise ValueError(
            f"the views have {n_samples} samples, but {type(clf).__name__} was fitted to {n_fitted}: give those of fit"
        )
    return raws


def _given_codes(clf: Any, y: ArrayLike | None) -> NDArray:
    """Class of each sample whose label was given, −1 for the others."""
    if y is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fit has said it
            return encode_labels(y, len(clf.transduction_))[1]
    labelled = getattr(clf, "_labelled", None)
    if labelled is None:
        raise ValueError("the model was saved by a version that did not keep which labels were given: give views and y")
    return np.where(labelled, np.searchsorted(clf.classes_, clf.transduction_), -1)


def _row_names(views: Any, n_samples: int) -> list[str]:
    """Names of the samples from the index of a pandas frame, or row numbers."""
    frames = views.values() if isinstance(views, Mapping) else views if is_view_collection(views) else [views]
    for frame in frames:
        index = getattr(frame, "index", None)
        if index is not None and not callable(index):  # a list has a method of this name
            return [str(name) for name in index]
    return [str(row) for row in range(n_samples)]


def _hide_labels(
    clf: Any,
    raws: list[RawView],
    codes: NDArray,
    random_state: int,
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]:
    """What a `Subject` knows from fits with labels hidden, with all views and without each."""
    names = [raw.name for raw in raws]
    # A view that is the only one, or the only one used, cannot be left out.
    removable = names if len(names) > 1 and getattr(clf, "view", None) is None else []
    fitted = getattr(clf, "best_estimator_", clf)
    calibrated = fitted.get_params(deep=False).get("calibrate", False)
    plan = plan_refits(len(codes), count_folds(codes), len(removable), calibrated=calibrated, budget=BUDGET)
    n_fits = plan.n_folds + plan.n_view_folds * (1 + len(removable))

    def refit(model: Any, rows: NDArray, n_folds: int, without: Sequence[str | None], done_before: int) -> Any:
        parts = [raw.take(rows) for raw in raws]
        return hold_out(
            model,
            {raw.name: raw.data for raw in parts},
            codes[rows],
            {raw.name: raw.present for raw in parts},
            without=without,
            n_folds=n_folds,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=None if progress is None else lambda done, _: progress(done_before + done, n_fits),
        )

    held_out = refit(clf, sample_rows(codes, plan.n_samples, random_state), plan.n_folds, [None], 0)[None]
    rows, without = np.empty(0, dtype=np.intp), {}
    if plan.n_view_folds:
        quick = shortened(clf, BUDGET.short_max_iter)
        rows = _rows_rich_in_labels(codes, plan.n_view_samples, random_state)
        without = refit(quick, rows, plan.n_view_folds, [None, *removable], plan.n_folds)
    return {
        "held_out": held_out,
        "without": without,
        "n_refitted": plan.n_samples,
        "n_compared": len(rows),
    }


def _rows_rich_in_labels(codes: NDArray, n: int, random_state: int) -> NDArray:
    """`n` rows, up to half of them labelled: hidden labels are what a comparison of views is judged by."""
    labelled, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    n_labelled = min(len(labelled), max(n // 2, n - len(others)))
    chosen = labelled[sample_rows(codes[labelled], n_labelled, random_state)]
    rest = others[sample_rows(codes[others], n - n_labelled, random_state)]
    return np.sort(np.concatenate([chosen, rest]))


def _fill(subject: Subject, title: str) -> str:
    folder = files("lmssc.report")
    script = folder.joinpath("map.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    drawn, data, place_of = page.latent_map(subject)
    sections = {
        "short": ("In short", page.in_short(subject)),
        "input": ("What went in", page.what_went_in(subject)),
        "sure": ("How sure the labels are", page.how_sure(subject)),
        "map": ("The map", drawn),
        "view-contributions": ("What each view contributes", page.what_views_contribute(subject)),
        "graph": ("The graph", page.about_the_graph(subject)),
        "look": ("The samples to look at first", page.look_first(subject, place_of)),
        "again": ("How to run it again, how to cite", page.run_again(subject)),
    }
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        version=escape(version("lmssc")),
        n_samples=f"{len(subject.codes):,}",
        style=style_sheet(),
        script_hash=f"sha256-{digest}",
        scripts=f"{data}<script>{script}</script>" if data else "",
        contents="<ul>"
        + "".join(f'<li><a href="#{name}">{text}</a></li>' for name, (text, _) in sections.items())
        + "</ul>",
        sections="\n".join(
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{text}</h2>{html}</section>'
            for name, (text, html) in sections.items()
        ),
    )
