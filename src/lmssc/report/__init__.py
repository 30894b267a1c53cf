"""The page about one fitted model: what went in, how sure the labels are, a map, and what to look at first."""

import base64
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from numpy.typing import ArrayLike

from lmssc.held_out import count_folds
from lmssc.inputs import make_raw_views, read_collection
from lmssc.io import open_atomically
from lmssc.labels import encode_labels
from lmssc.machine import version
from lmssc.refits import hold_out, sample_rows, shortened, view_shares
from lmssc.report import page
from lmssc.report.html import style_sheet

__all__ = ["write_report"]

# Fits are repeated on no more samples than this.
MOST_REFITTED = 5000
# To compare views, so many iterations do: the labels hardly change after the first few.
MOST_ITERATIONS = 5


def write_report(
    path: Path,
    clf: Any,
    views: Mapping[str, Any],
    y: ArrayLike,
    *,
    ids: Sequence[str],
    title: str,
    command: str,
    present: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    first: Sequence[int] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> None:
    """Write a page about a fitted model: one file that needs nothing but a browser.

    To say how right the labels are it fits again, three times with a third of the labels hidden; and to say what the
    views contribute, the same without each view in turn, with few iterations.

    Parameters
    ----------
    path : Path
        Name of the file; it appears once it is complete.
    clf : classifier of lmssc
        Fitted to `views` and `y`.
    views : dict of str to array, data frame or sparse matrix
        As given to `fit`.
    y : array-like of shape (n,)
        As given to `fit`.
    ids : sequence of str
        Names of the samples.
    title : str
        Heading of the page.
    command : str
        What to type to run it again.
    present : dict of str to boolean array, optional
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
        Called with the number of fits that are done and of all, after each.

    Examples
    --------
    >>> import tempfile
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.3, random_state=0)
    >>> views = {"first": data.views[0], "second": data.views[1]}
    >>> clf = LMSSC(max_iter=2).fit(views, data.y)
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, clf, views, data.y, ids=[f"s{i}" for i in range(60)], title="Made up", command="lmssc …")
    >>> "of hidden labels found again" in path.read_text(encoding="utf-8")
    True
    """
    raws = make_raw_views(read_collection(views), present)
    n_samples = raws[0].data.shape[0]
    if len(ids) != n_samples:
        raise ValueError(f"ids must have one name for each of the {n_samples} samples, got {len(ids)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fit has said it
        _, codes = encode_labels(y, n_samples)
    if first is None:
        first = clf.most_informative(page.LISTED) if (codes < 0).any() else []
    names = [raw.name for raw in raws]
    # A view that is the only one, or the only one used, cannot be left out.
    removable = names if len(names) > 1 and getattr(clf, "view", None) is None else []
    rows = sample_rows(codes, MOST_REFITTED, random_state)
    parts = [raw.take(rows) for raw in raws]
    data = ({raw.name: raw.data for raw in parts}, codes[rows], {raw.name: raw.present for raw in parts})
    n_folds = count_folds(codes[rows])
    n_fits = n_folds * (2 + len(removable) if removable else 1)

    def told(before: int) -> Callable[[int, int], object] | None:
        return None if progress is None else lambda done, _: progress(before + done, n_fits)

    settings: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
    held_out = hold_out(clf, *data, progress=told(0), **settings)[None]
    without = hold_out(
        shortened(clf, MOST_ITERATIONS),
        *data,
        without=[None, *removable] if removable else [],
        progress=told(n_folds),
        **settings,
    )
    subject = page.Subject(
        clf=clf,
        ids=ids,
        codes=codes,
        widths={raw.name: raw.data.shape[1] for raw in raws},
        missing={raw.name: 0 if raw.present is None else int((~raw.present).sum()) for raw in raws},
        notes=notes,
        command=command,
        held_out=held_out,
        without=without,
        n_refitted=len(rows),
        first=[int(row) for row in first[: page.LISTED]],
        shares=view_shares(clf),
        random_state=random_state,
    )
    with open_atomically(Path(path)) as file:
        # Half of a character, which text from a file may have, has no encoding.
        file.write(_fill(subject, title).encode(errors="replace"))


def _fill(subject: page.Subject, title: str) -> str:
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
