"""Logits to RLE for 100 instances on a 12 MP image: from the crossings alone, against upsampling each to full size.

Run: python benchmarks/mask_encoding.py
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

sys.path.insert(0, str(Path(__file__).parents[1]))

from engines.masks import Mask, areas, iou_matrix
from engines.upsampling import encode_upsampled_all

HEIGHT, WIDTH, SIDE = 3000, 4000, 288
N_INSTANCES, N_REPEATS = 100, 3
COVERED_SHARES = ((0.005, 0.1), (0.1, 0.3), (0.3, 0.9))


def ragged_blobs(n: int, shares: tuple[float, float], rng: np.random.Generator) -> NDArray[np.float32]:
    """[n, 288, 288] logits of ellipses with ragged edges that cover the given share of the image."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    logits = np.empty((n, SIDE, SIDE), np.float32)
    for one in logits:
        area, stretch = rng.uniform(*shares) * SIDE**2, rng.uniform(0.5, 2)
        radius_x = np.sqrt(area * stretch / np.pi)
        radius_y = area / np.pi / radius_x
        centre = rng.uniform(0.25 * SIDE, 0.75 * SIDE, 2)
        distance = np.hypot((x - centre[0]) / radius_x, (y - centre[1]) / radius_y)
        ragged = cv2.GaussianBlur(rng.normal(size=(SIDE, SIDE)).astype(np.float32), (0, 0), 3)
        one[:] = 8 * (1 - distance) + 4 * ragged
    return logits


def upsample_and_encode(logits: NDArray[np.float32]) -> list[Mask]:
    """The plain way: each instance as a full-size float32 image, threshold, pycocotools."""
    masks = []
    for one in logits:
        full = cv2.resize(one, (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
        rle = coco_mask.encode(np.asfortranarray(full > 0, dtype=np.uint8))
        masks.append(Mask(HEIGHT, WIDTH, rle["counts"].decode("ascii")))
    return masks


def encode(logits: NDArray[np.float32]) -> list[Mask]:
    """Our way."""
    return encode_upsampled_all(logits, HEIGHT, WIDTH)


def seconds(work: Callable[[NDArray[np.float32]], list[Mask]], logits: NDArray[np.float32]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work(logits)
    return time.perf_counter() - start


def peak_extra_bytes(logits: NDArray[np.float32]) -> int:
    """Most memory that the encoding holds above what was there before; NumPy reports its arrays to tracemalloc."""
    tracemalloc.start()
    encode(logits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def report(shares: tuple[float, float]) -> None:
    """One line for blobs of one size."""
    logits = ragged_blobs(N_INSTANCES, shares, np.random.default_rng(7))
    ours, plain = encode(logits), upsample_and_encode(logits)
    worst_iou = min(iou_matrix([a], [b])[0, 0] for a, b in zip(ours, plain, strict=True))
    ours_s, plain_s = [], []
    for _ in range(N_REPEATS):
        ours_s.append(seconds(encode, logits))
        plain_s.append(seconds(upsample_and_encode, logits))
    ours_median, plain_median = statistics.median(ours_s), statistics.median(plain_s)
    print(
        f"blobs of {shares[0]:.1%} to {shares[1]:.0%} (mean {areas(ours).mean() / (HEIGHT * WIDTH):.1%}): "
        f"crossings {ours_median * 1e3:.0f} ms, full size {plain_median * 1e3:.0f} ms, "
        f"ratio {plain_median / ours_median:.0f}, lowest IoU {worst_iou:.6f}, "
        f"peak extra memory {peak_extra_bytes(logits) / 1e6:.1f} MB"
    )


def main() -> None:
    """Print one line for each size of blob."""
    print(f"{N_INSTANCES} instances, {SIDE}×{SIDE} logits to {WIDTH}×{HEIGHT}, medians of {N_REPEATS}:")
    for shares in COVERED_SHARES:
        report(shares)


if __name__ == "__main__":
    main()
