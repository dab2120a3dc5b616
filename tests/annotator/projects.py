"""Small projects for tests: a folder of pictures, a project beside it, and a fake model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fake_segmenter import FakeSegmenter
from PIL import Image

from annotator.predictor import Predictor
from annotator.workspace import Workspace


def write_pictures(folder: Path, *names: str, size: tuple[int, int] = (64, 48)) -> Path:
    """PNG pictures of (width, height) pixels, each of another colour."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((size[1], size[0], 3), (40 + 20 * number) % 256, np.uint8)
        Image.fromarray(pixels).save(path, "PNG")
    return folder


def open_workspace(tmp_path: Path, segmenter: FakeSegmenter | None = None, folder: Path | None = None) -> Workspace:
    """The project in `tmp_path/project` over `folder`, or `tmp_path/images`."""
    model = segmenter or FakeSegmenter()
    return Workspace.open(tmp_path / "project", Predictor(lambda: model), folder or tmp_path / "images")
