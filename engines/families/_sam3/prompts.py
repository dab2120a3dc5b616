"""Exemplar boxes as the decoder takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engines.boxes import scale, xyxy_to_cxcywh
from engines.types import BoxPrompt, ImageFeatures

_POSITIVE, _NEGATIVE, _NO_BOX = 1, 0, -10


def box_feeds(
    boxes: Sequence[BoxPrompt], image: ImageFeatures, n_phrases: int
) -> dict[str, NDArray[np.float32] | NDArray[np.int32]]:
    """`boxes` float32 [P, N, 4], centre and size as shares of the image, and `labels` int32 [P, N], for each phrase.

    Without boxes, N is 1 and its label says that no box stands there. Raises `BoxError` for a box without area inside
    the image.
    """
    inside = [box.clipped(image.height, image.width) for box in boxes]
    labels = [_POSITIVE if box.positive else _NEGATIVE for box in inside] or [_NO_BOX]
    xyxy = scale([box.xyxy for box in inside] or [[0.0] * 4], 1 / image.width, 1 / image.height)
    cxcywh = xyxy_to_cxcywh(xyxy)
    return {
        "boxes": np.broadcast_to(cxcywh, (n_phrases, *cxcywh.shape)).astype(np.float32),
        "labels": np.tile(np.array(labels, dtype=np.int32), (n_phrases, 1)),
    }
