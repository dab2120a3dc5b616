"""Instance masks as COCO run-length encoding (RLE): column-major runs in pycocotools' compressed ASCII form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask


@dataclass(frozen=True)
class Mask:
    """A binary mask of `height` × `width` pixels; `counts` is COCO's compressed RLE as an ASCII string."""

    height: int
    width: int
    counts: str

    @classmethod
    def encode(cls, pixels: NDArray[Any]) -> Mask:
        """The mask of an (H, W) array: every non-zero pixel belongs to it."""
        rle = coco_mask.encode(np.asfortranarray(pixels != 0, dtype=np.uint8))
        return cls(int(pixels.shape[0]), int(pixels.shape[1]), rle["counts"].decode("ascii"))

    @property
    def rle(self) -> dict[str, Any]:
        """The form that pycocotools takes: size [height, width] and counts as bytes."""
        return {"size": [self.height, self.width], "counts": self.counts.encode("ascii")}

    def decode(self) -> NDArray[np.bool_]:
        """(H, W) bool."""
        return coco_mask.decode(self.rle).astype(bool)

    @property
    def area(self) -> int:
        """Number of pixels."""
        return int(coco_mask.area(self.rle))

    @property
    def xywh(self) -> tuple[float, float, float, float]:
        """Tight box in pixels: left, top, width, height. All zero for an empty mask."""
        x, y, w, h = coco_mask.toBbox(self.rle).tolist()
        return x, y, w, h

    @property
    def xyxy(self) -> NDArray[np.float32]:
        """Tight box in pixels, float32 [4]: x1 y1 x2 y2, x2 and y2 exclusive."""
        x, y, w, h = self.xywh
        return np.array([x, y, x + w, y + h], dtype=np.float32)
