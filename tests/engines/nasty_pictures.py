"""Files that are whole pictures and must be read right, though many tools get them wrong."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import nasty_depths
import numpy as np
from nasty_bytes import encoded, exif_with, png_chunk, png_of, tiff, tiff_tags, with_chunk_before_end
from nasty_scene import (
    CORNERS,
    HEIGHT,
    RED,
    WIDTH,
    Expected,
    noise_image,
    scene,
    scene_image,
    shows_scene,
    stored_as,
)
from PIL import Image

_JPEG = {"quality": 95, "subsampling": 0}


def all_pictures() -> Iterator[Expected]:
    """Every file of this module and of `nasty_depths`."""
    yield from _turned()
    yield from _odd_orientations()
    yield from _colours()
    yield from _transparent()
    yield from _several_frames()
    yield from _misnamed()
    yield from _odd_sizes()
    yield from nasty_depths.all_depths()


def plain_jpeg() -> Expected:
    """The scene as an ordinary JPEG."""
    return shows_scene("plain.jpg", encoded(scene_image(), "JPEG", **_JPEG), 6)


def _turned() -> Iterator[Expected]:
    for orientation in range(10):
        stored, exif = stored_as(orientation), exif_with(orientation)
        yield shows_scene(f"exif_{orientation}.jpg", encoded(stored, "JPEG", exif=exif, **_JPEG), 6)
        yield shows_scene(f"exif_{orientation}.png", encoded(stored, "PNG", exif=exif))
        yield shows_scene(f"exif_{orientation}.webp", encoded(stored, "WEBP", exif=exif, lossless=True))
        rgb = np.asarray(stored)
        tags = tiff_tags(rgb.shape[0], rgb.shape[1], (8, 8, 8), 2) | {274: (3, (orientation,))}
        yield shows_scene(f"exif_{orientation}.tif", tiff("<", tags, rgb.tobytes()))
    for orientation in range(1, 9):
        exif = exif_with(orientation)
        yield shows_scene(
            f"irot_{orientation}.avif", encoded(stored_as(orientation), "AVIF", exif=exif, quality=100), 9
        )


def _odd_orientations() -> Iterator[Expected]:
    turned = stored_as(6)
    little = encoded(turned, "JPEG", exif=exif_with(6, "<"), **_JPEG)
    yield shows_scene("exif_little_endian.jpg", little, 6)
    exif, packed = exif_with(6)[6:], encoded(turned, "PNG")
    yield shows_scene("exif_after_pixels.png", with_chunk_before_end(packed, png_chunk(b"eXIf", exif)))
    hexadecimal = f"\nexif\n{len(exif) + 6:8}\n{exif_with(6).hex()}\n".encode()
    text = png_chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(hexadecimal))
    yield shows_scene("exif_as_text.png", with_chunk_before_end(packed, text))
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    yield shows_scene("xmp_orientation.jpg", encoded(turned, "JPEG", xmp=xmp, **_JPEG), 6)
    for name, broken in (
        ("cut", exif_with(6)[:20]),
        ("far", b"Exif\0\0MM\0*\xff\xff\xff\xff"),
        ("text", b"Exif\0\0hello"),
    ):
        yield shows_scene(f"exif_{name}.jpg", encoded(scene_image(), "JPEG", exif=broken, **_JPEG), 6)


def _colours() -> Iterator[Expected]:
    cmyk = Image.new("CMYK", (WIDTH, HEIGHT), (0, 255, 255, 0))
    reddish = {"size": (HEIGHT, WIDTH), "pixels": (((5, 5), RED),), "tolerance": 8}
    yield Expected("cmyk.jpg", encoded(cmyk, "JPEG"), **reddish)
    turned = {**reddish, "size": (WIDTH, HEIGHT)}
    yield Expected("cmyk_exif_6.jpg", encoded(cmyk, "JPEG", exif=exif_with(6)), **turned)
    yield Expected("cmyk.tif", encoded(cmyk, "TIFF"), **reddish)
    lab = np.full((HEIGHT, WIDTH, 3), (136, 80, 67), dtype=np.uint8)  # sRGB red by CIE 1976
    yield Expected(
        "lab.tif", tiff("<", tiff_tags(HEIGHT, WIDTH, (8, 8, 8), 8), lab.tobytes()), **(reddish | {"tolerance": 12})
    )
    yield shows_scene("progressive.jpg", encoded(scene_image(), "JPEG", progressive=True, **_JPEG), 6)
    yield shows_scene("restart_markers.jpg", encoded(scene_image(), "JPEG", restart_marker_rows=1, **_JPEG), 6)
    gray_end = np.vstack([scene(), np.full((32, WIDTH, 3), 128, dtype=np.uint8)])
    for name, progressive in (("", False), ("_progressive", True)):
        jpeg = encoded(Image.fromarray(gray_end), "JPEG", progressive=progressive, **_JPEG)
        yield Expected(f"really_gray_below{name}.jpg", jpeg, (64, WIDTH), pixels=CORNERS, tolerance=6)
    black_end = np.vstack([scene(), np.zeros((32, WIDTH, 3), dtype=np.uint8)])
    yield Expected("really_black_below.png", encoded(Image.fromarray(black_end), "PNG"), (64, WIDTH), pixels=CORNERS)
    profile = b"\0" * 200_000
    yield shows_scene("big_icc.jpg", encoded(scene_image(), "JPEG", icc_profile=profile, **_JPEG), 6)
    yield shows_scene("palette.gif", encoded(scene_image(), "GIF"))
    long_text = png_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(3 << 20)))
    wrong_text = long_text[:-1] + bytes((long_text[-1] ^ 1,))
    for place, text in (("long", long_text), ("damaged", wrong_text)):
        yield shows_scene(f"{place}_text_before.png", png_of(scene(), 2, text))
        yield shows_scene(f"{place}_text_after.png", with_chunk_before_end(png_of(scene(), 2), text))
    yield shows_scene("plain.bmp", encoded(scene_image(), "BMP"))
    yield shows_scene("plain.jp2", encoded(scene_image(), "JPEG2000"))
    yield shows_scene("plain.ppm", encoded(scene_image(), "PPM"))


def _transparent() -> Iterator[Expected]:
    white = {"size": (HEIGHT, WIDTH), "note": "on white"}
    right_clear = np.dstack([scene(), np.repeat([[255] * 24 + [0] * 24], HEIGHT, axis=0).astype(np.uint8)])
    seen = {**white, "pixels": (((4, 4), RED), ((4, 43), (255, 255, 255)))}
    for name, format in (("png", "PNG"), ("webp", "WEBP"), ("tif", "TIFF")):
        yield Expected(
            f"half_transparent.{name}", encoded(Image.fromarray(right_clear), format, **_lossless(format)), **seen
        )
    glass = np.full((HEIGHT, WIDTH, 4), (0, 0, 0, 128), dtype=np.uint8)
    yield Expected(
        "half_see_through.png", encoded(Image.fromarray(glass), "PNG"), **white, pixels=(((0, 0), (127,) * 3),)
    )
    la = np.dstack([np.zeros((HEIGHT, WIDTH), np.uint8), right_clear[..., 3]])
    black_white = {**white, "pixels": (((4, 4), (0, 0, 0)), ((4, 43), (255, 255, 255)))}
    yield Expected("gray_alpha.png", encoded(Image.fromarray(la), "PNG"), **black_white)
    green_clear = {**white, "pixels": (((4, 4), RED), ((4, 43), (255, 255, 255)), ((27, 43), (200,) * 3))}
    rgb_key = png_of(scene(), 2, png_chunk(b"tRNS", bytes((0, 0, 0, 255, 0, 0))))
    yield Expected("rgb_key_colour.png", rgb_key, **green_clear)
    gray_key = png_of(la[..., 1], 0, png_chunk(b"tRNS", bytes((0, 0))))
    both_white = {**white, "pixels": (((4, 4), (255,) * 3), ((4, 43), (255,) * 3))}
    yield Expected("gray_key_colour.png", gray_key, **both_white)
    palette = scene_image().quantize(4)
    green = palette.getpixel((43, 4))
    yield Expected("palette_one_clear.png", encoded(palette, "PNG", transparency=green), **green_clear)
    alphas = bytes(0 if index == green else 255 for index in range(4))
    yield Expected("palette_alphas.png", encoded(palette, "PNG", transparency=alphas), **green_clear)
    yield Expected("transparent.gif", encoded(palette, "GIF", transparency=green), **green_clear)
    opaque = np.dstack([scene(), np.full((HEIGHT, WIDTH), 255, np.uint8)])
    yield shows_scene("opaque_alpha.png", encoded(Image.fromarray(opaque), "PNG"))


def _several_frames() -> Iterator[Expected]:
    others = [Image.new("RGB", (WIDTH, HEIGHT), colour) for colour in ("black", "white", "yellow", "pink")]
    several = {"save_all": True, "append_images": others}
    first = "first of 5 "
    yield shows_scene("animated.gif", encoded(scene_image(), "GIF", **several), note=first + "frames")
    yield shows_scene("animated.webp", encoded(scene_image(), "WEBP", lossless=True, **several), note=first + "frames")
    yield shows_scene("animated.png", encoded(scene_image(), "PNG", **several), note=first + "frames")
    yield shows_scene("animated.avif", encoded(scene_image(), "AVIF", quality=100, **several), 9, note=first + "frames")
    yield shows_scene("pages.tif", encoded(scene_image(), "TIFF", **several), note=first + "pages")
    mpo = encoded(scene_image(), "MPO", **several, **_JPEG)
    yield shows_scene("phone_mpo.jpg", mpo, 6, note=first + "pictures")


def _misnamed() -> Iterator[Expected]:
    yield shows_scene("png_named.jpg", encoded(scene_image(), "PNG"))
    yield shows_scene("jpeg_named.png", plain_jpeg().content, 6)
    yield shows_scene("webp_named.tif", encoded(scene_image(), "WEBP", lossless=True))
    yield shows_scene("trailing_zeros.jpg", plain_jpeg().content + bytes(500), 6)
    yield shows_scene("trailing_jpeg.jpg", plain_jpeg().content * 2, 6)
    yield shows_scene("trailing_junk.png", encoded(scene_image(), "PNG") + b"junk" * 100)


def _odd_sizes() -> Iterator[Expected]:
    for height, width in ((1, 1), (47, 33), (400, 3), (3, 400), (60, 6000), (1, 70_000), (1, 2), (2, 1)):
        image = Image.new("RGB", (width, height), RED)
        end = ((height - 1, width - 1), RED)
        yield Expected(f"red_{width}x{height}.png", encoded(image, "PNG"), (height, width), pixels=(((0, 0), RED), end))
    jpeg = encoded(noise_image(33, 17), "JPEG", **_JPEG)
    yield Expected("odd_17x33.jpg", jpeg, (33, 17))


def _lossless(format: str) -> dict[str, bool]:
    return {"lossless": True} if format == "WEBP" else {}
