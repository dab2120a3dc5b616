from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from annotator.errors import (
    ProjectDamagedError,
    ProjectNotFoundError,
    ProjectReadOnlyError,
    ProjectTooNewError,
)
from annotator.migrations import APPLICATION_ID, STEPS, migrate
from annotator.store import ProjectStore

SCHEMA = """
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE image (
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
);
CREATE INDEX image_by_path_key ON image (path_key, path);
CREATE TABLE category (
    category_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE CHECK (name <> ''),
    supercategory TEXT NOT NULL DEFAULT 'object'
);
CREATE TABLE kept_phrase (
    phrase_id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL CHECK (text <> ''),
    phrase_key TEXT NOT NULL UNIQUE,
    category_id INTEGER NOT NULL REFERENCES category (category_id)
);
CREATE TABLE annotation (
    annotation_id INTEGER PRIMARY KEY AUTOINCREMENT,
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
);
CREATE INDEX annotation_by_image ON annotation (image_id);
CREATE INDEX annotation_by_phrase ON annotation (phrase_key, decision);
CREATE INDEX annotation_by_category ON annotation (category_id, decision);
CREATE TABLE shelved_annotation (
    annotation_id INTEGER PRIMARY KEY,
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
);
CREATE TRIGGER annotation_added AFTER INSERT ON annotation BEGIN
    UPDATE image SET
        n_pending = n_pending + (NEW.decision = 'pending'),
        n_accepted = n_accepted + (NEW.decision = 'accepted'),
        n_rejected = n_rejected + (NEW.decision = 'rejected')
    WHERE image_id = NEW.image_id;
END;
CREATE TRIGGER annotation_removed AFTER DELETE ON annotation BEGIN
    UPDATE image SET
        n_pending = n_pending - (OLD.decision = 'pending'),
        n_accepted = n_accepted - (OLD.decision = 'accepted'),
        n_rejected = n_rejected - (OLD.decision = 'rejected')
    WHERE image_id = OLD.image_id;
END;
CREATE TRIGGER annotation_decided AFTER UPDATE OF decision ON annotation BEGIN
    UPDATE image SET
        n_pending = n_pending + (NEW.decision = 'pending') - (OLD.decision = 'pending'),
        n_accepted = n_accepted + (NEW.decision = 'accepted') - (OLD.decision = 'accepted'),
        n_rejected = n_rejected + (NEW.decision = 'rejected') - (OLD.decision = 'rejected')
    WHERE image_id = NEW.image_id;
END;
CREATE TABLE finished_run (
    image_id INTEGER NOT NULL REFERENCES image (image_id),
    phrase_key TEXT NOT NULL,
    bundle_id TEXT NOT NULL,
    score_threshold REAL NOT NULL,
    n_suggestions INTEGER NOT NULL,
    finished_at REAL NOT NULL,
    PRIMARY KEY (image_id, phrase_key, bundle_id, score_threshold)
) WITHOUT ROWID;
CREATE TABLE action (
    action_id INTEGER PRIMARY KEY AUTOINCREMENT,
    image_id INTEGER NOT NULL REFERENCES image (image_id),
    label TEXT NOT NULL,
    done_at REAL NOT NULL,
    done_before INTEGER NOT NULL CHECK (done_before IN (0, 1)),
    done_after INTEGER NOT NULL CHECK (done_after IN (0, 1)),
    undone INTEGER NOT NULL DEFAULT 0 CHECK (undone IN (0, 1))
);
CREATE INDEX action_by_undone ON action (undone, action_id);
CREATE TABLE change (
    action_id INTEGER NOT NULL REFERENCES action (action_id) ON DELETE CASCADE,
    annotation_id INTEGER NOT NULL,
    decision_before TEXT,
    decision_after TEXT NOT NULL,
    category_before INTEGER,
    category_after INTEGER NOT NULL,
    PRIMARY KEY (action_id, annotation_id)
) WITHOUT ROWID;
"""


def _sqlite(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, isolation_level=None))


