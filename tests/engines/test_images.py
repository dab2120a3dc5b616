from __future__ import annotations

import hashlib
import io
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from nasty_bytes import encoded
from nasty_files import NastyFile, make_file_system_oddities, make_nasty_files
from nasty_scene import noise_image, scene_image
from PIL import Image, ImageFile, ImageOps

from engines.errors import ImageError, ImageTooLargeError, MissingImageLibraryError, UnreadableImageError
from engines.images import MAX_PIXELS, image_size, read_image


@pytest.fixture(scope="module")
def nasty_files(tmp_path_factory: pytest.TempPathFactory) -> list[NastyFile]:
    return make_nasty_files(tmp_path_factory.mktemp("nasty"))


def complaint(nasty: NastyFile) -> str | None:
    """What is wrong with the answer to one file; None if it is right."""
    try:
        read = read_image(nasty.path)
    except ImageError as error:
        right = nasty.refusal is not None and nasty.refusal in error.reason
        return None if right else f"was refused: {error.reason}"
    if nasty.refusal is not None:
        return "was not refused"
    if read.rgb.shape[:2] != nasty.size or image_size(nasty.path) != nasty.size:
        return f"has size {read.rgb.shape}, by its header {image_size(nasty.path)}"
    if nasty.note and not any(nasty.note in note for note in read.notes):
        return f"has the notes {read.notes}"
    for (row, column), wanted in nasty.pixels:
        if np.abs(read.rgb[row, column].astype(int) - wanted).max() > nasty.tolerance:
            return f"has {read.rgb[row, column]} at {row}, {column}"
    return None


def test_every_nasty_file_is_read_right_or_refused_in_the_right_words(nasty_files: list[NastyFile]):
    complaints = {nasty.path.name: found for nasty in nasty_files if (found := complaint(nasty))}
    assert complaints == {}


def test_links_pipes_and_folders_are_refused_by_what_they_are(tmp_path: Path):
    complaints = {
        nasty.path.name: found for nasty in make_file_system_oddities(tmp_path) if (found := complaint(nasty))
    }
    assert complaints == {}


def test_a_missing_file_and_an_impossible_name_are_refused(tmp_path: Path):
    with pytest.raises(UnreadableImageError, match="moved, renamed or deleted"):
        read_image(tmp_path / "gone.jpg")
    with pytest.raises(UnreadableImageError, match="no file can have this name"):
        read_image(tmp_path / "zero\0byte.jpg")
    with pytest.raises(UnreadableImageError, match="cannot be read"):
        read_image(tmp_path / ("x" * 300 + ".jpg"))


def test_every_refusal_is_one_sentence_that_names_the_file(nasty_files: list[NastyFile]):
    for nasty in nasty_files:
        if nasty.refusal is not None:
            with pytest.raises(ImageError) as caught:
                read_image(nasty.path)
            assert str(nasty.path) in str(caught.value)
            assert len(caught.value.reason) > 15
            assert "\n" not in caught.value.reason


def test_a_refused_file_is_refused_the_same_way_each_time(nasty_files: list[NastyFile]):
    for nasty in nasty_files:
        if nasty.refusal is not None:
            assert len({reason(nasty.path) for _ in range(3)}) == 1


def reason(path: Path) -> str:
    try:
        read_image(path)
    except ImageError as error:
        return error.reason
    return "read"


def test_no_warning_of_a_decoder_gets_out(nasty_files: list[NastyFile]):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for nasty in nasty_files:
            reason(nasty.path)
    assert [str(warning.message) for warning in caught] == []


def test_the_limits_of_pillow_are_left_as_they_are(nasty_files: list[NastyFile]):
    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, len(warnings.filters)
    for nasty in nasty_files[:50]:
        reason(nasty.path)
    assert before[:2] == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)
    assert len(warnings.filters) <= before[2] + 1


