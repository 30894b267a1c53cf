"""The API of the studio: what the page is built on, exchange with other programs, two annotators."""

import csv
import io
import json
import sqlite3

import numpy as np
import pytest

pytest.importorskip("starlette")

from lmssc.cli import main
from lmssc.io.errors import CommandError, InputFileError
from studio_client import TOKEN, get, make_studio, post, request, write_samples


@pytest.fixture
def studio(tmp_path):
    path, truth = write_samples(tmp_path)
    made = make_studio(path, tmp_path / "out")
    made.truth, made.path = truth, path
    yield made
    made.close()


def label_next(studio, n, annotator="me"):
    for _ in range(n):
        found = get(studio.app, "/api/next", annotator=annotator)
        body = {"id": found["id"], "label": studio.truth[found["id"]], "annotator": annotator}
        post(studio.app, "/api/label", body)


def test_a_session_from_the_first_label_to_the_export(studio, tmp_path):
    first = get(studio.app, "/api/next")
    assert first["guesses"] == []
    assert first["because"] == []
    assert {part["kind"] for part in first["content"]} == {"table"}
    label_next(studio, 9)
    studio.session.engine.settle()
    state = get(studio.app, "/api/state")
    assert (state["labelled"], state["samples"], state["model"]["fits"]) == (9, 60, 1)
    assert [one["name"] for one in state["classes"]] == list(dict.fromkeys(studio.session.labels().values()))
    found = get(studio.app, "/api/next")
    assert sum(guess["probability"] for guess in found["guesses"]) == pytest.approx(1, abs=1e-3)
    assert sum(reason["weight"] for reason in found["because"]) <= 1.001
    assert all(reason["label"] == studio.truth[reason["id"]] for reason in found["because"])
    exported = request(studio.app, "GET", "/api/export", query={"format": "csv"})
    assert exported.headers["content-disposition"] == 'attachment; filename="labels.csv"'
    rows = list(csv.DictReader(io.StringIO(exported.content.decode())))
    assert {row["id"]: row["label"] for row in rows} == studio.session.labels()
    # `classify` takes it as it is.
    (tmp_path / "labels.csv").write_bytes(exported.content)
    arguments = [str(studio.path), "--labels", str(tmp_path / "labels.csv"), "--drop", "body", "--no-report", "--quiet"]
    assert main(["classify", *arguments, "--out", str(tmp_path / "result")]) == 0


def test_the_answer_says_what_changed_and_undo_gives_the_state_back(studio):
    label_next(studio, 6)
    studio.session.engine.settle()
    before = get(studio.app, "/api/state")
    shares = studio.session.engine._live.probabilities.copy()
    found = get(studio.app, "/api/next")
    taken = post(studio.app, "/api/label", {"id": found["id"], "label": before["classes"][0]["name"]})
    assert taken["number"] == 7
    assert taken["changed"] >= 0
    assert get(studio.app, "/api/state") != before
    undone = post(studio.app, "/api/undo", {"number": 7})
    assert (undone["undone"], undone["id"]) == (7, found["id"])
    after = get(studio.app, "/api/state")
    after["model"]["up_to_date"] = before["model"]["up_to_date"]
    assert after == before
    assert (studio.session.engine._live.probabilities == shares).all()
    assert get(studio.app, "/api/next")["id"] == found["id"]  # it is asked again
    assert post(studio.app, "/api/undo", {"number": 7}) == {"undone": None}


def test_skipped_samples_come_last_and_none_of_these_never(studio):
    seen = []
    for kind in ("skip", "none"):
        found = get(studio.app, "/api/next")
        post(studio.app, "/api/label", {"id": found["id"], "kind": kind})
        seen.append(found["id"])
    label_next(studio, 58)
    assert get(studio.app, "/api/state")["labelled"] == 58
    last = get(studio.app, "/api/next")
    assert (last["id"], last["why_asked"]) == (seen[0], "skip")
    post(studio.app, "/api/label", {"id": seen[0], "label": "u"})
    assert get(studio.app, "/api/next")["id"] is None


