"""The container of model files and checkpoints: a JSON header and blocks of numbers behind a checksum.

`docs/model-format.md` describes the bytes.
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lmssc.persistence.atomic import open_atomically

# Magic, format version, length of the header in bytes.
PREFIX = struct.Struct("<8sIQ")
DIGEST_SIZE = 32
ALIGNMENT = 64
# Bytes hashed at a time.
CHUNK_SIZE = 1 << 20


class DamagedFileError(ValueError):
    """The content of a file is not what lmssc writes."""


class UnreadableFileError(ValueError):
    """A file of another kind, or of a format version that this version of lmssc cannot read."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes
    ----------
    name : str
        Name in error messages.
    magic : bytes
        First eight bytes.
    version : int
        Format version that is written.
    written_by : str
        What writes such files, for error messages.
    """

    name: str
    magic: bytes
    version: int
    written_by: str


def is_fortran_ordered(array: NDArray) -> bool:
    """Whether an array is stored column by column; files keep it so, because sums depend on it to the last bit.

    Examples
    --------
    >>> is_fortran_ordered(np.ones((2, 3))), is_fortran_ordered(np.ones((2, 3)).T)
    (False, True)
    """
    return array.flags.f_contiguous and not array.flags.c_contiguous


def write_container(path: Path, kind: FileKind, header: Mapping[str, Any], blocks: Sequence[NDArray]) -> None:
    """Write a file that appears under its name once it is complete and on the disk.

    Parameters
    ----------
    path : Path
        Name of the file; an existing one is replaced.
    kind : FileKind
        Kind of the file.
    header : mapping
        JSON values. The key "blocks" is added: offset and length of each block.
    blocks : sequence of ndarray
        Arrays, stored as raw bytes.

    Examples
    --------
    >>> import tempfile
    >>> kind = FileKind("note", b"NOTE0000", 1, "nobody")
    >>> path = Path(tempfile.mkdtemp()) / "file"
    >>> write_container(path, kind, {"title": "numbers"}, [np.array([1, 2], dtype=np.uint8)])
    >>> with open(path, "rb") as file:
    ...     reader = ContainerReader(file, kind)
    ...     reader.header["title"], reader.read_block(0, 2)
    ('numbers', array([1, 2], dtype=uint8))
    """
    locations, offset = [], 0
    for block in blocks:
        locations.append([offset, block.nbytes])
        offset += block.nbytes + _padding(block.nbytes)
    text = json.dumps({**header, "blocks": locations}, allow_nan=False, separators=(",", ":")).encode("ascii")
    with open_atomically(path) as file:
        digest = hashlib.sha256()
        for piece in _pieces(kind, text, blocks):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())


def _pieces(kind: FileKind, text: bytes, blocks: Sequence[NDArray]) -> Iterator[bytes | memoryview]:
    yield PREFIX.pack(kind.magic, kind.version, len(text))
    yield text
    yield b"\0" * _padding(PREFIX.size + len(text))
    for block in blocks:
        if block.nbytes:
            ordered = block.T if is_fortran_ordered(block) else block
            yield np.ascontiguousarray(ordered).reshape(-1).view(np.uint8).data
        yield b"\0" * _padding(block.nbytes)


def _padding(n_bytes: int) -> int:
    """Zeros up to the next multiple of `ALIGNMENT`."""
    return -n_bytes % ALIGNMENT


class ContainerReader:
    """Reads a container; the checksum is verified before anything else is looked at.

    Parameters
    ----------
    file : binary file
        Open at its start; it has to stay open while blocks are read.
    kind : FileKind
        Expected kind of the file.

    Attributes
    ----------
    size : int
        Bytes of the file.
    version : int
        Format version of the file.
    header : dict
        As it was written, with "blocks".

    Raises
    ------
    UnreadableFileError
        If it is a file of another kind or of a later format version.
    DamagedFileError
        If the checksum is wrong, or the header does not describe the file.
    """

    def __init__(self, file: BinaryIO, kind: FileKind) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self.version, header_length = _read_prefix(file, self.size, kind)
        _verify_checksum(file, self.size)
        self._start = PREFIX.size + header_length
        self._start += _padding(self._start)
        self._blocks_size = self.size - DIGEST_SIZE - self._start
        if self._blocks_size < 0:
            raise DamagedFileError("its header is longer than the file")
        file.seek(PREFIX.size)
        self.header = json.loads(file.read(header_length).decode("ascii"), parse_constant=_refuse_constant)
        self._locations = self.header["blocks"]
        self._unread = self._blocks_size
        self._read: dict[int, NDArray] = {}

    def read_block(self, number: int, n_bytes: int) -> NDArray:
        """The bytes of a block, the same array each time; checked against the header before memory is taken."""
        if not 0 <= number < len(self._locations):
            raise DamagedFileError(f"it refers to block {number}, which it does not have")
        offset, length = self._locations[number]
        if type(offset) is not int or length != n_bytes or not 0 <= offset <= offset + n_bytes <= self._blocks_size:
            raise DamagedFileError(f"its block {number} is not where the header says")
        if number in self._read:
            return self._read[number]
        self._unread -= n_bytes
        if self._unread < 0:
            raise DamagedFileError("its blocks overlap")
        data = self._read[number] = np.empty(n_bytes, dtype=np.uint8)
        self._file.seek(self._start + offset)
        if self._file.readinto(data.data) != n_bytes:  # type: ignore[attr-defined]
            raise DamagedFileError("it became shorter while it was read")
        return data


def _read_prefix(file: BinaryIO, size: int, kind: FileKind) -> tuple[int, int]:
    """Format version and length of the header, if the file is of this kind at all."""
    start = file.read(PREFIX.size)
    if not start:
        raise UnreadableFileError(f"is empty, not a {kind.name}")
    if start[: len(kind.magic)] != kind.magic[: len(start)]:
        raise UnreadableFileError(f"is not a {kind.name}: {kind.written_by}")
    if len(start) < PREFIX.size:
        raise UnreadableFileError(f"is truncated: it has only {size} bytes")
    _, version, header_length = PREFIX.unpack(start)
    if not 1 <= version <= kind.version:
        raise UnreadableFileError(
            f"has the format version {version}, but this version of lmssc reads up to {kind.version}: update lmssc "
            "(or the file is damaged)"
        )
    return version, header_length


def _verify_checksum(file: BinaryIO, size: int) -> None:
    """The last bytes are the SHA-256 of all bytes before them."""
    file.seek(0)
    left, digest = size - DIGEST_SIZE, hashlib.sha256()
    while left > 0:
        piece = file.read(min(CHUNK_SIZE, left))
        if not piece:
            break
        digest.update(piece)
        left -= len(piece)
    if left or file.read(DIGEST_SIZE) != digest.digest():
        raise DamagedFileError("it is damaged or truncated (its checksum is wrong)")


def _refuse_constant(text: str) -> float:
    raise DamagedFileError(f"its header has {text}")
