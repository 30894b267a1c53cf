"""Find a data file in $LMSSC_DATA or the user's cache, or download it; its checksum is always verified."""

import hashlib
import os
import threading
from pathlib import Path

from lmssc._optional import import_optional
from lmssc.datasets.registry import DataFile
from lmssc.persistence.atomic import open_atomically

_TIMEOUT_SECONDS = 30  # without data from the server
_DOWNLOAD_LOCK = threading.Lock()  # threads of one process would share the temporary file


class DataFileError(OSError):
    """A data file is missing, has the wrong content, or cannot be downloaded."""


def data_folder() -> Path | None:
    """Folder named by the environment variable LMSSC_DATA; None if it is not set."""
    value = os.environ.get("LMSSC_DATA")
    return Path(value).expanduser() if value else None


def cache_folder() -> Path | None:
    """Folder of the downloaded files, as pooch chooses it for the system; None without pooch."""
    try:
        return import_optional("pooch", purpose="downloads", extra="data").os_cache("lmssc")
    except ImportError:
        return None


def find(file: DataFile) -> Path | None:
    """Find a file without checking it; None if it has to be downloaded.

    Parameters
    ----------
    file : DataFile
        From the registry.

    Returns
    -------
    Path or None
        Its path in $LMSSC_DATA, else in the cache.
    """
    for folder in (data_folder, cache_folder):  # cache_folder needs pooch, so it is called only if needed
        path = folder()
        if path is not None and os.path.lexists(path / file.filename):
            return path / file.filename
    return None


def find_fault(path: Path, file: DataFile) -> str | None:
    """Say what is wrong with the file at `path`; None if it is the file of the registry.

    Parameters
    ----------
    path : Path
        File on disk.
    file : DataFile
        Expected file.

    Returns
    -------
    str or None
        The actual and the expected size or checksum.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lmssc.datasets.registry import FILES
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sonar.csv"
    ...     path.write_text("0.02,0.0371,0.0428,R")
    ...     find_fault(path, FILES["sonar"])
    20
    'it has 20 bytes instead of 87775'
    """
    try:
        size = path.stat().st_size  # checked first, so that a huge file is never read
        if not path.is_file():
            return "it is not a plain file"
        if size != file.size:
            return f"it has {size} bytes instead of {file.size}"
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None if sha256 == file.sha256 else f"its sha256 is {sha256} instead of {file.sha256}"


def fetch(file: DataFile, *, download: bool = True) -> Path:
    """Return the path of a verified file; download it into the cache if it is missing.

    Parameters
    ----------
    file : DataFile
        From the registry.
    download : bool, default=True
        Whether to download a missing file.

    Returns
    -------
    Path
        A file with the sha256 of the registry.

    Raises
    ------
    DataFileError
        If the file found has the wrong content (it is not used, and not deleted), if it is missing and `download` is
        False, or if the download fails (nothing is left in the cache).
    """
    with _DOWNLOAD_LOCK:
        path = find(file)
        if path is None and not download:
            raise _not_here(file, "and download is False")
        if path is None:
            return _download(file)
    fault = find_fault(path, file)
    if fault is not None:
        raise DataFileError(
            f"{path} is damaged or not the file it should be: {fault}. It was not used. "
            f"Delete it and run again, or replace it by {file.address}"
        )
    return path


def _not_here(file: DataFile, why: str) -> DataFileError:
    """Error for a missing file: where it was searched for, and how to get it."""
    places = f"$LMSSC_DATA ({data_folder() or 'not set'}) nor in the cache ({cache_folder() or 'needs pooch'})"
    return DataFileError(f"{file.filename} is neither in {places}, {why}. {_by_hand(file)}")


def _by_hand(file: DataFile) -> str:
    return f"By hand: save {file.address} in a folder, and set the environment variable LMSSC_DATA to that folder"


def _download(file: DataFile) -> Path:
    """Download into the cache; the file gets its name once it is complete and verified."""
    folder = cache_folder()
    if folder is None:
        raise _not_here(file, "and downloads need pooch: pip install 'lmssc[data]'")
    pooch = import_optional("pooch", purpose="downloads", extra="data")
    # Not streamed: the files are small, and no connection stays open if writing fails or the server returns an error.
    download = pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS, stream=False)
    path = folder / file.filename
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open_atomically(path) as incoming:
            download(file.address, incoming, None)
            incoming.flush()
            fault = find_fault(Path(incoming.name), file)
            if fault is not None:
                raise DataFileError(f"what came is not the file it should be: {fault}")
    except OSError as error:  # all errors of requests are OSErrors too
        raise DataFileError(
            f"{file.filename} could not be downloaded from {file.address} into {folder}: {_reason(error)}. "
            f"{_by_hand(file)}"
        ) from None  # the message has the reason; requests and urllib3 add 100 lines
    return path


def _reason(error: OSError) -> str:
    """The error in one line; for a failed connection its cause, without the address, which the message has anyway."""
    cause = getattr(error.args[0], "reason", error) if error.args else error
    return " ".join(str(getattr(cause, "strerror", None) or cause).split())
