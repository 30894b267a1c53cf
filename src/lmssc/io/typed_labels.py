"""Lists into which a person types labels: never overwritten once something is typed."""

import csv
import re
from pathlib import Path

# The files that `lmssc classify` writes. The predictions have the same guesses as the list beside them.
PREDICTIONS, TO_LABEL, MODEL, REPORT = "predictions.csv", "to_label.csv", "model.lmssc", "report.html"
CHECK_LABELS = "check_labels.csv"
# Columns that `outputs.write_to_label` writes after id and label.
GUESSES = ("guess", "confidence", "runner_up")


def free_name(folder: Path, name: str) -> str:
    r"""Choose the name of a new list: `name`, or ``name-2``, ... if labels were typed into the last one.

    Parameters
    ----------
    folder : Path
        Folder of the list.
    name : str
        Such as ``to_label.csv``.

    Returns
    -------
    str
        The highest number is the newest list.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> free_name(folder, "to_label.csv")
    'to_label.csv'
    >>> _ = (folder / "to_label.csv").write_text("id,label,guess,confidence,runner_up\np,yes,no,0.5,yes\n")
    >>> free_name(folder, "to_label.csv")
    'to_label-2.csv'
    """
    stem, suffix = Path(name).stem, Path(name).suffix
    pattern = re.compile(rf"{re.escape(stem)}(?:-(\d{{1,9}}))?{re.escape(suffix)}")
    found = [pattern.fullmatch(path.name) for path in folder.iterdir()] if folder.is_dir() else []
    last = max((int(match[1] or 1) for match in found if match), default=1)
    newest = name if last == 1 else f"{stem}-{last}{suffix}"
    return f"{stem}-{last + 1}{suffix}" if has_labels(folder / newest) else newest


def has_labels(path: Path) -> bool:
    """Whether something may have been typed into a list: True unless it is exactly as written.

    The labels are blank in a list as written, and the guesses are those of the predictions beside it.

    Parameters
    ----------
    path : Path
        A list written by `outputs.write_to_label`, perhaps filled in.

    Returns
    -------
    bool
        False if it does not exist.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, csv.Error):  # saved by another program in another format
        return True
    as_written = len(header) == 2 + len(GUESSES) and all(len(row) == len(header) for row in rows)
    if not as_written or any(row[1].strip() for row in rows):
        return True
    return not _are_predicted({row[0]: row[2:] for row in rows}, path.with_name(PREDICTIONS))


def _are_predicted(guesses: dict[str, list[str]], predictions: Path) -> bool:
    """Whether guesses are those that were written: a person may have corrected one instead of typing a label."""
    left = dict(guesses)
    try:
        with open(predictions, encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                if row and row[0] in left and left.pop(row[0]) != row[1 : 1 + len(GUESSES)]:
                    return False
                if not left:
                    break
    except (OSError, ValueError, csv.Error):
        return not guesses
    return not left
