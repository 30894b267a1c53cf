"""The store: what is on disk outlives the program, and a damaged file is as good as none."""

import pickle

from lmssc.evaluation.store import Store


def test_another_store_on_the_same_folder_knows(tmp_path):
    Store(tmp_path / "new" / "folder").write("k", {"accuracy": 0.5})
    assert Store(tmp_path / "new" / "folder").read("k") == {"accuracy": 0.5}


def test_damaged_files_are_done_again(tmp_path):
    store = Store(tmp_path)
    store.write("k", {"accuracy": 0.5})
    (tmp_path / "runs" / "k.json").write_text('{"accur')
    assert store.read("k") == {"accuracy": 0.5}  # it is still known here
    assert Store(tmp_path).read("k") is None


def test_a_worker_gets_the_folder_and_not_all_records(tmp_path):
    store = Store(tmp_path)
    for number in range(50):
        store.remember(str(number), {"accuracy": 0.5})
    copy = pickle.loads(pickle.dumps(store))
    assert copy.read("7") is None
    copy.write("50", {"accuracy": 1.0})
    assert store.read("50") == {"accuracy": 1.0}
