"""Brings a dataset that another program or another project wrote into a project; only ever adds to it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import annotator.importers
from annotator.dataset_names import PictureNameError, PictureNames
from annotator.errors import CategoryNameError
from annotator.importers.protocol import ImportedAnnotation, ImportedDataset, ImportedImage, Importer
from annotator.records import Annotation, Decision, ImageRecord, NewAnnotation
from annotator.repeats import REPEAT_IOU
from annotator.workspace import Workspace
from engines.discovery import choose, discover
from engines.errors import ImageError
from engines.masks import Mask, iou_matrix

_TRANSACTION_S = 0.5
SURE = 1.0
"""The score of a suggestion whose file gives none."""


@cache
def importers() -> dict[str, Importer]:
    """Every import format by name."""
    return discover(annotator.importers, "IMPORTER", Importer)


@dataclass(frozen=True)
class ImportOptions:
    """How annotations come in."""

    decision: Decision | None = None
    """As what; None: as the file says, and as accepted where it does not."""
    done: bool = False
    """Whether the pictures count as reviewed, also those without annotations."""


@dataclass
class ImportSummary:
    """What an import did so far."""

    n_images: int = 0
    n_annotations: int = 0
    """New ones."""
    n_already: int = 0
    """Annotations that the project had before."""
    problems: list[str] = field(default_factory=list)
    """What was left out, a sentence each."""
    notes: list[str] = field(default_factory=list)


class ImportRun:
    """One file into one project. Each image is one step that can be undone; a stop loses the last half second."""

    def __init__(self, workspace: Workspace, dataset: ImportedDataset, name: str, options: ImportOptions) -> None:
        self._workspace = workspace
        self._dataset = dataset
        self._name = name
        self._options = options
        self._pictures = PictureNames(
            workspace.folder.root,
            workspace.store.images(include_missing=False),
            (image.file_name for image in dataset.images),
        )
        self.n_images = len(dataset.images)
        self.summary = ImportSummary()

    def run(self) -> Iterator[ImportSummary]:
        """Work through the images, yielding the summary after each."""
        self._categories = self._known_categories()
        images = iter(self._dataset.images)
        while n_taken := self._take_some(images):
            for _ in range(n_taken):
                yield self.summary
        self.summary.problems += self._dataset.refusals.sentences()
        self.summary.notes += self._dataset.notes.sentences()

    def _known_categories(self) -> dict[str, int]:
        """Ids by name; made where the project has none of that name, whatever its case."""
        known = {}
        for name in self._dataset.categories:
            try:
                known[name] = self._workspace.category(name).category_id
            except CategoryNameError as error:
                self._dataset.refusals.add(f"{error}; its annotations are left out", "a category")
        return known

    def _take_some(self, images: Iterator[ImportedImage]) -> int:
        """Images for half a second in one transaction, since each takes the disk longer than all else; how many."""
        started, n_taken = time.monotonic(), 0
        with self._workspace.store.atomic():
            while time.monotonic() - started < _TRANSACTION_S and (image := next(images, None)) is not None:
                self._take(image)
                n_taken += 1
        return n_taken

    def _take(self, image: ImportedImage) -> None:
        try:
            record = self._workspace.pictures.measure(self._pictures.find(image.file_name))
        except ImageError as error:
            self._dataset.refusals.add(error.reason, image.file_name)
            return
        except PictureNameError as error:
            self._dataset.refusals.add(str(error), image.file_name)
            return
        height, width = int(record.height or 0), int(record.width or 0)
        if image.size not in (None, (height, width)):
            reason = (
                f"its annotations are for {image.size[1]}×{image.size[0]} pixels and the picture is {width}×{height}"
            )
            self._dataset.refusals.add(reason, image.file_name)
            return
        self._store(record, image.annotations(height, width))

    def _store(self, image: ImageRecord, found: Sequence[ImportedAnnotation]) -> None:
        store = self._workspace.store
        with store.atomic():
            there = store.annotations(image.image_id)
            new = [self._new(one) for one in found if one.category in self._categories]
            fresh = [one for one in new if not _is_there(one, there)]
            confirmed = _confirmed(new, there)
            done = True if self._options.done else None
            if confirmed:
                decisions = dict.fromkeys(confirmed, Decision.ACCEPTED)
                store.decide(image.image_id, decisions, None, f"import {len(confirmed)} of {self._name}", done)
            if fresh or (done and not image.done):
                store.adopt(image.image_id, fresh, None, f"import {len(fresh)} of {self._name}", done)
        self.summary.n_images += 1
        self.summary.n_annotations += len(fresh)
        self.summary.n_already += len(new) - len(fresh)

    def _new(self, one: ImportedAnnotation) -> NewAnnotation:
        decision = self._options.decision or one.decision or Decision.ACCEPTED
        score = SURE if one.score is None and decision is Decision.PENDING else one.score
        x1, y1, x2, y2 = (float(value) for value in one.mask.xyxy)
        return NewAnnotation(
            self._categories[one.category], one.phrase, one.mask, (x1, y1, x2, y2), score, None, decision
        )


def read_dataset(path: Path, format_name: str = "coco") -> ImportedDataset:
    """The dataset in a file. Raises `DatasetError`, or `UnknownKindError` for a format that is not installed."""
    return choose(importers(), "import format", format_name).read(path)


def _is_there(new: NewAnnotation, there: Sequence[Annotation]) -> bool:
    """Exactly there; a suggestion also where an annotation of its category covers the same thing."""
    same = [one.mask for one in there if one.category_id == new.category_id and _fits(one.mask, new.mask)]
    if new.mask in same:
        return True
    return new.decision is Decision.PENDING and bool(same) and iou_matrix([new.mask], same).max() >= REPEAT_IOU


def _confirmed(new: Sequence[NewAnnotation], there: Sequence[Annotation]) -> list[int]:
    """Ids of open suggestions that the file holds as accepted."""
    accepted = {(one.category_id, one.mask) for one in new if one.decision is Decision.ACCEPTED}
    return [
        one.annotation_id
        for one in there
        if one.decision is Decision.PENDING and (one.category_id, one.mask) in accepted
    ]


def _fits(one: Mask, other: Mask) -> bool:
    return (one.height, one.width) == (other.height, other.width)
