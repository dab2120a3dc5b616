"""Which module opens which format."""

from __future__ import annotations

from collections.abc import Mapping

from engines.image_formats.dicom_pictures import open_dicom
from engines.image_formats.heif_pictures import open_heif
from engines.image_formats.jpeg_pictures import open_jpeg
from engines.image_formats.picture import OpenedPicture, Opener
from engines.image_formats.pillow_pictures import (
    open_avif,
    open_bmp,
    open_gif,
    open_jpeg_2000,
    open_pnm,
    open_webp,
)
from engines.image_formats.png_pictures import open_png
from engines.image_formats.quiet import hush_decoders
from engines.image_formats.signature import ImageKind
from engines.image_formats.source import PictureSource
from engines.image_formats.tiff_pictures import open_tiff

OPENERS: Mapping[ImageKind, Opener] = {
    ImageKind.JPEG: open_jpeg,
    ImageKind.PNG: open_png,
    ImageKind.GIF: open_gif,
    ImageKind.WEBP: open_webp,
    ImageKind.BMP: open_bmp,
    ImageKind.TIFF: open_tiff,
    ImageKind.AVIF: open_avif,
    ImageKind.HEIF: open_heif,
    ImageKind.JPEG_2000: open_jpeg_2000,
    ImageKind.PNM: open_pnm,
    ImageKind.DICOM: open_dicom,
}


def open_picture(source: PictureSource) -> OpenedPicture:
    """The header of a picture, within the limit. Raises as `Opener` says."""
    hush_decoders()
    picture = OPENERS[source.kind](source)
    source.check_size(picture.height, picture.width)
    return picture
