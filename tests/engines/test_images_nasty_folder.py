"""Real odd files that the project may not ship: run where a folder of them stands beside the project."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from engines.errors import ImageError
from engines.images import find_images, image_size, read_image

FOLDER = Path(__file__).parents[2].parent / "shared" / "nasty"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no folder of real odd files at {FOLDER}")


@dataclass(frozen=True)
class Wanted:
    """(height, width) or words of a refusal; the mean of all values within a range; a part of a note."""

    size: tuple[int, int] | None = None
    refusal: str | None = None
    mean: tuple[float, float] = (40, 215)
    note: str | None = None


SCENE, TALL_SCENE = Wanted((120, 160)), Wanted((160, 120))
CUT, EMPTY = Wanted(refusal="cut off"), Wanted(refusal="empty")
WANTED = {
    "animated.gif": Wanted((100, 100), note="first of 5 frames"),
    "animated.webp": Wanted((245, 245), note="first of 42 frames"),
    "avif_12bit_alpha.avif": Wanted(refusal="AVIF data is damaged or of a kind"),
    "avif_irot.avif": Wanted((427, 640)),
    "bad_exif.jpg": Wanted((500, 500)),
    "big_icc.jpg": Wanted((250, 425)),
    "broken_data_stream.png": Wanted(refusal="damaged"),
    "cmyk.jpg": Wanted((100, 100), mean=(5, 40)),  # red letters on black
    "ct.dcm": Wanted((128, 128)),
    "decompression_bomb.gif": Wanted(refusal="more than the limit"),
    "exif_6.webp": Wanted((128, 128)),
    "exif_landscape_1_ref.jpg": Wanted((1200, 1800)),
    "exif_landscape_6.jpg": Wanted((1200, 1800)),
    "exif_orientation.png": Wanted((512, 512)),
    "exif_portrait_8.jpg": Wanted((1800, 1200)),
    "good_cat.png": Wanted((300, 451)),
    "good_coins_gray.png": Wanted((303, 384)),
    "good_cup.png": Wanted((400, 600)),
    "gray.jpg": Wanted((128, 128)),
    "gray16.png": Wanted((128, 128), mean=(120, 135), note="0–65535"),
    "gray16_bigendian.tif": Wanted((200, 200), mean=(127, 128), note="0–255"),
    "gray_alpha_LA.png": Wanted((128, 128), note="on white"),
    "gray_trns.png": Wanted((64, 64)),
    "heif_10bit.heif": Wanted((128, 128)),
    "multipage_rgb.tif": Wanted((10, 10), note="first of 2 pages"),
    "one_pixel.png": Wanted((1, 1), mean=(255, 255), note="on white"),
    "palette.png": Wanted((150, 162), note="on white"),
    "palette_transparent.png": Wanted((64, 64), note="on white"),
    "phone_mpo_named.jpg": Wanted((480, 640), note="first of 2 pictures"),
    "rgb16.tiff": Wanted((40, 100), mean=(25, 40)),
    "rgba16.png": Wanted((128, 128), note="on white"),
    "truncated.heic": Wanted((16, 16)),  # its first picture is whole
    "truncated.jpg": CUT,
    "zero_byte.heic": EMPTY,
    "gen/._stem.jpg": Wanted(refusal="macOS"),
    "gen/.hidden.jpg": SCENE,
    "gen/UPPER.JPG": SCENE,
    "gen/bomb_900MP_1bit.png": Wanted(refusal="900 MP"),
    "gen/cmyk_exif6.jpg": Wanted((80, 60)),
    "gen/exif_orientation_0.jpg": SCENE,
    "gen/exif_orientation_9.jpg": SCENE,
    "gen/e\u0301_nfd.jpg": SCENE,
    "gen/float32.tif": Wanted((48, 64), mean=(120, 135), note="-1 to 3"),
    "gen/float32_nan.tif": Wanted((48, 64), mean=(120, 135), note="float"),
    "gen/half_jpeg.jpg": CUT,
    "gen/half_transparent.png": Wanted((120, 160), note="on white"),
    "gen/html_error_page.png": Wanted(refusal="web page"),
    "gen/jpg_no_suffix": SCENE,
    "gen/large_108MP_gray.png": Wanted((9000, 12000), mean=(128, 128)),
    "gen/odd_33x47.png": Wanted((47, 33)),
    "gen/panorama_6000x60.png": Wanted((60, 6000)),
    "gen/percent%20hash#1_q.jpg": SCENE,
    "gen/png_named.jpg": SCENE,
    "gen/ramp12in16.tif": Wanted((48, 64), mean=(120, 135), note="0–4095"),
    "gen/ramp16.png": Wanted((48, 64), mean=(126, 128), note="0–65535"),
    "gen/stem.jpg": SCENE,
    "gen/stem.png": TALL_SCENE,
    "gen/text_named.jpg": Wanted(refusal="plain text"),
    "gen/thin_3x400.png": Wanted((400, 3)),
    "gen/trailing_junk.jpg": SCENE,
    "gen/two..dots..jpg": SCENE,
    "gen/" + "x" * 200 + ".jpg": SCENE,
    "gen/zero_byte.jpg": EMPTY,
    "gen/\u00e9_nfd.jpg": TALL_SCENE,
    "gen/名前 with space & émoji 🐈.jpg": SCENE,
    "gen/sub2/IMG_0001.jpg": TALL_SCENE,
    "gen/sub1/IMG_0001.jpg": SCENE,
}
PASSED_OVER = {"gen/._stem.jpg", "gen/.hidden.jpg", "gen/jpg_no_suffix"}


def manifest() -> list[str]:
    with (FOLDER / "manifest.tsv").open(encoding="utf-8", newline="") as file:
        return [row["file"] for row in csv.DictReader(file, delimiter="\t")]


def test_the_table_has_every_row_of_the_manifest():
    assert sorted(manifest()) == sorted(WANTED)


@pytest.mark.parametrize("name", WANTED)
def test_a_real_odd_file_is_read_right_or_refused(name: str):
    wanted = WANTED[name]
    if wanted.refusal is not None:
        with pytest.raises(ImageError, match=wanted.refusal):
            read_image(FOLDER / name)
        return
    read = read_image(FOLDER / name)
    assert read.rgb.shape[:2] == image_size(FOLDER / name) == wanted.size
    assert wanted.mean[0] <= read.rgb.mean() <= wanted.mean[1]
    assert wanted.note is None or any(wanted.note in note for note in read.notes)


def test_a_photo_stored_sideways_is_the_photo_stored_upright():
    upright = read_image(FOLDER / "exif_landscape_1_ref.jpg").rgb.astype(np.int16)
    turned = read_image(FOLDER / "exif_landscape_6.jpg").rgb.astype(np.int16)
    assert np.abs(upright - turned).mean() < 8


def test_the_checkerboard_of_16_bits_is_black_and_white():
    rgb = read_image(FOLDER / "gray16_bigendian.tif").rgb
    assert ((rgb == 0) | (rgb == 255)).mean() > 0.8
    assert 0.4 < (rgb == 255).mean() < 0.6


def test_the_letters_of_the_cmyk_picture_are_red():
    rgb = read_image(FOLDER / "cmyk.jpg").rgb
    assert tuple(rgb[2, 2] > (200, 60, 60)) == (True, False, False)


def test_the_search_lists_every_picture_once_and_no_hidden_file():
    found = [path.relative_to(FOLDER).as_posix() for path in find_images(FOLDER)]
    assert sorted(found) == sorted(set(WANTED) - PASSED_OVER)
