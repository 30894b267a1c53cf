"""Nothing that is read or typed is overwritten, and files with an odd beginning are read or explained."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmssc.cli import main
from lmssc.io.labelled_files import read_labelled_files
from lmssc.io.options import Options
from small_files import RESULTS, label_text, make_problem, write_csv

VIEWS, IDS, LABELS = make_problem(24)
CALL = "classify a.csv b.csv --labels labels.csv --out out -q"
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, brief_report, quick_fits):
    monkeypatch.chdir(tmp_path)
    for name, view in VIEWS.items():
        write_csv(Path(), name, view, IDS)
    Path("labels.csv").write_text(label_text(IDS, LABELS))


def run(call, code=0):
    assert main(call.split()) == code


def contents(folder="."):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


class TestInputs:
    @pytest.mark.parametrize(
        "call",
        [
            "predict out/model.lmssc a.csv b.csv --out a.csv --force",
            "predict out/model.lmssc a=a.csv b=b.csv --out ./b.csv --force",
            "predict out/model.lmssc a.csv b.csv --out out/model.lmssc --force",
            "predict out/model.lmssc a.csv b.csv --out link.csv --force",
            "predict out/model.lmssc link.csv b=b.csv --out a.csv --force",
            "classify inputs/predictions.csv b.csv --labels labels.csv --out inputs --force",
            "classify b.csv x=inputs/predictions.csv --labels labels.csv --out inputs --force",
            "classify a.csv b.csv --labels inputs/predictions.csv --out inputs --force",
            "classify a.csv b.csv --labels labels.csv --labels inputs/predictions.csv --out inputs --force",
            "classify a.csv b.csv --labels labels.csv --out linked --force",
        ],
    )
    def test_are_never_replaced(self, call, capsys):
        """They were, without a word."""
        run(CALL)
        Path("inputs").mkdir()
        Path("inputs/predictions.csv").write_text(Path("a.csv").read_text())
        Path("linked").mkdir()
        os.symlink(Path("labels.csv").absolute(), "linked/predictions.csv")
        os.symlink("a.csv", "link.csv")
        before = contents()
        run(call, code=2)
        assert "is read, and would be replaced by the output" in capsys.readouterr().err
        assert contents() == before

    def test_beside_results_are_no_obstacle(self):
        """The inputs are in the folder of the results, under names of their own."""
        run("classify a.csv b.csv --labels labels.csv --out . --force -q")
        run("predict model.lmssc a.csv b.csv --out p.csv -q")
        run("predict model.lmssc a.csv b.csv --out p.csv --force -q")
        run("classify a.csv b.csv --labels labels.csv --labels to_label.csv --out . --force -q")


class TestCorrectedGuesses:
    LIST = Path("out/to_label.csv")

    def change(self, column, value):
        with open(self.LIST, newline="") as file:
            rows = list(csv.reader(file))
        rows[2][column] = value
        with open(self.LIST, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        return self.LIST.read_bytes()

    @pytest.mark.parametrize("column", [2, 3, 4], ids=["guess", "confidence", "runner_up"])
    def test_are_kept(self, column):
        run(CALL)
        typed = self.change(column, "corrected")
        run(CALL + " --force")
        assert self.LIST.read_bytes() == typed
        assert Path("out/to_label-2.csv").exists()

    def test_a_list_as_it_was_written_is_replaced(self):
        run(CALL)
        with open(self.LIST, newline="") as file:
            rows = list(csv.reader(file))
        with open(self.LIST, "w", newline="") as file:  # in another order, and as another program quotes
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([rows[0], *rows[:0:-1]])
        run(CALL + " --force")
        assert sorted(path.name for path in Path("out").iterdir()) == RESULTS

    def test_a_list_without_its_predictions_is_kept(self):
        run(CALL)
        Path("out/predictions.csv").unlink()
        run(CALL + " --force")
        assert Path("out/to_label-2.csv").exists()


@posix_only
def test_streams_that_are_closed_from_the_start():
    command = f"{sys.executable} -m lmssc {CALL.removesuffix(' -q')} --no-report <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", command], stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert sorted(path.name for path in Path("out").iterdir()) == [name for name in RESULTS if name != "report.html"]


class TestOddBeginnings:
    ROWS = "".join(f"{row / 8};{row % 5};{'uv'[row % 2]}\n" for row in range(24))

    @pytest.mark.parametrize("mark", [";", ",", "|", "\t"])
    @pytest.mark.parametrize("start", ["sep={}\n", "\ufeffsep={}\r\n", "SEP={}\n"])
    def test_a_line_for_excel_says_what_is_between_the_cells(self, start, mark, capsys):
        text = start.format(mark) + ("x;y;label\n" + self.ROWS).replace(";", mark)
        Path("a.csv").write_text(text, encoding="utf-8", newline="")
        problem = read_labelled_files(["a.csv"], None, Options())
        assert problem.joined.views["a"].shape == (24, 2)
        # Lines are counted from the first one of the file.
        Path("a.csv").write_text(text + mark.join("1234"), encoding="utf-8", newline="")
        run("classify a.csv --dry-run", code=2)
        assert "a.csv, line 27: 4 cells" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("height, cm;y;label\n" + ROWS.replace(".", ","), "with --delimiter comma or --delimiter semicolon"),
            ("height, cm;y;label\n" + ROWS, "with --delimiter comma or --delimiter semicolon"),
            (
                "height, cm|y|label\n" + ROWS.replace(";", "|"),
                "between the cells, say so with --delimiter bar",
            ),
            ("# made by hand\n" + ("x;y;label\n" + ROWS).replace(";", ","), "lines that begin with '#' are not"),
            ("x,y,label,\n" + ROWS.replace(";", ",").replace("\n", ",\n"), "column 4 has no name; is there a"),
            ("x,y,label\n" + ROWS.replace(";", ",").replace("\n", ",\n"), "; is there a delimiter too many at the end"),
        ],
        ids=["commas", "comma in the header", "bars", "comment", "comma at each end", "comma at the end of rows"],
    )
    def test_the_error_says_what_to_do(self, text, hint, capsys):
        Path("a.csv").write_text(text)
        run("classify a.csv --dry-run", code=2)
        assert hint in capsys.readouterr().err

    def test_what_is_between_the_cells_may_be_said(self):
        Path("a.csv").write_text("height, cm;y;label\n" + self.ROWS)
        assert read_labelled_files(["a.csv"], None, Options(delimiter="semicolon")).joined.views["a"].shape == (24, 2)
        # Semicolons in a name are no matter where the lines below have none.
        Path("a.csv").write_text("x; cm,y,label\n" + self.ROWS.replace(";", ","))
        assert read_labelled_files(["a.csv"], None, Options()).joined.views["a"].shape == (24, 2)
