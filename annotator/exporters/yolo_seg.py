"""YOLO segmentation: a text file for each image, a line for each object with its outline in shares of the picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from pycocotools import mask as coco_mask

from annotator.exporters._chosen import Measured, chosen_images
from annotator.exporters._coco_rows import category_ids, category_rows
from annotator.exporters._folder import FolderDraft
from annotator.exporters._one_outline import one_outline
from annotator.exporters._pictures import PICTURES_FOLDER, Pictures
from annotator.exporters._split import split_of
from annotator.exporters.protocol import SPLITS, Exporter, ExportError, ExportOptions, ExportReport, ExportSource, Tally
from engines.contours import polygons
from engines.masks import Mask

LABELS_FOLDER = "labels"
_DATA_FILE = "data.yaml"
_YAML_NAMES = {"train": "train", "valid": "val", "test": "test"}
_DIGITS = 7
"""Of a share: a hundredth of a pixel on the longest side that a picture may have."""

_HOW_TO_LOAD = """\
ultralytics: YOLO("yolo11n-seg.pt").train(data="FOLDER/data.yaml"), exported with --images copy or link, since
it looks for pictures in images/ beside labels/; several parts and holes of an object are one outline with bridges"""


def write(source: ExportSource, out: Path, options: ExportOptions) -> ExportReport:
    """Write the whole folder, checking each outline, then put it in an earlier one's place. Raises `ExportError`."""
    tally = Tally()
    ids, rows = category_ids(source.categories, base=0), category_rows(source.categories, base=0)
    paths = [image.path for image, _ in chosen_images(source, options, ids, Tally())]
    part_of, names = split_of(paths, options), set[str]()
    n_images = dict.fromkeys(SPLITS, 0)
    with FolderDraft(out) as draft:
        pictures = {
            part: Pictures(source.folder, draft.folder / PICTURES_FOLDER / part, options.images, tally)
            for part in SPLITS
        }
        for image, measured in chosen_images(source, options, ids, tally, part_of):
            part = part_of[image.path]
            name = f"{LABELS_FOLDER}/{part}/{PurePosixPath(pictures[part].name_of(image.path)).with_suffix('.txt')}"
            if name in names:
                tally.problems.append(f"{image.path}: another picture has the labels {name}; rename one of the two")
                continue
            names.add(name)
            pictures[part].place(image.path)
            n_images[part] += 1
            lines = [_line(one, ids, options) for one in measured]
            draft.write(name, "".join(f"{line}\n" for line in lines).encode())
        parts = [part for part, n in n_images.items() if n]
        file = draft.write(_DATA_FILE, _data(parts, [row["name"] for row in rows]).encode())
        draft.commit()
    tally.note_dropped(options)
    tally.notes.append(", ".join(f"{part}: {n} images" for part, n in n_images.items()))
    return ExportReport.of([file, out / LABELS_FOLDER], tally)


def _line(one: Measured, ids: Mapping[int, int], options: ExportOptions) -> str:
    mask = one.annotation.mask
    outline = one_outline(polygons(mask, options.tolerance_px))
    sides = np.tile([mask.width, mask.height], len(outline) // 2)
    shares = " ".join(f"{share:.{_DIGITS}g}" for share in np.asarray(outline) / sides)
    if options.verify and options.tolerance_px == 0:
        _check(one, shares)
    return f"{ids[one.annotation.category_id]} {shares}"


def _check(one: Measured, shares: str) -> None:
    """What a reader rasterises is the mask, but for bridges that some rasterisers make visible: nothing is lost."""
    mask = one.annotation.mask
    sides = np.tile([mask.width, mask.height], shares.count(" ") // 2 + 1)
    corners = np.round(np.array(shares.split(), dtype=float) * sides)
    (rle,) = coco_mask.frPyObjects([corners.tolist()], mask.height, mask.width)
    read = Mask(mask.height, mask.width, rle["counts"].decode("ascii"))
    if read != mask and (mask.decode() & ~read.decode()).any():
        raise ExportError(
            f"annotation {one.annotation.annotation_id} does not read back as it was; nothing was replaced, report it"
        )


def _data(parts: Sequence[str], names: Sequence[str]) -> str:
    """YAML; a JSON text is one in YAML too. Without `path`, readers look beside the file."""
    lines = [f"{_YAML_NAMES[part]}: {PICTURES_FOLDER}/{part}" for part in parts]
    if "valid" not in parts and "train" in parts:
        lines.append(f"val: {PICTURES_FOLDER}/train")
    lines += ["names:", *(f"  {number}: {json.dumps(name, ensure_ascii=False)}" for number, name in enumerate(names))]
    return "\n".join(lines) + "\n"


EXPORTER = Exporter(
    name="yolo-seg",
    title="YOLO segmentation (text files)",
    options=frozenset({"min_area", "tolerance_px", "images", "ratio", "seed", "by_folder", "verify"}),
    how_to_load=_HOW_TO_LOAD,
    write=write,
)
