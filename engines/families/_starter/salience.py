"""How much each pixel of a crop belongs to the thing in it: U²-Net, of any category."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import GraphSpec
from engines.protocols import Session

_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


class Salience:
    """The salience graph with its pre- and post-processing."""

    def __init__(self, session: Session, spec: GraphSpec) -> None:
        self._session = session
        self._input = spec.inputs[0].name
        self._output = spec.outputs[0].name
        self._size = int(spec.inputs[0].shape[-1] or 320)

    def __call__(self, rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Salience of an (H, W, 3) uint8 RGB crop: (H, W) float32 in [0, 1], stretched so that both ends occur."""
        import cv2

        height, width = rgb.shape[:2]
        shrinks = min(height, width) > self._size
        resized = cv2.resize(
            rgb, (self._size, self._size), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        )
        answer = self._session.run({self._input: self._normalised(resized)})[self._output][0, 0]
        stretched = (answer - answer.min()) / max(float(answer.max() - answer.min()), 1e-6)
        result: NDArray[np.float32] = cv2.resize(stretched, (width, height), interpolation=cv2.INTER_LINEAR)
        return result

    @staticmethod
    def _normalised(rgb: NDArray[Any]) -> NDArray[np.float32]:
        """(H, W, 3) uint8 → (1, 3, H, W) float32: divided by its maximum, then ImageNet's mean and deviation."""
        unit = rgb.astype(np.float32) / max(float(rgb.max()), 1.0)
        return np.ascontiguousarray(((unit - _MEAN) / _STD).transpose(2, 0, 1)[None])
