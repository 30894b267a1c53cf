"""The data that speed is measured on: their kinds, and how each is made."""

import numpy as np

FEWEST_LABELS = 5
SUBSAMPLE = 50_000
MILLION = 1_000_000
USUAL = {"views": 6, "features": 600, "classes": 10, "components": "auto", "dtype": "float64"}
THIN = {**USUAL, "views": 3, "features": 100, "dtype": "float32"}
# What is usual for each kind of data, and the share of labels. "growth" is "synthetic" where not the number of samples
# but all else varies; "million" grows to a million samples; "subsample" is some of these.
KINDS = {
    "synthetic": (USUAL, 0.05),
    "growth": (USUAL, 0.05),
    "million": (THIN, 0.01),
    "subsample": (THIN, 0.01),
    "HW": ({**USUAL, "features": 649}, 0.05),
    "none": ({**USUAL, "views": 0, "features": 0, "classes": 0}, 0.0),
}


def make_data(args):
    """Classes that overlap, so that some samples cannot be told; or HW."""
    if args.data == "HW":
        return jittered_handwritten(args)
    if args.data == "subsample":
        data = make_synthetic(args, MILLION)
        views = [view[: args.samples].copy() for view in data.views]
        data.update(views=views, target=data.target[: args.samples], y=data.y[: args.samples])
        return data
    # New samples for a model that is fitted to so many are as many again.
    return make_synthetic(args, 2 * args.samples if args.case == "predict" else args.samples)


def make_synthetic(args, samples):
    """So many samples, the share of labels of their kind, and no fewer than a few labels a class."""
    from lmssc.datasets import make_multiview

    widths = [len(range(v, args.features, args.views)) for v in range(args.views)]
    labelled = max(KINDS[args.data][1], FEWEST_LABELS * args.classes / samples)
    return make_multiview(
        samples,
        args.views,
        widths,
        n_classes=args.classes,
        labelled=labelled,
        random_state=0,
        dtype=args.dtype,
    )


def jittered_handwritten(args):
    """Rows of HW, each several times, with noise of a third of the deviation of the column."""
    from sklearn.utils import Bunch

    from lmssc.datasets import load

    data = load("handwritten")
    random = np.random.default_rng(0)
    rows = np.arange(args.samples) % len(data.target)
    views = [
        (view[rows] + view.std(axis=0) / 3 * random.standard_normal((args.samples, view.shape[1]))).astype(args.dtype)
        for view in data.views
    ]
    target = np.asarray(data.target)[rows]
    return Bunch(views=views, target=target, y=np.where(random.random(args.samples) < KINDS["HW"][1], target, -1))
