"""HEIC and HEIF, as phones write them, by the optional package pillow-heif."""

from __future__ import annotations

from engines.errors import MissingImageLibraryError
from engines.image_formats.frames import first_of
from engines.image_formats.interrupted_copy import is_zero_filled
from engines.image_formats.picture import OpenedPicture, Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow
from engines.image_formats.source import CUT_OFF, PictureSource


def open_heif(source: PictureSource) -> OpenedPicture:
    """The primary picture of a HEIF. The decoder itself turns it upright."""
    try:
        import pillow_heif
    except ImportError as error:
        raise MissingImageLibraryError(source.path, "HEIC and HEIF", "pillow-heif", "heif") from error
    pictures = pillow_heif.open_heif(source.stream)
    picture = pictures[pictures.primary_index]
    width, height = picture.size
    if source.data is not None and is_zero_filled(source.kind, source.data, height * width):
        raise source.refusal(CUT_OFF)

    def decode() -> Pixels:
        rgb, notes = rgb_from_pillow(picture.to_pillow())
        return rgb, notes + first_of(len(pictures), "pictures")

    return OpenedPicture(height, width, decode)
