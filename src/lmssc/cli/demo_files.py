"""The example files of ``lmssc demo --files``: the digits in several formats, and their pictures to label."""

import csv
import gzip
import io
import shlex
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from lmssc.cli.digits_demo import Task
from lmssc.datasets import load_digits_views
from lmssc.io.staging import staged_folder

# Views and their formats, all of which a plain installation reads.
FORMATS = {"pixels": ".csv", "fourier": ".tsv.gz", "profiles": ".npz", "gradients": ".mat"}
# A view that a share of the samples lacks.
INCOMPLETE_VIEW, MISSING_SHARE = "fourier", 0.05


def write_files(task: Task, out: Path, seed: int) -> str:
    """Write the views in several formats, each with its rows in another order, the pictures, and the known labels.

    Parameters
    ----------
    task : Task
        The digits, most of their labels held out.
    out : Path
        The folder; new or empty.
    seed : int
        Decides the order of the rows, and which samples lack a view.

    Returns
    -------
    str
        The command to run next.
    """
    names = load_digits_views().view_names
    ids = np.array([f"digit-{row:04d}" for row in task.rows])
    random = np.random.default_rng(seed)
    with staged_folder(out, force=False) as stage:
        (stage / "views").mkdir()
        for name, suffix in FORMATS.items():
            order = random.permutation(len(ids))
            if name == INCOMPLETE_VIEW:
                order = order[round(MISSING_SHARE * len(ids)) :]
            view = task.views[names.index(name)]
            _write_view(stage / "views" / f"{name}{suffix}", name, ids[order], view[order])
        (stage / "images").mkdir()
        for key, image in zip(ids, load_digits().images[task.rows], strict=True):
            (stage / "images" / f"{key}.png").write_bytes(grey_png(255 - 15 * image))
        given = ~task.held_out
        _write_table(stage / "labels.csv", ["id", "label"], zip(ids[given], task.y[given].tolist(), strict=True))
        _write_table(stage / "truth.csv", ["id", "label"], zip(ids, task.target.tolist(), strict=True))
    folder = shlex.quote(str(out))
    result = shlex.quote(str(out.with_name(f"{out.name}-result")))
    return f"lmssc classify {folder}/views/* --labels {folder}/labels.csv --out {result}"


def grey_png(pixels: NDArray) -> bytes:
    r"""A grey picture as a PNG file.

    Parameters
    ----------
    pixels : ndarray of shape (height, width)
        Brightness from 0 to 255.

    Returns
    -------
    bytes

    Examples
    --------
    >>> grey_png(np.zeros((2, 2)))[:4]
    b'\x89PNG'
    """
    height, width = pixels.shape
    rows = b"".join(b"\0" + bytes(row) for row in pixels.astype(np.uint8))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _write_view(path: Path, name: str, ids: NDArray, view: NDArray) -> None:
    columns = [f"{name}_{number}" for number in range(1, view.shape[1] + 1)]
    rows = ([key, *(f"{value:.7g}" for value in row)] for key, row in zip(ids, view.tolist(), strict=True))
    arrays: dict[str, Any] = {"id": ids.astype(object) if path.suffix == ".mat" else ids, name: view}
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, arrays, do_compression=True)
    else:
        _write_table(path, ["id", *columns], rows, delimiter="," if path.suffix == ".csv" else "\t")


def _write_table(path: Path, header: list[str], rows: Iterable[Iterable[Any]], delimiter: str = ",") -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
