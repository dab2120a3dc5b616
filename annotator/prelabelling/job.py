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


@dataclass(frozen=True)
class Failure:
    """Why an image failed: plain words, which pass from one process to another."""

    reason: str
    """Without the path."""
    is_of_file: bool
    """The file is no usable picture; otherwise the model failed on it."""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """What a person is told of an error."""
        if isinstance(error, ImageError):
            return cls(error.reason, True)
        if isinstance(error, PhrasemaskError):
            return cls(str(error), False)
        return cls(f"the model failed on it: {type(error).__name__}: {error}", False)


@dataclass
class Job:
    """An image with the phrases that are missing on it, and what each step has made of it so far."""

    image: ImageRecord
    todo: Sequence[KeptPhrase]
    opened: Opened | None = None
    prepared: PreparedImage | None = field(default=None, repr=False)
    features: ImageFeatures | None = field(default=None, repr=False)
    answers: Sequence[Answer] | None = field(default=None, repr=False)
    failure: Failure | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be done on it."""
        return bool(self.todo) and not self.image.done

    def fail(self, error: Exception) -> None:
        """End the work on this image with what a model or a decoder raised on it.

        What no other image would fare better with, such as a full disk, is raised instead.
        """
        if isinstance(error, PhrasemaskError) and not isinstance(error, (ImageError, MemoryError)):
            raise error
        self.failure = Failure.of(error)
        self.prepared = self.features = None
