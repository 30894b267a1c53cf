"""The data sets of the speed benchmarks."""

import numpy as np

MIN_LABELS_PER_CLASS = 5
SUBSAMPLE = 50_000
MILLION = 1_000_000
USUAL = {"views": 6, "features": 600, "classes": 10, "components": "auto", "dtype": "float64"}
THIN = {**USUAL, "views": 3, "features": 100, "dtype": "float32"}
# Default shape and share of labels of each kind of data. "growth" is "synthetic" with a fixed number of samples, where
# everything else varies; "million" has up to a million samples; "subsample" is a part of these.
KINDS = {
    "synthetic": (USUAL, 0.05),
    "growth": (USUAL, 0.05),
    "million": (THIN, 0.01),
    "subsample": (THIN, 0.01),
    "HW": ({**USUAL, "features": 649}, 0.05),
    "none": ({**USUAL, "views": 0, "features": 0, "classes": 0}, 0.0),
}


def make_data(args):
    """Overlapping classes, so that some samples cannot be classified; or HW."""
    if args.data == "HW":
        return jittered_handwritten(args)
    if args.data == "subsample":
        data = make_synthetic(args, MILLION)
        views = [view[: args.samples].copy() for view in data.views]
        data.update(views=views, target=data.target[: args.samples], y=data.y[: args.samples])
        return data
    # As many new samples as were fitted.
    return make_synthetic(args, 2 * args.samples if args.case == "predict" else args.samples)


def make_synthetic(args, samples):
    """Synthetic data with the share of labels of its kind, and a minimum number of labels per class."""
    from lmssc.datasets import make_multiview

    widths = [len(range(v, args.features, args.views)) for v in range(args.views)]
    labelled = max(KINDS[args.data][1], MIN_LABELS_PER_CLASS * args.classes / samples)
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
    """Rows of HW, each repeated with noise of a third of the standard deviation of each column."""
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