def test_started_again_it_goes_on(tmp_path):
    path, truth = write_samples(tmp_path)
    studio = make_studio(path, tmp_path / "out")
    studio.truth = truth
    label_next(studio, 8)
    studio.session.engine.settle()
    before = get(studio.app, "/api/state")
    studio.close()
    assert len((tmp_path / "out" / "labels.csv").read_text().splitlines()) == 9
    again = make_studio(path, tmp_path / "out")
    again.session.engine.settle()
    after = get(again.app, "/api/state")
    assert [after[name] for name in ("labelled", "classes", "annotators")] == [
        before[name] for name in ("labelled", "classes", "annotators")
    ]
    again.close()


def test_answers_about_other_samples_are_refused(tmp_path):
    path, truth = write_samples(tmp_path)
    studio = make_studio(path, tmp_path / "out")
    studio.truth = truth
    label_next(studio, 1)
    studio.close()
    path.write_text(path.read_text().replace("\ns0", "\nx0"))
    with pytest.raises(ValueError, match="samples that these files do not have"):
        make_studio(path, tmp_path / "out")


def test_given_labels_count_and_answers_have_precedence(tmp_path):
    path, truth = write_samples(tmp_path)
    some = dict(list(truth.items())[:10])
    (tmp_path / "known.csv").write_text("id,label\n" + "".join(f"{key},{label}\n" for key, label in some.items()))
    studio = make_studio(path, tmp_path / "out", labels=[tmp_path / "known.csv"])
    assert get(studio.app, "/api/state")["given"] == 10
    assert get(studio.app, "/api/next")["id"] not in some
    key = next(iter(some))
    post(studio.app, "/api/label", {"id": key, "label": "other"})
    assert studio.session.labels()[key] == "other"
    post(studio.app, "/api/undo", {})
    assert studio.session.labels()[key] == some[key]
    studio.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"id": "nobody", "label": "u"}, "no sample 'nobody'"),
        ({"id": "s001"}, "label must be text"),
        ({"id": 7, "label": "u"}, "id must be text"),
        ({"id": "s001", "label": "  "}, "1 to 200 characters"),
        ({"id": "s001", "label": "x" * 201}, "1 to 200 characters"),
        ({"id": "s001", "label": "a\x00b"}, "control characters"),
        ({"id": "s001", "label": "NA"}, "no label"),
        ({"id": "s001", "label": "\ud800"}, ""),
        ({"id": "s001", "label": "u", "annotater": "ann"}, "unknown: 'annotater'"),
        ({"id": "s001", "kind": "maybe"}, "kind must be label, skip or none"),
        ({"id": "s001", "label": "u", "annotator": "x" * 300}, "1 to 200 printable"),
        ([1, 2], "JSON object"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_wrong_answers_are_refused_and_change_nothing(studio, body, message):
    found = request(studio.app, "POST", "/api/label", body=body)
    assert found.status == 400
    assert message in json.loads(found.content)["error"]
    assert studio.session.store.all() == []


def test_an_answer_that_cannot_be_saved_is_not_taken(studio, monkeypatch):
    label_next(studio, 3)
    before = get(studio.app, "/api/state")

    def full(*args, **kwargs):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(studio.session.store, "add", full)
    found = request(studio.app, "POST", "/api/label", body={"id": "s050", "label": "u"})
    assert found.status == 507
    assert "could not be saved" in json.loads(found.content)["error"]
    assert get(studio.app, "/api/state") == before


def test_lists_to_go_through(studio):
    label_next(studio, 20)
    studio.session.engine.settle()
    for which in ("informative", "uncertain"):
        listed = get(studio.app, "/api/list", list=which)["samples"]
        assert listed
        assert all(one["label"] is None for one in listed)
    for which in ("uncertain", "random"):
        found = get(studio.app, "/api/next", list=which)
        assert found["why_asked"] == which
        post(studio.app, "/api/label", {"id": found["id"], "label": studio.truth[found["id"]]})
    checked = get(studio.app, "/api/state")["checked"]
    assert checked["samples"] == 1  # only the random one measures accuracy
    chosen = next(key for key in studio.session.ids if key not in studio.session.labels())
    assert get(studio.app, "/api/next", list="random", id=chosen)["why_asked"] == "chosen"
    labelled = next(key for key, label in studio.session.labels().items())
    wrong = next(name for name in "uvw" if name != studio.truth[labelled])
    post(studio.app, "/api/label", {"id": labelled, "label": wrong, "annotator": "me"})
    listed = {one["id"]: one for one in get(studio.app, "/api/list", list="suspected")["samples"]}
    assert listed[labelled]["label"] == wrong
    assert listed[labelled]["guesses"][0]["label"] == studio.truth[labelled]  # what the others say
    # The annotator's own labels come up as well, each once.
    seen = []
    while (found := get(studio.app, "/api/next", list="suspected"))["id"] is not None:
        seen.append(found["id"])
        assert found["labelled"]
        assert found["because"]
        assert found["mine"]["label"] == studio.session.labels()[found["id"]]
        post(studio.app, "/api/label", {"id": found["id"], "label": studio.truth[found["id"]]})
    assert labelled in seen
    assert len(seen) == len(set(seen))
    assert studio.session.labels()[labelled] == studio.truth[labelled]
    assert request(studio.app, "GET", "/api/next", query={"list": "nonsense"}).status == 400


def test_two_annotators_disagree_and_agree(tmp_path):
    path, truth = write_samples(tmp_path)
    studio = make_studio(path, tmp_path / "out", annotators=["ann", "bob"])
    studio.truth = truth
    assert request(studio.app, "GET", "/api/next", query={"annotator": "eve"}).status == 400
    first, second = (get(studio.app, "/api/next", annotator=name)["id"] for name in ("ann", "bob"))
    assert first != second  # not the same sample in front of both
    rng, expected, shared = np.random.default_rng(0), {}, 0
    for turn in range(100):
        name = ("ann", "bob")[turn % 2]
        found = get(studio.app, "/api/next", annotator=name)
        if found["id"] is None:
            break
        shared += found["why_asked"] == "agreement"
        label = truth[found["id"]] if rng.random() < 0.8 else "u"
        post(studio.app, "/api/label", {"id": found["id"], "label": label, "annotator": name})
        expected.setdefault(found["id"], {})[name] = label
    assert shared > 5
    differ = {key: said for key, said in expected.items() if len(set(said.values())) > 1}
    listed = get(studio.app, "/api/list", list="disagreements", annotator="ann")["samples"]
    assert {one["id"]: one["labels"] for one in listed} == differ
    key, said = next(iter(differ.items()))
    assert get(studio.app, "/api/next", id=key, annotator="ann")["others"] == {"bob": said["bob"]}
    alone = next(key for key, said in expected.items() if set(said) == {"bob"})
    assert get(studio.app, "/api/next", id=alone, annotator="ann")["others"] == {}  # nobody is told before the answer
    state = get(studio.app, "/api/state")
    assert state["disagreements"] == len(differ) > 0
    both = [said for said in expected.values() if len(said) == 2]
    assert (state["kappa"]["samples"], state["kappa"]["agree"]) == (len(both), len(both) - len(differ))
    assert all(key not in studio.session.labels() for key in differ)  # a tie is no label
    studio.close()


@pytest.mark.parametrize(("name", "file"), [("label-studio", "a.json"), ("argilla", "a.jsonl"), ("csv", "a.csv")])
def test_what_is_exported_can_be_imported(studio, tmp_path, name, file):
    label_next(studio, 6)
    for kind in ("skip", "none"):
        post(studio.app, "/api/label", {"id": get(studio.app, "/api/next")["id"], "kind": kind})
    odd = get(studio.app, "/api/next")["id"]
    post(studio.app, "/api/label", {"id": odd, "label": '=<b>"odd", 名'})
    (tmp_path / file).write_bytes(request(studio.app, "GET", "/api/export", query={"format": name}).content)
    again = make_studio(studio.path, tmp_path / "other", imports=[tmp_path / file])
    assert again.session.labels() == studio.session.labels()
    if name != "csv":
        kinds = [{(one.sample, one.kind) for one in made.session.store.standing()} for made in (studio, again)]
        assert kinds[0] == kinds[1]
        assert {one.annotator for one in again.session.store.standing()} == {"me"}
    again.close()


def test_without_ids_the_export_has_a_line_for_each_sample(tmp_path, monkeypatch):
    path, truth = write_samples(tmp_path, text=False)
    lines = [line.partition(",")[2] for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")
    studio = make_studio(path, tmp_path / "out")
    labels = list(truth.values())
    for number in (1, 2, 3, 5, 8, 13, 21, 34):
        post(studio.app, "/api/label", {"id": str(number), "label": labels[number - 1]})
    studio.close()
    exported = (tmp_path / "out" / "labels.csv").read_text().splitlines()
    assert len(exported) == 61
    assert exported[:4] == ["label", *labels[:3]]
    arguments = [str(path), "--labels", str(tmp_path / "out" / "labels.csv"), "--no-report", "--quiet"]
    assert main(["classify", *arguments, "--out", str(tmp_path / "result")]) == 0


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("a.json", '[{"data": {"id": "nobody"}, "annotations": [{"result": [{"value": {"choices": ["u"]}}]}]}]'),
        ("a.json", '{"data": 1}'),
        ("a.json", "[" * 100_000),
        ("a.jsonl", "no json"),
        ("a.csv", "id,class\ns001,u\n"),
        ("a.txt", ""),
        ("a.csv", ""),
        ("a.csv", "id,label\ns001," + "u" * 200_000 + "\n"),
        ("a.csv", "id,label\ns001," + "u" * 1_000 + "\n"),
        ("a.csv", "id,label\ns001,u\u202ev\n"),
        ("a.jsonl", '{"id": "s001", "responses": {"label": [{"value": "\\ud800"}]}}'),
        ("a.jsonl", '{"id": "s001", "responses": {"label": [{"value": "u", "user_id": "\\ud800"}]}}'),
        ("a.jsonl", '{"id": "s001", "responses": {"label": [{"value": "u", "inserted_at": "\\ud800"}]}}'),
        ("a.json", '[{"data": {"id": "s001"}, "annotations": [{"result": [{"value": {"choices": ["u", "v"]}}]}]}]'),
    ],
)
def test_files_that_cannot_be_imported_are_errors_with_their_name(tmp_path, file, content):
    path, _ = write_samples(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(InputFileError, match=file):
        make_studio(path, tmp_path / "out", imports=[tmp_path / file])
    make_studio(path, tmp_path / "out").close()  # the folder is free again


# ---- Label Studio

CONFIG = '<View><Text name="t" value="$body"/><Choices name="kind" toName="t"><Choice value="u"/></Choices></View>'


def test_label_studio_gets_predictions_an_order_and_tells_of_annotations(studio):
    base = f"/t/{TOKEN}"
    health = request(studio.app, "GET", f"{base}/health", token=None)
    assert json.loads(health.content)["status"] == "UP"
    tasks = [{"id": i, "data": {"id": key, "body": "x"}} for i, key in enumerate(studio.truth)]
    for i in range(12):
        key = get(studio.app, "/api/next", annotator="ls@example.org")["id"]
        event = {
            "action": "ANNOTATION_CREATED",
            "task": {"id": i, "data": {"id": key}},
            "annotation": {
                "id": 100 + i,
                "completed_by": "ls@example.org",
                "result": [{"from_name": "kind", "to_name": "t", "value": {"choices": [studio.truth[key]]}}],
            },
        }
        assert request(studio.app, "POST", f"{base}/webhook", body=event, token=None).status == 201
    studio.session.engine.settle()
    version = json.loads(request(studio.app, "POST", f"{base}/setup", body={"schema": CONFIG}, token=None).content)
    body = {"tasks": [*tasks, {"id": 999, "data": {"id": "nobody"}}], "label_config": CONFIG}
    found = json.loads(request(studio.app, "POST", f"{base}/predict", body=body, token=None).content)
    assert found["model_version"] == version["model_version"] == "lmssc-1-12"
    assert len(found["results"]) == 61
    assert found["results"][-1]["result"] == []
    first = found["results"][0]["result"][0]
    assert (first["from_name"], first["to_name"], first["type"]) == ("kind", "t", "choices")
    right = [
        one["result"][0]["value"]["choices"] == [truth]
        for one, truth in zip(found["results"][:-1], studio.truth.values(), strict=True)
    ]
    assert np.mean(right) > 0.7
    # The lowest score is that of the sample that the studio would ask for.
    scores = {task["data"]["id"]: one["score"] for task, one in zip(tasks, found["results"][:-1], strict=True)}
    assert min(scores, key=scores.get) == get(studio.app, "/api/next", annotator="ls@example.org")["id"]
    gone = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 100}, {"id": 101}]}
    assert post(studio.app, "/webhook", gone) == {"undone": 2}
    assert get(studio.app, "/api/state")["labelled"] == 10
    assert post(studio.app, "/webhook", {"action": "PROJECT_UPDATED"}) == {"ignored": "PROJECT_UPDATED"}


