"""What is shown of a sample: columns of the files, texts, and images and sounds from folders that ``--show`` names.

A file is found by a template such as ``photos/{id}.jpg``. Its folder is the part before the first brace. A path that
leaves this folder, by dots, by an absolute id or by a symbolic link, is never opened.
"""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmssc.io.errors import InputFileError
from lmssc.io.sample_cells import SampleCells, check_column

IMAGE, TEXT, AUDIO = "image", "text", "audio"
TYPES = {
    IMAGE: {
        ".png": "image/png",
        ".jpg": "image/jpeg",
        ".jpeg": "image/jpeg",
        ".gif": "image/gif",
        ".webp": "image/webp",
        ".bmp": "image/bmp",
        ".avif": "image/avif",
        ".svg": "image/svg+xml",
    },
    AUDIO: {
        ".wav": "audio/wav",
        ".mp3": "audio/mpeg",
        ".ogg": "audio/ogg",
        ".oga": "audio/ogg",
        ".opus": "audio/ogg",
        ".m4a": "audio/mp4",
        ".flac": "audio/flac",
        ".webm": "audio/webm",
    },
    TEXT: {".txt": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8"},
}
"""Endings of the files that are shown, and the type that the browser is told."""
MEDIA_TEXT_TYPES = frozenset(TYPES[TEXT].values())
"""Types of files that are not sent as files: their text is a part of the description."""
MAX_TEXT = 20_000
MAX_FILE_BYTES = 200 * 1024 * 1024
# Samples whose files are looked for before anything is shown.
MAX_LOOKED_FOR = 10_000
# Columns shown of a sample, and characters of a cell.
MAX_CELLS, MAX_CELL = 40, 2000
# Characters that no part of a path has; on Windows also the colon, which names drives and streams.
_UNUSUAL = re.compile(r"[\x00-\x1f\x7f\\:]" if os.name == "nt" else r"[\x00-\x1f\x7f\\]")
_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class ShownFile:
    """A file to send: its real path and its type."""

    path: Path
    media_type: str


@dataclass(frozen=True)
class Show:
    """One thing to show of each sample, as ``--show KIND=WHAT`` says.

    Attributes
    ----------
    kind : {"image", "text", "audio"}
        How it is shown.
    column : str or None
        The column with the text; None if it is in files.
    template : str
        Name of the file of a sample, with ``{id}`` or ``{column}`` in it.
    folder : Path or None
        The real folder that these files must be in.
    """

    kind: str
    column: str | None
    template: str = ""
    folder: Path | None = None

    @classmethod
    def parse(cls, text: str, cells: SampleCells) -> "Show":
        """Read ``image=photos/{id}.jpg``, ``text=body`` and the like.

        Raises
        ------
        InputFileError
            If there is no such column or folder, or the kind is unknown.
        """
        option = f"--show {text!r}"
        kind, equals, what = (part.strip() for part in text.partition("="))
        if kind not in TYPES or not equals or not what:
            example = "'image=photos/{id}.jpg' or text=body"
            raise InputFileError(f"{option} must be KIND=WHAT, such as {example}; KIND is {', '.join(TYPES)}")
        fields = _FIELD.findall(what)
        if not fields:
            if kind != TEXT:
                raise InputFileError(f"{option}: name the files with {{id}} or {{column}} in place of what differs")
            return cls(kind, check_column(cells, what, option))
        for name in fields:
            if name != "id":
                check_column(cells, name, option)
        folder = Path(what[: what.index("{")] + "x").parent
        if not folder.is_dir():
            raise InputFileError(f"{option}: there is no folder {folder}")
        return cls(kind, None, what, folder.resolve())

    @property
    def columns(self) -> list[str]:
        """The columns that it needs."""
        return (
            [name for name in _FIELD.findall(self.template) if name != "id"] if self.column is None else [self.column]
        )

    def find(self, cells: SampleCells, sample: int, key: str) -> ShownFile | None:
        """The file of a sample; None if there is none, or if its name leads out of the folder."""
        name = self.template
        for field in dict.fromkeys(_FIELD.findall(name)):
            value = key if field == "id" else cells.cell(field, sample)
            if value is None or not _is_plain(value):
                return None
            name = name.replace("{" + field + "}", value)
        assert self.folder is not None
        try:
            path = Path(os.path.realpath(name, strict=True))
            facts = path.stat()
        except (OSError, ValueError):
            return None
        media_type = TYPES[self.kind].get(path.suffix.lower())
        inside = path.is_relative_to(self.folder) and path != self.folder
        if not inside or media_type is None or not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_FILE_BYTES:
            return None
        return ShownFile(path, media_type)


def _is_plain(value: str) -> bool:
    r"""Whether a value may be a part of a path: no way up, no root, no drive, nothing that is not printed.

    Examples
    --------
    >>> [_is_plain(value) for value in ("a", "2024/a", "..", "a/../b", "/etc", "a\\b", "a\0", "")]
    [True, True, False, False, False, False, False, False]
    """
    parts = value.split("/")
    return all(part not in ("", ".", "..") for part in parts) and not _UNUSUAL.search(value)


class SampleViewer:
    """Describes samples for the page: what to show, in order.

    Parameters
    ----------
    cells : SampleCells
        What the files say about each sample.
    ids : sequence of str
        The samples.
    shows : sequence of Show
        What to show; without any, the columns of the files.
    """

    def __init__(self, cells: SampleCells, ids: Sequence[str], shows: Sequence[Show] = ()) -> None:
        self._cells, self._ids, self.shows = cells, ids, list(shows)

    def describe(self, sample: int) -> list[dict[str, Any]]:
        """What to show of a sample: a list of ``{"kind", ...}``, with text or the number of a file of `find`."""
        parts: list[dict[str, Any]] = []
        for number, show in enumerate(self.shows):
            if show.column is not None:
                parts.append(_text_part(self._cells.cell(show.column, sample), show.column))
                continue
            found = self.find(number, sample)
            if found is None:
                parts.append({"kind": "missing", "what": show.kind})
            elif show.kind == TEXT:
                with open(found.path, encoding="utf-8", errors="replace") as file:
                    parts.append(_text_part(file.read(MAX_TEXT + 1), ""))
            else:
                parts.append({"kind": show.kind, "file": number})
        if not self.shows:
            parts += self._columns(sample)
        return parts

    @property
    def columns(self) -> list[str]:
        """The columns that are needed to show what was asked for."""
        return [name for show in self.shows for name in show.columns]

    def details(self, sample: int) -> dict[str, str | Path]:
        """What to show of a sample by name: texts, and paths of images; what it lacks is left out."""
        if not self.shows:
            return dict(self._cells.row(sample))
        found: dict[str, str | Path] = {}
        for show, part in zip(self.shows, self.describe(sample), strict=True):
            name = show.column or show.kind
            while name in found:
                name += "′"
            if part["kind"] == TEXT:
                found[name] = part["text"] + (" …" if part["cut"] else "")
            elif part["kind"] == IMAGE:
                shown = self.find(part["file"], sample)
                if shown is not None:
                    found[name] = shown.path
        return found

    def missing_files(self) -> list[str]:
        """Lines that name what was asked for and is not there, if samples lack files."""
        lines, n_looked = [], min(len(self._ids), MAX_LOOKED_FOR)
        for number, show in enumerate(self.shows):
            if show.column is not None:
                continue
            missing = [sample for sample in range(n_looked) if self.find(number, sample) is None]
            if missing:
                first = "" if n_looked == len(self._ids) else "first "
                lines.append(
                    f"--show {show.kind}={show.template}: no such file for {len(missing):,} of the {first}{n_looked:,} "
                    f"samples, for example {self._ids[missing[0]]!r}."
                )
        return lines

    def texts(self, sample: int) -> dict[str, str]:
        """What the files say about a sample, by column, for the export."""
        shown = [show.column for show in self.shows if show.column is not None]
        row = {name: self._cells.cell(name, sample) for name in shown} if shown else self._cells.row(sample, MAX_CELLS)
        return {name: value for name, value in row.items() if value is not None}

    def find(self, number: int, sample: int) -> ShownFile | None:
        """The file of a sample for the `number`-th thing to show."""
        if not 0 <= number < len(self.shows) or self.shows[number].column is not None:
            return None
        return self.shows[number].find(self._cells, sample, self._ids[sample])

    def _columns(self, sample: int) -> list[dict[str, Any]]:
        """Texts in full, and the other columns as a table."""
        row = self._cells.row(sample, MAX_CELLS)
        texts = [name for name in row if self._cells.is_text(name) and len(row[name]) > 60]
        parts = [_text_part(row[name], name) for name in texts]
        rest = [[name, value[:MAX_CELL]] for name, value in row.items() if name not in texts]
        if rest:
            more = max(len(self._cells.columns) - MAX_CELLS, 0)
            parts.append({"kind": "table", "rows": rest, "more": more})
        return parts


def _text_part(text: str | None, name: str) -> dict[str, Any]:
    if text is None:
        return {"kind": "missing", "what": name or TEXT}
    cut = text[:MAX_TEXT]
    return {"kind": TEXT, "name": name, "text": cut, "cut": len(text) > len(cut)}
