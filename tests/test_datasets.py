"""The digits in several views, and the synthetic data."""

import numpy as np
import pytest
from scipy import ndimage
from scipy import sparse as sp
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from lmssc.datasets import digits as digits_module
from lmssc.datasets import load_digits_views, make_multiview
from lmssc.datasets.synthetic import _draw_columns


def nearest_neighbour_accuracy(X, y):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    classifier = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
    return cross_val_score(classifier, X, y, cv=folds).mean()


def few_label_accuracy(X, data):
    known = data.y >= 0
    classifier = KNeighborsClassifier(1).fit(X[known], data.y[known])
    return classifier.score(X[~known], data.target[~known])


# ---------------------------------------------------------------- digits


@pytest.fixture(scope="module")
def digits():
    return load_digits_views()


def column(digits, name):
    """A measure of the morphology view, by its place in the docstring's list."""
    names = ["ink", "area", "components", "holes", "perimeter", "height", "width", "y", "x", "yy", "xx", "yx"]
    return digits.views[digits.view_names.index("morphology")][:, [*names, "eccentricity"].index(name)]


def test_digits_are_those_of_scikit_learn(digits):
    original = load_digits()
    np.testing.assert_array_equal(digits.images, original.images)
    np.testing.assert_array_equal(digits.target, original.target)
    assert digits.target_names == [str(d) for d in range(10)]
    assert "sklearn.datasets.load_digits" in digits.DESCR
    for name, view in zip(digits.view_names, digits.views, strict=True):
        assert f"- {name} ({view.shape[1]}): " in digits.DESCR


def test_digits_views_are_clean(digits):
    assert len(digits.views) == len(set(digits.view_names)) == 6
    for view in digits.views:
        assert view.shape[0] == 1797
        assert view.dtype == np.float64
        assert np.isfinite(view).all()
        assert (np.ptp(view, axis=0) > 1e-6).all()
        assert len(np.unique(view, axis=1).T) == view.shape[1]  # no column twice


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("pixels", 0.96),
        ("fourier", 0.87),
        ("profiles", 0.91),
        ("gradients", 0.96),
        ("zernike", 0.86),
        ("morphology", 0.81),
    ],
)
def test_each_digits_view_knows_the_classes(digits, name, least):
    view = digits.views[digits.view_names.index(name)]
    assert nearest_neighbour_accuracy(view, digits.target) > least


def test_digits_calls_do_not_share_memory(digits):
    again = load_digits_views()
    again.views[0][:] = 0
    again.images[:] = 0
    assert digits.views[0].any()
    assert digits.images.any()


def test_fourier_keeps_all_frequencies_once(digits):
    full = np.abs(np.fft.fft2(digits.images[0])).round(6)
    kept = digits_module.fourier(digits.images[:1])[0].round(6)
    np.testing.assert_array_equal(np.unique(full), np.unique(kept))
    shifted = np.roll(digits.images, (2, 3), axis=(1, 2))
    np.testing.assert_allclose(digits_module.fourier(shifted), digits_module.fourier(digits.images))


def test_profiles_of_one_stroke():
    image = np.zeros((1, 8, 8))
    image[0, 2:5, 3] = 16  # three pixels, one below the other
    row_ink, column_ink, left, right, top, bottom = np.split(digits_module.profiles(image)[0], [8, 16, 24, 32, 39])
    assert row_ink.tolist() == [0, 0, 16, 16, 16, 0, 0, 0]
    assert column_ink.tolist() == [0, 0, 0, 48, 0, 0, 0, 0]
    assert left.tolist() == [8, 8, 3, 3, 3, 8, 8, 8]
    assert right.tolist() == [8, 8, 4, 4, 4, 8, 8, 8]
    assert top.tolist() == [8, 8, 2, 8, 8, 8, 8]  # columns 1 to 7
    assert bottom.tolist() == [8, 8, 3, 8, 8, 8, 8]


def test_gradients_point_from_paper_to_ink():
    image = np.zeros((1, 8, 8))
    image[0, :, 4:] = 16  # the left edge of the ink, seen by the cells in the middle
    histograms = digits_module.gradients(image).reshape(4, 4, 8)
    np.testing.assert_array_equal(histograms[1:3, 1].argmax(axis=-1), 0)  # towards growing x
    turned = digits_module.gradients(np.rot90(image, -1, axes=(1, 2))).reshape(4, 4, 8)
    np.testing.assert_array_equal(turned[1, 1:3].argmax(axis=-1), 2)  # towards growing y


