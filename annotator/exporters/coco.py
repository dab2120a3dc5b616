"""COCO instance segmentation: one JSON file, or two with the same ids, one with RLE and one with polygons."""

from __future__ import annotations

from pathlib import Path

from annotator.exporters._chosen import chosen_images
from annotator.exporters._coco_forms import CocoForms, forms_of
from annotator.exporters._pictures import PICTURES_FOLDER, Pictures
from annotator.exporters.protocol import Exporter, ExportOptions, ExportReport, ExportSource, Tally

FILE_NAMES = {"rle": "instances.json", "polygon": "instances_polygon.json"}

_HOW_TO_LOAD = """\
pycocotools: COCO("instances.json"), then annToMask for either file
detectron2: cfg.INPUT.MASK_FORMAT = "bitmask" for instances.json; nothing to set for instances_polygon.json
mmdetection: LoadAnnotations(with_mask=True, poly2mask=True), and metainfo classes equal to the category names
supervision 0.31 or later: DetectionDataset.from_coco(images, "instances.json", force_masks=True)
ultralytics 8.4 or later: convert_coco(folder, use_segments=True, cls91to80=False); it fills holes
Label Studio and Roboflow: upload instances_polygon.json"""


def write(source: ExportSource, out: Path, options: ExportOptions) -> ExportReport:
    """Write, read back and check the files, then let them take their places. Raises `ExportError`."""
    tally = Tally()
    with CocoForms({form: out / FILE_NAMES[form] for form in forms_of(options)}, source, options) as files:
        pictures = Pictures(source.folder, out / PICTURES_FOLDER, options.images, tally)
        known = {category.category_id for category in source.categories}
        for image, measured in chosen_images(source, options, known, tally):
            files.add(image, measured, pictures.place(image.path))
        files.finish()
        if options.verify:
            _check_pictures(files, pictures.root, tally)
        files.commit()
    tally.note_dropped(options)
    if options.category_base == 0:
        tally.notes.append("categories are counted from 0: CVAT and datumaro lose the first one, use 1 for them")
    return ExportReport.of(files.paths, tally)


def _check_pictures(files: CocoForms, folder: Path, tally: Tally) -> None:
    faults, n_missing = files.picture_faults(folder)
    tally.problems += faults
    if n_missing:
        tally.notes.append(f"{n_missing} of the images are not in {folder} any more; they were exported")


EXPORTER = Exporter(
    name="coco",
    title="COCO instance segmentation (JSON)",
    options=frozenset({"segmentation", "min_area", "tolerance_px", "category_base", "images", "verify"}),
    how_to_load=_HOW_TO_LOAD,
    write=write,
)
