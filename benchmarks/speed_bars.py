"""The targets for speed and memory, and whether the measurements meet them."""

import json
from typing import NamedTuple

from speed_data import KINDS, MILLION, SUBSAMPLE
from speed_peers import OF_LATENT
from speed_table import find, number, ratio


class Bar(NamedTuple):
    """A target, the measurement, and whether the target is met: yes, no, or not measured."""

    promised: str
    measured: str
    kept: str


def judged(promised, measured, kept):
    """A target whose measurements are all there."""
    return Bar(promised, measured, "yes" if kept else "no")


def missing(promised):
    """A target with a measurement that is missing or of another run."""
    return Bar(promised, "", "not measured")


def all_bars(rows):
    """All targets."""
    return [
        dense(rows),
        spreading(rows),
        *(neighbour_graph(rows, threads) for threads in (1, 2)),
        *million(rows),
        new_samples(rows),
        imports(rows),
    ]


def detail(row):
    """Further details of a row."""
    return json.loads(row["detail"])


def usual(rows, case, data, samples, **shape):
    """The row of a case on data of the default shape of its kind."""
    return find(rows, case=case, data=data, samples=samples, **{**KINDS[data][0], **shape})


def dense(rows):
    """One iteration compared with the paper's formulas."""
    promised = "the paper's dense formulas, N = 2,000 (HW), equal iteration, equal answer: at least 100× faster"
    row = usual(rows, "dense formulas", "HW", 2000)
    if row is None:
        return missing(promised)
    of = detail(row)
    apart = max(of[name] for name in ("difference of H", "of S", "of F"))
    measured = (
        f"{number(of['× LMSSC'])}×, without the quadratic programs {number(of['× LMSSC without the QPs'])}×; "
        f"answers differ by {apart:.0e}"
    )
    return judged(promised, measured, of["× LMSSC"] >= 100 and apart < 1e-6)


def compared(fit, peer, what, quality):
    """How many times as long a fit takes as its peer, or None, and both times and qualities in words."""
    times = ratio(fit, peer)
    if times is None:
        return None, ""
    seconds = " against ".join(f"{number(row['wall'])} s" for row in (fit, peer))
    qualities = " against ".join(quality(row) for row in (fit, peer))
    return times, f"{number(times)}× ({seconds}), {what} {qualities}"


def spreading(rows):
    """A fit compared with LabelSpreading."""
    promised = (
        "N = 20,000, 6 views, 600 features, 10 classes: no longer than LabelSpreading(kernel='knn') on the scaled "
        "concatenation, accuracy not below it"
    )
    fit, peer = (usual(rows, case, "synthetic", 20_000, threads=1) for case in ("LMSSC", "LabelSpreading"))
    times, measured = compared(fit, peer, "accuracy", lambda row: f"{number(row['accuracy'])} %")
    if times is None:
        return missing(promised)
    return judged(promised, measured, times <= 1 and float(fit["accuracy"]) >= float(peer["accuracy"]))


def neighbour_graph(rows, threads):
    """A fit compared with one graph of its latent positions."""
    promised = (
        "N = 100,000, float32: no more than 4× one approximate kNN graph of the latent positions, same k and recall, "
        f"{threads} {'thread' if threads == 1 else 'threads'}"
    )
    fit, graph = (
        usual(rows, case, "synthetic", 100_000, dtype="float32", threads=threads) for case in ("LMSSC", OF_LATENT)
    )
    times, measured = compared(fit, graph, "recall", lambda row: str(detail(row)["recall"]))
    return missing(promised) if times is None else judged(promised, measured, times <= 4)


def million(rows):
    """Time, memory, accuracy and growth for a million samples."""
    fit, tenth = (usual(rows, "LMSSC", "million", samples, threads=2) for samples in (MILLION, MILLION // 10))
    exact = usual(rows, "LMSSC, exact", "subsample", SUBSAMPLE, threads=2)
    what = "N = 1,000,000, 3 views, 100 features, float32, two threads: "
    promised = f"{what}within 20 minutes and 8 GB"
    if fit is None:
        yield missing(promised)
    else:
        measured = f"{float(fit['wall']) / 60:.1f} minutes, {float(fit['megabytes']) / 1000:.1f} GB"
        yield judged(promised, measured, float(fit["wall"]) <= 1200 and float(fit["megabytes"]) <= 8000)
    promised = (
        f"{what}accuracy no more than 0.5 points below the exact fit to {SUBSAMPLE:,} of them, same share of labels"
    )
    if ratio(fit, exact) is None:
        yield missing(promised)
    else:
        measured = f"{float(fit['accuracy']):.2f} % against {float(exact['accuracy']):.2f} %"
        yield judged(promised, measured, float(fit["accuracy"]) >= float(exact["accuracy"]) - 0.5)
    promised = f"{what}no more than 13× the time of 100,000"
    times = ratio(fit, tenth)
    if times is None:
        yield missing(promised)
    else:
        measured = f"{number(times)}× ({number(fit['wall'])} s against {number(tenth['wall'])} s)"
        yield judged(promised, measured, times <= 13)


def new_samples(rows):
    """New samples per second."""
    promised = "predict: at least 20,000 new samples a second at N = 100,000"
    row = usual(rows, "predict", "synthetic", 100_000, dtype="float32")
    if row is None:
        return missing(promised)
    rate = detail(row)["new samples a second"]
    return judged(promised, f"{rate:,} a second, threads: {row['threads']}", rate >= 20_000)


def imports(rows):
    """Import times."""
    promised = "import lmssc: less than 1.5× the time of import sklearn.semi_supervised"
    row = find(rows, case="imports")
    if row is None:
        return missing(promised)
    first, whole = (detail(row)[f"{name} × scikit-learn"] for name in ("import lmssc", "from lmssc import LMSSC"))
    return judged(promised, f"{number(first)}×; from lmssc import LMSSC: {number(whole)}×", first < 1.5)
