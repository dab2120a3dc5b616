"""The check files of a bundle: pictures, what is asked about them, and what the original model answered in float32.

checks/cases.json       the questions, with the file name of each picture
checks/picture_N.png    pictures of exactly the size that the vision graph takes
checks/reference.npz    answers; large tensors as a sample of their values
checks/decoder.npz      what the decoder alone was given, and its answers to that
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = "checks"
CASES_FILE = f"{FOLDER}/cases.json"
REFERENCE_FILE = f"{FOLDER}/reference.npz"
DECODER_FILE = f"{FOLDER}/decoder.npz"
N_BEST = 10
"""So many instances of each phrase are compared, best first."""
_N_SAMPLES = 20_000

Tensors = Mapping[str, NDArray[Any]]


def sample(values: NDArray[Any]) -> NDArray[np.float32]:
    """At most 20,000 values, evenly spread over the array, as float32."""
    flat = values.reshape(-1)
    step = max(1, -(-flat.size // _N_SAMPLES))
    if step > 1 and step % 2 == 0:
        step += 1  # an odd step does not fall on the same column of every row
    return flat[::step].astype(np.float32)


@dataclass(frozen=True)
class BestInstances:
    """The best instances of one phrase: scores [n], boxes_xyxy [n, 4], masks bool [n, h, w] as the graph has them."""

    scores: NDArray[np.float64]
    boxes_xyxy: NDArray[np.float32]
    masks: NDArray[np.bool_]

    @classmethod
    def of(cls, outputs: Tensors, row: int = 0) -> BestInstances:
        """From the decoder's outputs for one phrase."""
        scores = _sigmoid(outputs["logits"][row]) * _sigmoid(outputs["presence"][row])
        best = np.argsort(-scores, kind="stable")[:N_BEST]
        return cls(scores[best], outputs["boxes_xyxy"][row][best], outputs["mask_logits"][row][best] > 0)

    def packed(self, prefix: str) -> dict[str, NDArray[Any]]:
        """As arrays for a file."""
        return {
            f"{prefix}/scores": self.scores,
            f"{prefix}/boxes_xyxy": self.boxes_xyxy,
            f"{prefix}/masks": np.packbits(self.masks, axis=-1),
            f"{prefix}/masks_width": np.array(self.masks.shape[-1]),
        }

    @classmethod
    def unpacked(cls, arrays: Tensors, prefix: str) -> BestInstances:
        """What `packed` made."""
        masks = np.unpackbits(arrays[f"{prefix}/masks"], axis=-1, count=int(arrays[f"{prefix}/masks_width"]))
        return cls(arrays[f"{prefix}/scores"], arrays[f"{prefix}/boxes_xyxy"], masks.astype(bool))


def _sigmoid(logits: NDArray[Any]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = 0.5 + 0.5 * np.tanh(logits.astype(np.float64) / 2)
    return values
