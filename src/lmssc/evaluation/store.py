"""Records of finished runs, in memory and, if there is a folder, in one file each, so that no run is repeated."""

import json
from pathlib import Path
from typing import Any

from lmssc.persistence.atomic import open_atomically


class Store:
    """Records by key; those on disk survive a crash.

    Parameters
    ----------
    folder : path or None
        The files go into its sub-folder ``runs``, which is created; None keeps the records in memory only.

    Examples
    --------
    >>> store = Store(None)
    >>> store.write("a", {"accuracy": 0.9})
    >>> store.read("a"), store.read("b")
    ({'accuracy': 0.9}, None)
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder) / "runs"
        self._known: dict[str, dict[str, Any]] = {}
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str) -> dict[str, Any] | None:
        """The record, or None if there is none that can be read."""
        if key not in self._known and self.folder is not None:
            try:
                self._known[key] = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            except (FileNotFoundError, ValueError):  # a damaged file counts as missing: the run is repeated
                return None
        return self._known.get(key)

    def write(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record, on disk before this returns."""
        if self.folder is not None:
            with open_atomically(self.folder / f"{key}.json") as file:
                file.write(json.dumps(record).encode())
        self.remember(key, record)

    def remember(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record that another process has written to disk."""
        self._known[key] = record

    def __getstate__(self) -> dict[str, Any]:
        """State for a worker: the folder to write to, without the records."""
        return {"folder": self.folder, "_known": {}}
