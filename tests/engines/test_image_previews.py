from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from nasty_scene import CORNERS, scene
from PIL import Image

from engines.images import write_preview


def enlarged(factor: int) -> np.ndarray:
    return scene().repeat(factor, axis=0).repeat(factor, axis=1)


@pytest.mark.parametrize("format", ["WEBP", "JPEG"])
def test_a_preview_is_the_picture_made_smaller(tmp_path: Path, format: str):
    path = tmp_path / "preview"
    assert write_preview(enlarged(10), path, 48, format) == (32, 48)
    with Image.open(path) as image:
        assert (image.format, image.size, image.mode) == (format, (48, 32), "RGB")
        for (row, column), wanted in CORNERS:
            assert np.abs(np.subtract(image.getpixel((column, row)), wanted)).max() < 16


def test_a_small_picture_keeps_its_size(tmp_path: Path):
    assert write_preview(scene(), tmp_path / "a.webp", 2048, "WEBP") == (32, 48)


@pytest.mark.parametrize(("height", "width", "wanted"), [(60, 6000, (1, 100)), (6000, 3, (100, 1)), (1, 1, (1, 1))])
def test_no_side_becomes_zero(tmp_path: Path, height: int, width: int, wanted: tuple[int, int]):
    rgb = np.full((height, width, 3), 90, dtype=np.uint8)
    assert write_preview(rgb, tmp_path / "a.jpg", 100, "JPEG") == wanted


def test_a_picture_that_cannot_be_written_to_can_be_shown(tmp_path: Path):
    rgb = scene()
    rgb.flags.writeable = False
    assert write_preview(rgb, tmp_path / "a.webp", 24, "WEBP") == (16, 24)
    np.testing.assert_array_equal(rgb, scene())


def test_a_failed_write_leaves_the_old_preview_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.webp"
    write_preview(scene(), path, 48, "WEBP")
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_preview(scene(), path, 24, "WEBP")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("long_side_px", [0, -1, 20_000])
def test_a_side_that_no_format_holds_is_refused(tmp_path: Path, long_side_px: int):
    with pytest.raises(ValueError, match="1 to 16383 pixels"):
        write_preview(scene(), tmp_path / "a.webp", long_side_px, "WEBP")
