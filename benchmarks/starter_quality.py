"""Measures the starter model on photographs with outlines drawn by hand, and on everything that is not on them.

    python benchmarks/starter_quality.py                  samples/ and two further photographs that are shipped
    python benchmarks/starter_quality.py --photos DIR     and those that benchmarks/fetch_starter_photos.py put into DIR

For each outlined object the best mask of its category counts, each mask once; an object without a mask counts 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
TRUTH = Path(__file__).parent / "starter_truth"
SETS = ("samples", "development", "held_back")
DEFAULT_THRESHOLD = 0.5


@dataclass
class Result:
    """What was measured on one set of photographs."""

    ious: list[float] = field(default_factory=list)
    n_absent: int = 0
    false_at_default: list[str] = field(default_factory=list)
    false_at_floor: list[str] = field(default_factory=list)
    milliseconds: dict[str, list[float]] = field(default_factory=dict)


def outline(shape: dict[str, Any], height: int, width: int) -> np.ndarray:
    """(height, width) bool: the polygons of an object without its holes, drawn at four times the size."""
    scale = 4
    image = Image.new("L", (width * scale, height * scale))
    pen = ImageDraw.Draw(image)
    for fill, polygons in ((1, shape["polygons"]), (0, shape["holes"])):
        for polygon in polygons:
            pen.polygon([(x * scale, y * scale) for x, y in polygon], fill=fill)
    return np.asarray(image).reshape(height, scale, width, scale).mean(axis=(1, 3)) >= 0.5


def photos(name: str, folders: list[Path]) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Photographs of a truth file that lie in one of the folders, as (H, W, 3) uint8 RGB."""
    for photo in json.loads((TRUTH / f"{name}.json").read_text(encoding="utf-8"))["photos"]:
        path = next((folder / photo["file"] for folder in folders if (folder / photo["file"]).is_file()), None)
        if path is None:
            print(f"  {photo['file']}: not here, left out (see benchmarks/fetch_starter_photos.py)")
            continue
        yield photo, np.asarray(Image.open(path).convert("RGB"))


def measure(segmenter: Any, name: str, folders: list[Path]) -> Result:
    """Per object IoU, answers for absent categories, and milliseconds, of one truth file."""
    result = Result()
    for photo, rgb in photos(name, folders):
        started = time.perf_counter()
        image = segmenter.encode_image(rgb, photo["file"])
        _note(result, "encode", started)
        _measure_objects(segmenter, photo, image, result)
        _measure_absent(segmenter, photo, image, result)
    return result


def _measure_objects(segmenter: Any, photo: dict[str, Any], image: Any, result: Result) -> None:
    for category in dict.fromkeys(shape["category"] for shape in photo["objects"]):
        truths = [outline(one, image.height, image.width) for one in photo["objects"] if one["category"] == category]
        started = time.perf_counter()
        found = ask(segmenter, image, category)
        _note(result, "first answer", started)
        started = time.perf_counter()
        ask(segmenter, image, category)
        _note(result, "repeated answer", started)
        for iou in best_ious(truths, [one.mask.decode() for one in found]):
            result.ious.append(iou)
            print(f"  {photo['file']:24} {category:12} IoU {iou:.3f}")


def _measure_absent(segmenter: Any, photo: dict[str, Any], image: Any, result: Result) -> None:
    present = {shape["category"] for shape in photo["objects"]} | set(photo["unsure"])
    for category in categories():
        if category in present:
            continue
        result.n_absent += 1
        scores = [one.score for one in ask(segmenter, image, category, 0.0)]
        for limit, answers in ((DEFAULT_THRESHOLD, result.false_at_default), (0.0, result.false_at_floor)):
            answers.extend(f"{photo['file']}: {category} {score:.2f}" for score in scores if score >= limit)


def ask(segmenter: Any, image: Any, text: str, threshold: float = DEFAULT_THRESHOLD) -> list[Any]:
    """Instances of a phrase."""
    from engines.types import Phrase, SegmentOptions

    phrase = segmenter.encode_phrase(Phrase(text))
    return list(segmenter.decode(image, phrase, options=SegmentOptions(score_threshold=threshold)))


def best_ious(truths: list[np.ndarray], masks: list[np.ndarray]) -> list[float]:
    """IoU of each outline with its mask, the best pair first; 0 for an outline that is left without one."""
    table = np.array([[(a & b).sum() / (a | b).sum() for b in masks] for a in truths]).reshape(len(truths), len(masks))
    best = [0.0] * len(truths)
    while table.size and table.max() > 0:
        row, column = np.unravel_index(table.argmax(), table.shape)
        best[int(row)] = float(table[row, column])
        table[row, :] = 0
        table[:, column] = 0
    return best


def categories() -> list[str]:
    """The 80 category names."""
    vocabulary = ROOT / "engines" / "models" / "starter" / "vocabulary.json"
    return list(json.loads(vocabulary.read_text(encoding="ascii"))["categories"])


def _note(result: Result, what: str, started: float) -> None:
    result.milliseconds.setdefault(what, []).append(1000 * (time.perf_counter() - started))


def _print(name: str, result: Result) -> None:
    if not result.ious:
        return
    found = [iou for iou in result.ious if iou > 0]
    print(f"{name}: mean IoU {statistics.mean(result.ious):.3f} over {len(result.ious)} objects, {len(found)} found")
    print(
        f"  absent: {len(result.false_at_default)} of {result.n_absent} phrases answered at {DEFAULT_THRESHOLD}", end=""
    )
    print(f" ({'; '.join(result.false_at_default)})" if result.false_at_default else "")
    print(f"  absent: {len(result.false_at_floor)} answers at the floor ({'; '.join(result.false_at_floor)})")
    medians = {what: statistics.median(values) for what, values in result.milliseconds.items()}
    print("  medians: " + ", ".join(f"{what} {value:.0f} ms" for what, value in medians.items()))


def main() -> None:
    """Print every measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=None, help="folder with the photographs that are not shipped")
    parser.add_argument("--only", choices=SETS)
    arguments = parser.parse_args()
    from engines.bundle import read_bundle
    from engines.loader import load_segmenter

    segmenter = load_segmenter(read_bundle(ROOT / "engines" / "models" / "starter"))
    folders = [ROOT / "samples", TRUTH / "photos", *([arguments.photos] if arguments.photos else [])]
    for name in SETS:
        if arguments.only in (None, name):
            _print(name, measure(segmenter, name, folders))


if __name__ == "__main__":
    main()
