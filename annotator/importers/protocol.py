"""What an import format answers, and the descriptor by which it is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from annotator.records import Decision
from engines.errors import PhrasemaskError
from engines.masks import Mask


class DatasetError(PhrasemaskError, ValueError):
    """A file that cannot be read as a dataset at all; nothing of it was imported."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be imported: {reason}")


@dataclass(frozen=True)
class ImportedAnnotation:
    """One object of a dataset; the mask has the size of its picture."""

    category: str
    mask: Mask
    score: float | None = None
    """0 to 1, where the file gives one."""
    phrase: str | None = None
    decision: Decision | None = None
    """Where the file says so, as our own exports do."""


class ImportedImage(Protocol):
    """One picture of a dataset."""

    @property
    def file_name(self) -> str:
        """As the file has it: perhaps with folders, absolute, or with backslashes."""

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width in pixels, where the file gives them."""

    def annotations(self, height: int, width: int) -> list[ImportedAnnotation]:
        """The objects on a picture of that size; what cannot be used is noted with the dataset."""


@dataclass
class Refusals:
    """What of a file could not be used: how often for each reason, and the first example of it."""

    _found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, reason: str, example: str) -> None:
        """Count one more."""
        n, first = self._found.get(reason, (0, example))
        self._found[reason] = n + 1, first

    def sentences(self) -> list[str]:
        """One for each reason."""
        return [_sentence(reason, n, first) for reason, (n, first) in self._found.items()]


def _sentence(reason: str, n: int, first: str) -> str:
    return f"{first}: {reason}" if n == 1 else f"{first} and {n - 1} more: {reason}"


@dataclass(frozen=True)
class ImportedDataset:
    """A file that has been read; asking the images for their annotations fills `refusals` and `notes`."""

    categories: tuple[str, ...]
    """Names of all categories in the order of the file, also of those without objects."""
    images: Sequence[ImportedImage]
    refusals: Refusals = field(default_factory=Refusals)
    notes: Refusals = field(default_factory=Refusals)
    """What is good to know and no loss."""


@dataclass(frozen=True)
class Importer:
    """Descriptor of a format: one per module in `annotator/importers/`, named `IMPORTER`."""

    name: str
    title: str
    read: Callable[[Path], ImportedDataset]
    """Raises `DatasetError`."""
