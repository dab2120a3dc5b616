"""The values that pass between models and the rest of the project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.errors import BoxError, PhraseError
from engines.masks import Mask

HOST = "cpu"
"""The device of what lies in this computer's own memory."""


def folded_text(text: str) -> str:
    """Runs of white space and control characters as one space, none at the ends."""
    return " ".join("".join(" " if ord(letter) < 32 or ord(letter) == 127 else letter for letter in text).split())


def is_valid_text(text: str) -> bool:
    """Whether the text can be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class Phrase:
    """A noun phrase to look for. White space and control characters are folded.

    An empty phrase, and one that no file could hold (half of a surrogate pair), raise `PhraseError`.
    """

    text: str

    def __post_init__(self) -> None:
        folded = folded_text(self.text)
        if not folded:
            raise PhraseError
        if not is_valid_text(folded):
            raise PhraseError(ascii(folded))
        object.__setattr__(self, "text", folded)


@dataclass(frozen=True)
class BoxPrompt:
    """A box drawn by a person: x1 y1 x2 y2 in pixels of the upright original, x2 and y2 exclusive."""

    xyxy: tuple[float, float, float, float]
    positive: bool = True

    def clipped(self, height: int, width: int) -> BoxPrompt:
        """The part inside an image of `height` × `width` pixels; raises `BoxError` if nothing is left of it."""
        x1, y1, x2, y2 = self.xyxy
        inside = (max(0.0, x1), max(0.0, y1), min(float(width), x2), min(float(height), y2))
        if not (inside[2] - inside[0] >= 1 and inside[3] - inside[1] >= 1):
            raise BoxError(self.xyxy, height, width)
        return BoxPrompt(inside, self.positive)


@dataclass(frozen=True)
class Understanding:
    """What a model made of a phrase, in words for the person who typed it."""

    matched: tuple[str, ...] = ()
    """The model's own names for what it looks for; empty for a model that takes any words."""
    ignored: tuple[str, ...] = ()
    """Words of the phrase that have no effect."""
    cut: str = ""
    """The end of the phrase that did not fit into the model's context."""
    outside: bool = False
    """True when the model does not know the thing that is asked for, and answers nothing."""

    @property
    def sentence(self) -> str:
        """One line for the page and the terminal; empty when there is nothing to say."""
        parts = ["outside this model's vocabulary"] if self.outside else []
        if self.matched:
            parts.append(f"matched as: {', '.join(self.matched)}")
        if self.ignored:
            parts.append(f"ignored: {', '.join(self.ignored)}")
        if self.cut:
            parts.append(f"too long, cut off: {self.cut}")
        return "; ".join(parts)


@dataclass(frozen=True)
class ImageFeatures:
    """One encoded image; `tensors` are opaque to all but the family that made them."""

    bundle_id: str
    image_id: str
    height: int
    width: int
    tensors: Mapping[str, Any]
    nbytes: int
    device: str = HOST
    """Where the tensors lie: `cpu` or `cuda:N`."""


@dataclass(frozen=True)
class PhraseFeatures:
    """One encoded phrase, with what the model understood of it."""

    bundle_id: str
    phrase: Phrase
    understanding: Understanding
    tensors: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """One found object. `xyxy` is float32 [4] in pixels of the upright original, x1 y1 exclusive; `score` in [0, 1]."""

    mask: Mask
    xyxy: NDArray[np.float32]
    score: float


@dataclass(frozen=True)
class SegmentOptions:
    """How instances are chosen. Thresholds are in [0, 1]; a model may cut at a higher score of its own."""

    score_threshold: float = 0.5
    mask_threshold: float = 0.5
    max_instances: int = 200
    suppress_iou: float | None = None
    """Drop an instance whose mask IoU with a better one is above this; None keeps duplicates."""
    suppress_containment: float | None = None
    """Drop an instance of which more than this share lies inside a better one; None keeps it."""
