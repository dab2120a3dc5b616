"""Suppression of 1,000 masks in one image of 12 megapixels, against the same rule on decoded masks, pair by pair.

    python benchmarks/suppression.py [--decoded 40]

Decoded, a thousand masks would need 12 GB, and half a million pairs of them hours: the way is measured on a few masks
and multiplied by the number of pairs that the rule asks for among all of them. All pairs by RLE is measured on a fifth
of the masks, times 25. Both keep the same masks of those few.
Seconds are those of the processor, the least of three, so that other programs count little.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from engines.masks import Mask, iou_matrix, suppress
from engines.upsampling import encode_upsampled

HEIGHT, WIDTH, N_MASKS, GRID = 3000, 4000, 1000, 288
IOU, CONTAINMENT = 0.5, 0.9
SHARES = {"0.05–1 %": (0.0005, 0.01), "1–10 %": (0.01, 0.1), "10–40 %": (0.1, 0.4)}


def ragged_blobs(shares: tuple[float, float]) -> list[Mask]:
    """Round things with a wavy edge, each covering a share of the image, anywhere on it."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:GRID, :GRID]
    masks = []
    for _ in range(N_MASKS):
        share, (top, left) = rng.uniform(*shares), rng.uniform(20, GRID - 20, 2)
        angle = np.arctan2(y - top, x - left)
        radius = np.sqrt(share * GRID**2 / np.pi) * (1 + 0.3 * np.sin(5 * angle + rng.uniform(0, 6)))
        masks.append(encode_upsampled((radius - np.hypot(y - top, x - left)).astype(np.float32), HEIGHT, WIDTH))
    return masks


def suppress_decoded(masks: list[Mask]) -> tuple[list[int], int]:
    """What stays, and how many pairs were compared."""
    pixels = [mask.decode() for mask in masks]
    kept: list[int] = []
    n_pairs = 0
    for index, mask in enumerate(pixels):
        area, repeats = int(mask.sum()), False
        for better in kept:
            n_pairs += 1
            shared = int((mask & pixels[better]).sum())
            either = area + int(pixels[better].sum()) - shared
            repeats = shared > IOU * either or shared > CONTAINMENT * area
            if repeats:
                break
        if not repeats:
            kept.append(index)
    return kept, n_pairs


def seconds(call: Callable[[], object], n_times: int = 3) -> float:
    times = []
    for _ in range(n_times):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def measure(name: str, masks: list[Mask], n_decoded: int) -> None:
    kept = suppress(masks, IOU, CONTAINMENT)
    ours = seconds(lambda: suppress(masks, IOU, CONTAINMENT))
    some = masks[: N_MASKS // 5]
    all_pairs = 25 * seconds(lambda: iou_matrix(some, some), 1)
    few = masks[:n_decoded]
    started = time.process_time()
    kept_decoded, n_pairs = suppress_decoded(few)
    per_pair = (time.process_time() - started) / max(1, n_pairs)
    assert kept_decoded == suppress(few, IOU, CONTAINMENT)
    n_all = len(kept) * (len(kept) - 1) / 2
    decoded = f"{per_pair * n_all:.0f} s | {per_pair * 1e3:.0f} ms"
    print(f"| {name} | {len(kept)} | {ours:.2f} s | {all_pairs:.1f} s | {decoded} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decoded", type=int, default=40, help="masks that are decoded and compared")
    n_decoded = parser.parse_args().decoded
    print("| masks cover | stay | suppress | all pairs by RLE | pairs decoded | one pair decoded |")
    print("|---|---|---|---|---|---|")
    for name, shares in SHARES.items():
        measure(name, ragged_blobs(shares), n_decoded)


if __name__ == "__main__":
    main()
