from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store_worker import play_next, position, prepare

from annotator.store import ProjectStore
from annotator.store.connection import FILE_NAME

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork and kill -9")


class Killer:
    """Starts children that work on a project, and kills each with SIGKILL after a while."""

    def __init__(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "store_worker.py")],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(self, task: str, folder: Path, n_actions: int, delay_s: float) -> list[int]:
        """Kill after that many actions are told and some more time; answers the numbers of all that were told."""
        self.process.stdin.write(f"{task} {folder}\n")
        pid, told = None, []
        while pid is None or len(told) < n_actions:
            pid = self._read(told) or pid
        time.sleep(delay_s)
        os.kill(pid, signal.SIGKILL)
        while self._read(told) is not False:
            pass
        return told

    def _read(self, told: list[int]) -> int | bool | None:
        """The child's process id where the line names it, False when it is gone; anything else is an action told."""
        line = self.process.stdout.readline().strip()
        if line.startswith("child"):
            return int(line.split()[1])
        if line in ("gone", ""):
            return False
        told.append(int(line))
        return None


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    killer = Killer()
    yield killer
    killer.process.communicate(timeout=10)


def _content(path: Path) -> dict[str, list[tuple]]:
    """Every row of every table, times left out."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: _rows_without_times(connection, table) for table in tables}


def _rows_without_times(connection: sqlite3.Connection, table: str) -> list[tuple]:
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    timeless = [name for name in names if name not in ("done_at", "finished_at")]
    return sorted(connection.execute(f"SELECT {', '.join(timeless)} FROM {table}").fetchall(), key=repr)


def test_killed_at_any_moment_a_project_holds_every_action_told_and_none_half_done(
    tmp_path: Path, killer: Killer
) -> None:
    folder, n_kills, seed = tmp_path / "killed", 30, random.randrange(1 << 32)
    dice = random.Random(seed)
    with ProjectStore.open(folder) as store, ProjectStore.open(tmp_path / "unharmed") as unharmed:
        prepare(store)
        prepare(unharmed)
        for _ in range(n_kills):
            before = position(unharmed)
            told = killer.run("play", folder, dice.randrange(20), dice.random() * 0.02)
            assert told == list(range(before + 1, before + 1 + len(told)))
            done = position(store)
            assert done - before - len(told) in (0, 1), f"seed {seed}"
            while position(unharmed) < done:
                play_next(unharmed)
            assert _content(folder / FILE_NAME) == _content(unharmed.path), f"seed {seed}"
        assert position(store) > n_kills
        label = store.can_undo()
        assert store.undo().label == unharmed.undo().label == label
        assert _content(store.path) == _content(unharmed.path)


def test_killed_while_it_is_made_a_project_can_be_made_again(tmp_path: Path, killer: Killer) -> None:
    dice = random.Random()
    for n in range(25):
        folder = tmp_path / str(n) / "p"
        killer.run("make", folder, 0, dice.random() * 0.02)
        folders = [folder, *folder.parent.iterdir()] if folder.parent.exists() else [folder]
        for each in folders:
            with ProjectStore.open(each) as store:
                store.set_setting("folder", "here")
            assert _content(each / FILE_NAME)["setting"] == [("folder", "here")]