def test_gradients_turn_with_the_image(digits):
    images = digits.images[:50]
    histograms = digits_module.gradients(images).reshape(-1, 4, 4, 8)
    turned = digits_module.gradients(np.rot90(images, -1, axes=(1, 2))).reshape(-1, 4, 4, 8)
    expected = np.roll(np.rot90(histograms, -1, axes=(1, 2)), 2, axis=-1)
    np.testing.assert_allclose(turned, expected, atol=1e-9)


def test_zernike_magnitudes_do_not_turn(digits):
    turned = np.rot90(digits.images, axes=(1, 2))
    moments = digits_module.zernike(digits.images)
    np.testing.assert_allclose(digits_module.zernike(turned), moments, atol=1e-9)
    mirrored = digits.images[:, :, ::-1]
    np.testing.assert_allclose(digits_module.zernike(mirrored), moments, atol=1e-9)
    pushed = np.roll(digits.images, 1, axis=2)
    assert np.abs(digits_module.zernike(pushed) - moments).max() > 0.1  # a shift does matter


def test_radial_polynomials_have_their_known_forms():
    rho = np.linspace(0, 1, 7)
    np.testing.assert_allclose(digits_module._radial(4, 0, rho), 6 * rho**4 - 6 * rho**2 + 1)
    np.testing.assert_allclose(digits_module._radial(5, 1, rho), 10 * rho**5 - 12 * rho**3 + 3 * rho)
    np.testing.assert_allclose(digits_module._radial(8, 8, rho), rho**8)


def euler_number_from_quads(ink):
    """Gray's count of 2 × 2 patterns, for ink that touches by corners."""
    q = np.pad(ink, 1).astype(int)
    quads = np.stack([q[:-1, :-1], q[:-1, 1:], q[1:, :-1], q[1:, 1:]])
    n_ink = quads.sum(axis=0)
    diagonal = (n_ink == 2) & (quads[0] == quads[3])
    return (np.sum(n_ink == 1) - np.sum(n_ink == 3) - 2 * np.sum(diagonal)) // 4


def test_components_minus_holes_is_the_euler_number(digits):
    euler = column(digits, "components") - column(digits, "holes")
    expected = [euler_number_from_quads(image >= digits_module._INK) for image in digits.images]
    np.testing.assert_array_equal(euler, expected)


def test_holes_tell_digits_apart(digits):
    holes = column(digits, "holes")
    counts = {digit: np.bincount(holes[digits.target == digit].astype(int)) for digit in (0, 1)}
    assert counts[0].argmax() == 1
    assert counts[1][0] > 0.95 * counts[1].sum()
    assert holes[digits.target == 8].mean() > holes[digits.target == 0].mean()


def test_morphology_of_a_known_shape():
    image = np.zeros((1, 8, 8))
    image[0, 1:4, 1:6] = 8
    image[0, 2, 3] = 0  # a frame of 3 × 5 pixels with one hole
    image[0, 6, 7] = 8  # and a dot
    ink, area, pieces, holes, perimeter, height, width = digits_module.morphology(image)[0, :7]
    assert (ink, area, pieces, holes) == (15 * 8, 15, 2, 1)
    assert perimeter == 2 * (3 + 5) + 4 + 4
    assert (height, width) == (4, 6)  # rows and columns that hold ink


def test_second_moments_match_a_weighted_covariance(digits):
    image = digits.images[7]
    y, x = np.indices(image.shape)
    covariance = np.cov(y.ravel(), x.ravel(), aweights=image.ravel(), ddof=0)
    small, large = np.linalg.eigvalsh(covariance)
    measured = [column(digits, name)[7] for name in ("y", "x", "yy", "xx", "yx", "eccentricity")]
    expected = [*ndimage.center_of_mass(image), covariance[0, 0], covariance[1, 1], covariance[0, 1]]
    np.testing.assert_allclose(measured, [*expected, np.sqrt(1 - small / large)])


# ---------------------------------------------------------------- synthetic data


def test_shapes_names_and_dtype():
    data = make_multiview(90, 4, [5, 7, 900, 11], 4, noise_views=1, sparse=[False, False, True, False])
    assert [view.shape for view in data.views] == [(90, 5), (90, 7), (90, 900), (90, 11)]
    assert [sp.issparse(view) for view in data.views] == [False, False, True, False]
    assert data.view_names == ["view0", "view1", "view2", "noise0"]
    assert len(data.target_names) == 4
    assert data.present is None
    assert "y" not in data
    assert "noise0 (11 features)" in data.DESCR
    assert all(np.isfinite(view).all() for view in data.views if not sp.issparse(view))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "float32"])
def test_all_views_have_the_dtype_asked_for(dtype):
    data = make_multiview(50, 3, sparse=[False, True, False], noise_views=1, missing=0.2, dtype=dtype)
    assert [view.dtype for view in data.views] == [np.dtype(dtype)] * 3


