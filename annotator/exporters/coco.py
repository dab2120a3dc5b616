"""COCO instance segmentation: one JSON file, or two with the same ids, one with RLE and one with polygons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from annotator.exporters._coco_check import CocoCheck, picture_faults
from annotator.exporters._coco_file import CocoFile
from annotator.exporters._coco_rows import annotation_row, category_ids, category_rows, image_row, info_row
from annotator.exporters.protocol import Exporter, ExportOptions, ExportReport, ExportSource
from annotator.records import Annotation, ImageRecord
from engines.contours import polygons
from engines.masks import Mask, areas_and_xywh

FILE_NAMES = {"rle": "instances.json", "polygon": "instances_polygon.json"}

_HOW_TO_LOAD = """\
pycocotools: COCO("instances.json"), then annToMask for either file
detectron2: cfg.INPUT.MASK_FORMAT = "bitmask" for instances.json; nothing to set for instances_polygon.json
mmdetection: LoadAnnotations(with_mask=True, poly2mask=True), and metainfo classes equal to the category names
supervision 0.31 or later: DetectionDataset.from_coco(images, "instances.json", force_masks=True)
ultralytics 8.4 or later: convert_coco(folder, use_segments=True, cls91to80=False); it fills holes
Label Studio and Roboflow: upload instances_polygon.json"""


@dataclass
class _Tally:
    """What has been written so far, and what has not."""

    n_images: int = 0
    n_annotations: int = 0
    n_dropped_small: int = 0
    problems: list[str] = field(default_factory=list)


class _Measured(NamedTuple):
    """An annotation with its mask's number of pixels and tight box."""

    annotation: Annotation
    area: int
    xywh: list[float]


def write(source: ExportSource, out: Path, options: ExportOptions) -> ExportReport:
    """Write, read back and check the files, then let them take their places. Raises `ExportError`."""
    categories = category_rows(source.categories, options.category_base)
    forms = tuple(FILE_NAMES) if options.segmentation == "both" else (options.segmentation,)
    tally = _Tally()
    with ExitStack() as stack:
        files = {form: stack.enter_context(CocoFile(out / FILE_NAMES[form])) for form in forms}
        for file in files.values():
            file.start(info_row(source.description), categories)
        _write_images(source, files, options, tally)
        for file in files.values():
            file.finish()
        notes = _checked(source, files, options, tally) if options.verify else []
        for file in files.values():
            file.commit()
    written = tuple(out / FILE_NAMES[form] for form in forms)
    notes += _notes(options, tally)
    return ExportReport(
        written, tally.n_images, tally.n_annotations, tally.n_dropped_small, tuple(notes), tuple(tally.problems)
    )


def _write_images(source: ExportSource, files: Mapping[str, CocoFile], options: ExportOptions, tally: _Tally) -> None:
    ids = category_ids(source.categories, options.category_base)
    to_segmentation = _segmentations(options)
    for image, chosen in source.images:
        fault = _fault(image)
        if fault:
            tally.problems.append(fault)
            continue
        usable = _usable(image, chosen, ids, tally)
        measured = [one for one in _measured(usable) if one.area >= max(1, options.min_area)]
        tally.n_dropped_small += len(usable) - len(measured)
        if not measured and not image.done:
            continue
        for form, file in files.items():
            file.add(image_row(image), list(_rows(measured, ids, to_segmentation[form])))
        tally.n_images += 1
        tally.n_annotations += len(measured)


def _rows(
    measured: Sequence[_Measured], ids: Mapping[int, int], to_segmentation: Callable[[Mask], Any]
) -> Iterator[dict[str, Any]]:
    for one in measured:
        segmentation = to_segmentation(one.annotation.mask)
        yield annotation_row(one.annotation, ids[one.annotation.category_id], segmentation, one.area, one.xywh)


def _segmentations(options: ExportOptions) -> dict[str, Callable[[Mask], Any]]:
    return {
        "rle": lambda mask: mask.rle,
        "polygon": lambda mask: polygons(mask, options.tolerance_px),
    }


def _measured(annotations: Sequence[Annotation]) -> list[_Measured]:
    areas, boxes = areas_and_xywh([annotation.mask for annotation in annotations])
    return [_Measured(*one) for one in zip(annotations, areas.tolist(), boxes.tolist(), strict=True)]


def _fault(image: ImageRecord) -> str:
    """Why the image cannot be a row of the file; empty if it can."""
    try:
        image.path.encode("utf-8")
    except UnicodeEncodeError:
        name = image.path.encode("utf-8", "backslashreplace").decode()
        return f"{name}: the file's name is not valid Unicode; rename the file"
    if image.height is None or image.width is None:
        return f"{image.path}: {image.failure or 'it has never been opened, so its size is not known; open it once'}"
    return ""


def _usable(
    image: ImageRecord, annotations: Sequence[Annotation], ids: Mapping[int, int], tally: _Tally
) -> list[Annotation]:
    """The annotations that fit the image and have a category; of the others, one problem each is noted."""
    usable = []
    for annotation in annotations:
        mask = annotation.mask
        if (mask.height, mask.width) != (image.height, image.width):
            tally.problems.append(
                f"{image.path}: annotation {annotation.annotation_id} was left out, its mask is {mask.width}×"
                f"{mask.height} and the picture {image.width}×{image.height}; label the picture again"
            )
        elif annotation.category_id not in ids:
            tally.problems.append(
                f"{image.path}: annotation {annotation.annotation_id} was left out, its category "
                f"{annotation.category_id} is not in the project; give it another"
            )
        else:
            usable.append(annotation)
    return usable


def _checked(source: ExportSource, files: Mapping[str, CocoFile], options: ExportOptions, tally: _Tally) -> list[str]:
    for form, file in files.items():
        is_exact = form == "rle" or options.tolerance_px == 0
        CocoCheck(file.draft.draft_path, FILE_NAMES[form], is_exact).run(tally.n_images, tally.n_annotations)
    faults, n_missing = picture_faults(next(iter(files.values())).draft.draft_path, source.folder)
    tally.problems += faults
    return [f"{n_missing} of the images are not in {source.folder} any more; they were exported"] if n_missing else []


def _notes(options: ExportOptions, tally: _Tally) -> list[str]:
    notes = []
    if tally.n_dropped_small:
        smallest = max(1, options.min_area)
        notes.append(f"{tally.n_dropped_small} masks with fewer than {smallest} pixels were left out")
    if options.category_base == 0:
        notes.append("categories are counted from 0: CVAT and datumaro lose the first one, use 1 for them")
    return notes


EXPORTER = Exporter(
    name="coco",
    title="COCO instance segmentation (JSON)",
    options=frozenset({"segmentation", "min_area", "tolerance_px", "category_base", "verify"}),
    how_to_load=_HOW_TO_LOAD,
    write=write,
)
