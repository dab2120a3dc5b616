"""The project's schema as numbered steps. A released step is never edited: a change is a new step at the end.

The number of steps done is SQLite's `user_version`. Each step is one transaction, so a killed migration goes on where
it stopped, and two processes that migrate at once do each step once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from annotator.errors import ProjectDamagedError, ProjectTooNewError

APPLICATION_ID = 0x50684D73
"""Marks the file as a project of ours ("PhMs"), so that another program's SQLite file is never changed."""

Step = tuple[str, ...]
"""SQL statements, one by one."""

_ANNOTATION_COLUMNS = """
    image_id INTEGER NOT NULL REFERENCES image (image_id),
    category_id INTEGER NOT NULL REFERENCES category (category_id),
    phrase TEXT,
    phrase_key TEXT,
    height INTEGER NOT NULL CHECK (height > 0),
    width INTEGER NOT NULL CHECK (width > 0),
    counts TEXT NOT NULL,
    x1 REAL NOT NULL,
    y1 REAL NOT NULL,
    x2 REAL NOT NULL,
    y2 REAL NOT NULL,
    score REAL CHECK (score BETWEEN 0 AND 1),
    bundle_id TEXT,
    decision TEXT NOT NULL CHECK (decision IN ('pending', 'accepted', 'rejected')),
    CHECK (score IS NOT NULL OR decision <> 'pending')
"""

_FIRST: Step = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    """CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE image (
    image_id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    path_key TEXT NOT NULL,
    name_key TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    sha256 TEXT,
    labelled_sha256 TEXT,
    height INTEGER,
    width INTEGER,
    failure TEXT,
    missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1)),
    done INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
    revision INTEGER NOT NULL DEFAULT 0,
    n_pending INTEGER NOT NULL DEFAULT 0,
    n_accepted INTEGER NOT NULL DEFAULT 0,
    n_rejected INTEGER NOT NULL DEFAULT 0
)""",
    "CREATE INDEX image_by_path_key ON image (path_key, path)",
    """CREATE TABLE category (
    category_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE CHECK (name <> ''),
    supercategory TEXT NOT NULL DEFAULT 'object'
)""",
    """CREATE TABLE kept_phrase (
    phrase_id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL CHECK (text <> ''),
    phrase_key TEXT NOT NULL UNIQUE,
    category_id INTEGER NOT NULL REFERENCES category (category_id)
)""",
    f"""CREATE TABLE annotation (
    annotation_id INTEGER PRIMARY KEY AUTOINCREMENT,{_ANNOTATION_COLUMNS})""",
    "CREATE INDEX annotation_by_image ON annotation (image_id)",
    "CREATE INDEX annotation_by_phrase ON annotation (phrase_key, decision)",
    "CREATE INDEX annotation_by_category ON annotation (category_id, decision)",
    f"""CREATE TABLE shelved_annotation (
    annotation_id INTEGER PRIMARY KEY,{_ANNOTATION_COLUMNS})""",
    """CREATE TRIGGER annotation_added AFTER INSERT ON annotation BEGIN
    UPDATE image SET
        n_pending = n_pending + (NEW.decision = 'pending'),
        n_accepted = n_accepted + (NEW.decision = 'accepted'),
        n_rejected = n_rejected + (NEW.decision = 'rejected')
    WHERE image_id = NEW.image_id;
END""",
    """CREATE TRIGGER annotation_removed AFTER DELETE ON annotation BEGIN
    UPDATE image SET
        n_pending = n_pending - (OLD.decision = 'pending'),
        n_accepted = n_accepted - (OLD.decision = 'accepted'),
        n_rejected = n_rejected - (OLD.decision = 'rejected')
    WHERE image_id = OLD.image_id;
END""",
    """CREATE TRIGGER annotation_decided AFTER UPDATE OF decision ON annotation BEGIN
    UPDATE image SET
        n_pending = n_pending + (NEW.decision = 'pending') - (OLD.decision = 'pending'),
        n_accepted = n_accepted + (NEW.decision = 'accepted') - (OLD.decision = 'accepted'),
        n_rejected = n_rejected + (NEW.decision = 'rejected') - (OLD.decision = 'rejected')
    WHERE image_id = NEW.image_id;
END""",
    """CREATE TABLE finished_run (
    image_id INTEGER NOT NULL REFERENCES image (image_id),
    phrase_key TEXT NOT NULL,
    bundle_id TEXT NOT NULL,
    score_threshold REAL NOT NULL,
    n_suggestions INTEGER NOT NULL,
    finished_at REAL NOT NULL,
    PRIMARY KEY (image_id, phrase_key, bundle_id, score_threshold)
) WITHOUT ROWID""",
    """CREATE TABLE action (
    action_id INTEGER PRIMARY KEY AUTOINCREMENT,
    image_id INTEGER NOT NULL REFERENCES image (image_id),
    label TEXT NOT NULL,
    done_at REAL NOT NULL,
    done_before INTEGER NOT NULL CHECK (done_before IN (0, 1)),
    done_after INTEGER NOT NULL CHECK (done_after IN (0, 1)),
    undone INTEGER NOT NULL DEFAULT 0 CHECK (undone IN (0, 1))
)""",
    "CREATE INDEX action_by_undone ON action (undone, action_id)",
    """CREATE TABLE change (
    action_id INTEGER NOT NULL REFERENCES action (action_id) ON DELETE CASCADE,
    annotation_id INTEGER NOT NULL,
    decision_before TEXT,
    decision_after TEXT NOT NULL,
    category_before INTEGER,
    category_after INTEGER NOT NULL,
    PRIMARY KEY (action_id, annotation_id)
) WITHOUT ROWID""",
)

STEPS: tuple[Step, ...] = (_FIRST,)


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Step] = STEPS) -> None:
    """Bring the open file to the newest version.

    `connection` is in autocommit mode. Raises `ProjectTooNewError` or `ProjectDamagedError` and changes nothing if the
    file is not ours to change; a step that fails leaves the version before it.
    """
    while _take_step(connection, path, steps):
        pass


def _take_step(connection: sqlite3.Connection, path: Path, steps: Sequence[Step]) -> bool:
    """One step in one transaction; False when there was none left to take."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _checked_version(connection, path, len(steps))
        if version < len(steps):
            for statement in steps[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return version < len(steps)


def _checked_version(connection: sqlite3.Connection, path: Path, known: int) -> int:
    """The file's version, once it is sure that the file is a project this code can read."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    holds_something = connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_schema)").fetchone()[0]
    if application_id != APPLICATION_ID and (version or holds_something):
        raise ProjectDamagedError(path, "it is a database of another program")
    if version > known:
        raise ProjectTooNewError(path, version, known)
    return version