def test_same_seed_same_bits():
    arguments = {"sparse": [False, True, True], "missing": 0.2, "noise_views": 1, "labelled": 0.1}
    one, two = (make_multiview(**arguments, random_state=3) for _ in range(2))
    other = make_multiview(**arguments, random_state=4)
    np.testing.assert_array_equal(one.views[0], two.views[0])
    for v in (1, 2):
        assert (one.views[v] != two.views[v]).nnz == 0
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.present, two.present)
    assert not np.array_equal(one.views[0], other.views[0], equal_nan=True)
    assert not np.array_equal(one.target, other.target)


@pytest.mark.parametrize("make_state", [np.random.RandomState, np.random.default_rng])
def test_random_state_objects_move_on(make_state):
    state = make_state(0)
    first, second = make_multiview(random_state=state), make_multiview(random_state=state)
    assert not np.array_equal(first.views[0], second.views[0])
    np.testing.assert_array_equal(first.views[0], make_multiview(random_state=make_state(0)).views[0])


def test_an_int_is_the_random_state_with_that_seed():
    by_int, by_state = (make_multiview(random_state=state) for state in (5, np.random.RandomState(5)))
    np.testing.assert_array_equal(by_int.views[0], by_state.views[0])


def test_labels_do_not_change_the_data():
    bare, labelled = (make_multiview(labelled=rate, random_state=0) for rate in (None, 0.2))
    np.testing.assert_array_equal(bare.views[2], labelled.views[2])


