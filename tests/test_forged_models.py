"""Model files that somebody made up, with a right checksum: refused when they are read, or as good as any other."""

import copy
import dataclasses
import json
import warnings

import numpy as np
import pytest
from scipy import sparse

import lmssc
from lmssc.cli import main
from lmssc.datasets import make_multiview
from lmssc.estimators.serialization import describe_model, read_model, save
from lmssc.persistence.model_file import ModelFileError
from peak_memory import run_and_measure
from small_files import make_problem, view_text
from test_persistence import read_parts, write_parts

N = 40
DATA = make_multiview(N, n_views=2, n_features=[4, 3], labelled=0.4, random_state=0)
VIEWS = {"a": DATA.views[0], "b": np.where(DATA.views[1] < 0.8, 0, DATA.views[1]).round()}
PRESENT = {"a": None, "b": np.arange(N) % 7 > 0}
NEW = {"a": VIEWS["a"] + 0.01, "b": VIEWS["b"] + 1}
Y = np.array(["ant", "bee", "cow", None], dtype=object)[DATA.y]
SPARSE = {"a": VIEWS["a"], "b": sparse.csr_array(VIEWS["b"])}
MODELS = {
    "LMSSC": lambda: lmssc.LMSSC(max_iter=2, n_components=3).fit(VIEWS, Y, PRESENT),
    "LMSSC, directions": lambda: lmssc.LMSSC(max_iter=2, compare_by="direction", alpha="mean").fit(SPARSE, Y, PRESENT),
    "GFHF": lambda: lmssc.GFHF().fit(SPARSE, Y, PRESENT),
    "GFHF, gaussian": lambda: lmssc.GFHF(graph="gaussian", view="b").fit(VIEWS, Y),
    "AMGL": lambda: lmssc.AMGL(max_iter=3, scaling="zscore").fit(SPARSE, Y, PRESENT),
    "MLAN": lambda: lmssc.MLAN(max_iter=3).fit(VIEWS, Y, PRESENT),
    "LMSSCCV": lambda: lmssc.LMSSCCV(
        estimator=lmssc.LMSSC(max_iter=2), param_grid={"n_neighbors": [4, 5]}, n_repeats=1
    ).fit(VIEWS, Y),
}
TIMES = 60
JUNK = [None, 0, -1, 10**6, 1.5, float("nan"), True, "x", [], [1, 2], (1,), {}, {"a": 1}, np.zeros(3), np.zeros((0, 2))]


