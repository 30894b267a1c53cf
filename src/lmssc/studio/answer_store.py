"""Every answer of an annotator, on disk before it counts as taken.

SQLite in WAL mode with synchronous=FULL: a transaction that is committed survives the end of the process and of the
machine. Nothing is ever deleted: an answer that is undone or replaced stays in the table and is marked.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

FILE = "answers.sqlite"
FORMAT = 1
LABEL, SKIP, NONE = "label", "skip", "none"
"""Kinds of answers: a class, "not now", and "none of these classes"."""

_TABLES = f"""
CREATE TABLE IF NOT EXISTS answers (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    sample    TEXT NOT NULL,
    kind      TEXT NOT NULL CHECK (kind IN ('{LABEL}', '{SKIP}', '{NONE}')),
    label     TEXT CHECK ((kind = '{LABEL}') = (label IS NOT NULL)),
    annotator TEXT NOT NULL,
    time      TEXT NOT NULL,
    shown     TEXT NOT NULL,
    undone    TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS one_answer ON answers (sample, annotator) WHERE undone IS NULL;
CREATE TABLE IF NOT EXISTS classes (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_COLUMNS = "number, sample, kind, label, annotator, time, shown, undone"


class StoreError(ValueError):
    """A file of answers that cannot be used; the message says why."""


@dataclass(frozen=True)
class StoredAnswer:
    """One answer of one annotator about one sample.

    Attributes
    ----------
    number : int
        Counts the answers, from 1.
    sample : str
        Id of the sample.
    kind : {"label", "skip", "none"}
        A class, "not now", or "none of these classes".
    label : str or None
        The class.
    annotator : str
        Who gave it.
    time : str
        When, in UTC.
    shown : dict
        What the annotator saw: the guess, its probability, and why the sample was asked for.
    undone : str or None
        When it was undone or replaced; None if it stands.
    """

    number: int
    sample: str
    kind: str
    label: str | None
    annotator: str
    time: str
    shown: Mapping[str, Any] = field(default_factory=dict)
    undone: str | None = None


class AnswerStore:
    """The answers in one folder; one process at a time may have it open.

    Parameters
    ----------
    folder : Path
        Created if needed; only its owner may read it.

    Examples
    --------
    >>> import tempfile
    >>> store = AnswerStore(Path(tempfile.mkdtemp()) / "labels")
    >>> store.add("s1", "cat", "ann").number, store.add("s2", "dog", "ann").number
    (1, 2)
    >>> store.undo("ann").sample
    's2'
    >>> [(answer.sample, answer.label) for answer in store.standing()]
    [('s1', 'cat')]
    >>> store.close()
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._lock = RLock()
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(self.path, timeout=1, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except sqlite3.OperationalError as error:
            self._connection.close()
            if "locked" in str(error):
                raise StoreError(f"{self.path} is in use: another 'lmssc label' runs with this folder") from error
            raise StoreError(f"{self.path} cannot be opened: {error}") from error
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise StoreError(f"{self.path} is not a file of answers: {error}") from error

    def _open(self) -> None:
        """Take the file for this process alone, and make or check its tables."""
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        with self._transaction():
            tables = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and "answers" not in tables:
                raise sqlite3.DatabaseError("it has other tables")
            for statement in _TABLES.split(";"):
                run(statement)
            run("INSERT OR IGNORE INTO facts VALUES ('format', ?)", (str(FORMAT),))
        found = int(run("SELECT value FROM facts WHERE name = 'format'").fetchone()[0])
        if found > FORMAT:
            raise sqlite3.DatabaseError(f"it has format {found}, and this version of lmssc reads up to {FORMAT}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, and on disk when it ends."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def add(
        self,
        sample: str,
        label: str | None,
        annotator: str,
        *,
        kind: str = LABEL,
        shown: Mapping[str, Any] | None = None,
    ) -> StoredAnswer:
        """Store an answer; it is on disk when this returns.

        The same answer again changes nothing, so a request that was not confirmed may be repeated. Another answer of
        the same annotator about the same sample replaces the first.

        Parameters
        ----------
        sample : str
            Id of the sample.
        label : str or None
            The class; None unless `kind` is "label".
        annotator : str
            Who gives it.
        kind : {"label", "skip", "none"}
            Kind of the answer.
        shown : dict, optional
            What the annotator saw.

        Returns
        -------
        StoredAnswer
        """
        with self._transaction():
            standing = self._select("sample = ? AND annotator = ? AND undone IS NULL", sample, annotator)
            if standing and (standing[0].kind, standing[0].label) == (kind, label):
                return standing[0]
            now = _now()
            self._mark_undone(standing, now)
            if label is not None:
                self._connection.execute("INSERT OR IGNORE INTO classes (name) VALUES (?)", (label,))
            number = self._insert(sample, kind, label, annotator, now, json.dumps(shown or {}))
        return StoredAnswer(number, sample, kind, label, annotator, now, shown or {})

    def undo(self, annotator: str, number: int | None = None) -> StoredAnswer | None:
        """Undo the last answer of an annotator that stands.

        Parameters
        ----------
        annotator : str
            Whose answer.
        number : int, optional
            The answer to undo. If it is undone already nothing happens, so the request may be repeated.

        Returns
        -------
        StoredAnswer or None
            The answer that is undone now; None if there was nothing to undo.
        """
        with self._transaction():
            if number is None:
                found = self._select("annotator = ? AND undone IS NULL ORDER BY number DESC LIMIT 1", annotator)
            else:
                found = self._select("annotator = ? AND number = ? AND undone IS NULL", annotator, number)
            self._mark_undone(found, _now())
        return found[0] if found else None

    def add_classes(self, names: Iterable[str]) -> None:
        """Add classes that have no answer yet, in this order; those that are known stay where they are."""
        with self._transaction():
            self._connection.executemany("INSERT OR IGNORE INTO classes (name) VALUES (?)", [(name,) for name in names])

    def add_imported(self, answers: Iterable[StoredAnswer]) -> int:
        """Store answers from elsewhere with their own times; return how many are new.

        An answer of an annotator who has one for that sample already is left out.
        """
        n_new = 0
        with self._transaction():
            for one in answers:
                if self._select("sample = ? AND annotator = ? AND undone IS NULL", one.sample, one.annotator):
                    continue
                if one.label is not None:
                    self._connection.execute("INSERT OR IGNORE INTO classes (name) VALUES (?)", (one.label,))
                self._insert(one.sample, one.kind, one.label, one.annotator, one.time, json.dumps(dict(one.shown)))
                n_new += 1
        return n_new

    @property
    def classes(self) -> list[str]:
        """Names of the classes in the order in which they came up."""
        with self._lock:
            return [name for (name,) in self._connection.execute("SELECT name FROM classes ORDER BY number")]

    def standing(self) -> list[StoredAnswer]:
        """The answers that stand, oldest first."""
        return self._read("undone IS NULL ORDER BY number")

    def all(self) -> list[StoredAnswer]:
        """All answers that were ever given, oldest first."""
        return self._read("1 ORDER BY number")

    def close(self) -> None:
        """Close the file; the write-ahead log is merged into it."""
        with self._lock:
            self._connection.close()

    def _read(self, where: str, *values: Any) -> list[StoredAnswer]:
        with self._lock:
            return self._select(where, *values)

    def _select(self, where: str, *values: Any) -> list[StoredAnswer]:
        rows = self._connection.execute(f"SELECT {_COLUMNS} FROM answers WHERE {where}", values)
        return [_answer(row) for row in rows]

    def _insert(self, *values: Any) -> int:
        cursor = self._connection.execute(
            "INSERT INTO answers (sample, kind, label, annotator, time, shown) VALUES (?, ?, ?, ?, ?, ?)", values
        )
        return int(cursor.lastrowid or 0)

    def _mark_undone(self, answers: list[StoredAnswer], now: str) -> None:
        self._connection.executemany(
            "UPDATE answers SET undone = ? WHERE number = ?", [(now, answer.number) for answer in answers]
        )


def _answer(row: tuple[Any, ...]) -> StoredAnswer:
    number, sample, kind, label, annotator, time, shown, undone = row
    return StoredAnswer(number, sample, kind, label, annotator, time, json.loads(shown), undone)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
