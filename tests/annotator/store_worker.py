"""A known sequence of actions on a project, and a process that performs it in children which a test kills.

Run as a script: for each line `play FOLDER` or `make FOLDER` on standard input, a child is started and named as
`child PID`; when it is gone, `gone` follows. A playing child writes the number of each action after it was stored.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from store_samples import BUNDLE, decisions_of, drawing, found, suggestion

from annotator.records import Decision
from annotator.store import ProjectStore

N_IMAGES = 4


def prepare(store: ProjectStore) -> None:
    store.sync_images(found(*(f"{n}.jpg" for n in range(N_IMAGES))))
    store.ensure_category("cat")
    store.ensure_category("dog")
    store.set_setting("position", "0")


def position(store: ProjectStore) -> int:
    return int(store.setting("position") or 0)


def play_next(store: ProjectStore) -> int:
    """Perform the next action together with the note that it was done; answers its number, from 1."""
    with store.atomic():
        number = position(store) + 1
        _act(store, number)
        store.set_setting("position", str(number))
    return number


def _act(store: ProjectStore, number: int) -> None:
    image_id = 1 + number // 7 % N_IMAGES
    phrase = ("striped cat", "mug")[number % 2]
    ids = list(decisions_of(store, image_id))
    match number % 7:
        case 0 | 4:
            new = [suggestion(score=score) for score in (0.9, 0.8, 0.7)]
            store.replace_suggestions(image_id, phrase, 1, BUNDLE, 0.5, new)
        case 1:
            decisions = dict(zip(ids, [Decision.ACCEPTED, Decision.REJECTED], strict=False))
            store.decide(image_id, decisions, None, f"decide {number}", done=number % 2 == 0)
        case 2:
            store.draw(image_id, drawing(), None, f"draw {number}")
        case 3:
            store.undo()
        case 5:
            store.relabel(image_id, dict.fromkeys(ids[:2], 1 + number % 2), None, f"relabel {number}")
        case 6 if number % 3:
            store.redo()
        case _:
            store.adopt(image_id, [suggestion(phrase="new", decision=Decision.ACCEPTED)], None, f"adopt {number}")


def _play(folder: Path) -> None:
    with ProjectStore.open(folder, create=False) as store:
        while True:
            os.write(1, f"{play_next(store)}\n".encode())


def _make(folder: Path) -> None:
    while True:
        ProjectStore.open(folder).close()
        folder = folder.with_name(folder.name + "x")


def _serve_children() -> None:
    for line in sys.stdin:
        task, folder = line.rstrip("\n").split(" ", 1)
        pid = os.fork()
        if pid == 0:
            {"play": _play, "make": _make}[task](Path(folder))
        os.write(1, f"child {pid}\n".encode())
        os.waitpid(pid, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    _serve_children()