def test_rows_are_in_random_order():
    target = make_multiview(3000, random_state=0).target
    assert np.mean(target[1:] == target[:-1]) == pytest.approx(1 / 3, abs=0.05)
    assert abs(np.corrcoef(target, np.arange(3000))[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("n_samples", "weights", "sizes"),
    [
        (300, None, [100, 100, 100]),
        (300, [8, 1, 1], [240, 30, 30]),
        (10, [0.98, 0.01, 0.01], [8, 1, 1]),
        (10, [0.01, 0.01, 0.98], [1, 1, 8]),
        (3, [5, 1, 1], [1, 1, 1]),
    ],
)
def test_class_sizes_follow_the_weights(n_samples, weights, sizes):
    target = make_multiview(n_samples, weights=weights, random_state=0).target
    assert np.bincount(target).tolist() == sizes


def test_defaults_are_neither_trivial_nor_hopeless():
    draws = [make_multiview(labelled=0.1, random_state=seed) for seed in range(10)]
    together = np.mean([few_label_accuracy(np.hstack(data.views), data) for data in draws])
    alone = np.mean([few_label_accuracy(view, data) for data in draws for view in data.views])
    assert 0.75 < together < 0.9
    assert 0.5 < alone < together - 0.1  # the views complement each other


def test_separation_and_noise_set_the_difficulty():
    def accuracy(**arguments):
        draws = [make_multiview(labelled=0.1, random_state=seed, **arguments) for seed in range(5)]
        return np.mean([few_label_accuracy(np.hstack(data.views), data) for data in draws])

    default = accuracy()
    assert accuracy(separation=4) > default + 0.05
    assert accuracy(noise=4) < default - 0.15
    assert accuracy(separation=0) < 0.42  # chance is 1/3


@pytest.mark.parametrize("sparse", [False, True])
def test_noise_views_know_nothing_and_the_others_do(sparse):
    data = make_multiview(1200, 3, 200, noise_views=1, sparse=sparse, random_state=0)
    views = [normalize(view) if sparse else view for view in data.views]
    accuracies = [cross_val_score(KNeighborsClassifier(15), view, data.target).mean() for view in views]
    assert min(accuracies[:2]) > 0.45
    assert accuracies[2] == pytest.approx(1 / 3, abs=0.05)


def test_noise_views_are_not_constant_without_noise():
    noise = make_multiview(noise=0, noise_views=1, random_state=0).views[-1]
    np.testing.assert_allclose(noise.std(axis=0), 1, atol=0.2)


@pytest.mark.parametrize("n_features", [1000, 5000])
def test_sparse_views_are_word_counts(n_features):
    view = make_multiview(400, 1, n_features, sparse=True, random_state=0).views[0]
    assert isinstance(view, sp.csr_array)
    assert view.has_canonical_format
    assert view.indices.dtype == np.int32
    assert 0.01 < view.nnz / np.prod(view.shape) < 0.05
    assert view.data.min() >= 1
    assert view.data.max() > 1
    np.testing.assert_array_equal(view.data, np.round(view.data))
    assert np.diff(view.indptr).min() > 0  # no empty text


def test_columns_are_drawn_in_proportion_to_their_weights():
    weights = np.array([[1.0, 3.0, 0.0, 4.0], [0.0, 0.0, 5.0, 0.0]])
    rows = np.repeat([0, 1], [20000, 500])
    drawn = _draw_columns(weights, rows, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(drawn[:20000], minlength=4) / 20000, [1 / 8, 3 / 8, 0, 1 / 2], atol=0.02)
    assert (drawn[20000:] == 2).all()


@pytest.mark.parametrize("missing", [0.1, 0.4, 2 / 3])
def test_missing_views(missing):
    data = make_multiview(1000, 3, 30, missing=missing, sparse=[False, True, False], random_state=0)
    present = np.array(data.present)
    assert present.dtype == bool
    assert np.sum(~present) == round(missing * 3000)
    assert present.any(axis=0).all()
    np.testing.assert_allclose(1 - present.mean(axis=1), missing, atol=0.05)  # all views alike
    for v in (0, 2):
        np.testing.assert_array_equal(np.isnan(data.views[v]).all(axis=1), ~present[v])
        np.testing.assert_array_equal(np.isnan(data.views[v]).any(axis=1), ~present[v])
    np.testing.assert_array_equal(np.diff(data.views[1].indptr) > 0, present[1])


@pytest.mark.parametrize(
    ("labelled", "counts"),
    [(0.1, [24, 3, 3]), (0.01, [2, 1, 1]), (1.0, [240, 30, 30]), (1, [1, 1, 1]), (7, [7, 7, 7])],
)
def test_labels_are_stratified(labelled, counts):
    data = make_multiview(300, weights=[8, 1, 1], labelled=labelled, random_state=0)
    known = data.y != -1
    np.testing.assert_array_equal(data.y[known], data.target[known])
    assert np.bincount(data.y[known]).tolist() == counts


def test_labelled_samples_are_drawn_at_random():
    known = [make_multiview(3000, labelled=0.1, random_state=seed).y >= 0 for seed in (0, 1)]
    assert np.flatnonzero(known[0]).mean() == pytest.approx(1500, rel=0.1)
    assert np.sum(known[0] & known[1]) == pytest.approx(30, abs=20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 2}, "n_samples must be an int of at least n_classes=3, got 2"),
        ({"n_samples": 30.0}, "n_samples must be an int"),
        ({"n_views": 0}, "n_views must be a positive int, got 0"),
        ({"n_classes": True}, "n_classes must be a positive int"),
        ({"n_latent": 0}, "n_latent must be a positive int"),
        ({"n_features": 0}, "n_features must be a positive int"),
        (
            {"n_features": [5, 5]},
            "n_features must be a positive int, or a sequence with one for each of 3 views",
        ),
        ({"n_features": [5, 5, 0.5]}, "n_features must be a positive int"),
        ({"noise": -1}, "noise must be a finite number of at least 0, got -1"),
        ({"noise": np.nan}, "noise must be a finite number"),
        ({"separation": "big"}, "separation must be a finite number"),
        ({"noise_views": 3}, "noise_views must be an int from 0 to 2"),
        ({"noise_views": "one"}, "noise_views must be an int from 0 to 2"),
        ({"missing": 0.7}, "missing must be a share from 0 to 0.667"),
        ({"n_views": 1, "missing": 0.1}, "missing must be a share from 0 to 0,"),
        ({"sparse": "yes"}, "sparse must be a bool"),
        ({"sparse": [True]}, "sparse must be a bool, or a sequence with one for each of 3 views"),
        ({"weights": [1, 2]}, "weights must be 3 positive numbers"),
        ({"weights": [1, 2, 0]}, "weights must be 3 positive numbers"),
        ({"weights": "abc"}, "weights must be 3 positive numbers"),
        ({"labelled": 0}, "labelled must be a share in"),
        ({"labelled": 1.5}, "labelled must be a share in"),
        ({"labelled": True}, "labelled must be a share in"),
        ({"labelled": 101}, "labelled must be at most 100, the size of the smallest class"),
        ({"dtype": int}, "dtype must be float32 or float64"),
        ({"dtype": "float17"}, "dtype must be float32 or float64"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_multiview(**arguments)


def test_smallest_data():
    data = make_multiview(1, 1, 1, 1, n_latent=1, labelled=1, random_state=0)
    assert data.views[0].shape == (1, 1)
    assert data.y.tolist() == [0]


def test_one_feature_and_one_word():
    data = make_multiview(20, 2, 1, sparse=[False, True], random_state=0)
    assert data.views[1].toarray().min() >= 1
