"""What the map of a report shows of a marked sample: cells, texts, and images as small pictures inside the page."""

import base64
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.report.subject import Subject

# Characters of all texts of the page, and of one text; bytes of all pictures.
MAX_TEXTS, MAX_TEXT, MAX_PICTURES = 4_000_000, 1000, 8_000_000
# Longest side of a picture in pixels; a file with more pixels than MAX_PIXELS is not opened.
MAX_SIDE, MAX_PIXELS = 192, 100_000_000
# Without Pillow, files up to this size are taken as they are.
MAX_WHOLE_FILE = 64 * 1024
# Images up to this side are stored without loss.
ICON_SIDE = 64
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "AVIF")


@dataclass(frozen=True)
class Details:
    """What the page shows of the samples.

    Attributes
    ----------
    parts : dict of int to list
        Dot of the map ↦ pairs of a name and a text, or of a name and ``{"image": address}``.
    notes : list of str
        What was left out, in sentences.
    """

    parts: dict[int, list[list[Any]]]
    notes: list[str]


def choose_details(subject: Subject, rows: NDArray) -> Details:
    """Gather what to show of the samples on the map, as far as one page can hold it.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    rows : ndarray of int
        The sample of each dot.

    Returns
    -------
    Details
        Samples to label next come first, then the least certain ones.
    """
    if subject.details is None:
        return Details({}, [])
    sure = subject.clf.label_distributions_[rows].max(axis=1)
    order = np.lexsort((sure, ~np.isin(rows, subject.first))).tolist()
    parts: dict[int, list[list[Any]]] = {}
    texts_left, pictures = MAX_TEXTS, _Pictures(MAX_PICTURES)
    for dot in order:
        cells: list[list[Any]] = []
        for name, value in subject.details(int(rows[dot])).items():
            if isinstance(value, Path):
                address = pictures.take(value)
                cells += [] if address is None else [[name, {"image": address}]]
            else:
                cells.append([name, value[:MAX_TEXT]])
                texts_left -= len(name) + len(cells[-1][1])
        if texts_left < 0:
            break
        if cells:
            parts[dot] = cells
    notes = pictures.notes()
    if texts_left < 0:
        notes.append(
            f"The page has the texts of {len(parts):,} samples, the least certain first; more would make it too large."
        )
    return Details(parts, notes)


class _Pictures:
    """Small pictures, until they are too many bytes for one page."""

    def __init__(self, limit: int) -> None:
        self._left, self._limit = limit, limit
        self.n_taken = self.n_unreadable = self.n_left_out = 0
        try:
            self._pillow: Any = import_optional("PIL", purpose="pictures", extra="images")
        except ImportError:
            self._pillow = None

    def take(self, path: Path) -> str | None:
        """The picture as a data address; None if there is no room for it, or if it cannot be read."""
        if self._left <= 0:
            self.n_left_out += 1
            return None
        try:
            found = _whole_file(path) if self._pillow is None else _thumbnail(path)
        except Exception:  # broken files make Pillow raise many kinds; the page counts them
            found = None
        if found is None:
            self.n_unreadable += 1
            return None
        media_type, content = found
        self._left -= len(content)
        self.n_taken += 1
        return f"data:{media_type};base64,{base64.b64encode(content).decode()}"

    def notes(self) -> list[str]:
        """Sentences on what is not on the page."""
        lines = []
        if self.n_left_out:
            lines.append(
                f"Pictures of {self.n_taken:,} samples are on the page, the least certain first; the other "
                f"{self.n_left_out:,} would make it larger than {self._limit / 1e6:g} MB."
            )
        if self.n_unreadable:
            small = "" if self._pillow else f" of up to {MAX_WHOLE_FILE // 1024} kB"
            lines.append(f"{self.n_unreadable:,} files are left out: they are no images{small}.")
            if not self._pillow:
                lines.append("With pip install 'lmssc[images]' larger ones are shrunk.")
        return lines


def _thumbnail(path: Path) -> tuple[str, bytes] | None:
    """Shrink an image; nothing else of the file, such as the place where a photo was taken, is kept."""
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # large images are refused below; odd metadata does not matter
        Image.init()
        with Image.open(path, formats=[name for name in FORMATS if name in Image.OPEN]) as file:
            if file.width * file.height > MAX_PIXELS:
                return None
            file.draft("RGB", (MAX_SIDE, MAX_SIDE))  # JPEG is decoded at a fraction of its size
            image: Any = ImageOps.exif_transpose(file)
            if image.mode.startswith(("I", "F")):
                image = Image.fromarray(_to_bytes(np.asarray(image, dtype=float)))
            has_alpha = "A" in image.mode or "transparency" in image.info
            image = image.convert("RGBA" if has_alpha else "L" if image.mode in ("1", "L") else "RGB")
            is_icon = max(image.size) <= ICON_SIDE
            image.thumbnail((MAX_SIDE, MAX_SIDE))
    target = io.BytesIO()
    # A new image carries no metadata.
    clean = Image.frombytes(image.mode, image.size, image.tobytes())
    if has_alpha or is_icon:
        clean.save(target, "PNG", optimize=True)
        return "image/png", target.getvalue()
    clean.save(target, "JPEG", quality=80)
    return "image/jpeg", target.getvalue()


def _to_bytes(values: NDArray) -> NDArray:
    """Stretch grey values of any range to 0 … 255.

    Examples
    --------
    >>> _to_bytes(np.array([[0.0, 500.0, 1000.0]])).tolist()
    [[0, 127, 255]]
    """
    low, high = np.nanmin(values), np.nanmax(values)
    return (255 * np.nan_to_num((values - low) / max(high - low, np.finfo(float).tiny))).astype(np.uint8)


def _whole_file(path: Path) -> tuple[str, bytes] | None:
    """A small file as it is, if it is an image."""
    with open(path, "rb") as file:
        content = file.read(MAX_WHOLE_FILE + 1)
    media_type = image_type(content)
    return None if media_type is None or len(content) > MAX_WHOLE_FILE else (media_type, content)


def image_type(content: bytes) -> str | None:
    r"""Type of an image by its first bytes, whatever its name; None if it is none that browsers draw as pixels.

    Examples
    --------
    >>> image_type(b"\xff\xd8\xff\xe0..."), image_type(b"<html><script>")
    ('image/jpeg', None)
    """
    starts = {
        b"\x89PNG\r\n\x1a\n": "image/png",
        b"\xff\xd8\xff": "image/jpeg",
        b"GIF87a": "image/gif",
        b"GIF89a": "image/gif",
        b"BM": "image/bmp",
    }
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:12] == b"ftypavif":
        return "image/avif"
    return next((media_type for start, media_type in starts.items() if content.startswith(start)), None)
