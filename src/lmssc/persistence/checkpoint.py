"""Checkpoints: the state of an unfinished fit, in a file from which the same fit can resume."""

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.persistence.codec import Decoder, Encoder, TypeTable
from lmssc.persistence.container import ContainerReader, FileKind, write_container
from lmssc.persistence.provenance import version
from lmssc.persistence.temporary import remove_leftovers

# Seconds between two checkpoints.
INTERVAL = 120.0

CHECKPOINT = FileKind("checkpoint", b"\x93LMCKP\r\n", 1, "a fit with the parameter `checkpoint` writes them")


class Checkpoint:
    """File with the state of an unfinished fit.

    Parameters
    ----------
    path : str or path
        Name of the file.
    identity : str
        Identifies data, parameters and version, see `identify`; a fit resumes only from a checkpoint with its own.
    types : TypeTable
        Classes that the file may name.

    Examples
    --------
    >>> import tempfile
    >>> checkpoint = Checkpoint(Path(tempfile.mkdtemp()) / "fit.ckpt", "abc")
    >>> checkpoint.read() is None
    True
    >>> checkpoint.write({"iteration": 3, "scores": np.ones(2)})
    >>> checkpoint.read()["scores"]
    array([1., 1.])
    >>> Checkpoint(checkpoint.path, "other").read()
    Traceback (most recent call last):
        ...
    ValueError: checkpoint='...fit.ckpt' belongs to a fit to other data, with other parameters or by another version \
of lmssc; choose another file name, or delete the file
    """

    def __init__(self, path: str | os.PathLike[str], identity: str, types: TypeTable | None = None) -> None:
        self.path, self._identity = Path(path), identity
        if not self.path.absolute().parent.is_dir():  # said before the fit, not when it first saves
            raise ValueError(f"checkpoint='{self.path}': there is no folder '{self.path.absolute().parent}'")
        self._types = TypeTable() if types is None else types
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to write again."""
        return time.monotonic() - self._last >= INTERVAL

    def write(self, content: Mapping[str, Any]) -> None:
        """Write numbers, text, arrays, sparse arrays, instances of `types`, and lists and dicts of these."""
        encoder = Encoder(self._types)
        tree = encoder.encode(dict(content), "checkpoint")
        write_container(self.path, CHECKPOINT, {"identity": self._identity, "state": tree}, encoder.blocks)
        self._last = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """What was written last; None if there is no such file."""
        remove_leftovers(self.path.parent, self.path.name)
        if not self.path.exists():
            return None
        try:
            with open(self.path, "rb") as file:
                reader = ContainerReader(file, CHECKPOINT)
                if reader.header["identity"] == self._identity:
                    return Decoder(reader.read_block, self._types, reader.size).decode(reader.header["state"])
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"checkpoint='{self.path}' is not a checkpoint of this version of lmssc, or is damaged; choose another "
                "file name, or delete the file"
            ) from error
        raise ValueError(
            f"checkpoint='{self.path}' belongs to a fit to other data, with other parameters or by another version of "
            "lmssc; choose another file name, or delete the file"
        )

    def remove(self) -> None:
        """Delete the file: the fit is done."""
        self.path.unlink(missing_ok=True)


def identify(parameters: Mapping[str, Any], *arrays: NDArray) -> str:
    """Hash of the parameters, the arrays and the version of lmssc.

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
