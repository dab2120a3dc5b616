"""Whole pictures whose values are not 8 bit, or that need an optional package."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from nasty_bytes import encoded, exif_with, looping_tiff, png_chunk, png_of, tiff, tiff_tags
from nasty_scene import (
    HEIGHT,
    RED,
    WIDTH,
    Expected,
    heif,
    scene,
    scene_image,
    shows_gray,
    shows_scene,
    stored_as,
    tifffile_bytes,
)
from numpy.typing import NDArray
from PIL import Image


def all_depths() -> Iterator[Expected]:
    """Every file of this module."""
    yield from _whole_numbers()
    yield from _colours_of_16_bits()
    yield from _floats()
    yield from _throughtifffile_bytes()
    yield from _through_pydicom()
    yield from _through_pillow_heif()


def halves(left: float, right: float, dtype: Any) -> NDArray[Any]:
    """(32, 48) with one value in its left half and another in its right."""
    values = np.full((HEIGHT, WIDTH), left, dtype=dtype)
    values[:, 24:] = right
    return values


def _whole_numbers() -> Iterator[Expected]:
    for bits, full in ((8, 255), (10, 1023), (12, 4095), (14, 16383), (16, 65535)):
        values = halves(full // 2, full, np.uint16)
        note = f"from 0–{full}"
        yield shows_gray(f"gray_{bits}_in_16.png", png_of(values, 0), 127, 255, note=note)
        for order in "<>":
            strip = values.astype(order + "u2").tobytes()
            content = tiff(order, tiff_tags(HEIGHT, WIDTH, (16,), 1), strip)
            yield shows_gray(
                f"gray_{bits}_in_16_{'big' if order == '>' else 'little'}.tif", content, 127, 255, note=note
            )
    white_zero = tiff("<", tiff_tags(HEIGHT, WIDTH, (16,), 0), halves(0, 65535, "<u2").tobytes())
    yield shows_gray("gray16_white_is_zero.tif", white_zero, 255, 0)
    key = png_of(halves(0, 65535, np.uint16), 0, png_chunk(b"tRNS", b"\0\0"))
    yield shows_gray("gray16_key_colour.png", key, 255, 255, note="on white")
    signed = tiff_tags(HEIGHT, WIDTH, (16,), 1) | {339: (3, (2,))}
    yield shows_gray(
        "signed_16.tif", tiff("<", signed, halves(-1000, 3000, "<i2").tobytes()), 0, 255, note="-1000 to 3000"
    )
    unsigned = tiff_tags(HEIGHT, WIDTH, (32,), 1) | {339: (3, (1,))}
    huge = tiff("<", unsigned, halves(0, 4_000_000_000, "<u4").tobytes())
    yield shows_gray("unsigned_32.tif", huge, 0, 255, note="0 to 4e+09")
    signed_8 = tiff_tags(HEIGHT, WIDTH, (8,), 1) | {339: (3, (2,))}
    yield shows_gray("signed_8.tif", tiff("<", signed_8, halves(-100, 100, np.int8).tobytes()), 0, 255)
    yield shows_gray("looping_pages.tif", looping_tiff(huge), 0, 255)
    yield shows_gray("one_bit.png", encoded(Image.fromarray(halves(0, 1, bool)), "PNG"), 0, 255)
    yield shows_gray("one_bit.tif", encoded(Image.fromarray(halves(0, 1, bool)), "TIFF"), 0, 255)
    yield shows_gray("gray.jpg", encoded(Image.fromarray(halves(50, 200, np.uint8)), "JPEG", quality=100), 50, 200)
    yield shows_gray("gray16.jp2", encoded(Image.fromarray(halves(32767, 65535, np.uint16)), "JPEG2000"), 127, 255)
    plain = b"P5\n48 32\n65535\n" + halves(32767, 65535, ">u2").tobytes()
    yield shows_gray("gray16.pgm", plain, 127, 255)


def _colours_of_16_bits() -> Iterator[Expected]:
    bright = scene().astype(np.uint16) * 257
    dark = (bright >> 4).astype(np.uint16)
    for name, values, note in (("bright", bright, None), ("dark", dark, "from 0–4095")):
        yield shows_scene(f"rgb16_{name}.png", png_of(values, 2), note=note)
        alpha = np.full((HEIGHT, WIDTH, 1), 65535, np.uint16)
        yield shows_scene(f"rgba16_{name}.png", png_of(np.dstack([values, alpha]), 6), note=note)
        for order in "<>":
            tags = tiff_tags(HEIGHT, WIDTH, (16, 16, 16), 2)
            content = tiff(order, tags, values.astype(order + "u2").tobytes())
            yield shows_scene(f"rgb16_{name}_{'big' if order == '>' else 'little'}.tif", content, note=note)
    turned = np.ascontiguousarray(np.rot90(dark))
    tags = tiff_tags(WIDTH, HEIGHT, (16, 16, 16), 2) | {274: (3, (6,))}
    yield shows_scene("rgb16_dark_exif_6.tif", tiff("<", tags, turned.astype("<u2").tobytes()), note="from 0–4095")
    key = b"".join(int(value).to_bytes(2, "big") for value in bright[4, 43])
    clear = {"size": (HEIGHT, WIDTH), "pixels": (((4, 4), RED), ((4, 43), (255, 255, 255))), "note": "on white"}
    yield Expected("rgb16_key_colour.png", png_of(bright, 2, png_chunk(b"tRNS", key)), **clear)


def _floats() -> Iterator[Expected]:
    ramp = np.tile(np.linspace(-1, 3, WIDTH, dtype=np.float32), (HEIGHT, 1))
    ends = {"size": (HEIGHT, WIDTH), "pixels": (((5, 0), (0,) * 3), ((5, 47), (255,) * 3))}
    yield Expected("float32.tif", encoded(Image.fromarray(ramp), "TIFF"), **ends, note="-1 to 3")
    holed = ramp.copy()
    holed[0], holed[1], holed[2] = np.nan, np.inf, -np.inf
    black = tuple(((row, 30), (0,) * 3) for row in range(3))
    holes = {**ends, "pixels": ends["pixels"] + black}
    yield Expected("float32_nan.tif", encoded(Image.fromarray(holed), "TIFF"), **holes, note="-1 to 3")
    empty = np.full((HEIGHT, WIDTH), np.nan, dtype=np.float32)
    yield shows_gray("float32_all_nan.tif", encoded(Image.fromarray(empty), "TIFF"), 0, 0)
    limits = halves(-3.4e38, 3.4e38, np.float32)
    yield shows_gray("float32_limits.tif", encoded(Image.fromarray(limits), "TIFF"), 0, 255)
    white_zero = tiff_tags(HEIGHT, WIDTH, (32,), 0) | {339: (3, (3,))}
    yield shows_gray("float32_white_is_zero.tif", tiff("<", white_zero, halves(0, 1, "<f4").tobytes()), 255, 0)
    hole = halves(0, 1, "<f4")
    hole[8, 8] = np.nan
    yield shows_gray("float32_white_is_zero_nan.tif", tiff("<", white_zero, hole.tobytes()), 0, 0)
    yield shows_gray("float.pfm", b"Pf\n48 32\n-1.0\n" + halves(0, 2, "<f4").tobytes(), 0, 255)


def _throughtifffile_bytes() -> Iterator[Expected]:
    planes = np.moveaxis(scene(), 2, 0) / 255.0
    stack = np.stack([planes, planes[::-1]])
    content = tifffile_bytes(stack, photometric="rgb", planarconfig="separate")
    yield shows_scene("planar_float64_pages.tif", content, note="first of 2 pages", package="tifffile")
    limits = tifffile_bytes(halves(-1.7e308, 1.7e308, np.float64))
    yield shows_gray("float64_limits.tif", limits, 0, 255, package="tifffile")
    for orientation in (0, 6, 9):
        stored = np.rot90(halves(0, 1, np.float16)) if orientation == 6 else halves(0, 1, np.float16)
        tag = [(274, "H", 1, orientation, True)]
        turned = tifffile_bytes(np.ascontiguousarray(stored), extratags=tag)
        yield shows_gray(f"float16_exif_{orientation}.tif", turned, 0, 255, package="tifffile")
    clear_left = np.dstack([halves(0, 0, np.uint16), halves(0, 65535, np.uint16)])
    with_alpha = tifffile_bytes(clear_left, photometric="minisblack", planarconfig="contig", extrasamples=[2])
    yield shows_gray("gray16_alpha.tif", with_alpha, 255, 0, note="on white", package="tifffile")
    colours = np.dstack([scene() / 255, halves(1, 0, np.float64)]).astype(np.float32)
    with_alpha = tifffile_bytes(colours, photometric="rgb", extrasamples=[2])
    shown = (((4, 4), RED), ((4, 43), (255, 255, 255)))
    yield Expected("float_rgba.tif", with_alpha, (HEIGHT, WIDTH), None, shown, note="on white", package="tifffile")
    yield shows_gray("float16.tif", tifffile_bytes(halves(0, 1, np.float16)), 0, 255, package="tifffile")
    bands = np.dstack([halves(10, 20, np.uint8), halves(0, 255, np.uint8)] + [halves(1, 2, np.uint8)] * 3)
    content = tifffile_bytes(bands, photometric="minisblack", planarconfig="contig")
    yield shows_gray("five_bands.tif", content, 10, 20, note="band 1 of 5", package="tifffile")
    content = tifffile_bytes(np.moveaxis(scene(), 2, 0), photometric="rgb", planarconfig="separate", bigtiff=True)
    yield shows_scene("planar_big.tif", content)


def _through_pydicom() -> Iterator[Expected]:
    yield shows_gray("range.dcm", _dicom(halves(100, 3000, np.uint16)), 0, 255, note="100 to 3000", package="pydicom")
    inverted = _dicom(halves(100, 3000, np.uint16), PhotometricInterpretation="MONOCHROME1")
    yield shows_gray("inverted.dcm", inverted, 255, 0, package="pydicom")
    window = _dicom(halves(0, 4000, np.uint16), WindowCenter=[40.5, 300], WindowWidth=[81, 9], RescaleIntercept=0)
    yield shows_gray("window.dcm", window, 0, 255, note="0 to 80", package="pydicom")
    rescaled = _dicom(halves(0, 4000, np.uint16), RescaleSlope=2, RescaleIntercept=-1000)
    yield shows_gray("rescaled.dcm", rescaled, 0, 255, note="-1000 to 7000", package="pydicom")
    padded = halves(1000, 2000, np.int16)
    padded[0] = -2000
    yield shows_gray(
        "padded.dcm", _dicom(padded, PixelPaddingValue=-2000), 0, 255, note="1000 to 2000", package="pydicom"
    )
    frames = np.stack([halves(0, 9, np.uint16), halves(9, 0, np.uint16)])
    yield shows_gray(
        "frames.dcm", _dicom(frames, NumberOfFrames=2), 0, 255, note="first of 2 frames", package="pydicom"
    )
    colours = _dicom(scene(), PhotometricInterpretation="RGB", SamplesPerPixel=3, PlanarConfiguration=0)
    yield shows_scene("colour.dcm", colours, package="pydicom")
    luma = np.asarray(scene_image().convert("YCbCr"))
    colours = _dicom(luma, PhotometricInterpretation="YBR_FULL", SamplesPerPixel=3, PlanarConfiguration=0)
    yield shows_scene("luma.dcm", colours, 3, package="pydicom")
    yield shows_scene("palette.dcm", _dicom(_indices(), PhotometricInterpretation="PALETTE COLOR", **_palette()))


def _indices() -> NDArray[np.uint8]:
    indices = halves(0, 1, np.uint8)
    indices[16:] += 2
    return indices


def _palette() -> dict[str, object]:
    elements: dict[str, object] = {}
    for name, values in (("Red", (255, 0, 0, 200)), ("Green", (0, 255, 0, 200)), ("Blue", (0, 0, 255, 200))):
        elements[f"{name}PaletteColorLookupTableDescriptor"] = [4, 0, 16]
        elements[f"{name}PaletteColorLookupTableData"] = (np.array(values, "<u2") * 257).tobytes()
    return elements


def _through_pillow_heif() -> Iterator[Expected]:
    yield shows_scene("plain.heic", heif(scene_image(), quality=-1), 9, package="pillow_heif")
    for orientation in range(1, 9):
        turned = heif(stored_as(orientation), quality=-1, exif=exif_with(orientation)[6:])
        yield shows_scene(f"irot_{orientation}.heic", turned, 9, package="pillow_heif")


def _dicom(values: NDArray[Any], **elements: object) -> bytes:
    import pydicom
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = CTImageStorage
    dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    dataset.Rows, dataset.Columns, dataset.SamplesPerPixel = HEIGHT, WIDTH, 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = 8 * values.dtype.itemsize
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = int(values.dtype.kind == "i")
    if values.dtype.kind == "i":
        dataset.add_new("PixelPaddingValue", "SS", elements.pop("PixelPaddingValue", 0))
    for name, value in elements.items():
        setattr(dataset, name, value)
    dataset.PixelData = values.tobytes()
    stream = io.BytesIO()
    pydicom.dcmwrite(stream, dataset, enforce_file_format=True)
    return stream.getvalue()
