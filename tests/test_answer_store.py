"""Answers on disk: what is confirmed is there, nothing is there twice, nothing is ever deleted."""

import os
import sqlite3
import stat
import threading

import pytest

from lmssc.studio.agreement import cohen_kappa, consensus
from lmssc.studio.answer_store import LABEL, NONE, SKIP, AnswerStore, StoredAnswer, StoreError


@pytest.fixture
def store(tmp_path):
    made = AnswerStore(tmp_path / "out")
    yield made
    made.close()


def standing(store):
    return [(one.sample, one.kind, one.label, one.annotator) for one in store.standing()]


def test_what_is_added_is_in_the_file_when_the_call_returns(tmp_path, store):
    store.add("s1", "cat", "ann", shown={"guesses": [{"label": "dog", "probability": 0.6}]})
    # Another process would find it after this one is killed: the log is complete.
    for name in ("answers.sqlite", "answers.sqlite-wal"):
        (tmp_path / name).write_bytes((tmp_path / "out" / name).read_bytes())
    rows = sqlite3.connect(tmp_path / "answers.sqlite").execute("SELECT sample, label, shown FROM answers").fetchall()
    assert rows == [("s1", "cat", '{"guesses": [{"label": "dog", "probability": 0.6}]}')]
    pragmas = [store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert pragmas == ["wal", 2]  # 2 is FULL


def test_the_same_answer_twice_counts_once_and_another_replaces_it(store):
    first = store.add("s1", "cat", "ann")
    assert store.add("s1", "cat", "ann") == first
    store.add("s1", "dog", "ann")
    store.add("s1", "cat", "bob")
    assert standing(store) == [("s1", LABEL, "dog", "ann"), ("s1", LABEL, "cat", "bob")]
    assert [(one.number, one.label, one.undone is None) for one in store.all()] == [
        (1, "cat", False),
        (2, "dog", True),
        (3, "cat", True),
    ]


def test_undo_takes_the_last_answer_of_the_annotator_and_may_be_repeated(store):
    store.add("s1", "cat", "ann")
    second = store.add("s2", None, "ann", kind=SKIP)
    store.add("s3", None, "bob", kind=NONE)
    assert store.undo("ann", second.number) == second
    assert store.undo("ann", second.number) is None
    assert standing(store) == [("s1", LABEL, "cat", "ann"), ("s3", NONE, None, "bob")]
    assert store.undo("ann").sample == "s1"
    assert store.undo("ann") is None
    assert len(store.all()) == 3


def test_an_undone_sample_can_be_answered_again(store):
    store.add("s1", "cat", "ann")
    store.undo("ann")
    assert store.add("s1", "cat", "ann").number == 2


def test_opened_again_it_goes_on(tmp_path):
    store = AnswerStore(tmp_path)
    store.add_classes(["dog", "cat"])
    store.add("s1", "cow", "ann")
    store.close()
    again = AnswerStore(tmp_path)
    assert again.classes == ["dog", "cat", "cow"]
    assert standing(again) == [("s1", LABEL, "cow", "ann")]
    again.close()


def test_one_process_at_a_time(tmp_path, store):
    with pytest.raises(StoreError, match="in use: another 'lmssc label'"):
        AnswerStore(tmp_path / "out")


def test_only_the_owner_may_read_it(store):
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(store.path.parent).st_mode) == 0o700


@pytest.mark.parametrize("content", [b"not a database at all, but longer than a header" * 50, None])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "answers.sqlite"
    if content is None:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE mine (x)")
        other.close()
    else:
        path.write_bytes(content)
    with pytest.raises(StoreError, match="not a file of answers"):
        AnswerStore(tmp_path)


def test_a_newer_format_is_refused(tmp_path):
    store = AnswerStore(tmp_path)
    store._connection.execute("UPDATE facts SET value = '99' WHERE name = 'format'")
    store.close()
    with pytest.raises(StoreError, match="format 99"):
        AnswerStore(tmp_path)


def test_many_threads_lose_nothing(store):
    def work(name):
        for i in range(40):
            store.add(f"s{i}", "cat", name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.standing()) == 160
    assert [one.number for one in store.all()] == list(range(1, 161))


def test_imported_answers_do_not_replace_own_ones(store):
    store.add("s1", "cat", "ann")
    imported = [
        StoredAnswer(0, sample, LABEL, "dog", who, "2024-01-01", {}) for sample, who in (("s1", "ann"), ("s2", "ann"))
    ]
    assert store.add_imported(imported) == 1
    assert store.add_imported(imported) == 0
    assert standing(store) == [("s1", LABEL, "cat", "ann"), ("s2", LABEL, "dog", "ann")]


def test_kappa_of_scikit_learn():
    from sklearn.metrics import cohen_kappa_score

    one, other = "xxyyzzxyzx", "xxyyzzyyzz"
    answers = {
        str(i): {
            "ann": StoredAnswer(0, "", LABEL, a, "ann", ""),
            "bob": StoredAnswer(0, "", LABEL, b, "bob", ""),
        }
        for i, (a, b) in enumerate(zip(one, other, strict=True))
    }
    found = cohen_kappa(answers)
    assert found["kappa"] == pytest.approx(cohen_kappa_score(list(one), list(other)), abs=1e-4)
    assert (found["samples"], found["agree"]) == (10, 8)
    assert cohen_kappa({"s": {"ann": answers["0"]["ann"]}}) is None
    assert cohen_kappa({"s": answers["0"]}) == {"kappa": None, "samples": 1, "agree": 1}


def test_consensus_of_no_answers():
    assert consensus([]) is None
