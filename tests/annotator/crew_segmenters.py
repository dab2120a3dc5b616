"""Models for workers of a run: made by functions that another process can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from fake_segmenter import FakeSegmenter

from annotator.models import load_model

DECODE_S = 0.01
DEADLY_GREY = 120


def starter():
    return load_model("starter", "onnxruntime", "cpu")


def shapes(folder: Path):
    return load_model(str(folder), "onnxruntime", "cpu")


def slow(pids: Path):
    """Leaves its process number as the name of a file."""
    (pids / str(os.getpid())).touch()
    segmenter = FakeSegmenter()
    segmenter.on_decode = lambda: time.sleep(DECODE_S)
    return segmenter


class DeadlySegmenter(FakeSegmenter):
    """Takes its process down on one picture."""

    def encode_image(self, rgb, image_id):
        if rgb[0, 0, 0] == DEADLY_GREY:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_image(rgb, image_id)


def dying():
    """Cannot be loaded: the process dies of it."""
    os._exit(3)


def failing_decoder():
    segmenter = FakeSegmenter()
    segmenter.on_decode = _fail
    return segmenter


def _fail():
    raise RuntimeError("not a number")
