"""A page about one fitted model: its input, how sure its labels are, a map, and what to label next."""

import base64
import hashlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from lmssc.data.dataset import make_dataset
from lmssc.data.folds import count_folds
from lmssc.data.graph_view import GraphView
from lmssc.data.labels import encode_labels
from lmssc.data.link_reading import read_graphs, split_graphs
from lmssc.data.missing_views import CheckedView
from lmssc.data.validation import check_rows, is_view_collection
from lmssc.data.view import RawView
from lmssc.estimators.dense_only import need_dense
from lmssc.estimators.worker_results import local_model
from lmssc.model_selection.refit import hold_out, sample_rows, shortened, view_shares
from lmssc.persistence.atomic import open_atomically, readable
from lmssc.persistence.provenance import version
from lmssc.report import page
from lmssc.report.refit_plan import RefitBudget, plan_refits
from lmssc.report.rendering import environment, source
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
    doubts: Sequence[str] = (),
    first: Sequence[int] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    details: Callable[[int], Mapping[str, str | Path]] | None = None,
) -> None:
    """Write a web page about a fitted model: one file that needs only a browser.

    With `views` and `y` it also measures the accuracy: it holds out some of the given labels, a third at a time, and
    fits again; then it does the same without each view, with few iterations. These refits take at most about three
    times as long as the fit. Without `views` and `y` the page shows what the model itself knows.

    Parameters
    ----------
    path : str or path
        Name of the file, which appears when it is complete.
    clf : classifier of lmssc
        Fitted.
    views : as X in `fit`, optional
        As passed to `fit`. Without them there are no refits.
    y : array-like of shape (n,), optional
        As passed to `fit`; needed with `views`.
    ids : sequence of str, optional
        Names of the samples. Defaults to the index of a pandas frame among `views`, or to row numbers from 0.
    title : str, optional
        Heading of the page; defaults to the class of the model and the number of samples.
    command : str, optional
        The command that repeats the run; defaults to a line of Python.
    present : as in `fit`, optional
        As passed to `fit`.
    notes : sequence of str
        How the input was understood, one sentence per entry.
    doubts : sequence of str
        What speaks against the answers, such as the warnings of the fit; at the top of the page.
    first : sequence of int, optional
        Rows of the samples to label next; defaults to those of `clf.most_informative`.
    random_state : int
        Seed for the folds of held-out labels, and for the samples on the map if there are many.
    n_jobs : int, optional
        Number of parallel refits, through joblib.
    progress : callable, optional
        Called after each refit with the number done and the total.
    details : callable, optional
        Function of a row number that returns what to show, by name, when the dot of that sample on the map is marked:
        its cells, its text, or the path of an image. Images become small pictures inside the page (with Pillow; without
        it, files of up to 64 kB are used as they are). The page has at most 8 MB of them, of the least certain samples
        first.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.3, random_state=0)
    >>> clf = LMSSC(max_iter=2).fit(data.views, data.y)
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, clf, data.views, data.y, title="Made up", ids=[f"s{i}" for i in range(60)])
    >>> "Of 12 held-out labels" in path.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(clf)
    need_dense(clf, "a report")
    clf = local_model(clf)
    n_samples = len(clf.transduction_)
    raws = _raw_views(clf, views, y, present)
    graphs = read_graphs(split_graphs(views)[1], n_samples) if is_view_collection(views) else []
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
        missing=None if raws is None else {raw.name: _count_missing(raw) for raw in raws},
        notes=notes,
        doubts=doubts,
        command=f"{clf!r}.fit(X, y)" if command is None else command,
        **({} if raws is None else _hold_out_labels(clf, raws, graphs, codes, random_state, n_jobs, progress)),
        first=[int(row) for row in first[: page.LISTED]],
        shares=view_shares(clf),
        random_state=random_state,
        details=details,
    )
    if title is None:
        title = f"{type(clf).__name__}: labels for {n_samples:,} samples"
    with open_atomically(Path(path)) as file:
        # Text from a file may contain a lone surrogate, which has no encoding.
        file.write(readable(_fill(subject, title)).encode(errors="replace"))


def _count_missing(raw: RawView) -> int:
    """Samples that lack a view."""
    return 0 if raw.present is None else int((~raw.present).sum())


def _raw_views(clf: Any, views: Any, y: ArrayLike | None, present: Any) -> list[RawView] | None:
    """The views, checked against those of `fit` and in the same order; None if not given."""
    if views is None and y is None and present is None:
        return None
    if views is None or y is None:
        raise ValueError("views and y belong together: pass both, as they were passed to fit, or neither")
    check_rows(views, y, present)
    raws = clf._read_views(views, present=present)
    n_samples, n_fitted = raws[0].data.shape[0], len(clf.transduction_)
    if n_samples != n_fitted:
        raise ValueError(
            f"the views have {n_samples} samples, but {type(clf).__name__} was fitted to {n_fitted}: "
            "pass the views of fit"
        )
    return raws


def _given_codes(clf: Any, y: ArrayLike | None) -> NDArray:
    """Class of each sample whose label was given, −1 for the others."""
    if y is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fit has warned already
            return encode_labels(y, len(clf.transduction_))[1]
    labelled = getattr(clf, "_labelled", None)
    if labelled is None:
        raise ValueError(
            "the model was saved by a version that did not store which labels were given: pass views and y"
        )
    return np.where(labelled, np.searchsorted(clf.classes_, clf.transduction_), -1)


def _row_names(views: Any, n_samples: int) -> list[str]:
    """Names of the samples from the index of a pandas frame, or row numbers."""
    frames = views.values() if isinstance(views, Mapping) else views if is_view_collection(views) else [views]
    for frame in frames:
        index = getattr(frame, "index", None)
        if index is not None and not callable(index):  # a list has a method of this name
            return [str(name) for name in index]
    return [str(row) for row in range(n_samples)]


def _hold_out_labels(
    clf: Any,
    raws: list[RawView],
    graphs: list[GraphView],
    codes: NDArray,
    random_state: int,
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]:
    """Fields of `Subject` that come from refits with labels held out, with all views and without each."""
    names = [raw.name for raw in raws]
    # A view that is the only one, or the only one used, cannot be left out.
    removable = names if len(names) > 1 and getattr(clf, "view", None) is None else []
    fitted = getattr(clf, "best_estimator_", clf)
    calibrated = fitted.get_params(deep=False).get("calibrate", False)
    plan = plan_refits(
        len(codes),
        count_folds(codes),
        len(removable),
        calibrated=calibrated,
        n_labels=int((codes >= 0).sum()),
        budget=BUDGET,
    )
    n_fits = plan.n_folds + plan.n_view_folds * (1 + len(removable))

    data = make_dataset([CheckedView(raw, None) for raw in raws], clf.classes_, codes, graphs=graphs)

    def refit(model: Any, rows: NDArray, n_folds: int, without: Sequence[str | None], done_before: int) -> Any:
        return hold_out(
            model,
            data.take(rows),
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
    """`n` rows, up to half of them labelled: held-out labels are what a comparison of views is judged by."""
    labelled, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    n_labelled = min(len(labelled), max(n // 2, n - len(others)))
    chosen = labelled[sample_rows(codes[labelled], n_labelled, random_state)]
    rest = others[sample_rows(codes[others], n - n_labelled, random_state)]
    return np.sort(np.concatenate([chosen, rest]))


def _fill(subject: Subject, title: str) -> str:
    script = "".join(map(source, ("sample_map.js", "map.js", "tables.js")))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        environment()
        .get_template("model.html")
        .render(
            title=title,
            version=version("lmssc"),
            script=Markup(script),
            script_hash=f"sha256-{digest}",
            **page.page_context(subject),
        )
    )
