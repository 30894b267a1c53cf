"""Synthetic multi-view data of any size: dense or sparse, with noise views, missing views and few labels."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse as sp
from sklearn.utils import Bunch, check_random_state

_CLUSTERS_PER_CLASS = 3
_TOPICS = 10
_TOPIC_SHARPNESS = 1.5
# The mean number of words per text is this share of the number of features, and at least the minimum.
_WORDS_PER_FEATURE, _MIN_MEAN_WORDS = 0.03, 50

_DESCR = """Synthetic multi-view data
=========================

{n_samples} samples of {n_classes} classes in {n_views} views, made by `lmssc.datasets.make_multiview`.
Each class has {clusters} Gaussian clusters with random centres in a latent space of {n_latent} dimensions, and
the classes overlap. A view is a random, mildly non-linear map of half of these dimensions plus noise; a sparse
view has the word counts of texts whose topics come from such a map. A view named "noise" does not depend on the
classes.

Views: {views}.
"""


def make_multiview(
    n_samples: int = 300,
    n_views: int = 3,
    n_features: int | Sequence[int] = 20,
    n_classes: int = 3,
    *,
    noise: float = 1.0,
    separation: float = 1.8,
    n_latent: int = 10,
    noise_views: int = 0,
    missing: float = 0.0,
    sparse: bool | Sequence[bool] = False,
    weights: Sequence[float] | None = None,
    labelled: float | int | None = None,
    dtype: npt.DTypeLike = np.float64,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Bunch:
    """Make a multi-view classification problem with overlapping classes.

    Every class has three unit Gaussian clusters around random centres in a latent space. View v observes a window of
    half of the latent dimensions, z, as x = 2·tanh(A z / 2) + noise·ε with a random matrix A and standard normal ε; the
    windows of two or more views together cover all dimensions. In a sparse view x are the scores of ten topics, with
    half the noise because words are drawn at random too, and the view has the word counts of a text with topic shares
    softmax(1.5·x).

    Parameters
    ----------
    n_samples : int, default=300
        Number of samples, at least one per class.
    n_views : int, default=3
        Number of views, including noise views.
    n_features : int or sequence of int, default=20
        Number of features of every view, or a list of one number per view.
    n_classes : int, default=3
        Number of classes.
    noise : float, default=1.0
        Standard deviation of the noise of a feature; its signal is between −2 and 2.
    separation : float, default=1.8
        Standard deviation of the coordinates of the cluster centres. The clusters themselves have standard deviation 1,
        so classes overlap less when this grows.
    n_latent : int, default=10
        Number of dimensions of the latent space.
    noise_views : int, default=0
        Number of views that are only noise; they come last.
    missing : float, default=0.0
        Share of the n_samples · n_views sample-views that are missing, at most 1 − 1/n_views, because every
        sample keeps at least one view. A missing row is NaN in a dense view and empty in a sparse one.
    sparse : bool or sequence of bool, default=False
        Whether views are sparse word counts, for all views or one value per view. From 1000 features on, 1 to 5 % of
        the entries are not zero.
    weights : sequence of float, default=None
        Relative sizes of the classes; equal if None.
    labelled : float or int, default=None
        Adds ``y``, in which only some samples have their label: a share of every class (float in (0, 1]), or a number
        per class (int). Every class has at least one label.
    dtype : float32 or float64, default=float64
        Type of all views.
    random_state : int, RandomState, Generator or None, default=None
        Pass an int for the same data on every call.

    Returns
    -------
    Bunch
        ``views`` : list of arrays or CSR arrays of shape (n_samples, n_features), one per view;
        ``view_names`` : list of str, ``"view0"``, ``"view1"``, … and ``"noise0"``, …;
        ``target`` : integer array of shape (n_samples,), 0 to n_classes − 1, in random order;
        ``target_names`` : list of str;
        ``present`` : list of boolean arrays of shape (n_samples,), one per view, False where the sample lacks the view,
        or None if ``missing`` is 0;
        ``DESCR`` : description of the data;
        ``y`` : only if ``labelled`` is given: ``target`` with −1 where the label is held out.

    Examples
    --------
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(
    ...     n_views=2, n_features=[20, 1000], sparse=[False, True], labelled=0.1, random_state=0
    ... )
    >>> [view.shape for view in data.views]
    [(300, 20), (300, 1000)]
    >>> int((data.y >= 0).sum())
    30
    """
    _check_counts(n_samples, n_views, n_classes, n_latent, noise_views)
    _check_reals(noise, separation, missing, n_views)
    dtype = _check_dtype(dtype)
    widths = _one_per_view("n_features", n_features, n_views, _is_count, "a positive int")
    are_sparse = _one_per_view("sparse", sparse, n_views, _is_bool, "a bool")
    rng = _generator(random_state)

    target = _draw_target(n_samples, n_classes, weights, rng)
    latent = _draw_latent(target, n_classes, n_latent, separation, dtype, rng)
    present = _draw_present(n_samples, n_views, missing, rng)
    n_informative = n_views - noise_views
    names = [f"view{v}" for v in range(n_informative)] + [f"noise{v}" for v in range(noise_views)]
    views: list[npt.NDArray[Any] | sp.csr_array] = []
    for v, (width, is_sparse, there) in enumerate(zip(widths, are_sparse, present, strict=True)):
        seen = None
        if v < n_informative:
            seen = latent[:, (v * n_latent // n_informative + np.arange((n_latent + 1) // 2)) % n_latent]
        views.append(_draw_view(seen, width, there, noise, dtype, rng, is_sparse=is_sparse))
    data = Bunch(
        views=views,
        view_names=names,
        target=target,
        target_names=[f"class{label}" for label in range(n_classes)],
        present=present if missing else None,
        DESCR=_describe(n_samples, n_classes, n_latent, dict(zip(names, widths, strict=True))),
    )
    if labelled is not None:
        data.y = _hold_out_labels(target, labelled, rng)
    return data


def _describe(n_samples: int, n_classes: int, n_latent: int, widths: dict[str, int]) -> str:
    return _DESCR.format(
        n_samples=n_samples,
        n_classes=n_classes,
        n_views=len(widths),
        n_latent=n_latent,
        clusters=_CLUSTERS_PER_CLASS,
        views=", ".join(f"{name} ({width} features)" for name, width in widths.items()),
    )


def _draw_view(
    seen: npt.NDArray[Any] | None,
    width: int,
    present: npt.NDArray[np.bool_],
    noise: float,
    dtype: np.dtype[Any],
    rng: np.random.Generator,
    *,
    is_sparse: bool,
) -> npt.NDArray[Any] | sp.csr_array:
    """A view of the latent positions that it sees; of noise alone if these are None."""
    n_scores = _TOPICS if is_sparse else width
    if seen is None:
        scores = rng.standard_normal((len(present), n_scores), dtype=dtype)
    else:
        scores = _observe(seen, n_scores, noise / 2 if is_sparse else noise, rng)
    if is_sparse:
        return _draw_words(scores, width, present, rng)
    scores[~present] = np.nan
    return scores


def _draw_target(
    n_samples: int, n_classes: int, weights: Sequence[float] | None, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Classes of the samples in random order; class sizes are proportional to the weights, and at least 1."""
    share = np.ones(n_classes) if weights is None else np.asarray(weights)
    fits = share.shape == (n_classes,) and share.dtype.kind in "iuf"
    fits = fits and bool(np.all((share > 0) & (share < np.inf)))
    _require(fits, "weights", f"{n_classes} positive numbers, one per class", weights)
    ends = np.rint(n_samples * np.cumsum(share / share.sum())).astype(np.intp)
    beyond_one_each = np.clip(ends - np.arange(1, n_classes + 1), 0, n_samples - n_classes)
    sizes = 1 + np.diff(np.maximum.accumulate(beyond_one_each), prepend=0)
    return rng.permutation(np.repeat(np.arange(n_classes), sizes))


