"""What a result was made with: versions, machine, date."""

import os
import platform
from datetime import UTC, datetime
from importlib import metadata


def describe_machine() -> dict[str, str]:
    """Versions of what the numbers depend on, the machine and the date.

    Returns
    -------
    dict of str

    Examples
    --------
    >>> list(describe_machine())
    ['lmssc', 'python', 'numpy', 'scipy', 'scikit-learn', 'machine', 'date']
    """
    versions = {name: version(name) for name in ("lmssc", "numpy", "scipy", "scikit-learn")}
    return {
        "lmssc": versions.pop("lmssc"),
        "python": platform.python_version(),
        **versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
    }


def version(package: str) -> str:
    """Version of a package, or that it is run from its source.

    Examples
    --------
    >>> version("no-such-package")
    'not installed'
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
