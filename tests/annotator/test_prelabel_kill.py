"""A run killed at random moments: no image lost, none done twice, none half done, and a person's work as it was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from fake_segmenter import FakeSegmenter
from prelabel_worker import PHRASES, prelabel
from projects import open_workspace, write_pictures

from annotator.records import Decision

HERE = Path(__file__).parent
N_IMAGES, N_KILLS = 120, 20

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork and kill -9")


@pytest.fixture
def worker():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
    command = [sys.executable, str(HERE / "prelabel_worker.py")]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        yield process
        process.communicate(timeout=10)


def run_and_kill(worker, folder, project, task, n_images, delay_s):
    """Kill the child a while after it told of that many images; answers the paths of all images that it told of."""
    worker.stdin.write(f"{folder} {project} {task}\n")
    told: list[str] = []
    pid = None
    while (line := worker.stdout.readline().strip()) != "gone":
        if line.startswith("child"):
            pid = int(line.split()[1])
        else:
            told.append(line)
        if pid and len(told) == n_images:
            time.sleep(delay_s)
            os.kill(pid, signal.SIGKILL)
            pid = None
    return told


def content(project_folder, folder):
    """By path of an image: its finished phrases, and its annotations without their ids."""
    with closing(open_workspace(project_folder, FakeSegmenter(), folder)) as workspace:
        finished = {}
        for image_id, key in workspace.store.finished_runs("fake", 0.5):
            finished.setdefault(image_id, set()).add(key)
        return {
            image.path: (
                finished.get(image.image_id, set()),
                [
                    (item.phrase, item.category_id, item.mask, item.score, item.decision)
                    for item in workspace.store.annotations(image.image_id)
                ],
            )
            for image in workspace.store.images()
        }


def decide(tmp_path, folder):
    """A person's work on every third image; answers it by annotation."""
    with closing(open_workspace(tmp_path, FakeSegmenter(), folder)) as workspace:
        for image in workspace.store.images()[::3]:
            workspace.draw(image.image_id, (30, 20, 50, 40), "cup", None)
            kept = workspace.keep_phrase("cup", "cup")
            first, *_ = workspace.suggest(image.image_id, kept, 0.5).values()
            workspace.decide(image.image_id, {first: Decision.REJECTED}, None, "reject")
            workspace.store.forget_runs(image_id=image.image_id)
        return human_work(workspace)


def human_work(workspace):
    return {
        item.annotation_id: item
        for image in workspace.store.images()
        for item in workspace.store.annotations(image.image_id, [Decision.ACCEPTED, Decision.REJECTED])
    }


@pytest.mark.parametrize("task", ["run", "redo"])
def test_killed_twenty_times_a_run_does_each_image_once_and_whole(tmp_path, worker, task):
    folder = write_pictures(tmp_path / "images", *(f"{n:03}.png" for n in range(N_IMAGES)), size=(60, 50))
    work = decide(tmp_path, folder)
    if task == "redo":
        prelabel(folder, tmp_path / "project", redo=False)
    seed = random.randrange(1 << 32)
    dice, told = random.Random(seed), []
    for _ in range(N_KILLS):
        told += run_and_kill(worker, folder, tmp_path / "project", task, dice.randrange(1, 4), dice.random() * 0.02)
        found = content(tmp_path, folder)
        assert {frozenset(phrases) for phrases, _ in found.values()} <= {frozenset(), frozenset(PHRASES)}, seed
        assert all(found[path][0] for path in told), seed
    last = prelabel(folder, tmp_path / "project", task == "redo", told.append).summary
    assert len(told) == len(set(told)), seed
    assert N_IMAGES - N_KILLS <= len(told) <= N_IMAGES, seed  # each kill may come between storing and telling
    assert last.n_done + last.n_already == N_IMAGES

    unharmed = tmp_path / "unharmed"
    decide(unharmed, folder)
    prelabel(folder, unharmed / "project", redo=False)
    assert content(tmp_path, folder) == content(unharmed, folder), seed
    with closing(open_workspace(tmp_path, FakeSegmenter(), folder)) as workspace:
        assert human_work(workspace) == work
