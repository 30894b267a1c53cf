"""Sections of the report, each from what was measured and in words that need no statistics."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import binomtest

from lmssc.experiments.scores import expected_calibration_error
from lmssc.plotting.calibration import reliability
from lmssc.plotting.graph import homophily
from lmssc.plotting.latent_map import principal_plane
from lmssc.plotting.style import COLOURS
from lmssc.refits import HeldOut
from lmssc.report.charts import FEW, SHAPES, as_data, calibration_chart, map_svg, mark, place
from lmssc.report.html import bar, percent, table

# More dots than this are slow to draw and hide each other.
MOST_DOTS = 5000
# Samples to look at first that are listed.
LISTED = 20
BINS = 10
# Colours and shapes of classes, used in turn, that are different together.
PAIRS = math.lcm(len(COLOURS), len(SHAPES))


@dataclass(frozen=True)
class Subject:
    """What the report is about.

    Attributes
    ----------
    clf : classifier of lmssc
        Fitted.
    ids : list of str
        Names of the samples.
    codes : ndarray of int of shape (n,)
        Given class of each sample as a number in `clf.classes_`, −1 without a label.
    widths, missing : dict of str to int
        Features of each view, and samples that lack it.
    notes : list of str
        What was understood about the input.
    command : str
        What made it.
    held_out : HeldOut
        Answers with labels hidden.
    without : dict of str or None to HeldOut
        The same with few iterations, with all views (None) and without each; empty if none can be left out.
    n_refitted : int
        Samples that those fits had.
    first : list of int
        Samples to look at first.
    shares : dict of str to float
        What the method itself learned about the views.
    random_state : int
        Seed of all that is drawn by chance here.
    """

    clf: Any
    ids: Sequence[str]
    codes: NDArray
    widths: Mapping[str, int]
    missing: Mapping[str, int]
    notes: Sequence[str]
    command: str
    held_out: HeldOut
    without: Mapping[str | None, HeldOut]
    n_refitted: int
    first: Sequence[int]
    shares: Mapping[str, float]
    random_state: int

    @property
    def given(self) -> NDArray:
        """Samples whose label was given."""
        return self.codes >= 0

    @property
    def labels(self) -> list[str]:
        """Names of the classes."""
        return [str(label) for label in self.clf.classes_]

    @cached_property
    def predicted(self) -> NDArray:
        """Class that each sample got, as a number."""
        return np.searchsorted(self.clf.classes_, self.clf.transduction_)


def in_short(subject: Subject) -> str:
    """The few numbers that matter most."""
    unknown = ~subject.given
    confidence = subject.clf.label_distributions_.max(axis=1)[unknown]
    facts = [
        (f"{len(subject.codes):,}", "samples"),
        (f"{len(subject.widths):,}", "views"),
        (f"{len(subject.labels):,}", "classes"),
        (f"{int(subject.given.sum()):,}", "labels given"),
        (f"{int(unknown.sum()):,}", "labels found"),
    ]
    if len(subject.held_out.rows):
        facts.append((percent(subject.held_out.accuracy), "of hidden labels found again"))
    if len(confidence):
        facts.append((percent(float((confidence >= 0.9).mean())), "of the found labels at least 90 % sure"))
    items = "".join(f"<li><strong>{escape(number)}</strong> {escape(what)}</li>" for number, what in facts)
    warning = ""
    if len(subject.clf.unreached_):
        warning = (
            f"<p><strong>{len(subject.clf.unreached_):,} samples are reached by no label</strong>: nothing like them "
            "is labelled, and what they got is only how frequent the classes are. Label one of each such group; "
            "<code>predictions.csv</code>, beside this page, marks them.</p>"
        )
    return f'<ul class="facts">{items}</ul>{warning}'


def what_went_in(subject: Subject) -> str:
    """The input as it was understood."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in subject.notes)
    scalings = getattr(subject.clf, "scalings_", {})
    words = {
        "zscore": "each column standardised",
        "unit": "rows of length 1",
        "tfidf": "word counts weighted (tf-idf)",
        "sample": "each row standardised",
        "none": "used as it is",
    }
    views = table(
        "views",
        "The views",
        ["view", "features", "samples that have it", "samples that lack it", "scaling"],
        [
            [
                escape(name),
                f"{width:,}",
                f"{len(subject.codes) - subject.missing[name]:,}",
                f"{subject.missing[name]:,}",
                escape(words.get(scalings.get(name, ""), scalings.get(name, "–"))),
            ]
            for name, width in subject.widths.items()
        ],
    )
    counts = np.bincount(subject.codes[subject.given], minlength=len(subject.labels))
    totals = np.bincount(subject.predicted, minlength=len(subject.labels))
    classes = table(
        "classes",
        "The classes: labels that were given, and all samples after classification",
        ["class", "labels given", "samples in the end", "share", ""],
        [
            [escape(label), f"{given:,}", f"{total:,}", percent(total / len(subject.codes)), bar(total / totals.max())]
            for label, given, total in zip(subject.labels, counts, totals, strict=True)
        ],
    )
    return (f"<ul>{notes}</ul>" if notes else "") + views + classes


