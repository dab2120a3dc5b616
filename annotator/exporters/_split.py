"""Which images are for training, which for validation, which for the test: by seed, the same each time."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

from annotator.exporters.protocol import SPLITS, ExportOptions


def split_of(paths: Iterable[str], options: ExportOptions) -> dict[str, str]:
    """The part, one of `SPLITS`, of each path.

    Images, or whole sub-folders, are put in an order that only seed and names decide, and this is cut at the shares: an
    image that is added or removed moves few others.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        groups[str(PurePosixPath(path).parent) if options.by_folder else path].append(path)
    n_all, n_before = sum(map(len, groups.values())), 0
    found: dict[str, str] = {}
    for key in sorted(groups, key=lambda key: _order(options.seed, key)):
        middle = n_before + len(groups[key]) / 2
        found |= dict.fromkeys(groups[key], _part_at(middle / n_all, options.ratio))
        n_before += len(groups[key])
    return found


def _part_at(share: float, ratio: tuple[int, int, int]) -> str:
    end = 0.0
    for part, size in zip(SPLITS, ratio, strict=True):
        end += size / sum(ratio)
        if share < end:
            return part
    return next(part for part, size in zip(reversed(SPLITS), reversed(ratio), strict=True) if size)


def _order(seed: int, key: str) -> bytes:
    return hashlib.sha256(f"{seed}/{key}".encode()).digest()
