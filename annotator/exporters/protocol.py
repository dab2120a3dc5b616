"""What an export format is given, what it answers, and the descriptor by which it is found."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from annotator.records import Annotation, Category, ImageRecord
from engines.errors import PhrasemaskError

SEGMENTATIONS = ("rle", "polygon", "both")
"""How masks can be written."""

CATEGORY_BASES = (1, 0)
"""The number that categories can be counted from."""

PICTURES = ("none", "copy", "link")
"""Whether pictures come with a dataset: not, as copies that are upright, or as links to the files."""

LAYOUTS = ("annotations", "folders")
"""How a split dataset lies: annotation files in one folder, or each beside its pictures."""

SPLITS = ("train", "valid", "test")

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the disk is read-only; choose another folder",
    errno.EACCES: "there is no permission to write there; choose another folder",
    errno.EPERM: "there is no permission to write there; choose another folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another folder",
    errno.EEXIST: "a file stands where the folder should be; choose another folder",
}


class ExportError(PhrasemaskError, OSError):
    """An export that could not be finished; an earlier export at the same place is left as it was."""

    @classmethod
    def unwritable(cls, path: Path, error: OSError) -> ExportError:
        """The system refused to write."""
        reason = _REASONS.get(error.errno or 0, f"{error.strerror or error}; choose another folder")
        return cls(f"{path} cannot be written: {reason} and export again, an earlier export there is unchanged")


@dataclass(frozen=True)
class ExportSource:
    """What is to be exported, already chosen by decision and score."""

    categories: Sequence[Category]
    """All of the project, also those without annotations."""
    images: Iterable[tuple[ImageRecord, Sequence[Annotation]]]
    """May be walked several times. An image without annotations is exported only if it is done: reviewed and empty."""
    folder: Path
    """The folder that `ImageRecord.path` is relative to."""
    description: str = ""


@dataclass(frozen=True)
class ExportOptions:
    """Choices of a person; a format names in `Exporter.options` those it heeds."""

    segmentation: str = "rle"
    """One of `SEGMENTATIONS`."""
    min_area: int = 1
    """Masks with fewer pixels are left out and counted; a mask without pixels always is."""
    tolerance_px: float = 0.0
    """How far polygons may leave the mask's edge to save corners; 0 is exact."""
    category_base: int = 1
    """One of `CATEGORY_BASES`."""
    images: str = "none"
    """One of `PICTURES`."""
    ratio: tuple[int, int, int] = (80, 10, 10)
    """Shares of train, valid and test, of their sum."""
    seed: int = 0
    """Which images go where; the same seed and images give the same split."""
    by_folder: bool = False
    """Keep all images of a sub-folder in one part."""
    layout: str = "annotations"
    """One of `LAYOUTS`."""
    verify: bool = True
    """Read the files back and check every mask before they replace an earlier export."""

    def __post_init__(self) -> None:
        if self.segmentation not in SEGMENTATIONS:
            raise ValueError(f"segmentation is one of {', '.join(SEGMENTATIONS)}; got '{self.segmentation}'")
        if self.images not in PICTURES:
            raise ValueError(f"images is one of {', '.join(PICTURES)}; got '{self.images}'")
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout is one of {', '.join(LAYOUTS)}; got '{self.layout}'")
        if min(self.ratio) < 0 or sum(self.ratio) <= 0:
            raise ValueError(f"the ratio is three numbers from 0 on, not all 0; got {self.ratio}")
        if self.category_base not in CATEGORY_BASES:
            raise ValueError(f"categories are counted from 1 or 0; got {self.category_base}")


@dataclass
class Tally:
    """What has been chosen for a dataset so far, and what has not."""

    n_images: int = 0
    n_annotations: int = 0
    n_dropped_small: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note_dropped(self, options: ExportOptions) -> None:
        """Say how many masks were too small."""
        if self.n_dropped_small:
            smallest = max(1, options.min_area)
            self.notes.append(f"{self.n_dropped_small} masks with fewer than {smallest} pixels were left out")


@dataclass(frozen=True)
class ExportReport:
    """What was written. `problems` name images that could not be exported as they are; `notes` are good to know."""

    files: tuple[Path, ...]
    n_images: int
    n_annotations: int
    n_dropped_small: int
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, files: Sequence[Path], tally: Tally) -> ExportReport:
        """What was counted while it was written."""
        numbers = tally.n_images, tally.n_annotations, tally.n_dropped_small
        return cls(tuple(files), *numbers, tuple(tally.notes), tuple(tally.problems))

    @property
    def summary(self) -> str:
        """One line for a person."""
        annotations = f"{self.n_annotations} annotation{'' if self.n_annotations == 1 else 's'}"
        return f"{annotations} on {self.n_images} image{'' if self.n_images == 1 else 's'}, read back and checked"


@dataclass(frozen=True)
class Exporter:
    """Descriptor of a format: one per module in `annotator/exporters/`, named `EXPORTER`."""

    name: str
    title: str
    options: frozenset[str]
    """Names of the fields of `ExportOptions` that have an effect."""
    how_to_load: str
    """One line for each program that reads the format: what to write there."""
    write: Callable[[ExportSource, Path, ExportOptions], ExportReport]
    """Source, folder to write into (made if it is not there), options. Raises `ExportError`."""
