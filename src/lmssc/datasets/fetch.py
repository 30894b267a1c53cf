"""How a data file gets here: from $LMSSC_DATA, the user's cache or a download, and never unchecked."""

import hashlib
import os
import threading
from pathlib import Path

from lmssc._optional import import_optional
from lmssc.datasets.registry import DataFile
from lmssc.persistence.atomic import open_atomically

_SECONDS_OF_SILENCE = 30  # after which a download is given up
_ONE_AT_A_TIME = threading.Lock()  # threads of one process would share the temporary file


class DataFileError(OSError):
    """A data file that is not here, is not what it should be, or cannot be downloaded."""


def data_folder() -> Path | None:
    """Folder that the environment variable LMSSC_DATA names; None if it is not set."""
    value = os.environ.get("LMSSC_DATA")
    return Path(value).expanduser() if value else None


def cache_folder() -> Path | None:
    """Folder where downloads are kept; None without pooch, which knows where that is on each system."""
    try:
        return import_optional("pooch", purpose="downloads", extra="data").os_cache("lmssc")
    except ImportError:
        return None


def find(file: DataFile) -> Path | None:
    """Where the file is, unchecked; None if it has to be downloaded.

    Parameters
    ----------
    file : DataFile
        From the registry.

    Returns
    -------
    Path or None
        In $LMSSC_DATA if it is there, else in the cache.
    """
    for folder in (data_folder, cache_folder):  # the second is not asked if the first has it: pooch stays optional
        path = folder()
        if path is not None and os.path.lexists(path / file.filename):
            return path / file.filename
    return None


def find_fault(path: Path, file: DataFile) -> str | None:
    """What is wrong with the file at `path`: None if it is the file of the registry.

    Parameters
    ----------
    path : Path
        File on disk.
    file : DataFile
        What it should be.

    Returns
    -------
    str or None
        Expected and found size, or checksum.

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
        size = path.stat().st_size  # a look at the size first: something huge under this name is not read
        if not path.is_file():
            return "it is not a plain file"
        if size != file.size:
            return f"it has {size} bytes instead of {file.size}"
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None if sha256 == file.sha256 else f"its sha256 is {sha256} instead of {file.sha256}"


def fetch(file: DataFile, *, download: bool = True) -> Path:
    """Path of the file, checked; downloaded into the cache if it is nowhere.

    Parameters
    ----------
    file : DataFile
        From the registry.
    download : bool, default=True
        Whether a file that is nowhere is downloaded.

    Returns
    -------
    Path
        The file, whose sha256 is that of the registry.

    Raises
    ------
    DataFileError
        If the file found is not what it should be (it is left as it is, and not used), if it is nowhere and
        `download` is False, or if the download fails (nothing is left in the cache).
    """
    with _ONE_AT_A_TIME:
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
    """Say that the file is nowhere, where it was looked for, and how to get it."""
    places = f"$LMSSC_DATA ({data_folder() or 'not set'}) nor in the cache ({cache_folder() or 'needs pooch'})"
    return DataFileError(f"{file.filename} is neither in {places}, {why}. {_by_hand(file)}")


def _by_hand(file: DataFile) -> str:
    return f"By hand: save {file.address} in a folder, and set the environment variable LMSSC_DATA to that folder"


def _download(file: DataFile) -> Path:
    """Download into the cache; the file has its name only once it is complete and checked."""
    folder = cache_folder()
    if folder is None:
        raise _not_here(file, "and downloads need pooch: pip install 'lmssc[data]'")
    pooch = import_optional("pooch", purpose="downloads", extra="data")
    # The files are small: read at once, they leave no connection open when writing fails or the answer is an error.
    download = pooch.HTTPDownloader(timeout=_SECONDS_OF_SILENCE, stream=False)
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
        ) from error
    return path


def _reason(error: OSError) -> str:
    """What went wrong, in one line; of a failed connection its cause, without the address that is named anyway."""
    cause = getattr(error.args[0], "reason", error) if error.args else error
    return " ".join(str(getattr(cause, "strerror", None) or cause).split())
