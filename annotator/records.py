"""The rows of a project as values. Sizes are pixels, height then width, of the upright original; times are UTC."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from engines.masks import Mask
from engines.types import Instance

Xyxy = tuple[float, float, float, float]
"""x1 y1 x2 y2 in pixels of the upright original, x2 and y2 exclusive. A tuple, so that records compare and hash."""


MAX_CATEGORY_LENGTH = 200
"""Characters of a category's name."""


class Decision(StrEnum):
    """What a person made of an annotation."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class ImageState(StrEnum):
    """How far an image is: nothing on it, annotations on it, or reviewed by a person."""

    UNTOUCHED = "untouched"
    SUGGESTED = "suggested"
    DONE = "done"


class ImageOrder(StrEnum):
    """How a list of images is sorted; numbers in names count as numbers, so img2 comes before img10."""

    PATH = "path"
    NAME = "name"
    """By file name, whatever the sub-folder."""
    MODIFIED = "modified"
    """Oldest first."""


@dataclass(frozen=True)
class FoundImage:
    """A picture file as found in the folder; `path` is relative to it, with forward slashes."""

    path: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True)
class ImageRecord:
    """An image of the project. `sha256`, `height` and `width` are None until it has been read once.

    `size_bytes` and `mtime_ns` are the file's when it was last read, or when it was found if it never was.
    """

    image_id: int
    path: str
    size_bytes: int
    mtime_ns: int
    sha256: str | None
    height: int | None
    width: int | None
    failure: str | None
    """Why it could not be read the last time, without its path; None if it could, or was not tried."""
    missing: bool
    """The file was not in the folder when it was last listed; its annotations are kept."""
    done: bool
    revision: int
    """Grows with every change of the image's annotations or of `done`."""
    n_pending: int
    n_accepted: int
    n_rejected: int
    changed: bool = False
    """The file's content is not the one that a person last worked on; cleared by the next decision."""

    @property
    def n_annotations(self) -> int:
        """All annotations, whatever their decision."""
        return self.n_pending + self.n_accepted + self.n_rejected

    @property
    def state(self) -> ImageState:
        """Reviewed, or with annotations, or neither."""
        if self.done:
            return ImageState.DONE
        return ImageState.SUGGESTED if self.n_annotations else ImageState.UNTOUCHED


@dataclass(frozen=True)
class Category:
    """What instances are exported as."""

    category_id: int
    name: str
    supercategory: str = "object"


@dataclass(frozen=True)
class KeptPhrase:
    """A phrase that is run on every image, and the category its instances get."""

    phrase_id: int
    text: str
    category_id: int


@dataclass(frozen=True)
class NewAnnotation:
    """An annotation that is not stored yet. `score` in [0, 1]; None means drawn by a person, and then never pending."""

    category_id: int
    phrase: str | None
    mask: Mask
    xyxy: Xyxy
    score: float | None
    bundle_id: str | None
    decision: Decision = Decision.PENDING

    @classmethod
    def from_instance(
        cls,
        instance: Instance,
        category_id: int,
        phrase: str,
        bundle_id: str,
        decision: Decision = Decision.PENDING,
    ) -> NewAnnotation:
        """What a model answered to a phrase."""
        return cls(category_id, phrase, instance.mask, xyxy_tuple(instance), float(instance.score), bundle_id, decision)


@dataclass(frozen=True)
class Annotation:
    """A stored annotation of one image; fields as in `NewAnnotation`."""

    annotation_id: int
    image_id: int
    category_id: int
    phrase: str | None
    mask: Mask
    xyxy: Xyxy
    score: float | None
    bundle_id: str | None
    decision: Decision

    @property
    def drawn(self) -> bool:
        """Made by a person rather than by a model."""
        return self.score is None


@dataclass(frozen=True)
class Action:
    """One step of a person that can be undone; `label` says what it was, such as: accept 3."""

    action_id: int
    image_id: int
    label: str
    done_at: datetime


@dataclass(frozen=True)
class RunTotal:
    """One phrase of a run, which is one model at one score threshold; times are seconds since 1970."""

    bundle_id: str
    score_threshold: float
    phrase_key: str
    n_images: int
    n_suggestions: int
    first_at: float
    last_at: float


@dataclass(frozen=True)
class SyncReport:
    """What a new listing of the folder changed; `n_known` were in the project already and are still in the folder."""

    n_known: int
    n_new: int
    n_missing: int
    """Images of the project that are not in the folder now."""
    n_returned: int
    """Images that had been missing and are back; counted in `n_known` too."""
    refused_paths: tuple[str, ...] = ()
    """Files left out because their name is not valid text; they have to be renamed."""


@dataclass(frozen=True)
class Counts:
    """The project in numbers. Each image is counted once: as missing, else as failed, else by its state."""

    n_images: int
    images: Mapping[ImageState, int]
    n_failed: int
    n_missing: int
    annotations: Mapping[Decision, int]
    by_category: Mapping[str, Mapping[Decision, int]]
    """Category name → number of annotations by decision; categories without annotations are there, with zeros."""


def xyxy_tuple(instance: Instance) -> Xyxy:
    """The instance's box as plain floats."""
    x1, y1, x2, y2 = (float(value) for value in instance.xyxy)
    return x1, y1, x2, y2


def phrase_key(text: str) -> str:
    """What two spellings of one phrase have in common: white space folded, case and Unicode form ignored."""
    return unicodedata.normalize("NFC", " ".join(text.split())).casefold()


def natural_key(text: str) -> str:
    """A string that sorts as people sort: case is ignored and digits count as a number of any length."""
    return re.sub(r"[0-9]+", _sortable_number, unicodedata.normalize("NFC", text).casefold())


def _sortable_number(digits: re.Match[str]) -> str:
    """The number after its own length, so that a longer one sorts later."""
    number = digits[0].lstrip("0")
    return f"0{len(number):03}{number}"
