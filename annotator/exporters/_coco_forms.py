"""The COCO files of one set of images: one with RLE, one with polygons, or both with the same ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from annotator.exporters._chosen import Measured
from annotator.exporters._coco_check import CocoCheck, picture_faults
from annotator.exporters._coco_file import CocoFile
from annotator.exporters._coco_rows import annotation_row, category_ids, category_rows, image_row, info_row
from annotator.exporters.protocol import ExportOptions, ExportSource
from annotator.records import ImageRecord
from engines.contours import polygons
from engines.masks import Mask


def forms_of(options: ExportOptions) -> tuple[str, ...]:
    """The forms of masks that are written."""
    return ("rle", "polygon") if options.segmentation == "both" else (options.segmentation,)


class CocoForms:
    """The next version of the files; nothing is replaced before `commit`."""

    def __init__(self, paths: Mapping[str, Path], source: ExportSource, options: ExportOptions) -> None:
        """`paths` by form. Raises `ExportError` for categories that cannot be written."""
        self._ids = category_ids(source.categories, options.category_base)
        self._rows = category_rows(source.categories, options.category_base)
        self._description = source.description
        self._options = options
        self._files = {form: CocoFile(path) for form, path in paths.items()}
        self._segmentations: dict[str, Callable[[Mask], Any]] = {
            "rle": lambda mask: mask.rle,
            "polygon": lambda mask: polygons(mask, options.tolerance_px),
        }
        self.paths = tuple(paths.values())
        self.n_images = 0
        self.n_annotations = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for file in self._files.values():
                stack.enter_context(file)
                file.start(info_row(self._description), self._rows)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, tb)

    def add(self, image: ImageRecord, measured: Sequence[Measured], file_name: str) -> None:
        """One image with its annotations, under the name that its picture has in the dataset."""
        for form, file in self._files.items():
            file.add({**image_row(image), "file_name": file_name}, list(self._annotation_rows(measured, form)))
        self.n_images += 1
        self.n_annotations += len(measured)

    def finish(self) -> None:
        """Bring everything to the disk and, if asked for, read it back. Raises `ExportError`."""
        for form, file in self._files.items():
            file.finish()
            if self._options.verify:
                is_exact = form == "rle" or self._options.tolerance_px == 0
                check = CocoCheck(file.draft.draft_path, file.draft.path.name, is_exact)
                check.run(self.n_images, self.n_annotations)

    def picture_faults(self, folder: Path) -> tuple[list[str], int]:
        """As `_coco_check.picture_faults`, of the pictures in that folder; after `finish`."""
        return picture_faults(next(iter(self._files.values())).draft.draft_path, folder)

    def commit(self) -> None:
        """The files take their places."""
        for file in self._files.values():
            file.commit()

    def _annotation_rows(self, measured: Sequence[Measured], form: str) -> Iterator[dict[str, Any]]:
        for one in measured:
            segmentation = self._segmentations[form](one.annotation.mask)
            category_id = self._ids[one.annotation.category_id]
            yield annotation_row(one.annotation, category_id, segmentation, one.area, one.xywh)
