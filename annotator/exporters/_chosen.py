"""What of a project goes into a dataset: images of known size, masks that fit them and are large enough."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from annotator.exporters.protocol import ExportOptions, ExportSource, Tally
from annotator.records import Annotation, ImageRecord
from engines.masks import areas_and_xywh


class Measured(NamedTuple):
    """An annotation with its mask's number of pixels and tight box."""

    annotation: Annotation
    area: int
    xywh: list[float]


def chosen_images(
    source: ExportSource,
    options: ExportOptions,
    category_ids: Collection[int],
    tally: Tally,
    among: Collection[str] | None = None,
) -> Iterator[tuple[ImageRecord, list[Measured]]]:
    """The images that are exported, each with its masks; what is left out is noted in `tally`.

    `among` are the paths of an earlier walk, where a format needs two: what a person finished since is for next time.
    """
    for image, its_annotations in source.images:
        if among is not None and image.path not in among:
            continue
        fault = _fault(image)
        if fault:
            tally.problems.append(fault)
            continue
        usable = _usable(image, its_annotations, category_ids, tally)
        measured = [one for one in _measured(usable) if one.area >= max(1, options.min_area)]
        tally.n_dropped_small += len(usable) - len(measured)
        if measured or image.done:
            yield image, measured
            tally.n_images += 1
            tally.n_annotations += len(measured)


def _measured(annotations: Sequence[Annotation]) -> list[Measured]:
    areas, boxes = areas_and_xywh([annotation.mask for annotation in annotations])
    return [Measured(*one) for one in zip(annotations, areas.tolist(), boxes.tolist(), strict=True)]


def _fault(image: ImageRecord) -> str:
    """Why the image cannot be part of a dataset; empty if it can."""
    try:
        image.path.encode("utf-8")
    except UnicodeEncodeError:
        name = image.path.encode("utf-8", "backslashreplace").decode()
        return f"{name}: the file's name is not valid Unicode; rename the file"
    if image.height is None or image.width is None:
        return f"{image.path}: {image.failure or 'it has never been opened, so its size is not known; open it once'}"
    return ""


def _usable(
    image: ImageRecord, annotations: Sequence[Annotation], category_ids: Collection[int], tally: Tally
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
        elif annotation.category_id not in category_ids:
            tally.problems.append(
                f"{image.path}: annotation {annotation.annotation_id} was left out, its category "
                f"{annotation.category_id} is not in the project; give it another"
            )
        else:
            usable.append(annotation)
    return usable
