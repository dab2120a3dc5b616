"""Reads the project's pictures: each file once, its size and content hash recorded, its failure named."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from annotator.cache import FeatureCache
from annotator.folder import ImageFolder
from annotator.previews import PREVIEW, THUMBNAIL, PreviewKind, Previews
from annotator.records import ImageRecord
from engines.errors import ImageError
from engines.images import ReadImage, image_size, read_image

if TYPE_CHECKING:
    from annotator.store import ProjectStore

PIXELS_LIMIT_BYTES = 256 << 20


class Pictures:
    """The pictures of an opened folder, as the project's store knows them."""

    def __init__(self, store: ProjectStore, folder: ImageFolder, previews: Previews) -> None:
        self._store = store
        self._folder = folder
        self._previews = previews
        self._pixels: FeatureCache[str, NDArray[np.uint8]] = FeatureCache(PIXELS_LIMIT_BYTES, lambda rgb: rgb.nbytes)
        self._notes: dict[int, tuple[str, ...]] = {}

    def file(self, image: ImageRecord) -> Path:
        """Where the image's file is."""
        return self._folder.path(image.path)

    def open(self, image: ImageRecord) -> ImageRecord:
        """The image with its size and content hash, read now if its file is new or has changed.

        Raises an `ImageError`, recorded with the image, for a file that is no usable picture.
        """
        if _is_read(image) and self._is_unchanged(image):
            return image
        self._read(image)
        return self._store.image(image.image_id)

    def measure(self, image: ImageRecord) -> ImageRecord:
        """As `open`, from the file's header alone: damaged pixels are not noticed before the picture is shown."""
        if _is_read(image) and self._is_unchanged(image):
            return image
        path = self.file(image)
        try:
            height, width = image_size(path)
        except ImageError as error:
            self._store.record_failure(image.image_id, error.reason)
            raise
        with path.open("rb") as file:
            sha256, status = hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno())
        self._store.record_opened(image.image_id, sha256, height, width, status.st_size, status.st_mtime_ns)
        return self._store.image(image.image_id)

    def rgb(self, image: ImageRecord) -> NDArray[np.uint8]:
        """The upright (H, W, 3) uint8 pixels. Raises an `ImageError`, recorded with the image."""
        known = self._pixels.get(image.sha256) if image.sha256 else None
        return known if known is not None else self._read(image).rgb

    def preview(self, image: ImageRecord) -> Path:
        """A copy of at most 2048 pixels, made now if needed."""
        return self._shown(PREVIEW, image)

    def thumbnail(self, image: ImageRecord) -> Path:
        """A copy of at most 192 pixels, made now if needed."""
        return self._shown(THUMBNAIL, image)

    def notes(self, image: ImageRecord) -> tuple[str, ...]:
        """What a person should know of the file, such as: first of 5 frames."""
        return (*self._notes.get(image.image_id, ()), *(_CHANGED if image.changed else ()))

    def _shown(self, kind: PreviewKind, image: ImageRecord) -> Path:
        image = self.open(image)
        sha256 = str(image.sha256)
        return self._previews.path(kind, sha256) or self._previews.make(kind, sha256, self.rgb(image))

    def _read(self, image: ImageRecord) -> ReadImage:
        path = self.file(image)
        try:
            read = read_image(path)
        except ImageError as error:
            self._store.record_failure(image.image_id, error.reason)
            raise
        height, width = read.rgb.shape[:2]
        status = path.stat()
        self._store.record_opened(image.image_id, read.sha256, height, width, status.st_size, status.st_mtime_ns)
        self._pixels.put(read.sha256, read.rgb)
        self._notes[image.image_id] = read.notes
        return read

    def _is_unchanged(self, image: ImageRecord) -> bool:
        try:
            status = self.file(image).stat()
        except OSError:
            return False
        return (status.st_size, status.st_mtime_ns) == (image.size_bytes, image.mtime_ns)


_CHANGED = ("the file has changed since it was labelled: check its masks",)


def _is_read(image: ImageRecord) -> bool:
    return image.sha256 is not None and image.failure is None
