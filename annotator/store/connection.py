"""One connection to a project file: opening it safely, transactions, and SQLite's errors as ours."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from annotator.errors import (
    DiskFullError,
    ProjectBusyError,
    ProjectDamagedError,
    ProjectError,
    ProjectNotFoundError,
    ProjectReadOnlyError,
    ProjectTooNewError,
)
from annotator.migrations import APPLICATION_ID, STEPS, migrate

FILE_NAME = "project.sqlite"
BUSY_TIMEOUT_S = 10.0
_MAGIC = b"SQLite format 3\x00"
_NEARLY_FULL_BYTES = 1 << 20


class Connection:
    """A project file open for reading and writing, by any number of threads; other processes may have it open too."""

    def __init__(self, path: Path, connection: sqlite3.Connection, busy_timeout_s: float) -> None:
        self.path = path
        self._connection = connection
        self._busy_timeout_s = busy_timeout_s
        self._lock = threading.RLock()

    @classmethod
    def open(cls, folder: Path, create: bool = True, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Self:
        """The project in `folder`, made if there is none and `create` is true, brought to the newest version.

        Raises `ProjectNotFoundError`, `ProjectTooNewError`, `ProjectDamagedError`, `ProjectReadOnlyError`,
        `ProjectBusyError` or `DiskFullError`; the file is then as it was.
        """
        path = Path(folder) / FILE_NAME
        _check_before_opening(path, create)
        with translated(path, busy_timeout_s):
            connection = connect(path, busy_timeout_s)
            try:
                migrate(connection, path)
                _switch_to_wal(connection, busy_timeout_s)
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA synchronous = FULL")
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, busy_timeout_s)

    def close(self) -> None:
        """Let go of the file; the store cannot be used afterwards. Closing twice is harmless."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Everything inside is stored as one, or nothing of it. Used inside itself, it joins the outer one."""
        with self._lock, translated(self.path, self._busy_timeout_s):
            outer = not self._connection.in_transaction
            self._connection.execute("BEGIN IMMEDIATE" if outer else "SAVEPOINT inner_action")
            try:
                yield
                self._connection.execute("COMMIT" if outer else "RELEASE inner_action")
            except BaseException:
                self._roll_back(outer)
                raise

    def _roll_back(self, outer: bool) -> None:
        """Nothing to do where SQLite rolled the whole transaction back by itself, as it may on a full disk."""
        if not self._connection.in_transaction:
            return
        if outer:
            self._connection.execute("ROLLBACK")
        else:
            self._connection.execute("ROLLBACK TO inner_action")
            self._connection.execute("RELEASE inner_action")

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, translated(self.path, self._busy_timeout_s):
            return self._connection.execute(sql, values).fetchall()

    def _row(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first row, or None."""
        with self._lock, translated(self.path, self._busy_timeout_s):
            return self._connection.execute(sql, values).fetchone()

    def _write(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """One statement of an action; only inside `atomic()`."""
        self._check_inside_an_action()
        return self._connection.execute(sql, values)

    def _insert(self, sql: str, values: Sequence[Any]) -> int:
        """Like `_write`; answers the new row's id."""
        row_id = self._write(sql, values).lastrowid
        if row_id is None:
            raise ProjectError(f"{self.path} did not take a new row; nothing was saved")
        return row_id

    def _write_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        self._check_inside_an_action()
        self._connection.executemany(sql, values)

    def _check_inside_an_action(self) -> None:
        if not self._connection.in_transaction:
            raise ProjectError(f"{self.path} was asked to save half an action; nothing was saved")

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """A second connection that sees the project as it was saved when it first read, whatever is written since."""
        with translated(self.path, self._busy_timeout_s), closing(connect(self.path, self._busy_timeout_s)) as reader:
            reader.execute("PRAGMA query_only = ON")
            reader.execute("BEGIN")
            yield reader

    def setting(self, name: str) -> str | None:
        """A value kept with the project, such as its folder; None if it was never set."""
        row = self._row("SELECT value FROM setting WHERE name = ?", (name,))
        return None if row is None else str(row[0])

    def set_setting(self, name: str, value: str) -> None:
        """Keep a value with the project."""
        with self.atomic():
            self._write("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (name, value))


def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection in autocommit mode that waits for other writers."""
    return sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)


@contextmanager
def translated(path: Path, busy_timeout_s: float) -> Iterator[None]:
    """Raise SQLite's errors that a person can meet as ours; a programming error stays what it is."""
    try:
        yield
    except sqlite3.Error as error:
        known = _as_project_error(error, path, busy_timeout_s)
        if known is None:
            raise
        raise known from error


def _as_project_error(error: sqlite3.Error, path: Path, busy_timeout_s: float) -> ProjectError | None:
    code = _primary_code(error)
    if code == sqlite3.SQLITE_IOERR and shutil.disk_usage(path.parent).free < _NEARLY_FULL_BYTES:
        code = sqlite3.SQLITE_FULL
    match code:
        case sqlite3.SQLITE_FULL:
            return DiskFullError(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return ProjectBusyError(path, busy_timeout_s)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return ProjectReadOnlyError(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_IOERR:
            return ProjectDamagedError(path, str(error))
    return None


def _primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without the detail in its higher bits; 0 for an error of Python's own layer."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _switch_to_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Readers and the writer then do not wait for each other. SQLite's own waiting does not cover this statement."""
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _check_before_opening(path: Path, create: bool) -> None:
    """Refuse what can be refused without SQLite, which would touch the file; make the folder if it is to be made."""
    try:
        header = _header(path)
    except PermissionError as error:
        raise ProjectReadOnlyError(path) from error
    except OSError as error:
        raise ProjectDamagedError(path, error.strerror or str(error)) from error
    if header:
        _check_header(path, header)
    elif create:
        _make_folder(path.parent)
    else:
        raise ProjectNotFoundError(path.parent)


def _header(path: Path) -> bytes:
    """SQLite's first 100 bytes; empty for a file that is not there or that a killed process left empty."""
    try:
        with path.open("rb") as file:
            return file.read(100)
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _check_header(path: Path, header: bytes) -> None:
    """The version stands at byte 60, the application at byte 68; another program's file is refused later, as such."""
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise ProjectDamagedError(path, "it is not an SQLite file")
    version, application_id = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
    if version > len(STEPS) and application_id == APPLICATION_ID:
        raise ProjectTooNewError(path, version, len(STEPS))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ProjectReadOnlyError(folder, "it is not a folder") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFullError(folder) from error
        raise ProjectReadOnlyError(folder, error.strerror or str(error)) from error
