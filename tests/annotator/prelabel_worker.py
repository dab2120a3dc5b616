"""A process that pre-labels in children which a test kills.

Run as a script: for each line `FOLDER PROJECT redo|run` on standard input, a child is started and named as `child PID`;
it writes the path of each image after it was stored; when it is gone, `gone` follows.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from pathlib import Path

from fake_segmenter import FakeSegmenter

from annotator.predictor import Predictor
from annotator.prelabel import Prelabeller
from annotator.prelabelling.options import PrelabelOptions
from annotator.workspace import Workspace

PHRASES = {"cup": "cup", "mug": "cup", "cat": "cat"}
DECODE_S = 0.002


def slow_segmenter() -> FakeSegmenter:
    segmenter = FakeSegmenter()
    segmenter.on_decode = lambda: time.sleep(DECODE_S)
    return segmenter


def prelabel(folder: Path, project: Path, redo: bool, tell=lambda path: None) -> Prelabeller:
    with closing(Workspace.open(project, Predictor(slow_segmenter), folder)) as workspace:
        kept = [workspace.keep_phrase(text, category) for text, category in PHRASES.items()]
        worker = Prelabeller(workspace, kept, PrelabelOptions(redo=redo))
        n_done = 0
        for progress in worker.run():
            if worker.summary.n_done > n_done:
                n_done = worker.summary.n_done
                tell(progress.path)
    return worker


def _serve_children() -> None:
    for line in sys.stdin:
        folder, project, task = line.split()
        pid = os.fork()
        if pid == 0:
            prelabel(Path(folder), Path(project), task == "redo", lambda path: os.write(1, f"{path}\n".encode()))
            os._exit(0)
        os.write(1, f"child {pid}\n".encode())
        os.waitpid(pid, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    _serve_children()
