"""Hashes of label distributions, to verify that a change does not alter a single bit.

The last digits depend on the machine and its libraries. So write the file with the code before the change, and compare
with the code after it on the same machine.

    python benchmarks/golden.py --write golden.json
    python benchmarks/golden.py --compare golden.json
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from lmssc import AMGL, GFHF, LMSSC, LMSSCCV, MLAN, paper_settings
from lmssc.datasets import load_digits_views, make_multiview


def _digits() -> tuple[list, np.ndarray]:
    data = load_digits_views()
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data.target))
    y = np.where(rng.random(len(rows)) < 0.05, data.target[rows], -1)
    return [np.asarray(view)[rows] for view in data.views], y


def _synthetic(**options: object) -> tuple[list, np.ndarray]:
    data = make_multiview(**{"n_samples": 500, "n_views": 3, "labelled": 0.1, "random_state": 0} | options)
    return list(data.views), data.y


def _sparse() -> tuple[list, np.ndarray]:
    views, y = _synthetic(n_features=200)
    return [sparse.csr_array(np.maximum(view - 1, 0)) for view in views], y


def _missing() -> tuple[list, np.ndarray]:
    views, y = _synthetic()
    rng = np.random.default_rng(1)
    for v, view in enumerate(views):
        view[rng.random(len(view)) < 0.2 * v] = np.nan
    return views, y


def _texts() -> tuple[list, np.ndarray]:
    rng = np.random.default_rng(2)
    classes = rng.integers(0, 4, 400)
    texts = [
        " ".join(f"w{word}" for word in rng.zipf(1.4, 40) % 300 + 60 * c * (rng.random(40) < 0.4)) for c in classes
    ]
    counts = CountVectorizer().fit_transform(texts)
    return [counts[:, ::2], counts[:, 1::2]], np.where(rng.random(400) < 0.1, classes, -1)


def _copies() -> tuple[list, np.ndarray]:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (1500, 4)).astype(float)
    y = (rng.random(1500) < np.where(rows[:, 0] > 0, 0.7, 0.1)).astype(int)
    return [rows], np.where(rng.random(1500) < 0.3, y, -1)


CASES: dict[str, Callable] = {
    "digits": lambda: LMSSC().fit(*_digits()),
    "digits, paper's settings": lambda: LMSSC(**paper_settings() | {"random_state": 0}).fit(*_digits()),
    "synthetic": lambda: LMSSC().fit(*_synthetic()),
    "sparse": lambda: LMSSC().fit(*_sparse()),
    "missing views": lambda: LMSSC().fit(*_missing()),
    "texts": lambda: LMSSC().fit(*_texts()),
    "identical rows": lambda: LMSSC().fit(*_copies()),
    "20,000 samples": lambda: LMSSC().fit(*_synthetic(n_samples=20_000, n_features=100, labelled=0.01)),
    "GFHF": lambda: GFHF().fit(*_digits()),
    "AMGL": lambda: AMGL().fit(*_digits()),
    "MLAN": lambda: MLAN().fit(*_digits()),
    "LMSSCCV": lambda: LMSSCCV(estimator=LMSSC(max_iter=3), param_grid=[{}, {"beta": [0.5]}], n_repeats=1).fit(
        *_synthetic()
    ),
}


def hashes() -> dict[str, str]:
    """The hash of the fitted samples' label distributions, and of answers to new samples, for each case."""
    found = {}
    for name, fit in CASES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            clf = fit()
            views = _VIEWS[name]() if name in _VIEWS else None
            new = b"" if views is None else clf.predict_proba([view[:50] * 1.01 for view in views]).tobytes()
        found[name] = hashlib.sha256(clf.label_distributions_.tobytes() + new).hexdigest()[:16]
        print(f"{found[name]}  {name}", file=sys.stderr)
    return found


_VIEWS: dict[str, Callable] = {
    "digits": lambda: _digits()[0],
    "sparse": lambda: _sparse()[0],
    "missing views": lambda: _missing()[0],
    "20,000 samples": lambda: _synthetic(n_samples=20_000, n_features=100, labelled=0.01)[0],
    "GFHF": lambda: _digits()[0],
    "AMGL": lambda: _digits()[0],
    "MLAN": lambda: _digits()[0],
}


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE")
    what.add_argument("--compare", type=Path, metavar="FILE")
    args = parser.parse_args()
    found = hashes()
    if args.write:
        args.write.write_text(json.dumps(found, indent=1) + "\n")
        return
    before = json.loads(args.compare.read_text())
    moved = [name for name in before if found.get(name) != before[name]]
    print(f"{len(before) - len(moved)} of {len(before)} equal" + "".join(f"\nmoved: {name}" for name in moved))
    sys.exit(bool(moved))


if __name__ == "__main__":
    main()
