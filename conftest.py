"""What holds for all tests and examples: they have no network, and the paper's data only where they ask for it."""

import os
import signal
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from no_network import sitecustomize

_HERE = Path(__file__).resolve().parent
# Folder that may have the paper's data.
_DATA = Path(os.environ.get("LMSSC_DATA") or _HERE.parent / "shared" / "data")

# Importing it has blocked the network here; this blocks it in every Python that a test starts.
_BLOCK = os.path.dirname(sitecustomize.__file__)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_BLOCK, os.environ.get("PYTHONPATH")]))
collect_ignore = [_BLOCK]  # a module of this name may be there already

LONG = {"test_cluster.py", "test_docs.py", "test_killed.py", "test_memmap.py", "test_studio_browser.py"}

# A shell that starts the tests in the background has them ignore Ctrl-C, which some tests raise.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_data():
    """Whoever needs the paper's data must say so: all other tests run as on a machine that has none."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.delenv("LMSSC_DATA", raising=False)
        yield


@pytest.fixture
def paper_file(monkeypatch, tmp_path_factory):
    """Give the path of a file of the paper's data by the name of the data set, or skip the test.

    $LMSSC_DATA is a folder that has no other files than those: a test that does not ask for all that it uses fails on
    a machine that has the data, not only on one that has none.
    """
    from lmssc.datasets.registry import FILES

    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("LMSSC_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))

    def path_of(name):
        file = FILES[name].filename
        if not (_DATA / file).exists():
            pytest.skip(f"needs {file}, which is not in {_DATA} (set LMSSC_DATA to a folder that has it)")
        if name == "bbc" and not find_spec("h5py"):
            pytest.skip("needs h5py, to read BBC")
        for wanted in (file, "README.md"):
            if (_DATA / wanted).exists() and not (folder / wanted).exists():
                (folder / wanted).symlink_to((_DATA / wanted).resolve())
        return folder / file

    return path_of


@pytest.fixture(autouse=True)
def _data_of_the_loaders(request):
    """The example in the docstring of a loader loads its data set; other examples there may load any."""
    if request.path.name == "loaders.py":
        from lmssc.datasets.registry import FILES

        own = request.node.name.rpartition("load_")[2]
        for name in [own] if own in FILES else FILES:
            request.getfixturevalue("paper_file")(name)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    """Mark what uses the paper's data, for `-m data`; start with files whose tests take longest or wait.

    Workers share out what is left at the end, so the last tests should be short ones.
    """
    items.sort(key=lambda item: item.path.name not in LONG)
    for item in items:
        if item.path.name == "loaders.py" or "paper_file" in item.fixturenames:
            item.add_marker("data")
