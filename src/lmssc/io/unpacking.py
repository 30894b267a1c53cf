"""Limit on what a file may unpack to: a compressed megabyte can hold gigabytes of zeros."""

import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, cast

from lmssc._optional import import_optional
from lmssc.io.errors import InputFileError

# Bytes that any file may unpack to: ordinary data with many zeros compress well.
ALWAYS_ALLOWED = 1 << 30
# Larger files may unpack to this many times their size, up to a maximum.
MAX_RATIO = 100
MAX_BYTES = 64 << 30
# Memory that a zstd file may ask for while it is unpacked.
MAX_WINDOW = 1 << 27
VARIABLE = "LMSSC_MAX_UNPACKED"
UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
SIZE = re.compile(r"\s*(\d{1,12})\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def most_unpacked(packed: int) -> int:
    """Return how many bytes a file of the given size may unpack to.

    Examples
    --------
    >>> most_unpacked(1_000_000) == ALWAYS_ALLOWED, most_unpacked(1 << 40) == MAX_BYTES
    (True, True)
    >>> most_unpacked(100 << 20) // (100 << 20)
    100
    """
    given = os.environ.get(VARIABLE, "")
    return max(ALWAYS_ALLOWED, min(MAX_RATIO * packed, MAX_BYTES)) if not given.strip() else read_size(given)


def read_size(text: str) -> int:
    """Parse a size such as "500M" or "16 GiB", in powers of 1024.

    Examples
    --------
    >>> read_size("1024"), read_size("16 GiB") == 16 << 30
    (1024, True)
    """
    match = SIZE.fullmatch(text)
    if match is None:
        raise InputFileError(f"{VARIABLE}={text!r} is not a size; write bytes, or a number with K, M, G or T: 16G")
    return int(match[1]) << UNITS[match[2].upper()]


def show_size(n_bytes: int) -> str:
    """Format a size with a unit.

    Examples
    --------
    >>> show_size(500), show_size(3 << 29), show_size(1 << 60)
    ('500 bytes', '1.5 GiB', '1,048,576 TiB')
    """
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n_bytes >= 1 << power:
            number = n_bytes / (1 << power)
            return f"{number:,.0f} {unit}" if number >= 100 or number == int(number) else f"{number:.1f} {unit}"
    return f"{n_bytes} bytes"


class Unpacked:
    """Counts what one file is about to unpack to, and raises beyond the limit.

    Parameters
    ----------
    path : str
        Name of the file.
    packed : int, optional
        Its size in bytes, if it is not on disk.

    Examples
    --------
    >>> unpacked = Unpacked("small.npz", 1000)
    >>> unpacked.add(1 << 29)
    >>> unpacked.add(1 << 30)
    Traceback (most recent call last):
        ...
    lmssc.io.errors.InputFileError: small.npz has 1000 bytes but unpacks to more than the limit of 1 GiB; if you \
trust it, raise the limit with the environment variable LMSSC_MAX_UNPACKED, such as LMSSC_MAX_UNPACKED=16G
    """

    def __init__(self, path: str, packed: int | None = None) -> None:
        self.path = path
        self.packed = os.path.getsize(path) if packed is None else packed
        self.most = most_unpacked(self.packed)
        self.total = 0

    def add(self, n_bytes: int) -> None:
        """Count further bytes."""
        self.reach(self.total + n_bytes)

    def reach(self, total: int) -> None:
        """Set the number of bytes in all."""
        self.total = total
        if total > self.most:
            raise InputFileError(
                f"{self.path} has {show_size(self.packed)} but unpacks to more than the limit of "
                f"{show_size(self.most)}; if you trust it, raise the limit with the environment variable "
                f"{VARIABLE}, such as {VARIABLE}=16G"
            )


class _Counted(io.RawIOBase):
    """A decompressed stream that raises beyond the limit."""

    def __init__(self, packed: IO[bytes], unpacked: Unpacked) -> None:
        self._packed, self._unpacked = packed, unpacked

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._packed.seek(offset, whence)

    def tell(self) -> int:
        return self._packed.tell()

    def readinto(self, buffer: Any) -> int:
        piece = self._packed.read(len(buffer))
        self._unpacked.reach(self._packed.tell())
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._packed.close()
        super().close()


# Endings of compressed files, and what they are called.
PACKED = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}


def packing(path: str) -> str:
    """Ending of a compressed file; empty if it is not compressed.

    Examples
    --------
    >>> packing("A.CSV.GZ"), packing("a.csv")
    ('.gz', '')
    """
    return next((ending for ending in PACKED if path.lower().endswith(ending)), "")


def open_packed(path: str) -> io.BufferedReader:
    """Open a compressed file for reading; raises `InputFileError` once it unpacks to more than the limit."""
    openers: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".zst": _open_zstd}
    file = openers[packing(path)](path)
    return io.BufferedReader(_Counted(file, Unpacked(path)), 1 << 16)


def _open_zstd(path: str) -> "_Rereadable":
    zstd = import_optional("zstandard", purpose="zstd files", extra="files")
    unpacker = zstd.ZstdDecompressor(max_window_size=MAX_WINDOW)
    # Closing the stream closes the file.
    return _Rereadable(lambda: unpacker.stream_reader(open(path, "rb"), read_across_frames=True))


class _Rereadable:
    """A stream that can go back to its beginning by being opened again."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start, self._file, self._place = start, start(), 0

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._place += len(piece)
        return piece

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._place:
            if offset or whence != io.SEEK_SET:
                raise io.UnsupportedOperation("a compressed stream goes back to its beginning only")
            self.close()
            self._file, self._place = self._start(), 0
        while self._place < offset and self.read(min(1 << 16, offset - self._place)):
            pass
        return self._place

    def close(self) -> None:
        self._file.close()


@contextmanager
def open_bytes(path: str) -> Iterator[BinaryIO]:
    """Open a file in binary mode, unpacked within the limit if its name ends in .gz, .xz or .zst; errors name it."""
    packed = packing(path)
    try:
        with open_packed(path) if packed else open(path, "rb") as file:
            yield cast(BinaryIO, file)
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputFileError(f"{path}: not a complete {PACKED[packed] if packed else 'gzip'} file ({error})") from error
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        raise InputFileError(f"{path}: {error.strerror or error}") from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise InputFileError(f"{path}: not a complete zstd file ({error})") from error
