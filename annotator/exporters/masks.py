"""One indexed PNG for each image: a pixel's value is the number of its category, 0 where there is nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from annotator.exporters._chosen import Measured, chosen_images
from annotator.exporters._coco_rows import category_ids, category_rows
from annotator.exporters._folder import FolderDraft
from annotator.exporters._pictures import PICTURES_FOLDER, Pictures
from annotator.exporters.protocol import Exporter, ExportError, ExportOptions, ExportReport, ExportSource, Tally
from annotator.records import ImageRecord

MASKS_FOLDER = "masks"
_MOST_CATEGORIES = 255

_HOW_TO_LOAD = """\
numpy and Pillow: numpy.array(Image.open("masks/NAME.png")) is (H, W) of the numbers in categories.json
torch: torch.from_numpy(...).long() as the target of CrossEntropyLoss, with 0 as background
mmsegmentation: BaseSegDataset(data_prefix=dict(img_path="images", seg_map_path="masks"))"""


def write(source: ExportSource, out: Path, options: ExportOptions) -> ExportReport:
    """Write the whole folder, reading back each mask, then put it in an earlier one's place. Raises `ExportError`."""
    ids = category_ids(source.categories, base=1)
    rows = category_rows(source.categories, base=1)
    if len(rows) > _MOST_CATEGORIES:
        raise ExportError(f"{len(rows)} categories do not fit into 8 bits; export as coco, or merge some of them")
    tally, palette, names = Tally(), colour_map(len(rows)), set[str]()
    with FolderDraft(out) as draft:
        pictures = Pictures(source.folder, draft.folder / PICTURES_FOLDER, options.images, tally)
        for image, measured in chosen_images(source, options, ids, tally):
            name = f"{MASKS_FOLDER}/{image.path.rpartition('.')[0] or image.path}.png"
            if name in names:
                tally.problems.append(f"{image.path}: another picture has the mask {name}; rename one of the two")
                continue
            names.add(name)
            indices = painted(image, measured, ids)
            content = _png(indices, palette)
            if options.verify:
                _check(name, content, indices)
            draft.write(name, content)
            pictures.place(image.path)
        categories = [{**row, "colour": palette[row["id"]]} for row in rows]
        text = json.dumps({"background": 0, "categories": categories}, indent=2, ensure_ascii=False)
        file = draft.write("categories.json", text.encode() + b"\n")
        draft.commit()
    tally.note_dropped(options)
    return ExportReport.of([file, out / MASKS_FOLDER], tally)


def painted(image: ImageRecord, measured: Sequence[Measured], ids: Mapping[int, int]) -> NDArray[np.uint8]:
    """(H, W) uint8: larger masks first, so that what lies in or on something else stays visible."""
    indices = np.zeros((int(image.height or 0), int(image.width or 0)), dtype=np.uint8)
    for one in sorted(measured, key=lambda one: (-one.area, one.annotation.annotation_id)):
        indices[one.annotation.mask.decode()] = ids[one.annotation.category_id]
    return indices


def colour_map(n_categories: int) -> list[list[int]]:
    """Red, green and blue of each value from 0, far apart for neighbours: the bits of the number, dealt out in turn
    to the highest bits of the three colours, as PASCAL VOC's colour map has it."""
    return [_colour(value) for value in range(n_categories + 1)]


def _colour(value: int) -> list[int]:
    channels = [0, 0, 0]
    for shift in range(7, -1, -1):
        for channel in range(3):
            channels[channel] |= (value >> channel & 1) << shift
        value >>= 3
    return channels


def _png(indices: NDArray[np.uint8], palette: list[list[int]]) -> bytes:
    picture = Image.fromarray(indices)
    picture.putpalette([part for colour in palette for part in colour])
    content = io.BytesIO()
    picture.save(content, "PNG")
    return content.getvalue()


def _check(name: str, content: bytes, indices: NDArray[np.uint8]) -> None:
    with Image.open(io.BytesIO(content)) as picture:
        if not np.array_equal(np.asarray(picture), indices):
            raise ExportError(f"{name} does not read back as it was written; nothing was replaced, export again")


EXPORTER = Exporter(
    name="masks",
    title="Indexed PNG masks, one for each image",
    options=frozenset({"min_area", "images", "verify"}),
    how_to_load=_HOW_TO_LOAD,
    write=write,
)
