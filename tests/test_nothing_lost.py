"""Nothing that a person typed or waited for is lost: labels in files, results, and what a signal interrupts."""

import csv
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lmssc
from lmssc.cli import main
from lmssc.io.staging import staged_folder
from lmssc.io.swap import replace_together
from lmssc.persistence.temporary import lock, temporary_path, unlock
from small_files import RESULTS, label_text, make_problem, table_text, write_csv

VIEWS, IDS, LABELS = make_problem(24)
CALL = "classify a.csv b.csv --labels labels.csv --out out"
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, view in VIEWS.items():
        write_csv(Path(), name, view, IDS)
    Path("labels.csv").write_text(label_text(IDS, LABELS))


@pytest.fixture(autouse=True)
def brief(request):
    if "full" not in request.node.name:
        request.getfixturevalue("brief_report")
        request.getfixturevalue("quick_fits")


def run(command, code=0):
    assert main(command if isinstance(command, list) else command.split()) == code


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fill_in(path, labels):
    """Type labels into the first rows of a file, and leave all else as it is."""
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    for row, label in zip(rows[1:], labels, strict=False):
        row[1] = label
    path.write_text(table_text(rows[0], rows[1:]), encoding="utf-8")
    return [row[0] for row in rows[1 : 1 + len(labels)]]


