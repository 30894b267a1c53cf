"""Rows are never joined by position where a column says that they are in another order."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from lmssc.cli import main
from lmssc.io.labelled_files import read_labelled_files
from lmssc.io.options import Options
from small_files import make_problem, table_text

VIEWS, _, LABELS = make_problem()
N = len(LABELS)
CLASSES = [label or "uvw"[row % 3] for row, label in enumerate(LABELS)]
NAMES = [f"S{row}" for row in range(N)]
NUMBERS = [str(1001 + row) for row in range(N)]
SHUFFLED = np.random.default_rng(5).permutation(N)
IN_ORDER = np.arange(N)


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_view(name, order=IN_ORDER, /, *, label=True, **columns):
    """A view with its rows in some order, and more columns, whose values are already in that order."""
    header = [*columns, *(f"{name}{number}" for number in range(VIEWS[name].shape[1]))]
    rows = [
        [*(values[place] for values in columns.values()), *VIEWS[name][row].tolist()] for place, row in enumerate(order)
    ]
    if label and name == "a":
        header, rows = [*header, "label"], [[*row, LABELS[sample]] for row, sample in zip(rows, order, strict=True)]
    Path(f"{name}.csv").write_text(table_text(header, rows))


def write_labels(order=SHUFFLED, /, **columns):
    rows = [[*(values[place] for values in columns.values()), CLASSES[row]] for place, row in enumerate(order)]
    Path("l.csv").write_text(table_text([*columns, "label"], rows))


def shuffled(values):
    return [values[row] for row in SHUFFLED]


def repeated(values):
    """The second value in the place of the first."""
    return [values[1], *values[1:]]


def refused(capsys, call):
    assert main(["classify", *call.split(), "--dry-run"]) == 2
    return capsys.readouterr().err


def understood(capsys, call="a.csv b.csv"):
    assert main(["classify", *call.split(), "--dry-run", "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["understood"]


class TestLabels:
    CALL = "a.csv --labels l.csv"

    @pytest.mark.parametrize("keys", [NAMES, NUMBERS], ids=["text", "numbers"])
    @pytest.mark.parametrize("ours", ["name", "nr"])
    def test_a_repeated_key_is_named_with_its_line(self, ours, keys, capsys):
        """It made the key be ignored, and labels be taken by position: .20 were right."""
        write_view("a", label=False, **{ours: keys})
        write_labels(**{ours: repeated(shuffled(keys))})
        message = refused(capsys, self.CALL)
        twice = keys[SHUFFLED[1]]
        assert f"l.csv, line 3, column {ours!r}: the id {twice!r} appears twice, first in line 2" in message

    @pytest.mark.parametrize(("ours", "theirs"), [("nr", "number"), ("name", "Name"), ("x", "some column")])
    @pytest.mark.parametrize("keys", [NAMES, NUMBERS], ids=["text", "numbers"])
    @pytest.mark.parametrize("change", [list, repeated])
    def test_a_key_of_another_name_is_joined_or_asked_about(self, ours, theirs, keys, change, capsys):
        write_view("a", label=False, **{ours: keys})
        write_labels(**{theirs: change(shuffled(keys))})
        if keys is NAMES and change is list:
            assert understood(capsys, self.CALL)["id_columns"] == [ours]
            problem = read_labelled_files(["a.csv"], "l.csv", Options())
            assert problem.labels.y.tolist() == CLASSES
        else:
            message = refused(capsys, self.CALL)
            assert f"rows differ in {ours!r}, {theirs!r}, which may identify the samples" in message
            assert f"give them the same name and pass --id {ours}" in message

    def test_keys_that_are_written_in_another_way(self, capsys):
        write_view("a", label=False, name=NAMES)
        write_labels(Name=[name.lower() for name in shuffled(NAMES)])
        assert "rows differ in 'name', 'Name'" in refused(capsys, self.CALL)

    def test_many_labels_for_one_sample(self, capsys):
        write_view("a", label=False, name=NAMES)
        half = [NAMES[row // 2] for row in range(N)]
        write_labels(name=half)
        assert "'S0' appears twice" in refused(capsys, self.CALL)
        write_labels(who=half)
        assert "rows differ in 'name', 'who'" in refused(capsys, self.CALL)

    def test_a_repeated_key_of_labels_beside_views_with_ids(self, capsys):
        write_view("a", label=False, id=NAMES)
        write_labels(name=repeated(shuffled(NAMES)))
        assert "appears twice" in refused(capsys, self.CALL)

    def test_a_repeated_id_of_numbers_that_are_padded(self, capsys):
        write_view("a", label=False, nr=[f"{row:04d}" for row in range(N)])
        write_labels(number=[str(row) for row in SHUFFLED])
        assert "rows differ in 'nr', 'number'" in refused(capsys, self.CALL)

    def test_in_the_same_order_they_are_taken_by_position(self, capsys):
        """The key agrees with it, though a cell is blank; other columns say nothing."""
        write_view("a", label=False, nr=NUMBERS, size=[row % 7 for row in range(N)])
        for columns in (
            {"number": [*NUMBERS[:-1], ""]},
            {"Size": [row % 7 for row in range(N)], "score": [row % 5 for row in range(N)]},
            {"a0": VIEWS["a"][:, 0].round(1)},
        ):
            write_labels(IN_ORDER, **columns)
            assert understood(capsys, self.CALL)["labelled"] == N
            assert read_labelled_files(["a.csv"], "l.csv", Options()).labels.y.tolist() == CLASSES

    def test_what_is_dropped_is_no_key(self, capsys):
        write_view("a", label=False, nr=NUMBERS)
        write_labels(number=shuffled(NUMBERS))
        assert understood(capsys, self.CALL + " --drop nr")["labelled"] == N


class TestViews:
    @pytest.mark.parametrize("keys", [NAMES, NUMBERS], ids=["text", "numbers"])
    @pytest.mark.parametrize(
        ("change", "fault"),
        [(repeated, "appears twice, first in line 2"), (lambda keys: ["", *keys[1:]], "line 2, .*the id is blank")],
        ids=["repeated", "blank"],
    )
    @pytest.mark.parametrize("ours", ["subject", "tag"])
    @pytest.mark.parametrize("theirs", ["subject", "tag"])
    def test_a_key_with_a_fault(self, keys, change, fault, ours, theirs, capsys):
        write_view("a", **{ours: keys})
        write_view("b", SHUFFLED, **{theirs: change(shuffled(keys))})
        message = refused(capsys, "a.csv b.csv")
        assert "a.csv and b.csv would be joined by position, but their rows differ in" in message
        if ours == theirs:
            assert f"pass --id {ours}, else --drop {ours}" in message
        assert re.search(fault, message)

    @pytest.mark.parametrize("theirs", ["Subject", "participant"])
    def test_numbers_under_other_names(self, theirs, capsys):
        write_view("a", subject=NUMBERS)
        write_view("b", SHUFFLED, **{theirs: shuffled(NUMBERS)})
        message = refused(capsys, "a.csv b.csv")
        assert f"rows differ in 'subject', {theirs!r}" in message
        assert "give them the same name and pass --id subject" in message
        assert understood(capsys, "a.csv b.csv --drop subject")["id_columns"] == []

    @pytest.mark.parametrize("keys", [NAMES, NUMBERS], ids=["text", "numbers"])
    def test_keys_that_overlap_in_part(self, keys, capsys):
        other = [f"S{row + 36}" if keys is NAMES else str(1001 + row + 36) for row in range(N)]
        write_view("a", subject=keys)
        write_view("b", subject=other)
        assert "pass --id subject" in refused(capsys, "a.csv b.csv")
        assert understood(capsys, "a.csv b.csv --id subject")["samples"] == N + 36

    def test_long_whole_numbers_keep_their_digits(self, capsys):
        cards = [str(4_000_000_000_000_000_000 + row) for row in range(N)]
        write_view("a", card=cards)
        write_view("b", SHUFFLED, card=shuffled(cards))
        assert understood(capsys)["id_columns"] == ["card"]
        problem = read_labelled_files(["a.csv", "b.csv"], None, Options())
        assert problem.joined.ids.tolist() == cards
        np.testing.assert_array_equal(problem.joined.views["b"], VIEWS["b"])
        # In one file alone they are no feature, either.
        found = understood(capsys, "a.csv")
        assert (
            "Not used in a.csv: card (looks like ids; use --id NAME if it has them; --type overrides this)."
            in (found["notes"])
        )
        assert found["views"][0]["features"] == VIEWS["a"].shape[1]
        assert understood(capsys, "a.csv --type card=number")["views"][0]["features"] == VIEWS["a"].shape[1] + 1

    def test_a_key_of_two_columns(self, capsys):
        """Neither tells samples apart, both do."""
        sites, visits = [f"site {row // 4}" for row in range(N)], [row % 4 for row in range(N)]
        write_view("a", site=sites, visit=visits)
        write_view("b", SHUFFLED, site=shuffled(sites), visit=shuffled(visits))
        message = refused(capsys, "a.csv b.csv")
        assert "'site', 'visit', which may identify the samples together; put the key into one column" in message
        # The same where only one of them is in another order.
        within = [4 * (row // 4) + (row + 1) % 4 for row in range(N)]
        write_view("b", within, site=sites, visit=[visits[row] for row in within])
        assert "'visit', 'site', which may identify the samples together" in refused(capsys, "a.csv b.csv")
        write_view("b", site=sites, visit=visits)
        assert understood(capsys)["id_columns"] == []

    def test_measurements_in_another_order(self, capsys):
        """Numbers that are not whole are no ids, but the same ones in other rows are no feature either."""
        ages = np.random.default_rng(0).uniform(20, 60, N).round(3)
        write_view("a", age=ages)
        write_view("b", SHUFFLED, age=ages[SHUFFLED])
        assert "rows differ in 'age'" in refused(capsys, "a.csv b.csv")
        assert understood(capsys, "a.csv b.csv --type age=number")["id_columns"] == []

    def test_a_key_with_a_fault_beside_ids(self, capsys):
        write_view("a", id=NAMES)
        write_view("b", SHUFFLED, subject=repeated(shuffled(NAMES)))
        assert "rows differ in 'id', 'subject'" in refused(capsys, "a.csv b.csv")

    @pytest.mark.usefixtures("brief_report")
    def test_new_samples(self, capsys):
        write_view("a")
        write_view("b")
        assert main(["classify", "a.csv", "b.csv", "--out", "out", "-q"]) == 0
        write_view("a", subject=NAMES)
        write_view("b", SHUFFLED, subject=repeated(shuffled(NAMES)))
        assert main(["predict", "out/model.lmssc", "a.csv", "b.csv", "--out", "p.csv"]) == 2
        assert "rows differ in 'subject'" in capsys.readouterr().err


class TestRanks:
    @pytest.mark.parametrize("first", [0, 1])
    def test_are_asked_about(self, first, capsys):
        """Rows in the same order, ranked by each view: they were joined by rank."""
        for name in VIEWS:
            write_view(name, rank=VIEWS[name][:, 0].argsort().argsort() + first)
        message = refused(capsys, "a.csv b.csv")
        assert "'rank', but not in the same rows: are they ids or ranks? If ids, pass --id rank, else --drop" in message
        assert understood(capsys, "a.csv b.csv --type rank=number")["id_columns"] == []
        assert understood(capsys, "a.csv b.csv --id rank")["id_columns"] == ["rank"]

    def test_counters_whose_name_is_one_of_a_key_are_ids(self, capsys):
        counters = [row + 1 for row in range(N)]
        for name in ("nr", "subject_no", "Patient"):
            write_view("a", **{name: counters})
            write_view("b", SHUFFLED, **{name: shuffled(counters)})
            assert understood(capsys)["id_columns"] == [name]

    def test_in_the_same_rows_are_no_matter(self, capsys):
        for name in VIEWS:
            write_view(name, place=range(N))
        assert understood(capsys)["samples"] == N


class TestFeaturesOfTheSameName:
    """Files in the same order that share names of features are joined by position, as ever."""

    RANDOM = np.random.default_rng(9)

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (RANDOM.normal(size=N), RANDOM.normal(size=N)),
            (RANDOM.normal(size=N).round(1), RANDOM.normal(size=N).round(1)),
            (RANDOM.integers(0, 1000, N), RANDOM.integers(0, 1000, N)),
            (RANDOM.integers(0, 5, N), RANDOM.integers(0, 5, N)),
            (RANDOM.permutation(N) // 15, RANDOM.permutation(N) // 15),
            (RANDOM.choice(["red", "green", "blue"], N), RANDOM.choice(["red", "green", "blue"], N)),
            ([f"a{row}.png" for row in range(N)], [f"b{row}.wav" for row in range(N)]),
        ],
        ids=["measured", "rounded", "counts", "few counts", "quartiles", "categories", "file names"],
    )
    @pytest.mark.parametrize("name", ["mean", "Mean"])
    def test_are_joined_by_position(self, ours, theirs, name, capsys):
        write_view("a", mean=ours)
        write_view("b", **{name: theirs})
        assert understood(capsys)["id_columns"] == []
        views = read_labelled_files(["a.csv", "b.csv"], None, Options()).joined.views
        np.testing.assert_array_equal(views["b"][:, -5:], VIEWS["b"])

    def test_many_features_as_normal_scores(self, capsys):
        """Each has the same values in all files, in an order of its own."""
        scores = np.linspace(-2, 2, N)
        for name in VIEWS:
            write_view(name, **{f"gene {number}": self.RANDOM.permutation(scores) for number in range(9)})
        assert understood(capsys)["id_columns"] == []

    def test_with_a_key_that_agrees(self, capsys):
        """Where the rows of a key agree, nothing else is suspected."""
        keys = [*NAMES[:-1], NAMES[0]]
        write_view("a", subject=keys, place=self.RANDOM.permutation(N) + 5000)
        write_view("b", Subject=keys, rank=self.RANDOM.permutation(N) + 5000)
        assert understood(capsys)["id_columns"] == []


SPELLINGS = {
    "leading zeros": (lambda row: f"{row + 90:03}", lambda row: str(row + 90), "'090'", "'90'"),
    "zeros after a letter": (lambda row: f"S{row + 5:02}", lambda row: f"S{row + 5}", "'S05'", "'S5'"),
    "decimals": (lambda row: f"{row}.0" if row < 3 else str(row), str, "'0.0'", "'0'"),
    "case": (lambda row: f"M{row}" if row < 3 else f"m{row}", lambda row: f"m{row}", "'M0'", "'m0'"),
}


class TestSpelling:
    """Ids that only some samples have in two spellings: they became two samples each, one view short."""

    @pytest.mark.parametrize("way", SPELLINGS)
    def test_ids_that_files_write_differently_are_refused(self, way, capsys):
        ours, theirs, one, two = SPELLINGS[way]
        write_view("a", id=[ours(row) for row in range(N)])
        write_view("b", id=[theirs(row) for row in range(N)])
        message = refused(capsys, "a.csv b.csv")
        assert f"a.csv has the id {one}, b.csv {two}" in message
        assert "write ids in the same way in all files" in message

    def test_spellings_that_differ_within_a_file_are_different_ids(self, capsys):
        write_view("a", id=["x", "X", "y", *NAMES[3:]])
        write_view("b", id=["x", "X", "Y", *NAMES[3:]])
        assert understood(capsys)["samples"] == N + 1


def test_a_file_without_ids_beside_one_with_ids_is_said_to_be_joined_by_position(capsys):
    write_view("a", id=NAMES)
    np.save("b.npy", VIEWS["b"])
    assert main(["classify", "a.csv", "b.npy", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "joined by the column 'id'" in lines[0]
    assert [line.endswith("; no ids: its rows are taken in the order of the others") for line in lines[1:3]] == [
        False,
        True,
    ]
    write_view("b", id=NAMES)
    assert main(["classify", "a.csv", "b.csv", "--dry-run"]) == 0
    assert "order of the others" not in capsys.readouterr().out


@pytest.mark.parametrize("limit", ["lots", "0", "-1GB"])
def test_a_dry_run_checks_the_memory_limit(limit, capsys):
    write_view("a", id=NAMES)
    assert f"--memory-limit must be an amount of memory, such as 6GB or 500MB; got '{limit}'" in refused(
        capsys, f"a.csv --memory-limit={limit}"
    )