def how_sure(subject: Subject) -> str:
    """Held-out labels, calibration, and how the confidence is spread."""
    return _held_out(subject) + _confidence(subject)


def _held_out(subject: Subject) -> str:
    found = subject.held_out
    if not len(found.rows):
        return (
            "<p><strong>Nothing could be checked:</strong> every class has one label only, and a label cannot be "
            "hidden and learned from at once. Give each class at least two labels to see how right the answers are.</p>"
        )
    n, right = len(found.rows), int(found.right.sum())
    low, high = binomtest(right, n).proportion_ci(method="wilson")
    counts = np.bincount(found.codes, minlength=len(subject.labels))
    most = int(counts.argmax())
    claimed = float(found.confidence.mean())
    verdict = (
        "That is too sure of itself: read its confidence with caution."
        if claimed > high
        else "That is too modest: the answers are better than it says."
        if claimed < low
        else "That fits."
    )
    sampled = ""
    if subject.n_refitted < len(subject.codes):
        sampled = (
            f" To save time this was done on {subject.n_refitted:,} of the {len(subject.codes):,} samples, drawn "
            "at random with as large a share of labels; with all samples the answers tend to be better."
        )
    chosen = ""
    if hasattr(subject.clf, "best_estimator_"):
        chosen = " The parameters had been chosen with these labels in view, which makes the number a little too good."
    text = (
        f'<p class="big">The given labels were hidden in turns and looked for again: <strong>{right:,} of {n:,} '
        f"came back right, {percent(right / n)}</strong>.</p>"
        f"<p>With that many labels the true rate is probably between {percent(low)} and {percent(high)} (95 % "
        f"interval). Always answering “{escape(subject.labels[most])}”, the most frequent class, would be right for "
        f"{percent(counts[most] / n)}. If the labelled samples are not like the others, the others may fare "
        f"worse.{sampled}{chosen}</p>"
    )
    answers = found.distributions.argmax(axis=1)
    rows = []
    for code, label in enumerate(subject.labels):
        mine = found.codes == code
        if not mine.any():
            rows.append([escape(label), "0", "–", "", "only one label: could not be hidden"])
            continue
        wrong = np.bincount(answers[mine & ~found.right], minlength=len(subject.labels))
        taken = f"{escape(subject.labels[int(wrong.argmax())])} ({wrong.max()})" if wrong.any() else "–"
        share = float(found.right[mine].mean())
        rows.append([escape(label), f"{int(mine.sum()):,}", percent(share), bar(share), taken])
    by_class = table(
        "by-class",
        "Hidden labels by class",
        ["class", "hidden", "found again", "", "most often taken for"],
        rows,
    )
    bins = reliability(found.right, found.confidence, BINS)
    error = expected_calibration_error(found.right, found.confidence, BINS)
    calibration = table(
        "calibration",
        "Hidden labels by confidence",
        ["confidence", "answers", "mean confidence", "right"],
        [
            [
                f"{100 * one['bin'] // BINS} to {100 * (one['bin'] + 1) // BINS} %",
                f"{one['n']:,}",
                percent(one["confidence"]),
                percent(one["accuracy"]),
            ]
            for one in bins
        ],
    )
    return (
        f"<h3>Labels that were hidden</h3>{text}{by_class}"
        "<h3>Is it as right as it is sure?</h3>"
        f"<p>For the hidden labels it claimed {percent(claimed)} on average and was right for {percent(right / n)}. "
        f"{verdict} Mean gap between the two over all levels of confidence: {percent(error)}.</p>"
        f'<figure><div class="card" role="group" aria-label="Calibration" tabindex="0">{calibration_chart(bins)}</div>'
        "<figcaption>On the dashed line it is right as often as it is sure; below it, it is too sure. "
        f"The larger a mark, the more answers; hollow: fewer than {FEW}.</figcaption></figure>{calibration}"
    )


def _confidence(subject: Subject) -> str:
    unknown = ~subject.given
    if not unknown.any():
        return "<p>All samples had a label: there was nothing to find.</p>"
    confidence = subject.clf.label_distributions_.max(axis=1)[unknown]
    counts = np.histogram(confidence, np.linspace(0, 1, BINS + 1))[0]
    first = int(np.flatnonzero(counts)[0])
    rows = [
        [f"{10 * i} to {10 * (i + 1)} %", f"{count:,}", percent(count / len(confidence)), bar(count / counts.max())]
        for i, count in enumerate(counts.tolist())
        if i >= first
    ]
    return (
        "<h3>How sure the found labels are</h3>"
        f"<p>{percent(float((confidence >= 0.9).mean()))} of the {len(confidence):,} found labels are at least 90 % "
        f"sure, {percent(float((confidence < 0.5).mean()))} less than 50 %.</p>"
        + table("confidence", "Found labels by confidence", ["confidence", "samples", "share", ""], rows)
    )


