"""Memory that a Feather (Arrow IPC) file needs, by its stated buffer sizes, which pyarrow allocates unchecked."""

import struct
from collections.abc import Iterator
from typing import Any

MAGIC = b"ARROW1"
# A block in the footer: offset, length of the metadata, padding, length of the body. A buffer: offset and length.
BLOCK, BUFFER = struct.Struct("<qi4xq"), struct.Struct("<qq")
# Field numbers in the flatbuffer tables of the format.
DICTIONARIES, BATCHES = 2, 3
HEADER_TYPE, HEADER = 1, 2
DICTIONARY_DATA = 1
LENGTH, NODES, BUFFERS, COMPRESSION = 0, 1, 2, 3
DICTIONARY_BATCH = 2
# Minimum bytes per row of a column in memory.
CELL = 8


class _Record:
    """A table of a flatbuffer: fields by number."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._fields = place - _number("<i", data, place)

    def place(self, field: int) -> int:
        """Position of a field; 0 if it is absent."""
        if 4 + 2 * field >= _number("<H", self._data, self._fields):
            return 0
        offset = _number("<H", self._data, self._fields + 4 + 2 * field)
        return self._place + offset if offset else 0

    def record(self, field: int) -> "_Record":
        """A field that is a table itself."""
        place = self.place(field)
        return _Record(self._data, place + _number("<I", self._data, place))

    def number(self, field: int, form: str) -> int:
        """A field that is a number."""
        place = self.place(field)
        return _number(form, self._data, place) if place else 0

    def items(self, field: int, form: struct.Struct) -> Iterator[tuple[int, ...]]:
        """The structures in a field that is a vector."""
        place = self.place(field)
        if place:
            place += _number("<I", self._data, place)
            first, count = place + 4, _number("<I", self._data, place)
            yield from (form.unpack_from(self._data, first + form.size * i) for i in range(count))


def _number(form: str, data: bytes, place: int) -> int:
    if place < 0:
        raise struct.error("it has a part before its beginning")
    return struct.unpack_from(form, data, place)[0]


def batch_sizes(arrow: Any, file: Any) -> Iterator[int]:
    """Yield the bytes that each batch of an Arrow IPC file needs in memory, without unpacking it.

    Parameters
    ----------
    arrow : module
        pyarrow, with pyarrow.ipc.
    file : file
        Open in binary mode.

    Yields
    ------
    int

    Raises
    ------
    struct.error
        If the file is not complete.
    """
    end = file.seek(0, 2)
    file.seek(max(0, end - 10))
    tail = file.read(10)
    length = _number("<i", tail, 0)
    if not 0 < length <= end - 10:
        raise struct.error("its footer is longer than the file")
    file.seek(end - 10 - length)
    footer = file.read(length)
    root = _Record(footer, _number("<I", footer, 0))
    for field in (DICTIONARIES, BATCHES):
        for offset, _, _ in root.items(field, BLOCK):
            if not 0 <= offset < end:
                raise struct.error("it has a batch beyond its end")
            file.seek(offset)
            message = arrow.ipc.read_message(file)
            yield _batch_size(message.metadata.to_pybytes(), message.body)


def _batch_size(metadata: bytes, body: Any) -> int:
    message = _Record(metadata, _number("<I", metadata, 0))
    batch = message.record(HEADER)
    if message.number(HEADER_TYPE, "<B") == DICTIONARY_BATCH:
        batch = batch.record(DICTIONARY_DATA)
    packed = bool(batch.place(COMPRESSION))
    n_columns = sum(1 for _ in batch.items(NODES, BUFFER))
    sizes = 0
    for offset, length in batch.items(BUFFERS, BUFFER):
        sizes += length
        if packed and length >= 8:
            # A compressed buffer starts with its unpacked length, or -1 if it is stored uncompressed.
            sizes += max(0, _number("<q", memoryview(body)[offset : offset + 8].tobytes(), 0))
    return max(sizes, CELL * n_columns * batch.number(LENGTH, "<q"))
