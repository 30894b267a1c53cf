"""A machine-learning backend for Label Studio: suggestions for its tasks, an order, and its annotations as answers.

Label Studio asks `/health` and `/setup`, sends tasks to `/predict`, and tells of annotations at `/webhook`. A task is
matched to a sample by `data.id`. The backend should be named lmssc there. The score of a prediction is low for samples
to label soon, so that Label Studio's "uncertainty sampling" asks for the most informative first.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from lmssc.studio.names import RequestError
from lmssc.studio.session import INFORMATIVE, Session

# Version of each prediction. Label Studio sorts and samples by the predictions whose version is that of the project,
# which is the name of the backend.
NAME = "lmssc"
MAX_CONFIG = 100_000
# Scores of the samples to label next: below those of all others.
NEXT_SCORE = 1e-3
CREATED, UPDATED, DELETED = "ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED"


def health() -> dict[str, Any]:
    """That the backend is there."""
    return {"status": "UP", "model_class": "lmssc"}


def setup(session: Session) -> dict[str, Any]:
    """The version of the model, which changes with each label: Label Studio then asks for new predictions."""
    return {"model_version": model_version(session)}


def model_version(session: Session) -> str:
    """Name of the present state of the model."""
    facts = session.state()
    return f"lmssc-{facts['model']['fits']}-{facts['labelled']}"


def predict(session: Session, tasks: Sequence[Mapping[str, Any]], config: str) -> dict[str, Any]:
    """Predictions for tasks, in their order; tasks that are no sample get an empty result.

    Parameters
    ----------
    session : Session
        The samples and the model.
    tasks : sequence of dict
        Tasks of Label Studio.
    config : str
        Its labelling configuration, in which the first `Choices` is answered.
    """
    from_name, to_name = find_choices(config)
    version = model_version(session)
    soon = {key: place for place, key in enumerate(one["id"] for one in session.listed(INFORMATIVE, "label-studio"))}
    samples = [_sample_of(task) for task in tasks]
    known = {key: session.rows[key] for key in samples if key in session.rows}
    shares, classes = session.engine.predictions(list(known.values()))
    by_sample = dict(zip(known, shares, strict=True)) if session.labels() else {}
    results = []
    for sample in samples:
        if sample not in by_sample:
            results.append({"result": [], "score": 0.0, "model_version": NAME})
            continue
        best = int(by_sample[sample].argmax())
        value = {"choices": [classes[best]]}
        score = round(float(by_sample[sample][best]), 4)
        if sample in soon:
            score = NEXT_SCORE * soon[str(sample)] / max(len(soon), 1)
        result = [{"from_name": from_name, "to_name": to_name, "type": "choices", "value": value}]
        results.append({"result": result, "score": score, "model_version": NAME})
    return {"results": results, "model_version": version}


def webhook(session: Session, event: Mapping[str, Any]) -> dict[str, Any]:
    """Take an annotation of Label Studio as an answer, or take it back; other events are ignored."""
    action = event.get("action")
    if action in (CREATED, UPDATED):
        return _annotate(session, event)
    if action == DELETED:
        numbers = {one.get("id") for one in event.get("annotations", [])}
        gone = [one for one in session.store.standing() if one.shown.get("annotation") in numbers]
        for answer in gone:
            session.undo(answer.annotator, answer.number)
        return {"undone": len(gone)}
    return {"ignored": str(action)}


def _annotate(session: Session, event: Mapping[str, Any]) -> dict[str, Any]:
    annotation, sample = event.get("annotation", {}), _sample_of(event.get("task", {}))
    if sample not in session.rows:
        raise RequestError(f"the task has no data.id that is a sample, but {sample!r}")
    annotator = str(annotation.get("created_username") or annotation.get("completed_by") or "label-studio")
    shown = {"why_asked": "label-studio", "annotation": annotation.get("id")}
    choices = [one for part in annotation.get("result", []) for one in part.get("value", {}).get("choices", [])]
    if annotation.get("was_cancelled") or not choices:
        return session.skip(str(sample), annotator)
    if len(choices) > 1:
        raise RequestError(f"a sample has one class, but the annotation has {choices}")
    if not isinstance(choices[0], str):
        raise RequestError(f"a choice is text, not {choices[0]!r}")
    return session.label(str(sample), choices[0], annotator, shown)


def _sample_of(task: Mapping[str, Any]) -> str | None:
    value = (task.get("data") or {}).get("id")
    return None if value is None else str(value)


def find_choices(config: str) -> tuple[str, str]:
    """Names of the first `Choices` of a labelling configuration, and of what it is about.

    Examples
    --------
    >>> find_choices('<View><Text name="t" value="$body"/><Choices name="kind" toName="t"/></View>')
    ('kind', 't')
    >>> find_choices("")
    ('label', 'sample')
    """
    if not config.strip():
        return "label", "sample"
    # No entities: they could grow without end.
    if len(config) > MAX_CONFIG or re.search(r"<!(DOCTYPE|ENTITY)", config, re.IGNORECASE):
        raise RequestError("the labelling configuration is too long, or defines entities")
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as error:
        raise RequestError(f"the labelling configuration is no XML: {error}") from error
    for element in root.iter("Choices"):
        return element.get("name", "label"), element.get("toName", "sample")
    raise RequestError("the labelling configuration has no Choices: lmssc suggests one class for each sample")
