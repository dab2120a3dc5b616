"""One image on its way through a run, handed from thread to thread; only one has it at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from annotator.predictor import Answer
from annotator.records import ImageRecord, KeptPhrase
from engines.errors import ImageError, PhrasemaskError
from engines.protocols import PreparedImage
from engines.types import ImageFeatures


@dataclass(frozen=True)
class Opened:
    """What was learnt on reading a file; `height` and `width` are pixels of the upright picture."""

    sha256: str
    height: int
    width: int
    size_bytes: int
    mtime_ns: int


@dataclass
class Job:
    """An image with the phrases that are missing on it, and what each step has made of it so far."""

    image: ImageRecord
    todo: Sequence[KeptPhrase]
    opened: Opened | None = None
    prepared: PreparedImage | None = field(default=None, repr=False)
    features: ImageFeatures | None = field(default=None, repr=False)
    answers: Sequence[Answer] | None = field(default=None, repr=False)
    error: Exception | None = None

    def fail(self, error: Exception) -> None:
        """End the work on this image with what a model or a decoder raised on it.

        What no other image would fare better with, such as a full disk, is raised instead.
        """
        if isinstance(error, PhrasemaskError) and not isinstance(error, (ImageError, MemoryError)):
            raise error
        self.error = error
        self.prepared = self.features = None

    @property
    def reason(self) -> str:
        """Why it failed, without its path."""
        if isinstance(self.error, ImageError):
            return self.error.reason
        if isinstance(self.error, PhrasemaskError):
            return str(self.error)
        return f"the model failed on it: {type(self.error).__name__}: {self.error}"