@pytest.mark.parametrize(
    "config",
    [
        "<View/>",
        "no xml",
        '<!DOCTYPE x [<!ENTITY a "aaaa">]><View><Choices name="&a;"/></View>',
        "<View>" + "x" * 200_000 + "</View>",
    ],
)
def test_configurations_that_cannot_be_used_are_refused(studio, config):
    found = request(studio.app, "POST", "/predict", body={"tasks": [], "label_config": config})
    assert found.status == 400


@pytest.mark.parametrize("body", [{"tasks": "x"}, {"tasks": [1]}, {"tasks": [], "label_config": 7}])
def test_odd_requests_of_label_studio_are_refused(studio, body):
    assert request(studio.app, "POST", "/predict", body=body).status == 400
    assert request(studio.app, "POST", "/webhook", body={"action": "ANNOTATION_CREATED", "task": 5}).status == 400
    odd = {"task": {"data": {"id": "s001"}}, "annotation": {"result": [{"value": {"choices": [{"a": 1}]}}]}}
    assert request(studio.app, "POST", "/webhook", body={"action": "ANNOTATION_CREATED", **odd}).status == 400
    assert len(request(studio.app, "POST", "/api/label", body={"id": "x" * 10**6, "label": "u"}).content) < 1000


# ---- the command


def test_a_public_address_wants_a_word(tmp_path, capsys):
    path, _ = write_samples(tmp_path)
    assert main(["label", str(path), "--host", "0.0.0.0", "--out", str(tmp_path / "out")]) == 2
    assert "--i-know-it-is-public" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--show", "image=nowhere/{id}.png"], "there is no folder nowhere"),
        (["--show", "text=nothing"], "no file has a column 'nothing'"),
        (["--show", "video=x/{id}.mp4"], "KIND is image, audio, text"),
        (["--show", "image=picture.png"], "{id} or {column}"),
        (["--port", "99999"], "--port must be from 0 to 65535"),
        (["--classes", "a,NA"], 'stands for "no label"'),
        (["--import", "missing.csv"], "cannot be read"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, capsys, options, message):
    path, _ = write_samples(tmp_path)
    assert main(["label", str(path), "--out", str(tmp_path / "out"), "--no-browser", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_folder_in_use_is_refused(studio, tmp_path):
    with pytest.raises(CommandError, match="another 'lmssc label' runs"):
        make_studio(studio.path, tmp_path / "out")