def _draw_latent(
    target: npt.NDArray[np.intp],
    n_classes: int,
    n_latent: int,
    separation: float,
    dtype: np.dtype[Any],
    rng: np.random.Generator,
) -> npt.NDArray[Any]:
    """Latent positions: unit Gaussians around a few random centres per class."""
    centres = rng.standard_normal((n_classes * _CLUSTERS_PER_CLASS, n_latent), dtype=dtype)
    centres *= dtype.type(separation)
    cluster = target * _CLUSTERS_PER_CLASS + rng.integers(_CLUSTERS_PER_CLASS, size=len(target))
    latent = rng.standard_normal((len(target), n_latent), dtype=dtype)
    latent += centres[cluster]
    return latent


def _draw_present(
    n_samples: int, n_views: int, missing: float, rng: np.random.Generator
) -> list[npt.NDArray[np.bool_]]:
    """Which samples have which view: each sample keeps one random view, the missing ones are drawn from the others."""
    present = np.ones((n_views, n_samples), dtype=bool)
    if missing:
        n_others = n_views - 1
        slots = rng.choice(
            n_samples * n_others, size=round(missing * n_samples * n_views), replace=False, shuffle=False
        )
        sample, other = np.divmod(slots, n_others)
        kept = rng.integers(n_views, size=n_samples)
        present[(kept[sample] + 1 + other) % n_views, sample] = False
    return list(present)


