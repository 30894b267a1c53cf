"""Models on disk: arrays and JSON behind a checksum, read without running any code.

`docs/model-format.md` describes the format byte by byte.
"""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lmssc.estimators.fitted_state import check_fitted
from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.codec import RUNTIME_PARAMS, DamagedTreeError, Decoder, Encoder, estimators, is_by_columns
from lmssc.persistence.provenance import version

# The first byte is in no text, the line ends are what a transfer as text would change.
MAGIC = b"\x93LMSSC\r\n"
FORMAT_VERSION = 1
# Magic, version of the format, length of the header in bytes.
PREFIX = struct.Struct("<8sIQ")
DIGEST = 32
ALIGNMENT = 64
CHUNK = 1 << 20


class ModelFileError(ValueError):
    """A file that is no model, or one that cannot be trusted or understood."""


def save(clf: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file that `load` reads.

    The file appears under its name once it is complete, and replaces one that is there. `callback`, `verbose`,
    `checkpoint` and `n_jobs`, which are about one run, are not kept.

    Parameters
    ----------
    clf : classifier of lmssc
        Fitted.
    path : str or path
        Name of the file, by custom ending in ``.lmssc``.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    TypeError
        If it holds something that is no data, such as a function or a random generator, or is of a class of your own.

    Examples
    --------
    >>> import tempfile
    >>> from lmssc import GFHF
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.2, random_state=0)
    >>> clf = GFHF().fit(data.views, data.y)
    >>> path = Path(tempfile.mkdtemp()) / "model.lmssc"
    >>> save(clf, path)
    >>> bool((load(path).predict(data.views) == clf.transduction_).all())
    True
    """
    if type(clf) not in estimators().values():
        raise TypeError(
            f"{type(clf).__name__} cannot be kept in a model file, which has no code: it is not one of the classes of "
            f"lmssc itself ({', '.join(estimators())})"
        )
    check_is_fitted(clf)
    encoder = Encoder()
    model = encoder.encode_estimator(clf, "")
    places, offset = [], 0
    for block in encoder.blocks:
        places.append([offset, block.nbytes])
        offset += block.nbytes + -block.nbytes % ALIGNMENT
    header = {"made": made_with(), "model": model, "blocks": places}
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    with open_atomically(Path(path)) as file:
        digest = hashlib.sha256()
        for piece in _pieces(text, encoder.blocks):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())


def _pieces(text: bytes, blocks: list[NDArray]) -> Iterator[bytes | memoryview]:
    yield PREFIX.pack(MAGIC, FORMAT_VERSION, len(text))
    yield text
    yield b"\0" * (-(PREFIX.size + len(text)) % ALIGNMENT)
    for block in blocks:
        if block.nbytes:
            ordered = block.T if is_by_columns(block) else block
            yield np.ascontiguousarray(ordered).reshape(-1).view(np.uint8).data
        yield b"\0" * (-block.nbytes % ALIGNMENT)


def made_with() -> dict[str, str]:
    """When a model is saved, and the versions that may matter.

    Examples
    --------
    >>> list(made_with())
    ['lmssc', 'numpy', 'scipy', 'scikit-learn', 'date']
    """
    versions = {package: version(package) for package in ("lmssc", "numpy", "scipy", "scikit-learn")}
    return {**versions, "date": datetime.now(UTC).isoformat(timespec="seconds")}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a classifier that `clf.save(path)` wrote.

    Nothing in the file is run. It is read only if its checksum is right, so that a damaged file is refused.

    Parameters
    ----------
    path : str or path
        Name of the file.

    Returns
    -------
    classifier
        Fitted, with the same answers as when it was saved.

    Raises
    ------
    ModelFileError
        If it is not a model, is damaged or cut off, or was written by a later version. It is a `ValueError`.
    OSError
        If there is no such file, or it cannot be read.

    Examples
    --------
    >>> import lmssc, tempfile
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.2, random_state=0)
    >>> path = Path(tempfile.mkdtemp()) / "model.lmssc"
    >>> lmssc.AMGL().fit(data.views, data.y).save(path)
    >>> lmssc.load(path)
    AMGL()
    """
    return read_model(path)[0]


