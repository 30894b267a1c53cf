"""Names that people give to classes and to themselves."""

from lmssc.data.labels import is_missing_word

# Characters of the name of a class or an annotator.
MAX_NAME = 200


class RequestError(ValueError):
    """A request that cannot be carried out; the message says what would be right."""


def check_label(label: str) -> str:
    """The name of a class without blanks around it, or a `RequestError` if it cannot be one.

    Examples
    --------
    >>> check_label(" cat ")
    'cat'
    >>> check_label("NA")
    Traceback (most recent call last):
        ...
    lmssc.studio.names.RequestError: 'NA' stands for "no label" in files of labels: choose another name
    """
    label = " ".join(label.split())
    if not 0 < len(label) <= MAX_NAME:
        raise RequestError(f"a class has a name of 1 to {MAX_NAME} characters")
    if not label.isprintable():
        raise RequestError("the name of a class has no control characters")
    if is_missing_word(label):
        raise RequestError(f'{label!r} stands for "no label" in files of labels: choose another name')
    return label


def check_annotator(name: str) -> str:
    """The name of an annotator without blanks around it, or a `RequestError` if it cannot be one.

    Examples
    --------
    >>> check_annotator(" ann ")
    'ann'
    """
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise RequestError(f"an annotator has a name of 1 to {MAX_NAME} printable characters")
    return name


def shortened(text: str) -> str:
    """The beginning of a text that somebody sent, for a message about it."""
    return text if len(text) <= MAX_NAME else text[:MAX_NAME] + "…"