def _observe(latent: npt.NDArray[Any], n_scores: int, noise: float, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Map the latent window z of a view to 2·tanh(A z / 2) + noise·ε."""
    dtype = latent.dtype
    n_latent = latent.shape[1]
    half_map = rng.standard_normal((n_latent, n_scores), dtype=dtype) / dtype.type(2 * np.sqrt(n_latent))
    signal = latent @ half_map
    np.tanh(signal, out=signal)
    signal *= 2
    observed = rng.standard_normal(signal.shape, dtype=dtype)
    observed *= dtype.type(noise)
    observed += signal
    return observed


def _draw_words(
    scores: npt.NDArray[Any], n_words: int, present: npt.NDArray[np.bool_], rng: np.random.Generator
) -> sp.csr_array:
    """Word counts of texts with topic shares softmax(sharpness · scores); absent texts are empty.

    The length of a text is Poisson, plus one word so that no text is empty; the counts are then Poisson with rates
    length · shares · topics. Words are drawn one by one, so the cost is proportional to the number of words, and no
    dense array of shape (n_samples, n_features) is made.
    """
    n_samples = len(scores)
    shares = np.exp(_TOPIC_SHARPNESS * scores.astype(np.float64))
    frequency = 1 / np.arange(10, 10 + n_words)  # a few common words and a long tail
    topics = frequency * (1e-3 + rng.gamma(0.05, size=(_TOPICS, n_words)))
    mean_length = max(_MIN_MEAN_WORDS, _WORDS_PER_FEATURE * n_words)
    lengths = np.where(present, 1 + rng.poisson(mean_length - 1, size=n_samples), 0)
    text = np.repeat(np.arange(n_samples), lengths)
    word = _draw_columns(topics, _draw_columns(shares, text, rng), rng)
    ones = np.ones(len(text), dtype=scores.dtype)
    where = (text.astype(np.int32), word.astype(np.int32))  # many libraries expect 32-bit indices
    return sp.coo_array((ones, where), shape=(n_samples, n_words)).tocsr()


def _draw_columns(
    weights: npt.NDArray[np.float64], rows: npt.NDArray[np.intp], rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw a column for each entry of `rows`, with probability proportional to that row of `weights`.

    Shifted by i, the cumulative shares of all rows i form one ascending list, so that a single search serves all.
    """
    n_rows, n_columns = weights.shape
    steps = np.cumsum(weights, axis=1)
    steps /= steps[:, -1:]
    steps += np.arange(n_rows)[:, None]
    found = np.searchsorted(steps.ravel(), rows + rng.random(len(rows))) - rows * n_columns
    return np.clip(found, 0, n_columns - 1)  # a draw of almost 0 or 1 can be rounded into the next row


def _hold_out_labels(
    target: npt.NDArray[np.intp], labelled: float | int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Keep the labels of a share, or a number, of every class; −1 for the others."""
    sizes = np.bincount(target)
    if _is_count(labelled):
        if labelled > sizes.min():
            raise ValueError(f"labelled must be at most {sizes.min()}, the size of the smallest class, got {labelled}.")
        quota = np.full(len(sizes), labelled)
    elif isinstance(labelled, Real) and not isinstance(labelled, Integral) and 0 < labelled <= 1:
        quota = np.maximum(1, np.rint(labelled * sizes))
    else:
        raise ValueError(f"labelled must be a share in (0, 1] (float) or a positive int per class, got {labelled!r}.")
    order = np.lexsort((rng.random(len(target)), target))  # by class, in random order within a class
    rank = np.empty_like(target)
    rank[order] = np.arange(len(target)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.where(rank < quota[target], target, -1)


def _generator(
    random_state: int | np.random.RandomState | np.random.Generator | None,
) -> np.random.Generator:
    """Make a Generator from a random_state of scikit-learn; a Generator is returned unchanged."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


def _is_int(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_count(value: object) -> bool:
    return _is_int(value, least=1)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    if not holds:
        raise ValueError(f"{name} must be {expected}, got {value!r}.")


def _check_counts(n_samples: int, n_views: int, n_classes: int, n_latent: int, noise_views: int) -> None:
    for name, value in (("n_views", n_views), ("n_classes", n_classes), ("n_latent", n_latent)):
        _require(_is_count(value), name, "a positive int", value)
    enough = _is_int(n_samples, least=n_classes)
    _require(enough, "n_samples", f"an int of at least n_classes={n_classes}", n_samples)
    fits = _is_int(noise_views, least=0) and noise_views < n_views
    _require(fits, "noise_views", f"an int from 0 to {n_views - 1}, less than n_views", noise_views)


def _check_reals(noise: float, separation: float, missing: float, n_views: int) -> None:
    for name, value in (("noise", noise), ("separation", separation)):
        _require(isinstance(value, Real) and 0 <= value < np.inf, name, "a finite number of at least 0", value)
    most = 1 - 1 / n_views
    fits = isinstance(missing, Real) and 0 <= missing <= most
    _require(fits, "missing", f"a share from 0 to {most:.3g}, so that every sample keeps a view", missing)


def _check_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    expected = "float32 or float64"
    try:
        resolved = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"dtype must be {expected}, got {dtype!r}.") from error
    _require(resolved in (np.float32, np.float64), "dtype", expected, dtype)
    return resolved


def _one_per_view(name: str, value: Any, n_views: int, is_valid: Callable[[object], bool], expected: str) -> list[Any]:
    """Return a list of one value per view, given one for all or a sequence."""
    values = [value] * n_views if np.ndim(value) == 0 else list(value)
    fits = len(values) == n_views and all(is_valid(entry) for entry in values)
    _require(fits, name, f"{expected}, or a sequence with one for each of {n_views} views", value)
    return values