def children(value):
    """Parts of a value, by key."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value._asdict()
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return dict(enumerate(value))
    if hasattr(value, "get_params"):
        return dict(vars(value))
    return {}


def with_child(value, key, new):
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **{key: new})
    if isinstance(value, tuple):
        return value._replace(**{key: new})
    value = copy.copy(value)
    if hasattr(value, "get_params"):
        vars(value)[key] = new
    else:
        value[key] = new
    return value


def without_child(value, key):
    value = copy.copy(value)
    if hasattr(value, "get_params"):
        del vars(value)[key]
    elif isinstance(value, dict | list):
        del value[key]
    else:
        return with_child(value, key, None)
    return value


def forged(value, rng):
    """The value with one thing in it changed, at any depth."""
    parts = children(value)
    if parts and (hasattr(value, "get_params") or rng.uniform() < 0.7):
        key = list(parts)[rng.integers(len(parts))]
        if rng.uniform() < 0.1:
            return without_child(value, key)
        return with_child(value, key, forged(parts[key], rng))
    if isinstance(value, np.ndarray) and value.dtype != object and rng.uniform() < 0.85:
        return forged_array(value, rng)
    if sparse.issparse(value) and rng.uniform() < 0.85:
        return forged_sparse(value, rng)
    return JUNK[rng.integers(len(JUNK))]


def forged_array(array, rng):
    array = array.copy()
    changes = [
        lambda: array[:-1],
        lambda: np.concatenate([array, array[:1]]),
        lambda: array.T if array.ndim > 1 else array[:, None],
        lambda: array.ravel(),
        lambda: array[..., None],
        lambda: array[:0],
        lambda: array.astype(rng.choice(["f2", "f4", "f8", "i1", "i8", "u8", "?", "U3"])),
        lambda: np.zeros_like(array),
        lambda: array[::-1].copy(),
    ]
    if array.dtype.kind in "fiu" and array.size:
        worst = [np.nan, np.inf, -1.0, 1e300] if array.dtype.kind == "f" else [-1, len(array), 2**31 - 1]
        bad = worst[rng.integers(len(worst))]

        def spoil():
            flat = array.reshape(-1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                flat[rng.integers(len(flat))] = np.array(bad).astype(array.dtype)
            return flat.reshape(array.shape)

        changes += [spoil] * 5
    return changes[rng.integers(len(changes))]()


def forged_sparse(matrix, rng):
    matrix = matrix.copy()
    kind = rng.integers(6)
    if kind == 0:
        return matrix[:-1]
    if kind == 1:
        return matrix[:, :-1].tocsr()
    if kind == 2:
        return matrix.toarray()
    if kind == 3:
        return sparse.csr_array(matrix.shape, dtype=matrix.dtype)
    if kind == 4 and matrix.nnz:
        matrix.data[rng.integers(matrix.nnz)] = [np.nan, -1, np.inf][rng.integers(3)]
        return matrix
    matrix.indices[:] = rng.integers(0, matrix.shape[1], matrix.nnz)  # not sorted, and some twice
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)


def use(clf, about):
    """All that can be asked of a model."""
    for X, present in ((VIEWS, PRESENT), (NEW, None)):
        distributions = clf.predict_proba(X, present)
        assert distributions.shape == (N, len(clf.classes_))
        np.testing.assert_allclose(distributions.sum(axis=1), 1, atol=1e-3)
        clf.predict(X, present)
        if hasattr(getattr(clf, "best_estimator_", clf), "loadings_"):
            clf.transform(X, present)
    clf.score(VIEWS, Y)
    clf.most_uncertain(3)
    clf.most_informative(3)
    json.dumps(describe_model(clf, about))
    repr(clf)


@pytest.mark.parametrize("name", MODELS)
def test_a_forged_model_is_refused_when_it_is_read_or_answers(name, tmp_path):
    path = tmp_path / "model.lmssc"
    rng = np.random.default_rng(list(MODELS).index(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]()
    model.save(path)
    use(*read_model(path))
    n_refused = 0
    for number in range(TIMES):
        bad = forged(model, rng)
        try:
            bad.save(path)
        except Exception:  # what cannot be saved is in no file
            continue
        try:
            loaded = read_model(path)
        except ModelFileError:
            n_refused += 1
            continue
        try:
            with np.errstate(all="ignore"):
                use(*loaded)
        except Exception as error:
            pytest.fail(f"number {number}: {what_differs(model, loaded[0])} ends in {type(error).__name__}: {error}")
    assert n_refused > TIMES / 3


def what_differs(one, other, where=""):
    mine, its = children(one), children(other)
    if type(one) is type(other) and mine and set(mine) == set(its):
        for key in mine:
            found = what_differs(mine[key], its[key], f"{where}.{key}")
            if found:
                return found
        return ""
    return "" if repr(one) == repr(other) and str(one) == str(other) else f"{where}: {str(other)[:300]}"


def test_a_forged_model_ends_the_command_with_one_line(tmp_path, monkeypatch, capsys):
    """What `lmssc classify` adds, how files become views, is checked too."""
    monkeypatch.chdir(tmp_path)
    views, ids, labels = make_problem(24)
    for name, view in views.items():
        (tmp_path / f"{name}.csv").write_text(view_text(name, view, ids))
    recipes = {
        name: {"kind": "numbers", "columns": [f"{name}{i + 1}" for i in range(view.shape[1])]}
        for name, view in views.items()
    }
    model = lmssc.LMSSC(max_iter=2).fit(views, np.array([label or None for label in labels], dtype=object))
    kinds = {"a1": {"role": "number", "unit": "", "decimal": "."}, "a2": {"role": "yes/no", "levels": []}}
    recipes["a"]["kinds"] = kinds
    plain = {"id_column": None, "label_column": None, "views": recipes, "id_names": ["key"], "decimal": "."}
    model.files_ = plain
    save(model, "model.lmssc")
    call = ["predict", "model.lmssc", "a.csv", "b.csv", "--out", "out.csv", "--force"]
    assert main(call) == 0
    rng = np.random.default_rng(0)
    codes = []
    for _ in range(60):
        model.files_ = forged(plain, rng)
        save(model, "model.lmssc")
        codes.append(main(call))
        assert "Traceback" not in capsys.readouterr().err
    assert set(codes) == {0, 2}


REFERRED = {
    "codes": {"objects": {"different": ["x"], "codes": {"dtype": "<i4", "shape": [1 << 18], "order": "C"}}},
    "small codes": {"objects": {"different": ["x"], "codes": {"dtype": "|i1", "shape": [1 << 20], "order": "C"}}},
    "masked": {"masked": [{"array": {"dtype": "|i1", "shape": [1 << 20], "order": "C"}}] * 2},
    "arrays": {"array": {"dtype": "|i1", "shape": [1 << 20], "order": "C"}},
}
# Far less memory than the files ask for, so that a failure does not end the machine.
LOAD = """
import resource, sys, lmssc
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
for path in sys.argv[1:]:
    try:
        lmssc.load(path)
    except ValueError as error:
        print(error)
    else:
        print("loaded")