def latent_map(subject: Subject) -> tuple[str, str, dict[int, int]]:
    """The map, its data for the script, and where each sample listed first is among them."""
    fitted = getattr(subject.clf, "best_estimator_", subject.clf)
    if not hasattr(fitted, "latent_"):
        return "<p>This method has no latent positions, so there is no map.</p>", "", {}
    n = len(subject.codes)
    rows = np.arange(n)
    if n > MOST_DOTS:
        rng = np.random.default_rng(subject.random_state)
        rest = np.setdiff1d(rows, subject.first)
        rows = np.sort(np.append(rng.choice(rest, MOST_DOTS - len(subject.first), replace=False), subject.first))
    rows = rows.astype(np.intp)
    coordinates, explained = principal_plane(fitted.latent_[rows])
    positions, height = place(coordinates)
    place_of = dict(zip(subject.first, np.searchsorted(rows, subject.first).tolist(), strict=True))
    stops = [place_of[row] for row in subject.first]
    distributions = subject.clf.label_distributions_[rows]
    predicted = subject.predicted[rows]
    others = distributions.copy()
    others[np.arange(len(rows)), predicted] = -1
    runner_up = others.argmax(axis=1)
    unreached = np.isin(rows, subject.clf.unreached_)
    data = {
        "ids": [str(subject.ids[row]) for row in rows.tolist()],
        "classes": subject.labels,
        "x": positions[:, 0].tolist(),
        "y": positions[:, 1].tolist(),
        "label": predicted.tolist(),
        "sure": distributions[np.arange(len(rows)), predicted].astype(float).round(4).tolist(),
        "next": np.where(others.max(axis=1) > 0.0005, runner_up, -1).tolist(),
        "given": subject.given[rows].astype(int).tolist(),
        "unreached": unreached.astype(int).tolist(),
    }
    label = f"Map of {len(rows)} samples, with a colour and a shape for each class"
    drawn = map_svg(positions, height, predicted, subject.given[rows], stops, label)
    legend = "".join(
        f'<li><button type="button" data-class="{code}" aria-pressed="false">'
        '<svg class="dot" viewBox="0 0 10 10" aria-hidden="true">'
        f"{mark(code)}</svg>"
        f"{escape(name)}</button></li>"
        for code, name in enumerate(subject.labels)
    )
    sample = f"A random {len(rows):,} of the {n:,} samples are shown. " if len(rows) < n else ""
    repeated = ""
    if len(subject.labels) > PAIRS:
        repeated = "Colours and shapes repeat; choose a class in the legend to see it alone. "
    html = (
        "<p>Each dot is a sample, where the method has put it: samples that are alike in all views lie together. "
        f"Colours and shapes are the labels they got; a black rim marks a label that was given. {sample}{repeated}The "
        f"picture is flat, the positions are not: it shows {percent(sum(explained))} of how they differ.</p>"
        '<p id="map-help">Point at a dot to see which sample it is, click to keep it marked. Zoom with the buttons, '
        "with + and −, or with the wheel while the map has the focus; drag or use the arrow keys to move, 0 shows all. "
        f"With the tab key you come to the {len(stops)} samples to look at first; from a marked sample the arrow keys "
        "go on to its neighbours, Enter marks the one in the middle, Escape none.</p>"
        '<div id="map-controls" hidden><button type="button" id="map-in">Zoom in</button>'
        '<button type="button" id="map-out">Zoom out</button><button type="button" id="map-home">Show all</button>'
        '<form id="map-find"><label for="map-id">Find a sample:</label><input id="map-id" autocomplete="off">'
        '<button type="submit">Find</button></form></div>'
        f'<div class="card" id="map-frame">{drawn}<div id="map-tip" hidden></div></div>'
        '<p id="map-said" aria-live="polite"></p>'
        f'<ul class="legend" aria-label="Classes">{legend}</ul>'
    )
    return html, f'<script type="application/json" id="map-data">{as_data(data)}</script>', place_of


