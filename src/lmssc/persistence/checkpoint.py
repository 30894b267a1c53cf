"""A fit that was stopped goes on: what it has found so far, in a file that is never half-written."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.codec import DamagedTreeError, Decoder, Encoder, is_by_columns
from lmssc.persistence.provenance import version
from lmssc.persistence.temporary import remove_leftovers

# Seconds between two writings.
EVERY = 120.0


class Checkpoint:
    """File that holds how far a fit is.

    Parameters
    ----------
    path : str or path
        Name of the file.
    identity : str
        Tells this fit from fits to other data or with other parameters.

    Examples
    --------
    >>> import tempfile
    >>> kept = Checkpoint(Path(tempfile.mkdtemp()) / "fit.ckpt", "abc")
    >>> kept.read() is None
    True
    >>> kept.write({"iteration": 3, "scores": np.ones(2)})
    >>> kept.read()["scores"]
    array([1., 1.])
    >>> Checkpoint(kept.path, "other").read()
    Traceback (most recent call last):
        ...
    ValueError: checkpoint='...fit.ckpt' is of a fit to other data, with other parameters or by another version of \
lmssc; name another file, or remove it
    """

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        self.path, self._identity = Path(path), identity
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to write again."""
        return time.monotonic() - self._last >= EVERY

    def write(self, content: Mapping[str, Any]) -> None:
        """Write numbers, text, arrays, sparse arrays, parts of models, and lists and dicts of these."""
        encoder = Encoder()
        tree = encoder.encode(dict(content), "checkpoint")
        header = np.frombuffer(json.dumps({"identity": self._identity, "tree": tree}).encode(), dtype=np.uint8)
        blocks = {f"block{number}": _bytes(block) for number, block in enumerate(encoder.blocks)}
        with open_atomically(self.path) as file:
            np.savez(file, header=header, **blocks)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        self._last = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """What was written last; None if there is no such file."""
        remove_leftovers(self.path.parent, self.path.name)
        if not self.path.exists():
            return None
        try:
            size = self.path.stat().st_size
            with np.load(self.path, allow_pickle=False) as file:
                if sum(member.file_size for member in file.zip.infolist()) > size:
                    raise DamagedTreeError("it is packed, or its members lie over each other")
                header = json.loads(file["header"].tobytes())
                if header["identity"] == self._identity:
                    blocks = cache(lambda number: file[f"block{number}"])
                    decoder = Decoder(lambda number, _: blocks(number), lambda *_: None, size)
                    return decoder.decode(header["tree"])
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, BadZipFile) as error:
            raise ValueError(
                f"checkpoint='{self.path}' is no checkpoint of lmssc, or is damaged; name another file, or remove it"
            ) from error
        raise ValueError(
            f"checkpoint='{self.path}' is of a fit to other data, with other parameters or by another version of "
            "lmssc; name another file, or remove it"
        )

    def remove(self) -> None:
        """The fit is done."""
        self.path.unlink(missing_ok=True)


def _bytes(block: NDArray) -> NDArray:
    return np.ascontiguousarray(block.T if is_by_columns(block) else block).reshape(-1).view(np.uint8)


def identify(parameters: Mapping[str, Any], *arrays: NDArray) -> str:
    """Text that is the same for the same parameters and arrays only, within a version of lmssc.

    Examples
    --------
    >>> one = identify({"beta": 1.0}, np.arange(3))
    >>> one == identify({"beta": 1.0}, np.arange(3)), one == identify({"beta": 2.0}, np.arange(3))
    (True, False)
    """
    digest = hashlib.sha256(repr((version("lmssc"), sorted(parameters.items()))).encode())
    for array in arrays:
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
