"""Who may import whom: each layer only what comes earlier in the list."""

import ast
from functools import cache
from pathlib import Path

import pytest

import lmssc

SOURCE = Path(lmssc.__file__).parent
# In the order of CONTRIBUTING. A layer may import itself and what is named; `metrics` is a layer of one file.
MAY_IMPORT = {
    "numerics": set(),
    "data": {"numerics"},
    "core": {"data", "numerics"},
    "persistence": {"data"},
    "cluster": {"core", "data", "persistence", "numerics"},
    "estimators": {"cluster", "core", "data", "persistence", "numerics"},
}
MAY_IMPORT["metrics"] = {*MAY_IMPORT, "numerics"}
for layer in (
    "model_selection",
    "io",
    "datasets",
    "plotting",
    "audit",
    "evaluation",
    "report",
    "studio",
    "paper",
    "cli",
):
    MAY_IMPORT[layer] = {*MAY_IMPORT}
# Top-level files that belong to no layer. `__init__` and `__main__` give the public names; `_optional` imports nothing.
FLAT = {"__init__", "__main__", "_optional"}
# Imports of a later layer, when they are called: `clf.report(path)` is a method for convenience, and `predict` takes
# the data frame that the views were made of.
UPWARD = {("estimators/base.py", "report"), ("estimators/origin.py", "io")}


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def layer_of(module):
    """`lmssc.core.graph` → "core"."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imported(tree):
    """Names of the modules of lmssc that a file imports, wherever in it, and by string too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "lmssc")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            if node.module == "lmssc":
                yield from (f"lmssc.{name.name}" for name in node.names)
            elif (node.module or "").startswith("lmssc."):
                yield node.module
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            yield from (part.value for part in node.args if isinstance(part, ast.Constant) and "lmssc" in part.value)


def crossings(source):
    """Imports of a later layer, each as a line with the two names."""
    found = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        own = path.relative_to(source).parts[0].removesuffix(".py")
        if own in FLAT:
            continue
        for module in imported(parsed(path)):
            other = layer_of(module)
            public = other not in MAY_IMPORT and other not in FLAT
            if public and own == "cli":
                continue
            if public:  # a name of `lmssc` itself, which imports from everywhere
                other = f"the package ({module})"
            if other not in {own, "_optional", *MAY_IMPORT[own]} and (name, other) not in UPWARD:
                found.append(f"{name} imports {module}: {own} may not import {other}")
    return found


def test_no_layer_imports_what_is_above_it():
    assert crossings(SOURCE) == []


@pytest.mark.parametrize(
    "line",
    [
        "from lmssc.estimators.lmssc import LMSSC",
        "import lmssc.report",
        "from lmssc import LMSSC",
        "def f():\n    from lmssc.core.graph import laplacian",
        "import importlib\nimportlib.import_module('lmssc.core.graph')",
    ],
)
def test_an_import_of_a_later_layer_is_found(tmp_path, line):
    (tmp_path / "numerics").mkdir()
    (tmp_path / "numerics" / "wrong.py").write_text(line)
    (crossing,) = crossings(tmp_path)
    assert "numerics/wrong.py imports lmssc" in crossing


def test_every_module_has_a_room_and_a_name_of_its_own():
    flat = {path.stem for path in SOURCE.glob("*.py")}
    assert flat <= FLAT | {"metrics"}
    names = [path.stem for path in SOURCE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_no_two_public_classes_share_a_name():
    seen = {}
    for path in SOURCE.rglob("*.py"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                seen.setdefault(node.name, []).append(path.relative_to(SOURCE).as_posix())
    assert {name: places for name, places in seen.items() if len(places) > 1} == {}
