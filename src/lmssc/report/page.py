"""What the sections of a report show, computed from the model and from what was measured; templates have the words."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from lmssc.model_selection.intervals import judge_change, judge_confidence, wilson
from lmssc.model_selection.refit import HeldOut
from lmssc.plotting.graph_matrix import homophily
from lmssc.plotting.latent_map import map_positions
from lmssc.plotting.style import COLOURS
from lmssc.report.charts import SHAPES, WIDTH, as_data, colour, place, place_names, shape
from lmssc.report.held_out_labels import BINS, held_out_labels
from lmssc.report.rendering import between, percent
from lmssc.report.sample_details import choose_details
from lmssc.report.subject import Subject
from lmssc.report.trust_section import because, can_judge, labels_to_check, none_of_these

# More dots than this are slow to draw and hide each other.
MAX_DOTS = 100_000
# The accuracy of predicted labels is told to be about that of held-out ones if the interval is narrower than this.
MAX_WIDTH, TOO_FEW = 0.3, "too few labels to say it more exactly"
# Samples listed as those to label next.
LISTED = 20
# Pairs of a colour and a shape: more classes than this look alike.
PAIRS = math.lcm(len(COLOURS), len(SHAPES))
SCALINGS = {
    "zscore": "each column standardised",
    "mixed": "numbers standardised, categories weighed against them",
    "unit": "rows of length 1",
    "tfidf": "word counts weighted (tf-idf)",
    "log": "logarithms of word counts, rows of length 1",
    "logidf": "logarithms of word counts, rare words weigh more (idf)",
    "sqrt": "square roots of amounts, columns centred",
    "center": "columns centred, their variances kept",
    "sample": "each row standardised",
    "none": "used as it is",
}


def page_context(subject: Subject) -> dict[str, Any]:
    """All values that the template of the report names, by their names there."""
    drawn, dot_of = draw_map(subject)
    check, novel = labels_to_check(subject), none_of_these(subject)
    return {
        "n_samples": f"{len(subject.codes):,}",
        "verdict": verdict(subject),
        "facts": facts(subject, check, novel),
        "n_unreached": f"{len(subject.clf.unreached_):,}" if len(subject.clf.unreached_) else "",
        "from_files": subject.from_files,
        "notes": subject.notes,
        "views": view_rows(subject),
        "classes": class_rows(subject),
        "held_out": held_out_labels(subject),
        "confidence": confidence(subject),
        "map": drawn,
        "contributions": contributions(subject),
        "graph": graph(subject),
        "first": first_rows(subject, dot_of),
        "judged": can_judge(subject),
        "check": check,
        "novel": novel,
        "command": subject.command,
        "model": model(subject),
    }


def verdict(subject: Subject) -> dict[str, Any]:
    """What was found and whether to trust it: a sentence, and what speaks against it."""
    unknown = int((~subject.given).sum())
    found, doubts = subject.held_out, [_sentence(doubt) for doubt in subject.doubts]
    measured = found is not None and len(found.rows) > 0
    if found is None:
        trust = "How often they are right was not checked: the page was made from the model alone."
    elif not measured:
        trust = "How often they are right cannot be checked: every class has one label only."
    else:
        n = len(found.rows)
        trust = f"Of {n:,} held-out labels, {percent(found.accuracy)} were predicted correctly"
        low, high = wilson(found.accuracy, n)
        if doubts:
            outlook = "read the warnings below before you rely on it"
        else:
            outlook = "expect about the same of the predicted labels" if high - low < MAX_WIDTH else TOO_FEW
        trust += f" (95 % interval: {between(found.accuracy, n)}): {outlook}."
        constant = np.bincount(found.codes).max() / n
        if low <= constant:
            doubts.append("These labels do not show that the model is better than always predicting the largest class.")
        if judge_confidence(float(found.confidence.mean()), found.accuracy, n) == "too sure":
            doubts.append("The model is too sure of itself: its answers are right less often than its confidence says.")
    if len(subject.clf.unreached_):
        doubts.append(f"No label reaches {len(subject.clf.unreached_):,} samples; their predictions mean nothing.")
    return {"n": f"{unknown:,}", "trust": trust, "doubts": doubts, "checked": measured}


def _sentence(text: str) -> str:
    """A message as a sentence.

    Examples
    --------
    >>> _sentence("the links of 'a' are not used")
    "The links of 'a' are not used."
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def facts(subject: Subject, check: dict[str, Any], novel: dict[str, Any]) -> list[tuple[str, str]]:
    """The few numbers that matter most beside the verdict, each with what it counts."""
    unknown = ~subject.given
    sure = subject.clf.label_distributions_.max(axis=1)[unknown]
    numbers = [
        (f"{len(subject.codes):,}", "samples"),
        (f"{len(subject.widths):,}", "view" if len(subject.widths) == 1 else "views"),
        (f"{len(subject.labels):,}", "classes"),
        (f"{int(subject.given.sum()):,}", "labels given"),
    ]
    if len(sure):
        share = percent(float((sure >= 0.9).mean()))
        numbers.append((share, "of the predicted labels have a confidence of 90 % or more"))
    if check:
        numbers.append((check["n"], "given label to check" if check["one"] else "given labels to check"))
    if novel:
        numbers.append((novel["n"], f"samples like no class (by chance: {novel['expected']})"))
    return numbers


