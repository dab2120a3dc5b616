"""COCO in parts for training, validation and test."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from annotator.exporters._chosen import chosen_images
from annotator.exporters._coco_forms import CocoForms, forms_of
from annotator.exporters._folder import FolderDraft
from annotator.exporters._pictures import PICTURES_FOLDER, Pictures
from annotator.exporters._split import split_of
from annotator.exporters.protocol import SPLITS, Exporter, ExportOptions, ExportReport, ExportSource, Tally

_HOW_TO_LOAD = """\
pycocotools: COCO("annotations/instances_train.json"), with pictures in images/train
CVAT: zip annotations/ and images/, import as COCO 1.0
with --layout folders --images copy, RF-DETR: model.train(dataset_dir=FOLDER); Roboflow: upload the folder
torchvision: CocoDetection("train", "train/_annotations.coco.json")"""


def write(source: ExportSource, out: Path, options: ExportOptions) -> ExportReport:
    """Write the whole folder, read it back, then put it in the place of an earlier one. Raises `ExportError`."""
    tally = Tally()
    known = {category.category_id for category in source.categories}
    paths = [image.path for image, _ in chosen_images(source, options, known, Tally())]
    part_of = split_of(paths, options)
    with FolderDraft(out) as draft, ExitStack() as stack:
        files = {part: stack.enter_context(_files(draft.folder, part, source, options)) for part in SPLITS}
        pictures = {
            part: Pictures(source.folder, draft.folder / _pictures(part, options), options.images, tally)
            for part in SPLITS
        }
        for image, measured in chosen_images(source, options, known, tally, part_of):
            part = part_of[image.path]
            files[part].add(image, measured, pictures[part].place(image.path))
        for part in SPLITS:
            files[part].finish()
            if options.verify:
                tally.problems += files[part].picture_faults(pictures[part].root)[0]
            files[part].commit()
        draft.commit()
    tally.note_dropped(options)
    tally.notes.append(", ".join(f"{part}: {files[part].n_images} images" for part in SPLITS))
    written = [out / path.relative_to(draft.folder) for part in SPLITS for path in files[part].paths]
    return ExportReport.of(written, tally)


def _files(folder: Path, part: str, source: ExportSource, options: ExportOptions) -> CocoForms:
    return CocoForms({form: folder / _name(form, part, options.layout) for form in forms_of(options)}, source, options)


def _name(form: str, part: str, layout: str) -> str:
    of_polygons = "_polygon" if form == "polygon" else ""
    if layout == "folders":
        return f"{part}/_annotations{of_polygons}.coco.json"
    return f"annotations/instances{of_polygons}_{part}.json"


def _pictures(part: str, options: ExportOptions) -> str:
    return part if options.layout == "folders" else f"{PICTURES_FOLDER}/{part}"


EXPORTER = Exporter(
    name="coco-split",
    title="COCO in train, valid and test",
    options=frozenset(
        {
            *("segmentation", "min_area", "tolerance_px", "category_base", "images", "verify"),
            *("ratio", "seed", "by_folder", "layout"),
        }
    ),
    how_to_load=_HOW_TO_LOAD,
    write=write,
)