def read_model(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """A model and what its file says of itself.

    Parameters
    ----------
    path : str or path
        Name of the file.

    Returns
    -------
    model : classifier
        As `load` gives it.
    about : dict
        format_version, bytes, and the versions and the date of `made_with`.

    Examples
    --------
    >>> import lmssc, tempfile
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.2, random_state=0)
    >>> path = Path(tempfile.mkdtemp()) / "model.lmssc"
    >>> lmssc.GFHF().fit(data.views, data.y).save(path)
    >>> model, about = read_model(path)
    >>> model, about["format_version"], describe(model, about)["samples"]
    (GFHF(), 1, 60)
    """
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        version, header_length = _read_prefix(file, size, path)
        try:
            model, made = READERS[version](file, size, header_length)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            # Whatever it was, the file has not been written by `save`.
            reason = str(error) if isinstance(error, DamagedTreeError) else "its content makes no sense"
            raise ModelFileError(f"{path} cannot be read as a model: {reason}") from error
    return model, {"format_version": version, "bytes": size, **made}


def _read_prefix(file: BinaryIO, size: int, path: Path) -> tuple[int, int]:
    """Version of the format and length of the header, if this is a model at all."""
    start = file.read(PREFIX.size)
    if not start:
        raise ModelFileError(f"{path} is empty, not a model file")
    if start[: len(MAGIC)] != MAGIC[: len(start)]:
        raise ModelFileError(f"{path} is not a model file: clf.save(path) and `lmssc classify` write them")
    if len(start) < PREFIX.size:
        raise ModelFileError(f"{path} is cut off: it has {size} bytes only")
    _, version, header_length = PREFIX.unpack(start)
    if version not in READERS:
        raise ModelFileError(
            f"{path} has the format version {version}, but this version of lmssc reads up to {FORMAT_VERSION}: "
            "update lmssc (or the file is damaged)"
        )
    return version, header_length


def _read_version_1(file: BinaryIO, size: int, header_length: int) -> tuple[Any, dict[str, str]]:
    """Checksum, then header, then blocks."""
    _verify(file, size)
    start = PREFIX.size + header_length
    start += -start % ALIGNMENT
    end = size - DIGEST
    if start > end:
        raise DamagedTreeError("its header is longer than the file")
    file.seek(PREFIX.size)
    header = json.loads(file.read(header_length).decode("ascii"), parse_constant=_no_constant)
    places, made = header["blocks"], header["made"]
    blocks: dict[int, NDArray] = {}
    left = end - start

    def read(number: int, n_bytes: int) -> NDArray:
        if not 0 <= number < len(places):
            raise DamagedTreeError(f"it refers to block {number}, which it does not have")
        offset, length = places[number]
        # Before any memory is taken.
        if type(offset) is not int or length != n_bytes or not 0 <= offset <= offset + n_bytes <= end - start:
            raise DamagedTreeError(f"its block {number} is not where the header says")
        if number in blocks:
            return blocks[number]
        nonlocal left
        left -= n_bytes
        if left < 0:
            raise DamagedTreeError("its blocks lie over each other")
        data = blocks[number] = np.empty(n_bytes, dtype=np.uint8)
        file.seek(start + offset)
        if file.readinto(data.data) != n_bytes:  # type: ignore[attr-defined]
            raise DamagedTreeError("it became shorter while it was read")
        return data

    if not isinstance(made, dict) or not all(isinstance(text, str) for text in made.values()):
        raise DamagedTreeError("its header does not say what it was made with")
    saved_by = made.get("lmssc", "unknown")
    decoder = Decoder(read, lambda cls, parameters, fitted: cls._upgrade(parameters, fitted, saved_by), size)  # type: ignore[attr-defined]
    model = decoder.decode_estimator(header["model"])
    check_fitted(model)
    return model, made


# A format that is no longer written stays here as long as its files are to be read.
READERS: dict[int, Callable[[BinaryIO, int, int], tuple[Any, dict[str, str]]]] = {1: _read_version_1}


def _verify(file: BinaryIO, size: int) -> None:
    """The last bytes are the sha256 of all before them."""
    file.seek(0)
    left, digest = size - DIGEST, hashlib.sha256()
    while left > 0:
        piece = file.read(min(CHUNK, left))
        if not piece:
            break
        digest.update(piece)
        left -= len(piece)
    if left or file.read(DIGEST) != digest.digest():
        raise DamagedTreeError("it is damaged or cut off (its checksum is wrong)")


def _no_constant(text: str) -> float:
    raise DamagedTreeError(f"its header has {text}")


def describe(model: Any, about: dict[str, Any]) -> dict[str, Any]:
    """What there is to tell of a model, in values that JSON has.

    Parameters
    ----------
    model : classifier of lmssc
        Fitted.
    about : dict
        What `read_model` says of its file.

    Returns
    -------
    dict
        class, made, format_version, bytes, samples, labelled, unreached, iterations, converged, views, classes and
        parameters; None for what is not known.
    """
    made = {name: value for name, value in about.items() if name not in ("format_version", "bytes")}
    labelled = getattr(model, "_labelled", None)
    scalings = getattr(model, "scalings_", {})
    return {
        "class": type(model).__name__,
        "format_version": about["format_version"],
        "bytes": about["bytes"],
        "made": made,
        "samples": len(model.transduction_),
        "labelled": None if labelled is None else int(labelled.sum()),
        "unreached": len(model.unreached_),
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_) if hasattr(model, "converged_") else None,
        "views": [
            {"name": name, "features": width, "scaling": scalings.get(name)}
            for name, width in zip(model.view_names_, model._layout.widths, strict=True)
        ],
        "classes": [
            {
                "label": label if isinstance(label, bool | int | str) else str(label),
                "labelled": None if labelled is None else int((model.transduction_[labelled] == label).sum()),
                "samples": int((model.transduction_ == label).sum()),
            }
            for label in model.classes_.tolist()
        ],
        "parameters": {
            name: repr(value) for name, value in model.get_params(deep=False).items() if name not in RUNTIME_PARAMS
        },
    }
