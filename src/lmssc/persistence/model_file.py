"""Model files: a fitted estimator as arrays and JSON, read without running any code.

`docs/model-format.md` describes the format byte by byte.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lmssc.persistence.codec import Decoder, Encoder, TypeTable
from lmssc.persistence.container import (
    ContainerReader,
    DamagedFileError,
    FileKind,
    UnreadableFileError,
    write_container,
)
from lmssc.persistence.provenance import version

# The first byte occurs in no text; a transfer as text would change the line ends.
MODEL = FileKind("model file", b"\x93LMSSC\r\n", 1, "clf.save(path) and `lmssc classify` write them")


class ModelFileError(ValueError):
    """A file that is not a model, or one that is damaged or cannot be understood."""


def write_model(path: str | os.PathLike[str], estimator: Any, types: TypeTable) -> None:
    """Write an estimator to a model file, which replaces an existing one once it is complete.

    Parameters
    ----------
    path : str or path
        Name of the file.
    estimator : estimator
        An instance of one of the estimators in `types`.
    types : TypeTable
        Classes that the file may name.

    Raises
    ------
    TypeError
        If the estimator, or something that it holds, is not data and not in `types`.
    """
    if type(estimator) not in types.estimators.values():
        raise TypeError(
            f"{type(estimator).__name__} cannot be saved to a model file, which contains no code: it is not one of the "
            f"classes of lmssc itself ({', '.join(types.estimators)})"
        )
    encoder = Encoder(types)
    tree = encoder.encode_estimator(estimator, "")
    write_container(Path(path), MODEL, {"made": made_with(), "model": tree}, encoder.blocks)


def made_with() -> dict[str, str]:
    """Versions and date that a model file records.

    Examples
    --------
    >>> list(made_with())
    ['lmssc', 'numpy', 'scipy', 'scikit-learn', 'date']
    """
    versions = {package: version(package) for package in ("lmssc", "numpy", "scipy", "scikit-learn")}
    return {**versions, "date": datetime.now(UTC).isoformat(timespec="seconds")}


def read_model_file(
    path: str | os.PathLike[str], types: TypeTable, check: Callable[[Any], None]
) -> tuple[Any, dict[str, Any]]:
    """Read an estimator and what its file records about itself.

    Parameters
    ----------
    path : str or path
        Name of the file.
    types : TypeTable
        Classes that the file may name.
    check : callable
        Called with the estimator; raises an error if its fitted state is inconsistent.

    Returns
    -------
    estimator : estimator
        As it was written.
    about : dict
        format_version, bytes, and the versions and the date of `made_with`.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or was written by a later version of lmssc.
    """
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file")
    with open(path, "rb") as file:
        try:
            reader = ContainerReader(file, MODEL)
            made = reader.header["made"]
            if not isinstance(made, dict) or not all(isinstance(text, str) for text in made.values()):
                raise DamagedFileError("its header does not say which versions wrote it")
            decoder = Decoder(reader.read_block, types, reader.size, saved_by=made.get("lmssc", "unknown"))
            estimator = decoder.decode_estimator(reader.header["model"])
            check(estimator)
        except UnreadableFileError as error:
            raise ModelFileError(f"{path} {error}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            # Whatever it was, `write_model` has not written this file.
            reason = str(error) if isinstance(error, DamagedFileError) else "its content makes no sense"
            raise ModelFileError(f"{path} cannot be read as a model: {reason}") from error
    return estimator, {"format_version": reader.version, "bytes": reader.size, **made}