def what_views_contribute(subject: Subject) -> str:
    """Shares of the loadings, and accuracy without each view."""
    names = list(subject.widths)
    if len(names) == 1:
        return "<p>There is one view only.</p>"
    whole = subject.without.get(None, subject.held_out)
    largest = max(subject.shares.values(), default=1.0)
    compared = None in subject.without and len(whole.rows) > 0
    rows = []
    for name in names:
        share = subject.shares.get(name, float("nan"))
        cells = [escape(name), percent(share), bar(share / largest) if share == share else ""]
        rows.append([*cells, *(_change(subject.without[name], whole) if compared else ("–", "–", ""))])
    learned = (
        "The share is how much of what the latent positions reproduce of the data lies in the view."
        if hasattr(getattr(subject.clf, "best_estimator_", subject.clf), "loadings_")
        else "The share is the weight that the method gave the view."
        if subject.shares
        else "This method does not weigh the views."
    )
    tested, caption = "", "What each view contributes"
    if compared:
        tested = (
            "Then the hidden labels were looked for again without the view (with few iterations, to save time): what "
            "is lost is what only this view knows. With few labels most changes are "
            "within chance (two standard errors)."
        )
        caption += f"; with all views {percent(whole.accuracy)} of the hidden labels are found again"
    return f"<p>{learned} {tested}</p>" + table(
        "contribution",
        caption,
        ["view", "share", "", "found again without it", "change (points)", "in words"],
        rows,
    )


def _change(without: HeldOut, whole: HeldOut) -> tuple[str, str, str]:
    """Accuracy without a view, its change in points, and what that means."""
    change = without.right.astype(float) - whole.right
    noise = 2 * float(change.std()) / len(change) ** 0.5
    step = float(change.mean())
    words = "within chance" if abs(step) <= noise else "worse without it" if step < 0 else "better without it"
    lost = int((~without.answered).sum())
    if lost:
        words += f"; {lost} of the hidden have this view only"
    return percent(without.accuracy), f"{100 * step:+.1f}".replace("-", "−"), words


def about_the_graph(subject: Subject) -> str:
    """Homophily of the graph, over all samples and over the labelled."""
    graph = subject.clf.graph_
    share, chance = homophily(graph, subject.predicted)
    known = np.flatnonzero(subject.given)
    among = sparse.csr_array(graph)[known][:, known]
    text = (
        "<p>The method joins each sample to those most like it, and labels flow along these joins. "
        f"<strong>{percent(share)} of their weight joins samples of one class</strong>, by the labels in the end; "
        f"among samples joined at random it would be {percent(chance)}. "
    )
    if among.nnz:
        truth, by_chance = homophily(among, subject.codes[known])
        text += (
            f"Between samples whose labels were both given it is {percent(truth)} (random: {percent(by_chance)}; "
            f"{among.nnz:,} such joins): no label in this number is the method's own. "
        )
    else:
        text += "No two samples with given labels are joined, so it cannot be checked by given labels alone. "
    return text + f"The graph has {graph.nnz:,} joins, {graph.nnz / graph.shape[0]:.1f} a sample.</p>"


def look_first(subject: Subject, place_of: Mapping[int, int]) -> str:
    """The samples whose labels would tell most."""
    if not len(subject.first):
        return "<p>All samples have a label.</p>"
    distributions = subject.clf.label_distributions_
    rows = []
    for row in subject.first:
        best, second = np.argsort(-distributions[row], kind="stable")[:2]
        name = escape(str(subject.ids[row]))
        if row in place_of:
            name = f'<a href="#map" data-i="{place_of[row]}">{name}</a>'
        rows.append(
            [
                name,
                escape(subject.labels[best]),
                percent(float(distributions[row, best])),
                escape(subject.labels[second]),
                percent(float(distributions[row, second])),
            ]
        )
    return (
        "<p>If you can label a few more samples, take these: the method is unsure of them, and they are joined to many "
        "others that would learn from them. <code>to_label.csv</code>, beside this page, has more.</p>"
        + table("first", "The samples to look at first", ["sample", "label", "sure", "runner-up", "its share"], rows)
    )


def run_again(subject: Subject) -> str:
    """The command, the parameters and the references."""
    fitted = getattr(subject.clf, "best_estimator_", subject.clf)
    parameters = "".join(
        f"<li><code>{escape(name)} = {escape(repr(value))}</code></li>"
        for name, value in fitted.get_params(deep=False).items()
        if name not in ("callback", "checkpoint", "n_jobs", "verbose", "views")
    )
    iterations = f"{fitted.n_iter_} iteration{'s' if fitted.n_iter_ != 1 else ''}"
    if getattr(fitted, "converged_", True) is False:
        iterations += ", when max_iter ended it; raise it to see whether more of them change the labels"
    return (
        f'<h3>Run it again</h3><pre tabindex="0"><code>{escape(subject.command)}</code></pre>'
        f"<p>The model is of the class {type(fitted).__name__}; it took {iterations}. Its parameters:</p>"
        f"<ul>{parameters}</ul>"
        "<h3>Cite</h3><p>The method: Bo, Kang, Zhao, Su and Chen, <cite>Latent Multi-view Semi-Supervised "
        "Classification</cite>, 2019. The program: lmssc, with its version from the foot of this page, because "
        "its defaults differ from the paper’s.</p>"
    )
