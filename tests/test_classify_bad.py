"""Invalid calls of `lmssc classify` and `lmssc predict`: one line says what is wrong and where; no output."""

import errno
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from bad_calls import JOINS, LABEL_FILES, OPTIONS, PREDICTIONS, USAGE
from bad_files import ARRAYS, BY_PLACE, CALL, GOOD, IDS, JSON_LINES, PREDICT, TEXT_FILES, B
from lmssc.cli import main
from small_files import WRITERS

pytestmark = pytest.mark.usefixtures("quick_fits")


CASES = {**TEXT_FILES, **JSON_LINES, **JOINS, **LABEL_FILES, **ARRAYS, **OPTIONS, **PREDICTIONS}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that was made of the good files."""
    folder = tmp_path_factory.mktemp("model")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
        write({})
        assert main([*CALL.split(), "-q"]) == 0
    return folder / "out" / "model.lmssc"


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    shutil.copy(model, "model.lmssc")


def write(files):
    for name, content in {**GOOD, **BY_PLACE, **files}.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def everything():
    """All files below, hidden ones too, with their content."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def check_refused(call, message, capsys, code=2):
    before = everything()
    assert main(call if isinstance(call, list) else call.split()) == code
    captured = capsys.readouterr()
    assert re.fullmatch(r"lmssc: error: .+\n", captured.err), captured.err
    assert re.search(message, captured.err), captured.err
    assert "Traceback" not in captured.err
    assert len(captured.err) < 500
    assert everything() == before


@pytest.mark.parametrize("case", CASES)
def test_bad_call(case, capsys):
    files, call, message = CASES[case]
    write(files)
    check_refused(call, message, capsys, code=3 if "cannot be written" in message else 2)


def damage(content, how):
    if how == "empty":
        return b""
    if how == "junk":
        return np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    # Not between two lines: half of a JSON Lines file may be a whole one.
    return content[: len(content) // 2].rstrip(b"}\n")


@pytest.mark.parametrize("how", ["empty", "junk", "cut off", "a folder", "absent"])
@pytest.mark.parametrize("form", WRITERS)
def test_damaged_file(form, how, capsys):
    write({})
    name = WRITERS[form][0](Path(), "x", B, IDS)
    path = Path(name)
    content = path.read_bytes()
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how != "absent":
        path.write_bytes(damage(content, how))
    check_refused(f"classify a.csv {name} --labels labels.csv --out out", rf"{re.escape(name)}\b", capsys)


@pytest.mark.parametrize("case", USAGE)
def test_calls_that_the_parser_refuses(case, capsys):
    write({})
    before = everything()
    with pytest.raises(SystemExit, match="2"):
        main(USAGE[case].split())
    assert re.search(r"\nlmssc( \w+)?: error: .+\n$", capsys.readouterr().err)
    assert everything() == before


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


OUTPUTS = {
    "predictions": ("lmssc.cli.classify_run.write_predictions", CALL),
    "what to label": ("lmssc.cli.classify_run.write_to_label", CALL),
    "the model": ("lmssc.estimators.base.MultiViewClassifier.save", CALL),
    "the report": ("lmssc.report.write_report", CALL),
    "the folder": ("pathlib.Path.mkdir", CALL),
    "the last step": ("pathlib.Path.rename", CALL),
    "predictions into a folder that is there": (
        "lmssc.cli.classify_run.write_predictions",
        CALL.replace("--out out", "--out there"),
    ),
    "predictions into deep folders": (
        "lmssc.cli.classify_run.write_predictions",
        CALL.replace("--out out", "--out p/q/r"),
    ),
    "predictions of new samples": ("lmssc.cli.predict_run.write_predictions", PREDICT),
    "the last step of new samples": ("os.replace", PREDICT),
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_disk_full(what, capsys, monkeypatch):
    write({})
    Path("there").mkdir()
    monkeypatch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
    target, call = OUTPUTS[what]
    monkeypatch.setattr(target, full)
    check_refused(call + " -q", r"--out \S+ cannot be written: No space left on device", capsys, code=3)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_that_is_full(capsys):
    """The real thing: what is written to it is refused when it is flushed."""
    write({})
    import lmssc.persistence.atomic

    original = open

    def open_full(path, mode="r", *args, **kwargs):
        return original("/dev/full" if "w" in mode else path, mode, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lmssc.persistence.atomic, "open", open_full, raising=False)
        check_refused(PREDICT + " -q", r"--out out\.csv cannot be written: No space left", capsys, code=3)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_must_not_be_written_to(capsys):
    write({})
    Path("locked").mkdir(mode=0o500)
    check_refused(
        CALL.replace("--out out", "--out locked/out"), r"cannot be written: Permission denied", capsys, code=3
    )


def test_folder_that_refuses(capsys, monkeypatch):
    """For root, whom no mode of a folder stops."""
    write({})

    def refuse(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    check_refused(CALL + " -q", r"--out out cannot be written: Permission denied", capsys, code=3)


@pytest.mark.parametrize(
    ("module", "file"), [("pyarrow.parquet", "x.parquet"), ("pyarrow.feather", "x.feather"), ("h5py", "x.mat")]
)
def test_an_extra_that_is_not_installed(module, file, capsys, monkeypatch):
    write({file: b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n"})
    monkeypatch.setitem(__import__("sys").modules, module, None)
    package = module.partition(".")[0]
    call = f"classify a.csv {file} --labels labels.csv --out out"
    check_refused(call, rf"files need {package}: pip install 'lmssc\[files\]'", capsys)


def test_there_are_enough():
    assert len(CASES) + 5 * len(WRITERS) + len(USAGE) + len(OUTPUTS) >= 200