def view_rows(subject: Subject) -> list[list[str]]:
    """Each view: its name, features, samples with and without it, and scaling."""
    scalings = getattr(subject.clf, "scalings_", {})
    reasons = getattr(subject.clf, "scaling_reasons_", {})
    rows = []
    for name, width in subject.widths.items():
        counts = ["–", "–"]
        if subject.missing is not None:
            counts = [f"{len(subject.codes) - subject.missing[name]:,}", f"{subject.missing[name]:,}"]
        scaling = scalings.get(name, "–")
        text = SCALINGS.get(scaling, scaling)
        rows.append([name, f"{width:,}", *counts, f"{text} ({reasons[name]})" if reasons.get(name) else text])
    return rows


def class_rows(subject: Subject) -> list[list[Any]]:
    """Each class: its name, samples with the label now, their share, and given labels."""
    counts = np.bincount(subject.codes[subject.given], minlength=len(subject.labels))
    totals = np.bincount(subject.predicted, minlength=len(subject.labels))
    return [
        [label, f"{total:,}", percent(total / len(subject.codes)), total / totals.max(), f"{given:,}"]
        for label, given, total in zip(subject.labels, counts, totals, strict=True)
    ]


def confidence(subject: Subject) -> dict[str, Any]:
    """Distribution of the confidence over the predicted labels; empty if all labels were given."""
    unknown = ~subject.given
    if not unknown.any():
        return {}
    values = subject.clf.label_distributions_.max(axis=1)[unknown]
    counts = np.histogram(values, np.linspace(0, 1, BINS + 1))[0].tolist()
    first = int(np.flatnonzero(counts)[0])
    return {
        "n": f"{len(values):,}",
        "sure": percent(float((values >= 0.9).mean())),
        "unsure": percent(float((values < 0.5).mean())),
        "rows": [
            [f"{10 * i} to {10 * (i + 1)} %", f"{count:,}", percent(count / len(values)), count / max(counts)]
            for i, count in enumerate(counts)
            if i >= first
        ],
    }


def draw_map(subject: Subject) -> tuple[dict[str, Any], dict[int, int]]:
    """The map with its legend and the data of its script; and which dot each listed sample is."""
    n = len(subject.codes)
    rows = np.arange(n)
    if n > MAX_DOTS:
        rng = np.random.default_rng(subject.random_state)
        rest = np.setdiff1d(rows, subject.first)
        rows = np.sort(np.append(rng.choice(rest, MAX_DOTS - len(subject.first), replace=False), subject.first))
    rows = rows.astype(np.intp)
    positions, height = place(map_positions(subject.clf)[rows])
    dot_of = dict(zip(subject.first, np.searchsorted(rows, subject.first).tolist(), strict=True))
    details = choose_details(subject, rows)
    return {
        "n": n,
        "n_dots": len(rows),
        "details": details.notes,
        "ratio": f"{WIDTH} / {height}",
        "repeated": len(subject.labels) > PAIRS,
        "legend": [
            {"name": name, "shape": shape(code), "colour": colour(code)} for code, name in enumerate(subject.labels)
        ],
        "data": as_data(_map_data(subject, rows, positions) | {"height": height, "details": details.parts}),
    }, dot_of


