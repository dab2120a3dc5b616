"""Run-length masks in the browser, held against pycocotools."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from browser_support import launch_chromium
from canvas_page import CanvasPage, open_canvas
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page
from pycocotools import mask as coco_mask

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[CanvasPage]:
    with open_canvas(browser) as opened:
        yield opened


@pytest.fixture
def canvas(window: CanvasPage) -> CanvasPage:
    window.restart()
    return window


def random_masks() -> list[NDArray[np.uint8]]:
    random = np.random.default_rng(7)
    speckle = (random.random((37, 53)) < 0.5).astype(np.uint8)
    sparse = (random.random((64, 41)) < 0.02).astype(np.uint8)
    columns = np.zeros((50, 70), np.uint8)
    columns[:, ::9] = 1
    lines = np.zeros((50, 70), np.uint8)
    lines[3::7, 10:] = 1
    rows, across = np.mgrid[:120, :90]
    ring = np.hypot(rows - 60, across - 40)
    last_pixel = np.zeros((20, 30), np.uint8)
    last_pixel[-1, -1] = 1
    return [
        speckle,
        sparse,
        columns,
        lines,
        ((ring < 38) & (ring > 20)).astype(np.uint8),
        last_pixel,
        np.zeros((13, 17), np.uint8),
        np.ones((13, 17), np.uint8),
        np.ones((1, 1), np.uint8),
    ]


_SAMPLE = """([counts, height, width, gridHeight, gridWidth]) => {
  const sample = PhrasemaskCanvas.sampleRuns(PhrasemaskCanvas.readRuns(counts, height, width), gridHeight, gridWidth);
  if (sample === null) return null;
  const { left, top, columns, rows, stride, pixels } = sample;
  return { left, top, columns, rows, stride, pixels: [...pixels] };
}"""


def sampled(page: Page, mask: NDArray[np.uint8], grid: tuple[int, int]) -> NDArray[np.uint8]:
    """What the browser makes of the mask, put back on the whole grid."""
    counts = coco_mask.encode(np.asfortranarray(mask))["counts"].decode()
    answer = page.evaluate(_SAMPLE, [counts, *mask.shape, *grid])
    whole = np.zeros(grid, np.uint8)
    if answer is None:
        return whole
    cells = np.array(answer["pixels"], np.uint8).reshape(-1, answer["stride"]).T
    assert not cells[[0, -1]].any()
    assert not cells[:, [0, -1]].any()
    rows, columns = (
        slice(answer["top"], answer["top"] + answer["rows"]),
        slice(answer["left"], answer["left"] + answer["columns"]),
    )
    whole[rows, columns] = cells[1:-1, 1:-1]
    return whole


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_masks_are_decoded_as_pycocotools_does(canvas: CanvasPage):
    for mask in random_masks():
        rle = coco_mask.encode(np.asfortranarray(mask))
        np.testing.assert_array_equal(sampled(canvas.page, mask, mask.shape), coco_mask.decode(rle))


@pytest.mark.parametrize("scale", [0.23, 0.5, 0.731, 1.6])
def test_masks_are_sampled_at_the_centres_of_a_coarser_or_finer_grid(canvas: CanvasPage, scale: float):
    for mask in random_masks():
        height, width = mask.shape
        grid = (max(1, round(height * scale)), max(1, round(width * scale)))
        rows = (2 * np.arange(grid[0]) + 1) * height // (2 * grid[0])
        columns = (2 * np.arange(grid[1]) + 1) * width // (2 * grid[1])
        np.testing.assert_array_equal(sampled(canvas.page, mask, grid), mask[np.ix_(rows, columns)])


def test_area_box_and_every_point_agree_with_pycocotools(canvas: CanvasPage):
    script = """([counts, height, width]) => {
      const runs = PhrasemaskCanvas.readRuns(counts, height, width);
      const inside = [];
      for (let y = -1; y <= height; y += 1)
        for (let x = -1; x <= width; x += 1) inside.push(PhrasemaskCanvas.containsPoint(runs, x + 0.5, y + 0.5));
      return { area: runs.area, box: runs.box, inside };
    }"""
    for mask in random_masks():
        rle = coco_mask.encode(np.asfortranarray(mask))
        answer = canvas.page.evaluate(script, [rle["counts"].decode(), *mask.shape])
        x, y, width, height = coco_mask.toBbox(rle).tolist()
        assert answer["area"] == coco_mask.area(rle)
        assert answer["box"] == ([x, y, x + width, y + height] if mask.any() else None)
        np.testing.assert_array_equal(np.reshape(answer["inside"], (mask.shape[0] + 2, -1)), np.pad(mask, 1) > 0)


def test_the_rings_around_a_mask_enclose_its_area(canvas: CanvasPage):
    script = """([counts, height, width]) => {
      const sample = PhrasemaskCanvas.sampleRuns(PhrasemaskCanvas.readRuns(counts, height, width), height, width);
      return sample && PhrasemaskCanvas.traceRings(sample);
    }"""
    for mask in random_masks():
        counts = coco_mask.encode(np.asfortranarray(mask))["counts"].decode()
        rings = canvas.page.evaluate(script, [counts, *mask.shape]) or []
        corners = [np.reshape(ring, (-1, 2)) for ring in rings]
        signed = [np.sum(c[:, 0] * np.roll(c[:, 1], -1) - c[:, 1] * np.roll(c[:, 0], -1)) / 2 for c in corners]
        assert sum(signed) == mask.sum()


def test_a_smoothed_outline_stays_within_its_tolerance_of_the_pixel_edges(canvas: CanvasPage):
    rows, columns = np.mgrid[:200, :200]
    disc = (np.hypot(rows - 100, columns - 100) < 80).astype(np.uint8)
    counts = coco_mask.encode(np.asfortranarray(disc))["counts"].decode()
    script = """([counts]) => {
      const sample = PhrasemaskCanvas.sampleRuns(PhrasemaskCanvas.readRuns(counts, 200, 200), 200, 200);
      const [ring] = PhrasemaskCanvas.traceRings(sample);
      return PhrasemaskCanvas.smoothRing(ring, 0.6).map((value, i) => value + (i % 2 ? sample.top : sample.left));
    }"""
    points = np.reshape(canvas.page.evaluate(script, [counts]), (-1, 2))
    along = np.linspace(0, 1, 50)[:, None, None]
    line = (points * (1 - along) + np.roll(points, -1, axis=0) * along).reshape(-1, 2)
    distance_from_center = np.hypot(*(line - 100.5).T)
    assert (
        np.abs(distance_from_center - 80).max() < 1.6
    )  # half a pixel each for the grid, the middles and the tolerance
    assert len(points) < 80
