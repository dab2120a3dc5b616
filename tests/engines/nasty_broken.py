"""Files that must be refused: bombs, cut and damaged pictures, and what is no picture at all."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from nasty_bytes import (
    bmp_claiming,
    encoded,
    gif_claiming,
    jpeg_2000_claiming,
    jpeg_claiming,
    png,
    png_chunk,
    tiff,
    tiff_tags,
    webp_claiming,
)
from nasty_scene import HEIGHT, WIDTH, Expected, heif, noise_image, refused, scene, scene_image, tifffile_bytes

_JPEG = {"quality": 95, "subsampling": 0}
CUT = "cut off"


def all_broken() -> Iterator[Expected]:
    """Every file of this module."""
    yield from bombs()
    yield from _cut_jpegs()
    yield from _cut_pngs()
    yield from _cut_others()
    yield from _foreign()


def bombs() -> Iterator[Expected]:
    """Small files that claim huge pictures."""
    words = "more than the limit"
    rows = zlib.compress(bytes(3751 * 400), 9)
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    parts = [png_chunk(b"IHDR", header), png_chunk(b"IDAT", rows), png_chunk(b"IEND", b"")]
    yield refused("bomb.png", b"\x89PNG\r\n\x1a\n" + b"".join(parts), words)
    yield refused("bomb_canvas.gif", gif_claiming((65_535, 65_535), (8, 8)), words)
    yield refused("bomb_frame.gif", gif_claiming((8, 8), (65_535, 65_535)), words)
    yield refused("bomb.webp", webp_claiming(16_383, 16_383), words)
    yield refused("bomb.jpg", jpeg_claiming(65_000, 65_000, encoded(noise_image(), "JPEG")), words)
    yield refused("bomb.bmp", bmp_claiming(40_000, 40_000), words)
    yield refused("bomb.jp2", jpeg_2000_claiming(60_000, 60_000), words)
    yield refused("bomb.ppm", b"P6\n60000 60000\n255\n" + bytes(100), words)
    yield refused("bomb.tif", tiff("<", tiff_tags(60_000, 60_000, (8, 8, 8), 2), bytes(100)), words)
    yield refused("bomb_16_bit.tif", tiff(">", tiff_tags(60_000, 60_000, (64,), 1), bytes(100)), words, "tifffile")


def _cut_jpegs() -> Iterator[Expected]:
    image = noise_image()
    kinds = {"": {}, "_progressive": {"progressive": True}, "_restarts": {"restart_marker_rows": 1}}
    for name, options in kinds.items():
        whole = encoded(image, "JPEG", **options)
        for percent in (3, 50, 90, 99):
            yield refused(f"cut_{percent}{name}.jpg", whole[: len(whole) * percent // 100], CUT)
        yield refused(f"cut_zero_filled{name}.jpg", whole[: len(whole) // 2].ljust(len(whole), b"\0"), CUT)
        yield refused(f"cut_without_end{name}.jpg", whole[:-2], CUT)
        if name != "_progressive":
            yield refused(f"cut_with_end{name}.jpg", whole[: len(whole) // 2] + b"\xff\xd9", CUT)
            yield refused(f"cut_late_with_end{name}.jpg", whole[: len(whole) * 97 // 100] + b"\xff\xd9", CUT)
    restarts = encoded(image, "JPEG", restart_marker_rows=1)
    yield refused("cut_at_restart.jpg", restarts[: restarts.find(b"\xff\xd1")] + b"\xff\xd9", CUT)
    progressive = encoded(image, "JPEG", progressive=True)
    first_scan = progressive.find(b"\xff\xda")
    yield refused("cut_first_scan.jpg", progressive[: first_scan + 80] + b"\xff\xd9", CUT)
    yield refused("taller_than_its_data.jpg", jpeg_claiming(4000, 96, encoded(image, "JPEG")), CUT)


def _cut_pngs() -> Iterator[Expected]:
    whole = encoded(noise_image(), "PNG")
    for percent in (50, 90, 99):
        yield refused(f"cut_{percent}.png", whole[: len(whole) * percent // 100], CUT)
    rows = b"".join(b"\0" + row.tobytes() for row in scene())
    yield refused("taller_than_its_rows.png", png(2 * HEIGHT, WIDTH, 2, 8, rows), CUT)
    yield refused("taller_by_one_row.png", png(HEIGHT + 1, WIDTH, 2, 8, rows), CUT)
    yield refused("missing_passes.png", png(2 * HEIGHT, WIDTH, 2, 8, bytes(len(rows)), interlaced=True), CUT)
    first_six_passes = b"".join(b"\0" + b"\xc8" * columns for columns in (6,) * 10 + (12,) * 13 + (24,) * 25)
    yield refused("missing_last_pass.png", png(33, 48, 0, 8, first_six_passes, interlaced=True), CUT)
    yield refused("one_bit_wrong.png", _flipped(whole), "damaged")
    # The checksum of all rows, alone in a last chunk, comes too late for decoders that stop at the last row.
    packed = zlib.compress(rows, 0)
    two_chunks = png_chunk(b"IDAT", packed[:-4]) + png_chunk(b"IDAT", packed[-4:])
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0))
    split = b"\x89PNG\r\n\x1a\n" + header + two_chunks + png_chunk(b"IEND", b"")
    yield refused("one_bit_wrong_unnoticed.png", _flipped(split), "damaged")


def _flipped(content: bytes) -> bytes:
    flipped = bytearray(content)
    flipped[len(flipped) // 2] ^= 1
    return bytes(flipped)


def _cut_others() -> Iterator[Expected]:
    image = noise_image()
    for suffix, format in (("gif", "GIF"), ("bmp", "BMP"), ("webp", "WEBP"), ("ppm", "PPM")):
        whole = encoded(image, format)
        yield refused(f"cut.{suffix}", whole[: len(whole) * 2 // 3], "")
    flat = encoded(scene_image(), "JPEG2000")
    for n_bytes in (len(flat) - 1, len(flat) * 3 // 4, len(flat) // 2, flat.find(b"\xff\x93") + 30):
        yield refused(f"cut_{n_bytes}.jp2", flat[:n_bytes], CUT)
    for suffix, format in (("jp2", "JPEG2000"), ("avif", "AVIF")):
        whole = encoded(image, format)
        yield refused(f"cut.{suffix}", whole[: len(whole) * 2 // 3], "")
    strip = np.asarray(image).tobytes()
    whole = tiff("<", tiff_tags(64, 96, (8, 8, 8), 2), strip)
    yield refused("cut.tif", whole[: len(whole) * 2 // 3], "")
    packed = tifffile_bytes(np.asarray(image), photometric="rgb", compression="zlib")
    yield refused("cut_last_bytes.tif", packed[:-3], CUT)
    yield refused("cut_in_directory.tif", whole[:-40], CUT)
    yield refused("cut_in_bits_per_sample.tif", whole[:-2], CUT)
    planes = tifffile_bytes(np.moveaxis(scene(), 2, 0) / 255.0, photometric="rgb", planarconfig="separate")
    yield refused("cut_planes.tif", planes[: len(planes) * 2 // 3], CUT, "tifffile")
    bands = tiff_tags(4000, 4000, (16,), 1) | {277: (3, (60_000,))}
    yield refused("bomb_bands.tif", tiff("<", bands, bytes(100)), "unpacks to", "tifffile")
    lab = tiff("<", tiff_tags(HEIGHT, WIDTH, (16, 16, 16), 8), bytes(HEIGHT * WIDTH * 6))
    yield refused("deep_lab.tif", lab, "save it again as RGB", "tifffile")
    large = noise_image(128, 192)
    for suffix, whole in (("webp", encoded(large, "WEBP", quality=95)), ("avif", encoded(large, "AVIF", quality=95))):
        yield refused(f"zero_filled.{suffix}", whole[: len(whole) * 2 // 3].ljust(len(whole), b"\0"), "")
    whole = heif(large, quality=90)
    yield refused("cut.heic", whole[: len(whole) * 2 // 3], CUT, "pillow_heif")
    yield refused("zero_filled.heic", whole[: len(whole) * 2 // 3].ljust(len(whole), b"\0"), CUT, "pillow_heif")


def _foreign() -> Iterator[Expected]:
    yield refused("zero_byte.jpg", b"", "empty")
    yield refused("zero_byte.heic", b"", "empty")
    yield refused("one_byte.jpg", b"\xff", "not a picture")
    yield refused("signature_only.jpg", b"\xff\xd8\xff", "")
    yield refused("signature_only.png", b"\x89PNG\r\n\x1a\n", "")
    yield refused("signature_only.tif", b"II*\0", "")
    yield refused("only_zeros.jpg", bytes(5000), "zero bytes")
    yield refused("text_named.jpg", b"not an image\n", "plain text")
    yield refused("html_error_page.png", b"<html><body>404</body></html>", "web page")
    yield refused("drawing.png", b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "SVG")
    yield refused("document.jpg", b"%PDF-1.7\n%\xe2\xe3", "PDF")
    yield refused("archive.png", b"PK\x03\x04" + bytes(40), "ZIP")
    yield refused("new.jxl", b"\xff\x0a" + bytes(range(40)), "JPEG XL")
    yield refused("video.heic", b"\0\0\0\x18ftypisom\0\0\0\0isommp42" + bytes(40), "video")
    yield refused("pointer.png", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull")
    yield refused("random.jpg", np.random.default_rng(5).bytes(4000), "not a picture")
    yield refused("._side.jpg", b"\0\x05\x16\x07" + bytes(60), "macOS")
