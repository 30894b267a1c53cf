"""Labels to and from other programs: labels.csv, the JSON of Label Studio, and JSON Lines as Argilla has them.

A file that is read is data: nothing in it is run or followed, and what does not fit is an error that says where.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lmssc.data.labels import is_missing_word
from lmssc.io.errors import InputFileError
from lmssc.io.spreadsheet import unescape_formula
from lmssc.studio.answer_store import LABEL, NONE, SKIP, StoredAnswer
from lmssc.studio.names import RequestError, check_annotator, check_label

CSV, LABEL_STUDIO, ARGILLA = "csv", "label-studio", "argilla"
FORMATS = {CSV: "labels.csv", LABEL_STUDIO: "label-studio.json", ARGILLA: "argilla.jsonl"}
"""Formats, and the name of the file in each."""
MAX_FILE_BYTES = 1 << 30
# What "none of these" is called where a program has no such answer.
NONE_OF_THESE = "none of these"


def export_label_studio(answers: Iterable[StoredAnswer], texts: Mapping[str, Mapping[str, str]]) -> bytes:
    """Answers as annotated tasks of Label Studio: a list of ``{"data": {"id", ...}, "annotations": [...]}``.

    Parameters
    ----------
    answers : iterable of StoredAnswer
        Those that stand.
    texts : mapping of str to mapping
        What the files say about each sample, by column.
    """
    tasks: dict[str, dict[str, Any]] = {}
    for answer in answers:
        data = {**texts.get(answer.sample, {}), "id": answer.sample}
        task = tasks.setdefault(answer.sample, {"data": data, "annotations": []})
        choices = {LABEL: [answer.label], NONE: [NONE_OF_THESE], SKIP: []}[answer.kind]
        result = [{"from_name": "label", "to_name": "sample", "type": "choices", "value": {"choices": choices}}]
        task["annotations"].append(
            {
                "result": result if choices else [],
                "was_cancelled": answer.kind == SKIP,
                "created_at": answer.time,
                "created_username": answer.annotator,
            }
        )
    return json.dumps(list(tasks.values()), ensure_ascii=False, indent=1).encode(errors="replace")


def export_argilla(answers: Iterable[StoredAnswer], texts: Mapping[str, Mapping[str, str]]) -> bytes:
    """Answers as records of Argilla, one JSON object a line, with all responses to the question "label"."""
    records: dict[str, dict[str, Any]] = {}
    for answer in answers:
        fields = dict(texts.get(answer.sample, {})) or {"id": answer.sample}
        empty = {"id": answer.sample, "fields": fields, "responses": {"label": []}, "suggestions": {}, "metadata": {}}
        record = records.setdefault(answer.sample, empty)
        value = NONE_OF_THESE if answer.kind == NONE else answer.label
        status = "discarded" if answer.kind == SKIP else "submitted"
        response = {"value": value, "user_id": answer.annotator, "status": status, "inserted_at": answer.time}
        record["responses"]["label"].append(response)
        guesses = answer.shown.get("guesses") or []
        if guesses:
            first = guesses[0]
            record["suggestions"]["label"] = {
                "value": first["label"],
                "score": first["probability"],
                "agent": "lmssc",
            }
    lines = [json.dumps(record, ensure_ascii=False) for record in records.values()]
    return "".join(line + "\n" for line in lines).encode(errors="replace")


def read_answers(path: Path, known: Mapping[str, Any], annotator: str, now: str) -> list[StoredAnswer]:
    """Read answers from a file in any of the three formats; the ending tells which.

    Parameters
    ----------
    path : Path
        ``.csv``, ``.json`` (Label Studio) or ``.jsonl`` (Argilla).
    known : mapping
        The samples, by id.
    annotator : str
        Who gave answers of which the file does not say that.
    now : str
        Time of answers of which the file does not say that.

    Raises
    ------
    InputFileError
        If the file cannot be read, or has an id that no sample has.
    """
    readers = {".csv": _read_csv, ".json": _read_label_studio, ".jsonl": _read_argilla}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputFileError(f"{path}: answers come from .csv, .json (Label Studio) or .jsonl (Argilla) files")
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputFileError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
        content = path.read_text(encoding="utf-8-sig")
        rows = list(reader(content))
    except OSError as error:
        raise InputFileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, csv.Error) as error:
        if isinstance(error, InputFileError):
            raise
        raise InputFileError(f"{path} is not a file of labels: {type(error).__name__}: {error}") from error
    answers = []
    for place, (sample, label, kind, who, when) in enumerate(rows, 1):
        if sample not in known:
            raise InputFileError(f"{path}, answer {place}: no file has a sample with the id {sample!r}")
        if kind == LABEL and label == NONE_OF_THESE:
            label, kind = None, NONE
        try:
            label = None if label is None else check_label(label)
            who = check_annotator(who or annotator)
        except RequestError as error:
            raise InputFileError(f"{path}, answer {place}: {error}") from error
        answers.append(StoredAnswer(0, sample, kind, label, who, when or now, {"why_asked": "imported"}))
    return answers


Row = tuple[str, str | None, str, str | None, str | None]


def _read_csv(content: str) -> Iterable[Row]:
    """Labels by id; or, of a single column, by position, with a blank line for a sample without a label."""
    header, *rows = csv.reader(io.StringIO(content))
    if "label" not in header:
        raise ValueError("it has no column 'label'")
    place = header.index("label")
    own = header.index("id") if "id" in header else (0 if len(header) > 1 else None)
    for number, row in enumerate(rows, 1):
        label = unescape_formula(row[place].strip()) if len(row) > place else ""
        if not is_missing_word(label):
            key = str(number) if own is None else unescape_formula(row[own].strip())
            yield key, label, LABEL, None, None


def _read_label_studio(content: str) -> Iterable[Row]:
    for task in json.loads(content):
        sample = str(task["data"]["id"])
        for annotation in task.get("annotations", []):
            who = annotation.get("created_username") or annotation.get("completed_by")
            when = annotation.get("created_at")
            if annotation.get("was_cancelled"):
                yield sample, None, SKIP, _text(who), _text(when)
                continue
            choices = [one for result in annotation["result"] for one in result["value"].get("choices", [])]
            if len(choices) > 1:
                raise ValueError(f"the task {sample!r} has several choices: {choices}")
            if choices and not isinstance(choices[0], str):
                raise ValueError(f"the task {sample!r} has a choice that is not text: {choices[0]!r}")
            if choices:
                yield sample, choices[0], LABEL, _text(who), _text(when)


def _read_argilla(content: str) -> Iterable[Row]:
    for line in filter(str.strip, content.split("\n")):
        record = json.loads(line)
        for response in record.get("responses", {}).get("label", []):
            who, when = _text(response.get("user_id")), _text(response.get("inserted_at"))
            if response.get("status") == "discarded":
                yield str(record["id"]), None, SKIP, who, when
            elif response.get("value") is not None:
                yield str(record["id"]), str(response["value"]), LABEL, who, when


def _text(value: Any) -> str | None:
    """A name or a time as text."""
    text = None if value is None else str(value)
    if text is not None and not text.isprintable():
        raise ValueError(f"{text!r} has a character that cannot be stored")
    return text
