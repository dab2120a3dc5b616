"""DICOM, as scanners write it, by the optional package pydicom."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.errors import MissingImageLibraryError
from engines.image_formats.depth import finite_range, scale_between, scale_to_8bit
from engines.image_formats.frames import first_of
from engines.image_formats.picture import OpenedPicture, Pixels
from engines.image_formats.source import PictureSource

_INVERTED = "MONOCHROME1"


def open_dicom(source: PictureSource) -> OpenedPicture:
    """The first frame of a DICOM file."""
    try:
        import pydicom
    except ImportError as error:
        raise MissingImageLibraryError(source.path, "DICOM", "pydicom", "dicom") from error
    dataset = pydicom.dcmread(source.stream, stop_before_pixels=source.data is None)
    if "Rows" not in dataset or "Columns" not in dataset:
        raise source.refusal("this DICOM file holds no picture")
    height, width = int(dataset.Rows), int(dataset.Columns)
    return OpenedPicture(height, width, lambda: _decode(dataset))


def _decode(dataset: Any) -> Pixels:
    from pydicom.pixels import apply_color_lut, convert_color_space, pixel_array

    values = pixel_array(dataset, index=0, raw=True)
    notes = first_of(int(dataset.get("NumberOfFrames") or 1), "frames")
    colours = str(dataset.PhotometricInterpretation)
    if colours == "PALETTE COLOR":
        values = apply_color_lut(values, dataset)
    if values.ndim == 3:
        if colours.startswith("YBR"):
            values = convert_color_space(values, colours, "RGB")
        rgb, note = scale_to_8bit(values)
        return rgb, (*((note,) if note else ()), *notes)
    gray, note = _gray(values, dataset)
    return np.repeat(gray[:, :, None], 3, axis=2), (note, *notes)


def _gray(values: NDArray[Any], dataset: Any) -> tuple[NDArray[np.uint8], str]:
    """(H, W) as the file asks to be shown: by its first window, else from the smallest to the largest value."""
    from pydicom.pixels import apply_rescale, apply_voi_lut

    window = _window(dataset)
    shown = apply_rescale(values, dataset)
    if window is None and "VOILUTSequence" in dataset:
        shown = apply_voi_lut(shown, dataset)
    padding = dataset.get("PixelPaddingValue")
    low, high = window or finite_range(shown if padding is None else shown[values != padding])
    gray = scale_between(shown, low, high)
    return 255 - gray if dataset.PhotometricInterpretation == _INVERTED else gray, f"values {low:g} to {high:g} shown"


def _window(dataset: Any) -> tuple[float, float] | None:
    """The lowest and the highest value of the first window in the file, by DICOM's linear rule."""
    centre, width = (_first_number(dataset.get(name)) for name in ("WindowCenter", "WindowWidth"))
    if centre is None or width is None or width < 1:
        return None
    return centre - 0.5 - (width - 1) / 2, centre - 0.5 + (width - 1) / 2


def _first_number(element: Any) -> float | None:
    if element is None or element == "":
        return None
    return float(element if isinstance(element, str) or not hasattr(element, "__len__") else element[0])