HELD_MODES = {
    "JPEG": ("RGB", "L", "CMYK"),
    "PNG": ("RGB", "L", "P", "1", "RGBA"),
    "GIF": ("RGB", "L", "P", "1"),
    "BMP": ("RGB", "L", "P", "1", "RGBA"),
    "WEBP": ("RGB", "L", "RGBA"),
    "AVIF": ("RGB", "L", "RGBA"),
    "JPEG2000": ("RGB", "L", "RGBA"),
    "TIFF": ("RGB", "L", "P", "1", "CMYK", "RGBA"),
    "PPM": ("RGB", "L", "1"),
}


@pytest.mark.parametrize(("format", "mode"), [(format, mode) for format in HELD_MODES for mode in HELD_MODES[format]])
def test_pixels_are_those_of_pillow(tmp_path: Path, format: str, mode: str):
    content = encoded(noise_image(37, 53).convert(mode), format)
    path = tmp_path / "picture"
    path.write_bytes(content)
    wanted = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB"))
    np.testing.assert_array_equal(read_image(path).rgb, wanted)


def test_a_picture_larger_than_one_tile_is_put_together_right(tmp_path: Path):
    image = noise_image(700, 300)
    image.save(tmp_path / "noise.png")
    np.testing.assert_array_equal(read_image(tmp_path / "noise.png").rgb, np.asarray(image))
    wide = np.arange(3 * 150_000, dtype=np.uint32).astype(np.uint8).reshape(1, 150_000, 3)
    Image.fromarray(wide).save(tmp_path / "wide.png")
    np.testing.assert_array_equal(read_image(tmp_path / "wide.png").rgb, wide)


def test_the_hash_is_of_the_files_bytes_and_the_pixels_cannot_be_written_to(tmp_path: Path):
    scene_image().save(tmp_path / "a.png")
    read = read_image(tmp_path / "a.png")
    assert read.sha256 == hashlib.sha256((tmp_path / "a.png").read_bytes()).hexdigest()
    assert read.rgb.dtype == np.uint8
    assert read.rgb.flags.c_contiguous
    assert not read.rgb.flags.writeable


def test_the_limit_counts_pixels_and_holds_for_the_header_too(tmp_path: Path):
    scene_image().save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", max_pixels=32 * 48).rgb.shape == (32, 48, 3)
    for open_it in (read_image, image_size):
        with pytest.raises(ImageTooLargeError, match="48×32"):
            open_it(tmp_path / "a.png", max_pixels=32 * 48 - 1)


def test_an_alpha_channel_without_transparency_is_not_worth_a_note(tmp_path: Path):
    scene_image().convert("RGBA").save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").notes == ()


def test_a_tiff_beyond_the_limit_of_pillow_but_within_ours_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    image = noise_image(400, 400)
    image.save(tmp_path / "a.tif")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 70_000)  # Pillow refuses twice as many
    np.testing.assert_array_equal(read_image(tmp_path / "a.tif").rgb, np.asarray(image))


def test_a_file_of_many_gigabytes_is_refused_unread(tmp_path: Path):
    with (tmp_path / "a.png").open("wb") as file:
        file.write(encoded(scene_image(), "PNG"))
        file.truncate(5 << 30)  # takes no room on the disk
    with pytest.raises(UnreadableImageError, match=r"5\.4 GB, more than the limit"):
        read_image(tmp_path / "a.png")


def test_the_stated_limit_takes_the_largest_phone_pictures_and_no_more():
    assert 200_000_000 < MAX_PIXELS < 900_000_000


@pytest.mark.parametrize(
    ("module", "name", "package"),
    [
        ("pillow_heif", "plain.heic", "pillow-heif"),
        ("pydicom", "range.dcm", "pydicom"),
        ("tifffile", "float16.tif", "tifffile"),
    ],
)
def test_without_an_optional_package_its_name_is_told(
    nasty_files: list[NastyFile], monkeypatch: pytest.MonkeyPatch, module: str, name: str, package: str
):
    monkeypatch.setitem(sys.modules, module, None)
    path = next(nasty.path for nasty in nasty_files if nasty.path.name == name)
    for open_it in (read_image, image_size):
        with pytest.raises(MissingImageLibraryError, match=f"need the package {package}"):
            open_it(path)