"""


def put_block(tree, number):
    """The tree with the number of a block in every array."""
    if isinstance(tree, list):
        return [put_block(part, number) for part in tree]
    if not isinstance(tree, dict):
        return tree
    filled = {key: put_block(part, number) for key, part in tree.items()}
    return {"block": number, **filled} if "dtype" in tree else filled


def test_a_block_that_is_referred_to_many_times_takes_memory_once(tmp_path):
    """2 MB asked for 32 GB."""
    model, paths = tmp_path / "model.lmssc", []
    MODELS["GFHF, gaussian"]().save(model)
    for kind, tree in REFERRED.items():
        for overlapping in (False, True):
            header, blocks = read_parts(model)
            first, count = len(header["blocks"]), 4000
            header["blocks"] += [[len(blocks), 1 << 20]] * (count if overlapping else 1)
            numbers = [first + (i if overlapping else 0) for i in range(count)]
            header["model"]["fitted"]["_mine"] = [put_block(tree, number) for number in numbers]
            paths.append(tmp_path / f"{kind}, {overlapping}.lmssc")
            write_parts(paths[-1], header, blocks + bytes(1 << 20))
            assert paths[-1].stat().st_size < 8 << 20
    messages, mebibytes = run_and_measure(LOAD, *map(str, paths))
    refused = ["cannot be read as a model" in message for message in messages.splitlines()]
    assert refused == [path.name != "arrays, False.lmssc" for path in paths]  # views of one block take no memory
    assert mebibytes < 500


@pytest.mark.parametrize(
    "bad",
    [
        np.full((N, 3), N, np.int32),
        np.full((N, 3), -1, np.int32),
        np.zeros((N - 1, 3), np.int32),
        np.zeros((N, 3)),
        np.zeros(N, np.int32),
        np.zeros((N, 0), np.int32),
        None,
    ],
)
def test_candidates_are_samples_of_the_model(bad, tmp_path):
    clf = MODELS["LMSSC"]()
    clf._candidates = np.zeros((len(clf._order.samples), 3), np.int32)
    save(clf, tmp_path / "good.lmssc")
    assert (lmssc.load(tmp_path / "good.lmssc")._candidates == 0).all()
    clf._candidates = bad
    save(clf, tmp_path / "bad.lmssc")
    with pytest.raises(ModelFileError):
        lmssc.load(tmp_path / "bad.lmssc")