def _map_data(subject: Subject, rows: Any, positions: Any) -> dict[str, Any]:
    """What the script of the map tells about each dot."""
    distributions = subject.clf.label_distributions_[rows]
    predicted = subject.predicted[rows]
    others = distributions.copy()
    others[np.arange(len(rows)), predicted] = -1
    return {
        "ids": [str(subject.ids[row]) for row in rows.tolist()],
        "classes": subject.labels,
        "colours": list(COLOURS),
        "width": WIDTH,
        "names": [
            {**name, "x": float(name["x"]), "y": float(name["y"])}
            for name in place_names(positions, predicted, subject.labels)
        ],
        "x": positions[:, 0].tolist(),
        "y": positions[:, 1].tolist(),
        "label": predicted.tolist(),
        "sure": distributions[np.arange(len(rows)), predicted].astype(float).round(4).tolist(),
        "next": np.where(others.max(axis=1) > 0.0005, others.argmax(axis=1), -1).tolist(),
        "given": subject.given[rows].astype(int).tolist(),
        "unreached": np.isin(rows, subject.clf.unreached_).astype(int).tolist(),
        "because": because(subject, rows),
    }


def contributions(subject: Subject) -> dict[str, Any]:
    """Share of each view, and accuracy without it; empty with one view."""
    names = list(subject.widths)
    if len(names) == 1:
        return {}
    largest = max(subject.shares.values(), default=1.0)
    whole = subject.without.get(None)
    if whole is not None and not len(whole.rows):
        whole = None  # nothing could be held out
    rows = []
    for name in names:
        share = subject.shares.get(name, float("nan"))
        changed = _change(subject.without[name], whole) if whole is not None else ("–", "–", "")
        rows.append([name, percent(share), share / largest if share == share else "", *changed])
    if hasattr(getattr(subject.clf, "best_estimator_", subject.clf), "loadings_"):
        learned = "The share is the view's part of what the latent positions reproduce of all views."
    elif subject.shares:
        learned = "The share is the weight that the method gave the view."
    else:
        learned = "This method does not weigh the views."
    return {
        "learned": learned,
        "whole": "" if whole is None else percent(whole.accuracy),
        "n_held_out": "" if whole is None else f"{len(whole.rows):,}",
        "n_compared": f"{subject.n_compared:,}" if subject.n_compared < len(subject.codes) else "",
        "rows": rows,
    }


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
        words += f"; {lost} of the held-out samples have this view only"
    step = 100 * (without.accuracy - whole.accuracy)
    return percent(without.accuracy), f"{step:+.1f}".replace("-", "−"), words


def graph(subject: Subject) -> dict[str, Any]:
    """Homophily of the graph, over all samples and over the labelled."""
    links = subject.clf.graph_
    share, chance = homophily(links, subject.predicted)
    known = np.flatnonzero(subject.given)
    among = sparse.csr_array(links)[known][:, known]
    # The links of one sample are not independent evidence, so the interval counts samples, not links.
    n_linked = int(np.count_nonzero((among + among.T).sum(axis=1)))
    numbers = {
        "share": percent(share),
        "chance": percent(chance),
        "n_linked": f"{n_linked:,}" if n_linked else "",
        "n_links": f"{links.nnz:,}",
        "per_sample": f"{links.nnz / links.shape[0]:.1f}",
    }
    if n_linked:
        given_share, given_chance = homophily(among, subject.codes[known])
        numbers |= {
            "given_share": percent(given_share),
            "given_chance": percent(given_chance),
            "given_interval": between(given_share, n_linked),
        }
    return numbers


def first_rows(subject: Subject, dot_of: dict[int, int]) -> list[list[Any]]:
    """The samples to label next, with the two most probable labels of each."""
    distributions = subject.clf.label_distributions_
    rows = []
    for row in subject.first:
        best, second = np.argsort(-distributions[row], kind="stable")[:2]
        rows.append(
            [
                {"text": str(subject.ids[row]), "dot": dot_of[row]},
                subject.labels[best],
                percent(float(distributions[row, best])),
                subject.labels[second],
                percent(float(distributions[row, second])),
            ]
        )
    return rows


def model(subject: Subject) -> dict[str, Any]:
    """Class, iterations and parameters of the model."""
    fitted = getattr(subject.clf, "best_estimator_", subject.clf)
    return {
        "name": type(fitted).__name__,
        "n_iter": fitted.n_iter_,
        "converged": getattr(fitted, "converged_", True),
        "parameters": [
            (name, repr(value))
            for name, value in fitted.get_params(deep=False).items()
            if name not in ("callback", "checkpoint", "n_jobs", "verbose", "views")
        ],
    }
