"""The data files: what is read from them, and what becomes of damaged, missing and half-downloaded ones."""

import errno
import hashlib
import io
import os
import socket
import subprocess
import sys
import threading
from functools import cache as remember
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import ndimage
from scipy.io import loadmat, savemat
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from lmssc import datasets
from lmssc.cli import main
from lmssc.datasets import DataFileError, load
from lmssc.datasets.catalogue import DATASET_NAMES, FACTS, describe
from lmssc.datasets.fetch import fetch, find
from lmssc.datasets.registry import FILES, DataFile

# As the public sources and the paper describe the data; the sums and counts are of the files, by other programs.
KNOWN = {
    "bbc": {"widths": [4659, 4633, 4665, 4684], "classes": [134, 11], "nnz": [7117, 6788, 6853, 6940]},
    "sonar": {"widths": [20, 20, 20], "classes": [97, 111]},
    "handwritten": {"widths": [216, 76, 64, 6, 240, 47], "classes": [200] * 10},
    "reuters": {"widths": [2000] * 5, "classes": [200] * 6, "nnz": [42018, 41601, 40769, 40936, 40534]},
    "msrc": {"widths": [24, 576, 512, 256, 254], "classes": [30] * 7},
    "bbcsport": {"widths": [3183, 3203], "classes": [62, 104, 193, 124, 61], "nnz": [39344, 38086]},
    "leaves": {"widths": [64] * 3, "classes": [16] * 100},
}
SUMS = {
    "bbc": [8656, 8086, 8310, 8383],
    "handwritten": [137492808, 20068.87677069, 6794.84662357, 12632396.77968333, 1452834, 8331824.36498435],
    "reuters": [165418.54145, 164855.551912, 160747.646228, 162050.638599, 160097.380896],
    "msrc": [429577.452767996, 15138.205487292, 5028.032731591, 42460108, 11527644],
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no $LMSSC_DATA."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(pytest.importorskip("pooch"), "os_cache", lambda project: folder)
    monkeypatch.delenv("LMSSC_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def data_home(tmp_path, monkeypatch, cache):
    """An empty folder that $LMSSC_DATA names."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("LMSSC_DATA", str(folder))
    return folder


def make_file(content, address="http://127.0.0.1:1/", filename="sonar.csv"):
    return DataFile(filename, address, hashlib.sha256(content).hexdigest(), len(content))


def write_sonar(n_rocks=97, n_mines=111, n_columns=60):
    numbers = np.random.default_rng(0).random((n_rocks + n_mines, n_columns)).round(4)
    letters = "R" * n_rocks + "M" * n_mines
    lines = [",".join([*(f"{x:.4f}" for x in row), letter]) for row, letter in zip(numbers, letters, strict=True)]
    return numbers, "\n".join(lines).encode()


def contents(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def assert_one_error_line(capsys, *words):
    captured = capsys.readouterr()
    assert captured.err.startswith("lmssc: error: ")
    assert captured.err.count("\n") == 1
    for word in words:
        assert word in captured.err


@remember
def loaded(name):
    """Load a real file once for all tests that only look."""
    return load(name, download=False)


class TestRealFiles:
    @pytest.mark.parametrize("name", list(KNOWN))
    def test_shapes_types_and_classes(self, name, paper_file):
        paper_file(name)
        data, known = loaded(name), KNOWN[name]
        assert [view.shape for view in data.views] == [(sum(known["classes"]), width) for width in known["widths"]]
        assert len(data.view_names) == len(set(data.view_names)) == len(data.views)
        np.testing.assert_array_equal(np.bincount(data.target), known["classes"])
        assert data.target.dtype == np.intp
        assert len(data.target_names) == len(known["classes"])
        for view in data.views:
            assert view.dtype == np.float64
            assert isinstance(view, sp.csr_array if "nnz" in known else np.ndarray)
        if "nnz" in known:
            assert [view.nnz for view in data.views] == known["nnz"]
            assert all(view.has_canonical_format and view.data.all() for view in data.views)
        if name in SUMS:
            np.testing.assert_allclose([view.sum() for view in data.views], SUMS[name], rtol=1e-12)

    @pytest.mark.parametrize("name", ["handwritten", "reuters", "msrc", "bbcsport", "leaves"])
    def test_matlab_values(self, name, paper_file):
        raw = loadmat(paper_file(name))
        data = loaded(name)
        np.testing.assert_array_equal(data.target + 1, raw["y"].ravel())
        for view, cell in zip(data.views, raw["X"].ravel(), strict=True):
            np.testing.assert_array_equal(view.toarray() if sp.issparse(view) else view, cell)

    def test_bbc_values(self, paper_file):
        import h5py

        with h5py.File(paper_file("bbc"), "r") as file:
            first, last = (np.array(file[file["data"][0, v]]) for v in (0, 3))
            labels = np.array(file["labels"])[0]
        data = loaded("bbc")
        np.testing.assert_array_equal(data.views[0].toarray(), first.T)
        np.testing.assert_array_equal(data.views[3].toarray(), last.T)
        np.testing.assert_array_equal(data.target, labels - 1)
        assert all((view.data == np.rint(view.data)).all() and view.min() == 0 for view in data.views)  # word counts
        assert data.target_names == ["1", "2"]

    def test_sonar_values(self, paper_file):
        numbers = np.genfromtxt(paper_file("sonar"), delimiter=",")[:, :60]
        letters = [line[-1] for line in paper_file("sonar").read_text().splitlines()]
        data = loaded("sonar")
        np.testing.assert_array_equal(np.hstack(data.views), numbers)
        assert [{"R": "rock", "M": "mine"}[letter] for letter in letters] == [data.target_names[c] for c in data.target]

    def test_handwritten_targets_are_the_digits(self, paper_file):
        """Judged by a classifier of other digits: the best naming of the classes is the one that is used."""
        paper_file("handwritten")
        data = loaded("handwritten")
        images = data.views[data.view_names.index("pixels")].reshape(-1, 16, 15)
        small = ndimage.zoom(np.pad(images, ((0, 0), (0, 0), (3, 2))), (1, 0.5, 0.4), order=1)
        others = load_digits()
        judge = KNeighborsClassifier(5).fit(others.data, others.target)
        votes = np.zeros((10, 10))
        np.add.at(votes, (data.target, judge.predict(small.reshape(2000, -1) * 16 / 6)), 1)
        np.testing.assert_array_equal(linear_sum_assignment(votes, maximize=True)[1], np.arange(10))
        assert data.target_names == list("0123456789")

    def test_views_of_handwritten_and_leaves_are_what_they_are_called(self, paper_file):
        paper_file("handwritten")
        paper_file("leaves")
        digits = dict(zip(loaded("handwritten").view_names, loaded("handwritten").views, strict=True))
        assert set(np.unique(digits["pixels"])) == set(range(7))  # averages of 2 × 3 bits, times 6
        assert set(np.unique(digits["morphology"][:, 0])) <= {0, 1, 2, 3}  # holes
        leaves = dict(zip(loaded("leaves").view_names, loaded("leaves").views, strict=True))
        for histogram in ("margin", "texture"):
            np.testing.assert_allclose(leaves[histogram].sum(axis=1), 1, atol=1e-4)
        assert (leaves["shape"].sum(axis=1) < 0.5).all()
        np.testing.assert_allclose(leaves["texture"][0], leaves["texture"][1:16].mean(axis=0), atol=1e-15)
        assert "mean of the other fifteen" in loaded("leaves").DESCR

    def test_one_document_of_reuters_is_empty_as_described(self, paper_file):
        paper_file("reuters")
        data = loaded("reuters")
        empty = [int((np.diff(view.indptr) == 0).sum()) for view in data.views]
        assert dict(zip(data.view_names, empty, strict=True)) == {
            "english": 0, "french": 0, "german": 0, "spanish": 1, "italian": 0,
        }  # fmt: skip

    def test_each_has_its_own_function(self, paper_file):
        for name in KNOWN:
            paper_file(name)
            one, other = getattr(datasets, f"load_{name}")(), loaded(name)
            assert one.view_names == other.view_names
            assert one.DESCR == other.DESCR == describe(name)

    def test_a_set_can_be_compared(self, paper_file, tmp_path, capsys):
        paper_file("bbc")
        words = ["--methods", "LMSSC", "1-NN", "--rates", "0.2", "--repeats", "1", "--out", str(tmp_path)]
        assert main(["compare", "bbc", *words]) == 0
        assert "2 runs (0 failed)" in capsys.readouterr().out


class TestDescriptions:
    @pytest.mark.parametrize("name", DATASET_NAMES)
    def test_catalogue_is_what_the_loaders_give(self, name, paper_file):
        if name != "digits":
            paper_file(name)
        data, facts = loaded(name), FACTS[name]
        assert list(facts.views) == data.view_names
        assert list(facts.views.values()) == [view.shape[1] for view in data.views]
        assert list(facts.classes) == data.target_names
        assert list(facts.classes.values()) == np.bincount(data.target).tolist()
        assert facts.n_samples == len(data.target)
        assert facts.sparse == sp.issparse(data.views[0])

    @pytest.mark.parametrize("name", list(FILES))
    def test_description_has_what_is_promised(self, name):
        text = describe(name)
        for wanted in ("Licence: ", "https://", FILES[name].sha256, "huffle", "Classes: ", "float64"):
            assert wanted in text
        assert max(len(line) for line in text.splitlines()) <= 160

    def test_bbc_tells_what_a_constant_answer_gets(self):
        assert "right for 134 of 145 samples (92.4 %)" in describe("bbc")

    @pytest.mark.parametrize("name", list(FILES))
    def test_registry_is_that_of_the_shared_folder(self, name, paper_file):
        """The table beside the data was written by others."""
        table = paper_file(name).with_name("README.md")
        if not table.exists():
            pytest.skip(f"no {table}")
        file = FILES[name]
        row = next(line for line in table.read_text().splitlines() if line.startswith(f"| {file.filename} "))
        assert file.address.removeprefix("https://") in row
        assert file.sha256 in row
        assert file.size == paper_file(name).stat().st_size

    def test_addresses_are_encrypted_and_pinned(self):
        for file in FILES.values():
            assert file.address.startswith("https://raw.githubusercontent.com/")
            assert len(file.address.split("/")[5]) == 40  # a commit, not a branch
            assert file.address.endswith("/" + file.filename)

    def test_unknown_name(self):
        with pytest.raises(ValueError, match=r"name must be one of bbc, sonar, .*, got 'hw'"):
            load("hw")


def cut(content):
    return content[: len(content) // 2]


def flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


class TestDamagedFiles:
    @pytest.mark.parametrize(
        ("damage", "found"),
        [
            (cut, "bytes instead of"),
            (lambda content: b"", "it has 0 bytes instead of"),
            (flip, "its sha256 is"),
            (lambda content: b"<html>404: Not Found</html>", "it has 27 bytes instead of"),
            (lambda content: content[::-1], "its sha256 is"),
        ],
    )
    @pytest.mark.parametrize("place", ["data", "cache"])
    def test_it_is_named_and_neither_used_nor_replaced(self, damage, found, place, data_home, cache, monkeypatch):
        _, content = write_sonar()
        monkeypatch.setitem(FILES, "sonar", make_file(content))
        folder = {"data": data_home, "cache": cache}[place]
        folder.mkdir(exist_ok=True)
        (folder / "sonar.csv").write_bytes(damage(content))
        with pytest.raises(DataFileError, match=r"It was not used\. Delete it and run again") as caught:
            load("sonar")
        assert str(folder / "sonar.csv") in str(caught.value)
        assert found in str(caught.value)
        assert ("sha256" not in found) or (FILES["sonar"].sha256 in str(caught.value))
        assert (folder / "sonar.csv").read_bytes() == damage(content)
        assert contents(folder) == ["sonar.csv"]

    @pytest.mark.parametrize("name", list(KNOWN))
    @pytest.mark.parametrize("damage", [cut, flip])
    def test_real_files_too(self, name, damage, paper_file, data_home):
        content = paper_file(name).read_bytes()
        (data_home / FILES[name].filename).write_bytes(damage(content))
        with pytest.raises(DataFileError, match="is damaged or not the file it should be"):
            load(name)

    def test_another_set_under_its_name(self, paper_file, data_home):
        other = paper_file("msrc").read_bytes()
        (data_home / "Handwritten.mat").write_bytes(other)
        with pytest.raises(DataFileError, match=r"Handwritten\.mat is damaged or not the file it should be"):
            load("handwritten")

    def test_a_folder_under_its_name(self, data_home):
        (data_home / "sonar.csv").mkdir()
        with pytest.raises(DataFileError, match="it is not a plain file"):
            load("sonar")

    def test_a_link_to_nowhere(self, data_home):
        (data_home / "sonar.csv").symlink_to(data_home / "gone")
        with pytest.raises(DataFileError, match="it cannot be read: No such file"):
            load("sonar")

    @pytest.mark.parametrize("sizes", [(96, 111), (98, 110)])
    def test_right_checksum_but_other_content(self, sizes, data_home, monkeypatch):
        """As if the registry had been changed and the catalogue not."""
        _, content = write_sonar(*sizes)
        monkeypatch.setitem(FILES, "sonar", make_file(content))
        (data_home / "sonar.csv").write_bytes(content)
        with pytest.raises(DataFileError, match=r"sonar.csv (has views of shapes|does not have classes 1 to 2 of)"):
            load("sonar")

    def test_right_checksum_but_another_view(self, data_home, monkeypatch):
        out, cell = io.BytesIO(), np.empty(5, dtype=object)
        for v, width in enumerate([24, 576, 512, 254, 256]):  # the last two the wrong way round
            cell[v] = np.zeros((210, width))
        savemat(out, {"X": cell, "y": np.repeat(np.arange(1, 8), 30)})
        monkeypatch.setitem(FILES, "msrc", make_file(out.getvalue(), filename="MSRC-v5.mat"))
        (data_home / "MSRC-v5.mat").write_bytes(out.getvalue())
        with pytest.raises(DataFileError, match=r"\(210, 254\), \(210, 256\)\] instead of .*\(210, 256\), \(210, 254"):
            load("msrc")


class TestPlaces:
    def test_data_folder_goes_before_the_cache(self, data_home, cache, monkeypatch):
        numbers, content = write_sonar()
        monkeypatch.setitem(FILES, "sonar", make_file(content))
        cache.mkdir()
        (cache / "sonar.csv").write_bytes(content)
        assert find(FILES["sonar"]) == cache / "sonar.csv"
        np.testing.assert_array_equal(np.hstack(load("sonar", download=False).views), numbers)
        (data_home / "sonar.csv").write_bytes(content)
        assert find(FILES["sonar"]) == data_home / "sonar.csv"

    @pytest.mark.parametrize("value", ["", "/no/such/folder"])
    def test_a_data_folder_that_is_not_there(self, value, cache, monkeypatch):
        _, content = write_sonar()
        monkeypatch.setitem(FILES, "sonar", make_file(content))
        monkeypatch.setenv("LMSSC_DATA", value)
        cache.mkdir()
        (cache / "sonar.csv").write_bytes(content)
        assert len(load("sonar").target) == 208

    def test_no_download_if_it_is_not_wanted(self, data_home, cache):
        with pytest.raises(DataFileError, match="and download is False") as caught:
            load("sonar", download=False)
        for wanted in ("sonar.csv", str(data_home), str(cache), FILES["sonar"].address, "LMSSC_DATA"):
            assert wanted in str(caught.value)
        assert not cache.exists()

    def test_without_pooch_a_file_in_the_data_folder_is_enough(self, data_home, monkeypatch):
        _, content = write_sonar()
        monkeypatch.setitem(FILES, "sonar", make_file(content))
        (data_home / "sonar.csv").write_bytes(content)
        monkeypatch.setitem(sys.modules, "pooch", None)
        monkeypatch.setitem(sys.modules, "h5py", None)
        assert len(load("sonar").target) == 208

    def test_without_pooch_nothing_is_downloaded(self, data_home, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        with pytest.raises(DataFileError, match=r"downloads need pooch: pip install 'lmssc\[data\]'") as caught:
            load("sonar")
        assert FILES["sonar"].address in str(caught.value)

    def test_without_h5py_only_bbc_fails(self, paper_file, monkeypatch, tmp_path, capsys):
        paper_file("bbc")
        paper_file("msrc")
        monkeypatch.setitem(sys.modules, "h5py", None)
        assert len(load("msrc").target) == 210
        with pytest.raises(ImportError, match=r"the BBC data need h5py: pip install 'lmssc\[data\]'"):
            load("bbc")
        assert main(["compare", "bbc", "--out", str(tmp_path)]) == 2
        assert_one_error_line(capsys, "the BBC data need h5py")

    def test_cache_is_the_users(self, monkeypatch, tmp_path):
        pytest.importorskip("pooch")
        if not sys.platform.startswith("linux"):
            pytest.skip("the variable is one of Linux")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.delenv("LMSSC_DATA", raising=False)
        (tmp_path / "lmssc").mkdir()
        (tmp_path / "lmssc" / "sonar.csv").touch()
        assert find(FILES["sonar"]) == tmp_path / "lmssc" / "sonar.csv"


CONTENT = np.random.default_rng(0).bytes(300_000)


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, or fails in the way that the path names."""

    def do_GET(self):
        self.server.paths.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        body = {"/other": b"<html>sign in to this network</html>", "/flipped": flip(CONTENT)}.get(self.path, CONTENT)
        self.send_response(200)
        if self.path != "/no-length":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path in ("/cut", "/no-length") else body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(loopback):
    """A server on this machine, with the paths that were asked for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.paths = []
    server.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class TestDownload:
    def test_good(self, server, cache):
        file = make_file(CONTENT, f"{server.address}/good")
        assert fetch(file) == cache / "sonar.csv"
        assert (cache / "sonar.csv").read_bytes() == CONTENT
        assert contents(cache) == ["sonar.csv"]
        assert fetch(file, download=False) == cache / "sonar.csv"
        assert server.paths == ["/good"]

    def test_good_is_silent(self, server, cache, capfd):
        fetch(make_file(CONTENT, f"{server.address}/good"))
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("missing", "404"),
            ("other", "what came is not the file it should be: it has 36 bytes instead of 300000"),
            ("flipped", "what came is not the file it should be: its sha256 is"),
            ("no-length", "what came is not the file it should be: it has 150000 bytes instead of 300000"),
            ("cut", "150000"),  # bytes that came, whoever counts them
        ],
    )
    def test_bad_answers(self, path, reason, server, cache):
        file = make_file(CONTENT, f"{server.address}/{path}")
        assert reason in self.failure(file, cache)
        assert contents(cache) == []

    def test_nobody_answers(self, server, cache):
        address = server.address
        server.shutdown()
        server.server_close()
        assert "refused" in self.failure(make_file(CONTENT, f"{address}/good"), cache)
        assert contents(cache) == []

    def test_no_such_host(self, cache, monkeypatch):
        def unknown(*args, **kwargs):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        self.failure(make_file(CONTENT, "http://no-such-host.invalid/sonar.csv"), cache)
        assert contents(cache) == []

    def test_cache_below_a_file(self, server, cache, monkeypatch):
        cache.write_text("mine")
        below = cache / "lmssc"
        monkeypatch.setattr("pooch.os_cache", lambda project: below)
        assert "Not a directory" in self.failure(make_file(CONTENT, f"{server.address}/good"), below)
        assert cache.read_text() == "mine"

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
    def test_read_only_cache(self, server, cache):
        cache.mkdir()
        cache.chmod(0o500)
        assert "Permission denied" in self.failure(make_file(CONTENT, f"{server.address}/good"), cache)
        assert contents(cache) == []

    def test_cache_that_refuses(self, server, cache, monkeypatch):
        def refuse(path, mode):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        monkeypatch.setattr(
            "lmssc.persistence.atomic.open", refuse, raising=False
        )  # a mode of the folder would not stop root
        assert "Permission denied" in self.failure(make_file(CONTENT, f"{server.address}/good"), cache)
        assert contents(cache) == []

    def test_disk_full(self, server, cache, monkeypatch):
        class Full(io.FileIO):
            def write(self, data):
                super().write(data[:100])
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("lmssc.persistence.atomic.open", Full, raising=False)
        assert "No space left on device" in self.failure(make_file(CONTENT, f"{server.address}/good"), cache)
        assert contents(cache) == []

    def test_interrupted(self, server, cache, monkeypatch):
        def interrupt(self, address, out, pooch):
            out.write(CONTENT[:100])
            raise KeyboardInterrupt

        monkeypatch.setattr("pooch.HTTPDownloader.__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch(make_file(CONTENT, f"{server.address}/good"))
        assert contents(cache) == []

    def failure(self, file, folder):
        """One line that names file, address and folder, and says what to do."""
        with pytest.raises(DataFileError) as caught:
            fetch(file)
        message = str(caught.value)
        assert "\n" not in message
        for wanted in (file.filename, file.address, f"into {folder}: ", "set the environment variable LMSSC_DATA"):
            assert wanted in message
        return message

    def test_threads_download_once(self, server, cache):
        file = make_file(CONTENT, f"{server.address}/good")
        threads = [threading.Thread(target=fetch, args=(file,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert contents(cache) == ["sonar.csv"]
        assert server.paths == ["/good"]

    def test_processes_do_not_disturb_each_other(self, server, cache):
        program = (
            "import sys, pathlib, pooch; pooch.os_cache = lambda project: pathlib.Path(sys.argv[1])\n"
            "from lmssc.datasets.fetch import fetch, find_fault; from lmssc.datasets.registry import DataFile\n"
            "file = DataFile('sonar.csv', sys.argv[2], sys.argv[3], int(sys.argv[4]))\n"
            "sys.exit(find_fault(fetch(file), file))"
        )
        file = make_file(CONTENT, f"{server.address}/good")
        words = [sys.executable, "-c", program, str(cache), file.address, file.sha256, str(file.size)]
        started = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(3)]
        assert [process.communicate()[1] for process in started] == ["", "", ""]
        assert [process.returncode for process in started] == [0, 0, 0]
        assert contents(cache) == ["sonar.csv"]


class TestCommand:
    def test_list(self, data_home, cache, monkeypatch, capsys):
        _, content = write_sonar()
        for name in ("sonar", "msrc", "leaves"):
            monkeypatch.setitem(FILES, name, make_file(content, filename=FILES[name].filename))
        cache.mkdir()
        (data_home / "sonar.csv").write_bytes(content)
        (cache / "MSRC-v5.mat").write_bytes(content)
        (cache / "100Leaves.mat").write_bytes(flip(content))
        assert main(["datasets"]) == 0
        printed = capsys.readouterr().out
        lines = {line.split()[0]: line for line in printed.splitlines() if line}
        assert set(DATASET_NAMES) <= set(lines)
        assert lines["sonar"].split()[1:6] == ["208", "2", "3", "20", "each"]
        assert lines["handwritten"].split()[1:4] == ["2000", "10", "6"]
        assert " ".join(lines["handwritten"].split()[4:]) == "216 + 76 + 64 + 6 + 240 + 47 3.5 MB not here"
        assert lines["sonar"].endswith("in $LMSSC_DATA")
        assert lines["msrc"].endswith("in the cache")
        assert lines["leaves"].endswith("in the cache, DAMAGED")
        assert lines["bbc"].endswith("not here")
        assert lines["digits"].endswith("comes with scikit-learn")
        assert str(data_home) in lines["$LMSSC_DATA"]
        assert str(cache) in lines["cache"]

    def test_list_without_pooch(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "pooch", None)
        monkeypatch.delenv("LMSSC_DATA", raising=False)
        assert main(["datasets"]) == 0
        printed = capsys.readouterr().out
        assert "$LMSSC_DATA  not set" in printed
        assert "pip install 'lmssc[data]'" in printed

    def test_list_loads_nothing_heavy(self):
        program = (
            "import sys; from lmssc.cli import main; main(['datasets'])\n"
            "sys.exit(str([name for name in ('numpy', 'scipy', 'sklearn', 'h5py') if name in sys.modules]))"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert ended.stderr == "[]\n"

    def test_fetch(self, server, cache, monkeypatch, capsys):
        for name in list(FILES):
            file = make_file(CONTENT, f"{server.address}/{name}", FILES[name].filename)
            monkeypatch.setitem(FILES, name, file)
        assert main(["datasets", "fetch", "sonar", "leaves"]) == 0
        printed = capsys.readouterr().out
        assert f"sonar: downloading 0.3 MB from {server.address}/sonar" in printed
        assert f"leaves: {cache / '100Leaves.mat'}, sha256 verified" in printed
        assert main(["datasets", "fetch", "all"]) == 0
        assert sorted(server.paths) == sorted(f"/{name}" for name in FILES)  # each once
        assert contents(cache) == sorted(file.filename for file in FILES.values())

    def test_fetch_that_fails(self, server, cache, monkeypatch, capsys):
        monkeypatch.setitem(FILES, "sonar", make_file(CONTENT, f"{server.address}/missing"))
        assert main(["datasets", "fetch", "sonar"]) == 2
        assert_one_error_line(capsys, "sonar.csv could not be downloaded", "404", str(cache))
        assert contents(cache) == []

    def test_damaged_file_is_named_by_compare(self, data_home, tmp_path, capsys):
        (data_home / "sonar.csv").write_bytes(b"")
        assert main(["compare", "sonar", "--out", str(tmp_path / "out")]) == 2
        assert_one_error_line(capsys, str(data_home / "sonar.csv"), "it has 0 bytes instead of 87775")

    @pytest.mark.parametrize("name", ["sonar", "digits"])
    def test_info_needs_no_file(self, name, cache, capsys):
        assert main(["datasets", "info", name]) == 0
        printed = capsys.readouterr().out
        assert "classes" in printed.lower()
        assert "UCI" in printed

    @pytest.mark.parametrize("words", [["info", "hw"], ["fetch", "digits"], ["fetch"], ["remove", "sonar"]])
    def test_wrong_words_get_the_usage(self, words, capsys):
        with pytest.raises(SystemExit, match="2"):
            main(["datasets", *words])
        assert "usage: lmssc datasets" in capsys.readouterr().err
