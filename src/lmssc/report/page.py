"""Sections of the report, each from what was measured and in words that need no statistics."""

import math
from collections.abc import Mapping
from html import escape

import numpy as np
from scipy import sparse

from lmssc.model_selection.intervals import judge_change
from lmssc.model_selection.refit import HeldOut
from lmssc.plotting.graph_matrix import homophily
from lmssc.plotting.latent_map import principal_plane
from lmssc.plotting.style import COLOURS
from lmssc.report.charts import SHAPES, as_data, map_svg, mark, place
from lmssc.report.hidden_labels import BINS, hidden_labels
from lmssc.report.html import bar, between, percent, table
from lmssc.report.subject import Subject

# More dots than this are slow to draw and hide each other.
MOST_DOTS = 5000
# Samples to look at first that are listed.
LISTED = 20
# Colours and shapes of classes, used in turn, that are different together.
PAIRS = math.lcm(len(COLOURS), len(SHAPES))


def in_short(subject: Subject) -> str:
    """The few numbers that matter most."""
    unknown = ~subject.given
    confidence = subject.clf.label_distributions_.max(axis=1)[unknown]
    facts = [
        (f"{len(subject.codes):,}", "samples"),
        (f"{len(subject.widths):,}", "view" if len(subject.widths) == 1 else "views"),
        (f"{len(subject.labels):,}", "classes"),
        (f"{int(subject.given.sum()):,}", "labels given"),
        (f"{int(unknown.sum()):,}", "labels found"),
    ]
    found = subject.held_out
    if found is not None and len(found.rows):
        n = len(found.rows)
        words = f"of {n:,} hidden labels found again (95 % interval: {between(found.accuracy, n)})"
        facts.append((percent(found.accuracy), words))
    if len(confidence):
        sure = float((confidence >= 0.9).mean())
        facts.append((percent(sure), "of the found labels have a confidence of 90 % or more"))
    items = "".join(f"<li><strong>{escape(number)}</strong> {escape(what)}</li>" for number, what in facts)
    warning = ""
    if len(subject.clf.unreached_):
        warning = (
            f"<p><strong>{len(subject.clf.unreached_):,} samples are reached by no label</strong>: no path in the "
            "graph joins them to a labelled sample. Their probabilities are the class frequencies of the labels and "
            "say nothing about them. Label one sample of each such group; "
            + (
                "the column <code>unreached</code> of <code>predictions.csv</code> marks them.</p>"
                if subject.from_files
                else "<code>clf.unreached_</code> has their row numbers.</p>"
            )
        )
    return f'<ul class="facts">{items}</ul>{warning}'


