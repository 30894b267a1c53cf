"""HDF5 files, read without trust: nothing from other files, and no more than the file may unpack to."""

import zlib
from typing import Any

from lmssc.io.table import InputFileError
from lmssc.io.unpacking import FREE, Unpacked

# What MATLAB and h5py write by themselves: gzip, with the bytes in another order before it, and a checksum.
DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3
# Gzip packs no better than this, so that a small chunk cannot become a large one.
MOST_GZIP_TIMES = 1032
SMALL_CHUNK = FREE // MOST_GZIP_TIMES
# Links to links beyond this go round in a circle.
MOST_LINKS = 16
PIECE = 1 << 20


class SafeHDF5:
    """What is in an HDF5 file itself, by name.

    Parameters
    ----------
    h5py : module
        h5py.
    content : h5py.File
        Open for reading.
    unpacked : Unpacked
        Counts what is read.
    """

    def __init__(self, h5py: Any, content: Any, unpacked: Unpacked) -> None:
        self._h5py, self._content, self.unpacked = h5py, content, unpacked

    def item(self, group: Any, name: str) -> Any:
        """The group or dataset of a name; links are followed as long as they stay within the file."""
        return self._follow(group, name, f"{group.name.rstrip('/')}/{name}".lstrip("/"), 0)

    def _follow(self, group: Any, path: str, asked: str, links: int) -> Any:
        found = self._content if path.startswith("/") else group
        for name in filter(None, path.split("/")):
            link = found.get(name, getlink=True) if isinstance(found, self._h5py.Group) else None
            if isinstance(link, self._h5py.ExternalLink):
                raise InputFileError(
                    f"{self.unpacked.path}: {asked!r} is a link to another file ({link.filename!r}), which is not "
                    "followed; save the data in this one"
                )
            if isinstance(link, self._h5py.SoftLink):
                if links >= MOST_LINKS:
                    raise InputFileError(f"{self.unpacked.path}: {asked!r} is a link that goes round in a circle")
                found = self._follow(found, link.path, asked, links + 1)
            elif link is None:
                raise InputFileError(
                    f"{self.unpacked.path}: {asked!r} is a link to {path!r}, which is not in the file; save it again"
                    if links
                    else f"{self.unpacked.path}: {asked!r} is not in the file"
                )
            else:
                found = found[name]
        return found

    def referred(self, reference: Any, asked: str) -> Any:
        """The dataset or group that a reference in a cell stands for."""
        if not reference:
            raise InputFileError(f"{self.unpacked.path}: {asked!r} refers to nothing; save it again")
        return self._content[reference]

    def values(self, dataset: Any) -> Any:
        """The numbers of a dataset, if they are in this file."""
        where = f"{self.unpacked.path}: {dataset.name!r}"
        if dataset.external:
            raise InputFileError(
                f"{where} has its numbers in another file ({dataset.external[0][0]!r}), which is not read; save them "
                "in this one"
            )
        if dataset.is_virtual:
            raise InputFileError(f"{where} is put together from other files, which are not read; save it as it is")
        self.unpacked.add(0 if dataset.shape is None else dataset.nbytes)
        self._check_chunks(dataset, where)
        return dataset[()]

    def _check_chunks(self, dataset: Any, where: str) -> None:
        """HDF5 unpacks a chunk to whatever it holds, and not to what it should hold."""
        if dataset.chunks is None:
            return
        properties = dataset.id.get_create_plist()
        filters = {properties.get_filter(number)[0] for number in range(properties.get_nfilters())}
        if filters - {DEFLATE, SHUFFLE, FLETCHER32}:
            raise InputFileError(f"{where} is packed by another filter than gzip; save it with gzip, or not packed")
        if DEFLATE not in filters or dataset.id.get_storage_size() <= SMALL_CHUNK:
            return
        for number in range(dataset.id.get_num_chunks()):
            chunk = dataset.id.get_chunk_info(number)
            if chunk.size > SMALL_CHUNK:
                packed = dataset.id.read_direct_chunk(chunk.chunk_offset)[1]
                self.unpacked.reach(max(self.unpacked.total, _inflated_size(packed, self.unpacked.most)))


def _inflated_size(packed: bytes, most: int) -> int:
    """Bytes that a gzip stream unpacks to, or a few more than `most`; what is unpacked is not kept."""
    stream, size = zlib.decompressobj(), 0
    while packed and size <= most and not stream.eof:
        size += len(stream.decompress(packed, PIECE))
        packed = stream.unconsumed_tail
    return size