def _schema(connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'")
    return "\n" + "".join(f"{row[0]};\n" for row in rows)


def test_the_schema_after_all_migrations_is_exactly_this(tmp_path: Path) -> None:
    ProjectStore.open(tmp_path).close()
    with _sqlite(tmp_path / "project.sqlite") as connection:
        assert _schema(connection) == SCHEMA
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_project_is_made_with_its_folders_and_keeps_what_is_set(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "project"
    with ProjectStore.open(folder) as store:
        assert store.setting("folder") is None
        store.set_setting("folder", "/pictures/Ünï %#")
        store.set_setting("folder", "/pictures/二")
    with ProjectStore.open(folder, create=False) as store:
        assert store.setting("folder") == "/pictures/二"


def test_it_writes_ahead_waits_for_the_disk_and_keeps_references(tmp_path: Path) -> None:
    with ProjectStore.open(tmp_path) as store:
        pragmas = [store._row(f"PRAGMA {name}")[0] for name in ("journal_mode", "synchronous", "foreign_keys")]
    assert pragmas == ["wal", 2, 1]


@pytest.mark.parametrize("name", ["nothing", "a/b", "file/inside"])
def test_without_create_nothing_is_made(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProjectNotFoundError, match="there is no project in"):
        ProjectStore.open(tmp_path / name, create=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_empty_file_left_by_a_killed_process_is_no_project_yet(tmp_path: Path) -> None:
    (tmp_path / "project.sqlite").touch()
    with pytest.raises(ProjectNotFoundError):
        ProjectStore.open(tmp_path, create=False)
    ProjectStore.open(tmp_path).close()


@pytest.mark.parametrize("wal", [False, True])
def test_a_project_of_a_later_version_is_left_untouched(tmp_path: Path, wal: bool) -> None:
    path = tmp_path / "project.sqlite"
    with _sqlite(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE later (x)")
    before = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(ProjectTooNewError, match="has project version 99 and this Phrasemask reads up to 1; update"):
        ProjectStore.open(tmp_path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["project.sqlite"]


def test_a_later_version_that_only_the_write_ahead_log_knows_is_seen_too(tmp_path: Path) -> None:
    path = tmp_path / "project.sqlite"
    ProjectStore.open(tmp_path).close()
    with _sqlite(path) as later:
        later.execute("PRAGMA user_version = 99")
        assert path.read_bytes()[60:64] == b"\0\0\0\1"
        with pytest.raises(ProjectTooNewError):
            ProjectStore.open(tmp_path)


def _garbage(path: Path) -> None:
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 40)


def _cut_short(path: Path) -> None:
    ProjectStore.open(path.parent).close()
    path.write_bytes(path.read_bytes()[:5000])


def _other_program(path: Path) -> None:
    with _sqlite(path) as connection:
        connection.execute("CREATE TABLE recipes (x)")


def _other_program_with_version(path: Path) -> None:
    with _sqlite(path) as connection:
        connection.execute("PRAGMA user_version = 7")


def _overwritten_inside(path: Path) -> None:
    ProjectStore.open(path.parent).close()
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)


@pytest.mark.parametrize(
    "spoil", [_garbage, _cut_short, _other_program, _other_program_with_version, _overwritten_inside, Path.mkdir]
)
def test_a_file_that_is_no_project_is_refused_in_one_sentence_and_left_alone(tmp_path: Path, spoil) -> None:
    path = tmp_path / "project.sqlite"
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ProjectDamagedError, match=r"is not a usable project \(.+\); restore it"):
        ProjectStore.open(tmp_path)
    assert (path.read_bytes() if path.is_file() else None) == before


FAKE_STEPS = (*STEPS, ("CREATE TABLE extra (x)", "INSERT INTO extra VALUES (1)"), ("ALTER TABLE extra ADD COLUMN y",))


@pytest.mark.parametrize("old", range(len(FAKE_STEPS)))
def test_every_older_version_is_brought_to_the_newest_and_keeps_its_rows(tmp_path: Path, old: int) -> None:
    path = tmp_path / "project.sqlite"
    with _sqlite(path) as connection:
        migrate(connection, path, FAKE_STEPS[:old])
        if old:
            connection.execute("INSERT INTO setting VALUES ('folder', '/pictures')")
        migrate(connection, path, FAKE_STEPS)
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT x, y FROM extra").fetchall() == [(1, None)]
        assert connection.execute("SELECT count(*) FROM setting").fetchone() == (int(old > 0),)


def test_a_step_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    path = tmp_path / "project.sqlite"
    with _sqlite(path) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, path, (*STEPS, ("CREATE TABLE half (x)", "CREATE TABEL wrong")))
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert _schema(connection) == SCHEMA


def test_processes_that_make_one_project_at_once_all_succeed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from annotator.store import ProjectStore\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for n in range(5):\n"
        "    with ProjectStore.open(pathlib.Path(sys.argv[1]) / str(n)) as store: store.set_setting(sys.argv[2], '')"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for number in range(2)
    ]
    for process in processes:
        assert process.stdout.readline().strip() == b"ready"
    for process in processes:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=30)
        assert process.returncode == 0
    for n in range(5):
        with ProjectStore.open(tmp_path / str(n), create=False) as store:
            assert [store.setting("0"), store.setting("1")] == ["", ""]


def test_a_project_under_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(ProjectReadOnlyError, match=r"cannot be written \(it is not a folder\)"):
            ProjectStore.open(folder)


@contextmanager
def _an_ordinary_user() -> Iterator[None]:
    """Permissions do not bind root, so that root becomes somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a system with POSIX permissions")
@pytest.mark.parametrize("existing", [False, True])
def test_a_read_only_folder_is_refused_in_one_sentence(reachable_folder: Path, existing: bool) -> None:
    path = reachable_folder / "project.sqlite"
    if existing:
        ProjectStore.open(reachable_folder).close()
        path.chmod(0o444)
    before = path.read_bytes() if existing else None
    reachable_folder.chmod(0o555)
    try:
        with _an_ordinary_user(), pytest.raises(ProjectReadOnlyError, match=r"cannot be written .*; change its perm"):
            ProjectStore.open(reachable_folder)
        with _an_ordinary_user(), pytest.raises(ProjectReadOnlyError):
            ProjectStore.open(reachable_folder / "inside")
    finally:
        reachable_folder.chmod(0o755)
    assert (path.read_bytes() if existing else None) == before