def what_went_in(subject: Subject) -> str:
    """The input as it was understood."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in subject.notes)
    scalings = getattr(subject.clf, "scalings_", {})
    words = {
        "zscore": "each column standardised",
        "mixed": "numbers standardised, categories weighed against them",
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
                *(
                    ("–", "–")
                    if subject.missing is None
                    else (f"{len(subject.codes) - subject.missing[name]:,}", f"{subject.missing[name]:,}")
                ),
                escape(words.get(scalings.get(name, ""), scalings.get(name, "–"))),
            ]
            for name, width in subject.widths.items()
        ],
    )
    counts = np.bincount(subject.codes[subject.given], minlength=len(subject.labels))
    totals = np.bincount(subject.predicted, minlength=len(subject.labels))
    classes = table(
        "classes",
        "The classes: labels that were given, and samples that have the label now",
        ["class", "labels given", "samples with this label now", "share", ""],
        [
            [escape(label), f"{given:,}", f"{total:,}", percent(total / len(subject.codes)), bar(total / totals.max())]
            for label, given, total in zip(subject.labels, counts, totals, strict=True)
        ],
    )
    return (f"<ul>{notes}</ul>" if notes else "") + views + classes


def how_sure(subject: Subject) -> str:
    """Held-out labels, calibration, and how the confidence is spread."""
    return hidden_labels(subject) + _confidence(subject)


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
        f"<p>{percent(float((confidence >= 0.9).mean()))} of the {len(confidence):,} found labels have a confidence of "
        f"90 % or more, {percent(float((confidence < 0.5).mean()))} of less than 50 %.</p>"
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
        "<p>Each dot is a sample at its latent position: samples that are alike in their views lie close together. "
        "Colour and shape show the label that a sample got; a black rim marks a label that was given. "
        f"{sample}{repeated}The map has two dimensions, the latent positions have {fitted.latent_.shape[1]:,}: it "
        f"shows {percent(sum(explained))} of their variance, and samples that lie close together here may still be far "
        "apart.</p>"
        '<p id="map-help">Point at a dot to see which sample it is, click to keep it marked. Zoom with the buttons, '
        "with the keys + and −, or with the wheel once you have clicked on the map; drag it or use the arrow keys to "
        "move it; the key 0 shows all of it. "
        f"The tab key goes through the {len(stops)} samples to look at first. From a marked sample the arrow keys go "
        "to its neighbours. Enter marks the sample in the middle of the map, Escape removes the mark.</p>"
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
    largest = max(subject.shares.values(), default=1.0)
    whole = subject.without.get(None)
    if whole is not None and not len(whole.rows):
        whole = None  # nothing was hidden
    rows = []
    for name in names:
        share = subject.shares.get(name, float("nan"))
        cells = [escape(name), percent(share), bar(share / largest) if share == share else ""]
        changed = _change(subject.without[name], whole) if whole is not None else ("–", "–", "")
        rows.append([*cells, *changed])
    learned = (
        "The share is the view's part of what the latent positions reproduce of all views."
        if hasattr(getattr(subject.clf, "best_estimator_", subject.clf), "loadings_")
        else "The share is the weight that the method gave the view."
        if subject.shares
        else "This method does not weigh the views."
    )
    tested, caption = "", "What each view contributes"
    if whole is not None:
        samples = "" if subject.n_compared == len(subject.codes) else f" and {subject.n_compared:,} of the samples"
        tested = (
            f"Then {len(whole.rows):,} labels were hidden again, and the model had to find them without the view (with "
            f"few iterations{samples}, to save time). What is lost without a view is what only this view knows; what "
            "two views both know is not lost. “No difference” means less than 5 points either way (95 % interval)."
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
    verdict, enough = judge_change(whole.right, without.right)
    words = {
        "worse": "worse without it",
        "better": "better without it",
        "same": "no difference",
        "too few": f"too few labels to tell (about {enough:,} would)",
    }[verdict]
    lost = int((~without.answered).sum())
    if lost:
        words += f"; {lost} of the hidden have this view only"
    step = 100 * (without.accuracy - whole.accuracy)
    return percent(without.accuracy), f"{step:+.1f}".replace("-", "−"), words


def about_the_graph(subject: Subject) -> str:
    """Homophily of the graph, over all samples and over the labelled."""
    graph = subject.clf.graph_
    share, chance = homophily(graph, subject.predicted)
    known = np.flatnonzero(subject.given)
    among = sparse.csr_array(graph)[known][:, known]
    text = (
        "<p>The graph links each sample to the samples most like it, and labels spread along these links. "
        f"<strong>{percent(share)} of their weight links two samples of the same class</strong>, by the labels that "
        f"all samples have now; links drawn at random would have {percent(chance)}. "
    )
    # Links of one sample are no independent evidence: the labels that are linked are counted, not the links.
    linked = int(np.count_nonzero((among + among.T).sum(axis=1)))
    if linked:
        truth, by_chance = homophily(among, subject.codes[known])
        text += (
            f"Among samples whose label was given it is {percent(truth)} (at random: {percent(by_chance)}), a number "
            f"in which no label is the method's own. It comes from the labels of {linked:,} samples, which leaves "
            f"{between(truth, linked)} (95 % interval). "
        )
    else:
        text += "No two samples whose labels were given are linked, so given labels alone cannot confirm that. "
    return text + f"The graph has {graph.nnz:,} links, {graph.nnz / graph.shape[0]:.1f} a sample.</p>"


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
    more = (
        "<code>to_label.csv</code>, which <code>lmssc classify</code> wrote, has more."
        if subject.from_files
        else "<code>clf.most_informative(n)</code> names more."
    )
    return (
        "<p>If you can label a few more samples, take these: the model is unsure of them, and they are linked to many "
        f"others that would learn from them. {more}</p>"
        + table(
            "first",
            "The samples to look at first",
            ["sample", "label", "confidence", "second label", "its probability"],
            rows,
        )
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
        iterations += " and was stopped by max_iter; raise it to see whether the labels still change"
    return (
        f'<h3>Run it again</h3><pre tabindex="0"><code>{escape(subject.command)}</code></pre>'
        f"<p>The model is of the class {type(fitted).__name__}; it took {iterations}. Its parameters:</p>"
        f"<ul>{parameters}</ul>"
        "<h3>Cite</h3><p>The method: Bo, Kang, Zhao, Su and Chen, <cite>Latent Multi-view Semi-Supervised "
        "Classification</cite>, 2019. The program: lmssc, with the version that this page names at its foot; its "
        "defaults differ from the paper’s.</p>"
    )