def names(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


class TestTypedLabels:
    def test_force_never_overwrites_typed_labels(self, capsys):
        run(CALL + " -q")
        to_label = Path("out/to_label.csv")
        fill_in(to_label, ["u", "v"])
        typed = to_label.read_bytes()
        run(CALL + " --force")
        assert "Lists with typed labels are kept; the new list of samples to label is to_label-2.csv." in (
            printed := capsys.readouterr().out
        )
        assert "Written to out: predictions.csv, to_label-2.csv, model.lmssc, report.html." in printed
        assert to_label.read_bytes() == typed
        assert {row["label"] for row in read_rows("out/to_label-2.csv")} == {""}
        # A list that nobody has filled in is replaced; one that somebody has filled in is not.
        run(CALL + " --force -q")
        assert names("out") == sorted([*RESULTS, "to_label-2.csv"])
        fill_in(Path("out/to_label-2.csv"), ["w"])
        run(CALL + " --force -q")
        assert names("out") == sorted([*RESULTS, "to_label-2.csv", "to_label-3.csv"])
        assert to_label.read_bytes() == typed

    @pytest.mark.parametrize(
        "content",
        [
            b"id;label;guess;confidence;runner_up\ns001;u;v;0.5;u\n",
            "id,label,guess,confidence,runner_up\ns001,,v,0.5,u\n".encode("utf-16"),
            b"id,label,guess,confidence,runner_up,note\ns001,,v,0.5,u,ask Ann\n",
            b"",
        ],
        ids=["semicolons", "another encoding", "a column of notes", "nothing"],
    )
    def test_a_list_that_another_program_saved_is_kept(self, content):
        run(CALL + " -q")
        Path("out/to_label.csv").write_bytes(content)
        run(CALL + " --force -q")
        assert Path("out/to_label.csv").read_bytes() == content
        assert len(read_rows("out/to_label-2.csv")) > 1

    def test_labels_typed_while_it_runs_are_kept(self, monkeypatch):
        run(CALL + " -q")

        def type_now(path, *args, **kwargs):
            fill_in(Path("out/to_label.csv"), ["u"])
            path.write_text("report")

        monkeypatch.setattr("lmssc.report.write_report", type_now)
        run(CALL + " --force -q")
        assert read_rows("out/to_label.csv")[0]["label"] == "u"
        assert Path("out/to_label-2.csv").exists()

    def test_the_filled_in_list_is_given_as_labels_as_it_is(self, capsys):
        run(CALL + " -q")
        typed = fill_in(Path("out/to_label.csv"), ["u", "v", "w"])
        capsys.readouterr()
        run(CALL + " --labels out/to_label.csv --force")
        n_known = sum(label != "" for label in LABELS) + 3
        expected = f"{n_known} samples labelled (labels.csv, column 'label'; out/to_label.csv, column 'label')"
        assert expected in capsys.readouterr().out
        rows = {row["id"]: row for row in read_rows("out/predictions.csv")}
        assert [rows[key]["label"] for key in typed] == ["u", "v", "w"]
        assert {rows[key]["given"] for key in typed} == {"yes"}

    def test_the_list_has_the_names_of_the_columns_that_were_given(self):
        rows = [[key, *row, label] for key, row, label in zip(IDS, VIEWS["a"].tolist(), LABELS, strict=True)]
        Path("all.csv").write_text(table_text(["mouse", *"pqrstv", "guess"], rows))
        call = "classify all.csv --id mouse --label-column guess --out out -q"
        run(call)
        assert list(read_rows("out/to_label.csv")[0]) == ["mouse", "guess", "guess_", "confidence", "runner_up"]
        typed = fill_in(Path("out/to_label.csv"), ["u", "v"])
        run(call + " --force --labels all.csv --labels out/to_label.csv")
        found = {row["mouse"]: row["label"] for row in read_rows("out/predictions.csv")}
        assert [found[key] for key in typed] == ["u", "v"]

    def test_the_list_of_views_without_ids_counts_their_rows(self, capsys):
        np.save("a.npy", VIEWS["a"])
        Path("y.csv").write_text("label\n" + "".join(f"{label}\n" for label in LABELS))
        run("classify a.npy --labels y.csv --out out -q")
        (row, other) = fill_in(Path("out/to_label.csv"), ["u", "v"])
        run("classify a.npy --labels y.csv --labels out/to_label.csv --out out --force")
        assert "out/to_label.csv: its ids are row numbers, because the views have no ids." in capsys.readouterr().out
        rows = read_rows("out/predictions.csv")
        assert [rows[int(key) - 1]["label"] for key in (row, other)] == ["u", "v"]
        assert [rows[int(key) - 1]["given"] for key in (row, other)] == ["yes", "yes"]

    def test_a_column_of_labels_that_is_not_used_is_told_with_the_cure(self, capsys):
        rows = [[key, *row, label] for key, row, label in zip(IDS, VIEWS["a"].tolist(), LABELS, strict=True)]
        Path("all.csv").write_text(table_text(["id", *"pqrstv", "label"], rows))
        Path("more.csv").write_text(f"id,label\n{IDS[LABELS.index('')]},u\n{IDS[LABELS.index('v')]},v\n")
        run("classify all.csv --labels more.csv --dry-run")
        assert "Not used in all.csv: label (labels come from more.csv; to use these too, add --labels all.csv)." in (
            capsys.readouterr().out
        )
        run("classify all.csv --labels more.csv --labels all.csv --dry-run")
        assert "Not used" not in (printed := capsys.readouterr().out)
        assert f"{sum(label != '' for label in LABELS) + 1} samples labelled" in printed


class TestSeveralFilesOfLabels:
    def test_all_are_merged(self, capsys):
        Path("one.csv").write_text(label_text(IDS[:12], LABELS[:12]))
        Path("two.csv").write_text(label_text(IDS[8:], LABELS[8:]))  # some are in both
        run(CALL + " -q")
        run("classify a.csv b.csv --labels one.csv --labels two.csv --out merged")
        assert f"{sum(label != '' for label in LABELS)} samples labelled" in capsys.readouterr().out
        assert Path("merged/predictions.csv").read_bytes() == Path("out/predictions.csv").read_bytes()

    def test_whole_numbers_in_one_file_and_with_a_point_in_another_agree(self, capsys):
        Path("one.csv").write_text(f"id,label\n{IDS[0]},1\n{IDS[1]},2\n")
        Path("two.csv").write_text(f"id,label\n{IDS[1]},2.0\n{IDS[2]},1.0\n")
        run("classify a.csv --labels one.csv --labels two.csv --dry-run")
        assert "1 (2), 2 (1)" in capsys.readouterr().out

    def test_a_contradiction_names_the_sample_and_both_files(self, capsys):
        row = LABELS.index("u")
        Path("other.csv").write_text(f"id,label\n{IDS[row]},v\n")
        run(CALL + " --labels other.csv", code=2)
        assert capsys.readouterr().err == (
            f"lmssc: error: the sample '{IDS[row]}' is 'u' in labels.csv, column 'label', but 'v' in other.csv, column "
            "'label'; correct one of them\n"
        )
        assert not Path("out").exists()


def shell(command, **settings):
    """Run a line of the shell, in which $LMSSC is the command."""
    env = {**os.environ, "LMSSC": f"{sys.executable} -m lmssc", **settings}
    return subprocess.run(["bash", "-c", command], capture_output=True, env=env, check=False)


@posix_only
class TestStdoutThatNobodyReads:
    CALL = CALL + " --no-report"
    RESULTS = [name for name in RESULTS if name != "report.html"]  # noqa: RUF012

    def test_results_are_written_in_full(self):
        ended = shell(f"set -o pipefail; $LMSSC {self.CALL} | true")
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert names("out") == self.RESULTS

    def test_nor_stderr(self):
        ended = shell(f"set -o pipefail; $LMSSC {self.CALL} --format json 2>&1 | true")
        assert ended.returncode == 0
        assert names("out") == self.RESULTS

    def test_an_error_is_still_an_error(self):
        ended = shell("set -o pipefail; $LMSSC classify no.csv --out out 2>&1 | true")
        assert ended.returncode == 2

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_full_disk_behind_stdout_is_told_after_the_work(self):
        ended = shell(f"$LMSSC {self.CALL} > /dev/full")
        assert ended.returncode == 3
        assert ended.stderr == b"lmssc: error: cannot write to stdout: No space left on device\n"
        assert names("out") == self.RESULTS


class TestSignals:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    @pytest.mark.parametrize("options", ["", " --cv"])
    def test_during_the_fit_nothing_is_written(self, number, code, options, monkeypatch, capsys):
        monkeypatch.setattr("lmssc.estimators.parameter_grid.DEFAULT_GRID", [{}])
        monkeypatch.setattr("lmssc.core.objective.update_latent", lambda *_: signal.raise_signal(number))
        before = names()
        run(CALL + options, code=code)
        assert capsys.readouterr().err == "\nlmssc: interrupted\n"
        assert names() == before

    def test_while_files_are_written_nothing_is_left(self, monkeypatch):
        monkeypatch.setattr("lmssc.report.write_report", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
        before = names()
        run(CALL + " -q", code=143)
        assert names() == before
        run(CALL.replace("--out out", "--out deep/er/out") + " -q", code=143)
        assert names() == before

    def test_of_predict(self, monkeypatch):
        run(CALL + " -q")
        monkeypatch.setattr(
            "lmssc.cli.predict_run.write_predictions", lambda *_, **__: signal.raise_signal(signal.SIGTERM)
        )
        before = names()
        run("predict out/model.lmssc a.csv b.csv --out p.csv -q", code=143)
        assert names() == before

    def test_one_that_a_destructor_swallows_counts_before_anything_is_written(self, monkeypatch):
        class Deaf:
            def __del__(self):
                signal.raise_signal(signal.SIGTERM)

        def report(path, *args, **kwargs):
            path.write_text("report")
            Deaf()

        monkeypatch.setattr("lmssc.report.write_report", report)
        monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
        run(CALL + " -q", code=143)
        assert not Path("out").exists()

    def test_handlers_are_those_from_before(self):
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        run("classify a.csv --dry-run", code=2)
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before

    def test_ctrl_c_in_python_still_gives_the_model_so_far(self):
        """As documented: in a notebook the fit ends, not the session."""

        def interrupt(progress):
            raise KeyboardInterrupt

        with pytest.warns(UserWarning, match="interrupted after 1 iterations"):
            lmssc.LMSSC(tol=0.0, callback=interrupt).fit(VIEWS, np.array([label or None for label in LABELS], object))


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
class TestLeftovers:
    def leave(self, folder, name=""):
        path = temporary_path(Path(folder), name)
        (path / "new").mkdir(parents=True)
        (path / "new" / "predictions.csv").write_text("half")
        return path

    def test_of_a_killed_run_are_removed_by_the_next(self):
        Path("out").mkdir()
        self.leave(".", "out")
        self.leave("out")
        before = names()
        run(CALL + " -q")  # without --force: an empty folder but for what was left
        assert names("out") == RESULTS
        assert names() == [name for name in before if not name.startswith(".")]

    def test_of_a_killed_predict_are_removed_by_the_next(self):
        run(CALL + " -q")
        temporary_path(Path(), "p.csv").write_text("half")
        run("predict out/model.lmssc a.csv b.csv --out p.csv -q")
        assert not [name for name in names() if name.startswith(".")]

    def test_of_a_run_that_goes_on_are_left_alone(self):
        Path("out").mkdir()
        path = self.leave("out")
        descriptor = lock(path)
        try:
            run(CALL + " --force -q")
            assert path.exists()
        finally:
            unlock(descriptor)

    def test_a_run_does_not_wait_for_itself(self, monkeypatch):
        """The folder in which results are gathered is in use, and files are made in it."""
        monkeypatch.setattr("lmssc.data.file_lock.time.sleep", lambda seconds: pytest.fail("waits for a lock"))
        run(CALL + " -q")
        run(CALL + " --force -q")

    def test_the_same_process_number_is_no_obstacle(self):
        """As in containers: each run is process 1."""
        for name in (f".out.lmssc-{os.getpid()}.tmp", f".p.csv.{os.getpid()}.tmp"):
            Path(name).mkdir()
        run(CALL + " -q")
        run("predict out/model.lmssc a.csv b.csv --out p.csv -q")


class TestReplacement:
    def old_and_new(self):
        Path("out").mkdir()
        Path("out/a.txt").write_text("old")
        stage = Path("out/stage")
        (stage / "new").mkdir(parents=True)
        for name in ("a.txt", "b.txt"):
            (stage / "new" / name).write_text("new")
        return stage

    def test_without_links_files_are_moved_one_by_one(self, monkeypatch):
        monkeypatch.setattr("lmssc.io.swap._can_link", lambda stage: False)
        replace_together(self.old_and_new(), Path("out"))
        assert {path.name: path.read_text() for path in Path("out").iterdir()} == {"a.txt": "new", "b.txt": "new"}

    @pytest.mark.parametrize("function", ["symlink", "replace"])
    def test_that_fails_changes_nothing(self, function, monkeypatch):
        stage = self.old_and_new()
        original, calls = getattr(os, function), []

        def fail_once(*args, **kwargs):
            calls.append(args)
            if len(calls) == 3:
                raise OSError(28, "No space left on device")
            return original(*args, **kwargs)

        monkeypatch.setattr(os, function, fail_once)
        with pytest.raises(OSError, match="No space"):
            replace_together(stage, Path("out"))
        assert {path.name: path.read_text() for path in Path("out").iterdir()} == {"a.txt": "old"}

    def test_where_hard_links_are_refused(self, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
        replace_together(self.old_and_new(), Path("out"))
        assert {path.name: path.read_text() for path in Path("out").iterdir()} == {"a.txt": "new", "b.txt": "new"}

    def test_a_folder_in_the_place_of_a_file_is_told_before_the_work(self, monkeypatch, capsys):
        monkeypatch.setattr(lmssc.LMSSC, "fit", lambda *args: pytest.fail("computed"))
        Path("out/report.html").mkdir(parents=True)
        run(CALL + " --force -q", code=3)
        assert "out/report.html is a folder" in capsys.readouterr().err

    @posix_only
    def test_the_folder_stays_the_same_one(self):
        """A shell or a mount in it goes on to work."""
        Path("out").mkdir()
        before = os.stat("out").st_ino
        for force in (False, True):
            with staged_folder(Path("out"), force=force) as stage:
                (stage / "a.txt").write_text("new")
        assert os.stat("out").st_ino == before
        assert [path.is_symlink() for path in Path("out").iterdir()] == [False]


class TestNamesOfIds:
    def test_outputs_are_read_back_with_the_same_id(self):
        for name in ("a", "b"):
            text = Path(f"{name}.csv").read_text()
            Path(f"{name}.csv").write_text(text.replace("id,", "mouse_id,", 1))
        Path("labels.csv").write_text(Path("labels.csv").read_text().replace("id,", "mouse_id,", 1))
        run(CALL + " --id mouse_id -q")
        run("predict out/model.lmssc a.csv b.csv --out p.csv -q")
        for path in ("out/predictions.csv", "out/to_label.csv", "p.csv"):
            assert next(iter(read_rows(path)[0])) == "mouse_id"
        # Predictions are labels, too.
        Path("found.csv").write_text(
            table_text(["mouse_id", "label"], [[row["mouse_id"], row["label"]] for row in read_rows("p.csv")])
        )
        run("classify a.csv b.csv --labels out/predictions.csv --id mouse_id --dry-run")

    def test_a_name_that_another_column_has(self):
        rows = [[key, *row, label] for key, row, label in zip(IDS, VIEWS["a"].tolist(), LABELS, strict=True)]
        Path("all.csv").write_text(table_text(["given", *"pqrstv", "label"], rows))
        run("classify all.csv --id given --out out -q")
        with open("out/predictions.csv") as file:
            header = next(csv.reader(file))
        assert header[0] == "id"
        assert header.count("given") == 1


@posix_only
class TestRunItAgain:
    def test_the_command_in_a_full_report_works_as_printed(self, tmp_path):
        """With spaces, quotes and another alphabet in the names, from another folder, over the result that is there."""
        folder = Path("it's größe & co")
        folder.mkdir()
        for name in ("a.csv", "b.csv", "labels.csv"):
            shutil.move(name, folder / name)
        (folder / "a.csv").rename(folder / "a $b.csv")
        command = [sys.executable, "-m", "lmssc", "classify", "x=a $b.csv", "b.csv", "--labels", "labels.csv", "-q"]
        subprocess.run([*command, "--out", "my out"], cwd=folder, check=True)
        out = folder / "my out"
        before = (out / "predictions.csv").read_bytes()
        (out / "predictions.csv").unlink()
        page = (out / "report.html").read_text(encoding="utf-8")
        printed = html.unescape(re.search(r"<h3>Run it again</h3><pre[^>]*><code>(.*?)</code>", page, re.DOTALL)[1])
        ended = subprocess.run(["bash", "-c", printed], cwd="/", capture_output=True, check=False)
        assert ended.returncode == 0, (printed, ended.stderr)
        assert (out / "predictions.csv").read_bytes() == before
        # And once more, from the report that is there now.
        assert printed in html.unescape((out / "report.html").read_text(encoding="utf-8"))

    def test_force_comes_before_a_double_dash(self, monkeypatch):
        seen = []
        monkeypatch.setattr(
            "lmssc.report.write_report", lambda path, *_, command, **__: (path.touch(), seen.append(command))
        )
        run(["classify", "--labels", "labels.csv", "--out", "out", "-q", "--", "a.csv", "b.csv"])
        assert seen[0].endswith("classify --force --labels labels.csv --out out -q -- a.csv b.csv")


@posix_only
class TestCLocale:
    """What is written is UTF-8, and printing never raises."""

    LOCALE, STREAMS = {"PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}

    def run(self, arguments, settings):
        env = {key: value for key, value in os.environ.items() if key not in ("PYTHONIOENCODING", "LANG", "PYTHONUTF8")}
        env |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", **settings}
        command = [sys.executable, "-m", "lmssc", *arguments]
        ended = subprocess.run([os.fsencode(word) for word in command], capture_output=True, env=env, check=False)
        assert ended.returncode == 0, ended.stderr
        assert b"Traceback" not in ended.stderr
        return ended.stdout

    @pytest.fixture(autouse=True)
    def files(self):
        classes = {"u": "süß", "v": "日本", "w": "\U0001f600"}
        Path("größe.csv").write_text(Path("a.csv").read_text(), encoding="utf-8")
        rows = [[key, classes[label]] for key, label in zip(IDS, LABELS, strict=True) if label]
        Path("étiquettes.csv").write_text(table_text(["id", "art und weise ä"], rows), encoding="utf-8")

    CALL = (
        "classify",
        "größe.csv",
        "zweite ö=b.csv",
        "--labels",
        "étiquettes.csv",
        "--label-column",
        "art und weise ä",
        "--out",
        "ergebnis ü",
    )

    def test_full_classify_and_predict(self):
        printed = self.run(self.CALL, self.LOCALE)
        assert b"3 classes" in printed
        out = Path("ergebnis ü")
        assert names(out) == RESULTS
        assert {row["label"] for row in read_rows(out / "predictions.csv")} <= {"süß", "日本", "\U0001f600"}
        model = lmssc.load(out / "model.lmssc")
        assert model.view_names_ == ["größe", "zweite ö"]
        page = (out / "report.html").read_text(encoding="utf-8")
        for name in ("ergebnis ü", "größe", "zweite ö", "日本", "étiquettes.csv", "art und weise ä"):
            assert name in page
        self.run(["predict", f"{out}/model.lmssc", "größe.csv", "zweite ö=b.csv", "--out", "neu ü.csv"], self.LOCALE)
        assert len(read_rows("neu ü.csv")) == len(IDS)

    def test_names_are_printed(self):
        assert b"3 classes" in self.run([*self.CALL, "--dry-run"], self.STREAMS)

    def test_json_is_json(self):
        data = json.loads(self.run([*self.CALL, "--dry-run", "--format", "json"], self.STREAMS))
        assert set(data["understood"]["labels_per_class"]) == {"süß", "日本", "\U0001f600"}
        assert [view["name"] for view in data["understood"]["views"]] == ["größe", "zweite ö"]
