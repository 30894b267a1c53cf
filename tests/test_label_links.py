"""Links that were made from the labels, mixed with others, do not decide how much the links count."""

import numpy as np
import pytest
from scipy import sparse

from lmssc import LMSSC, Graph
from lmssc.core.label_links import has_links_from_labels, without_links_among
from lmssc.core.targets import Targets


def clusters(seed=0, n=300):
    """Features, target, labels of a fifteenth, and links at random."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 10)) + rng.normal(size=(3, 10))[target]
    y = np.where(rng.permutation(n) < n // 10, target, -1)
    return X, target, y, rng


def same_class(y):
    return (y[:, None] == y) & (y >= 0) & ~np.eye(len(y), dtype=bool)


def test_links_from_labels_among_random_ones_do_no_harm():
    X, _, y, rng = clusters()
    anyone = rng.random((300, 300)) < 0.015
    plain = LMSSC(max_iter=2).fit({"x": X}, y)
    with (
        pytest.warns(UserWarning, match="the links of 'g' among labelled samples are not used"),
        pytest.warns(UserWarning, match="the links of 'g' are not used"),
    ):
        linked = LMSSC(max_iter=2).fit({"x": X, "g": Graph(anyone | same_class(y))}, y)
    assert linked.link_weights_ == {"g": 0.0}
    np.testing.assert_array_equal(linked.label_distributions_, plain.label_distributions_)


def test_links_from_labels_leave_other_links_as_they_are():
    """The same answers as from the other links alone, without those among labelled samples."""
    X, target, y, rng = clusters()
    honest = rng.random((300, 300)) < np.where(target[:, None] == target, 0.03, 0.003)
    across = without_links_among(sparse.csr_array(honest, dtype=float), y >= 0)
    alone = LMSSC(max_iter=2).fit({"x": X, "g": Graph(across)}, y)
    with pytest.warns(UserWarning, match="as if links were made from the labels"):
        mixed = LMSSC(max_iter=2).fit({"x": X, "g": Graph(honest | same_class(y))}, y)
    assert mixed.link_weights_ == alone.link_weights_ != {"g": 0.0}
    np.testing.assert_allclose(mixed.label_distributions_, alone.label_distributions_, atol=1e-6)


@pytest.mark.parametrize("stored", ["one direction", "both directions"])
def test_which_links_are_doubted(stored):
    for seed in range(10):
        _, target, y, rng = clusters(seed)
        targets = Targets.from_codes(y, 3)
        honest = np.triu(rng.random((300, 300)) < np.where(target[:, None] == target, 0.06, 0.003))
        made = np.triu(same_class(y))
        for links, doubted in ((honest, False), (honest | made, True), (made, False)):
            both = links if stored == "one direction" else links | links.T
            assert has_links_from_labels(sparse.csr_array(both, dtype=float), targets) == doubted


def test_few_links_or_no_unlabelled_samples_are_no_reason_to_doubt():
    y = np.repeat([0, 1, -1], [4, 4, 92])
    made = sparse.csr_array(same_class(y), dtype=float)  # 12 links
    assert not has_links_from_labels(made, Targets.from_codes(y, 2))
    known = np.repeat([0, 1], 20)
    assert not has_links_from_labels(sparse.csr_array(same_class(known), dtype=float), Targets.from_codes(known, 2))
