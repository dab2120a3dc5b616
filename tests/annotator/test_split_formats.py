"""The formats that write whole folders: COCO in parts, YOLO segmentation, indexed PNG."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from coco_samples import (
    CATEGORIES,
    HEIGHT,
    WIDTH,
    ImageRow,
    annotation,
    image,
    opened,
    pixel,
    rectangle,
    ring,
    two_parts,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from pycocotools import mask as coco_mask

from annotator.errors import CommandError
from annotator.exporters._one_outline import one_outline
from annotator.exporters._split import split_of
from annotator.exporters.protocol import SPLITS, ExportError, ExportOptions, ExportReport, ExportSource
from annotator.exporting import check_options, exporters
from engines.contours import polygons
from engines.masks import Mask

TURNED = 6
"""EXIF: the picture is stored lying on its side."""


def rows() -> list[ImageRow]:
    return [
        (image(1, "a.jpg"), [annotation(1, 1, rectangle()), annotation(2, 1, ring(), category_id=8)]),
        (image(2, "sub/a.jpg"), [annotation(3, 2, two_parts()), annotation(4, 2, pixel())]),
        (image(3, "sub/b.png"), [annotation(5, 3, ring(), category_id=5)]),
        (image(4, "empty.png"), []),
        (image(5, "untouched.png", done=False), []),
        *((image(n, f"more/{n}.png"), [annotation(n, n, rectangle())]) for n in range(10, 26)),
    ]


def write_pictures(folder: Path) -> None:
    for record, _ in rows():
        path = folder / record.path
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (WIDTH, HEIGHT), (record.image_id * 9, 80, 120)).save(path)
    exif = Image.Exif()
    exif[0x0112] = TURNED
    lying = Image.new("RGB", (HEIGHT, WIDTH), "red")
    lying.paste("blue", (0, 0, HEIGHT, WIDTH // 2))
    lying.save(folder / "a.jpg", exif=exif, quality=95)


@pytest.fixture
def folder(tmp_path) -> Path:
    write_pictures(tmp_path / "pictures")
    return tmp_path / "pictures"


def export(name: str, out: Path, folder: Path, **options) -> ExportReport:
    return exporters()[name].write(ExportSource(CATEGORIES, rows(), folder, "cats"), out, ExportOptions(**options))


def names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


PARTS = st.lists(st.from_regex(r"[a-z]{1,3}/[a-z]{1,6}", fullmatch=True), min_size=1, max_size=60, unique=True)


@given(PARTS, st.integers(0, 5), st.tuples(*[st.integers(0, 90)] * 3).filter(any), st.booleans())
def test_a_split_takes_every_image_once_and_shares_as_asked(paths, seed, ratio, by_folder):
    parts = split_of(paths, ExportOptions(ratio=ratio, seed=seed, by_folder=by_folder))
    assert parts == split_of(reversed(paths), ExportOptions(ratio=ratio, seed=seed, by_folder=by_folder))
    assert set(parts) == set(paths)
    for part, share in zip(SPLITS, ratio, strict=True):
        n = list(parts.values()).count(part)
        assert share or not n
        if not by_folder:
            assert abs(n - len(paths) * share / sum(ratio)) <= 1
    if by_folder:
        assert len({(path.split("/")[0], part) for path, part in parts.items()}) == len(
            {p.split("/")[0] for p in paths}
        )


def test_another_seed_is_another_split_and_a_new_image_moves_few():
    paths = [f"{n}.jpg" for n in range(200)]
    first = split_of(paths, ExportOptions(seed=1))
    assert first != split_of(paths, ExportOptions(seed=2))
    grown = split_of([*paths, "new.jpg"], ExportOptions(seed=1))
    assert sum(first[path] != grown[path] for path in paths) <= 2


@pytest.mark.parametrize("layout", ["annotations", "folders"])
def test_coco_in_parts_holds_each_image_once_with_pictures_that_fit(tmp_path, folder, layout):
    out = tmp_path / "out"
    report = export("coco-split", out, folder, layout=layout, images="copy", ratio=(60, 20, 20))
    assert report.problems == ()
    assert report.n_images == 20
    seen: list[str] = []
    for path in report.files:
        part = next(part for part in SPLITS if part in path.relative_to(out).as_posix())
        content = json.loads(path.read_text())
        assert [row["id"] for row in content["categories"]] == [1, 2, 3]
        root = out / part if layout == "folders" else out / "images" / part
        for row in content["images"]:
            with Image.open(root / row["file_name"]) as picture:
                assert picture.size == (row["width"], row["height"]) == (WIDTH, HEIGHT)
                assert picture.getexif().get(0x0112, 1) == 1
            seen.append(row["file_name"])
        if content["annotations"]:
            coco = opened(path)
            for row in coco.loadAnns(coco.getAnnIds()):
                assert coco.annToMask(row).sum() == row["area"]
    assert sorted(seen) == sorted(record.path for record, found in rows() if found or record.done)


def test_a_turned_picture_is_copied_upright_and_others_byte_by_byte(tmp_path, folder):
    export("coco", tmp_path / "out", folder, images="copy")
    copied = tmp_path / "out" / "images"
    assert (copied / "sub/b.png").read_bytes() == (folder / "sub/b.png").read_bytes()
    with Image.open(copied / "a.jpg") as picture:
        assert picture.size == (WIDTH, HEIGHT)
        right, left = picture.getpixel((WIDTH - 3, 5)), picture.getpixel((3, 5))
    assert right[2] > 200 and right[0] < 60
    assert left[0] > 200 and left[2] < 60


def test_links_lead_to_the_pictures_and_turned_ones_are_copied(tmp_path, folder):
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    export("coco", tmp_path / "out", folder, images="link")
    link = tmp_path / "out" / "images" / "sub" / "b.png"
    assert link.is_symlink() and link.resolve() == (folder / "sub/b.png").resolve()
    assert not (tmp_path / "out" / "images" / "a.jpg").is_symlink()
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before


def test_a_picture_that_is_gone_is_named_and_its_masks_are_written(tmp_path, folder):
    (folder / "sub/b.png").unlink()
    report = export("coco-split", tmp_path / "out", folder, images="copy")
    assert len(report.problems) == 1 and report.problems[0].startswith("sub/b.png: its picture was not taken along")
    assert report.n_images == 20


@pytest.mark.parametrize("name", ["coco-split", "yolo-seg", "masks"])
def test_a_new_export_replaces_the_earlier_one_and_nothing_else(tmp_path, folder, name):
    out = tmp_path / "out"
    export(name, out, folder)
    first = names_in(out)
    (out / "stale.txt").write_text("of an earlier export")
    export(name, out, folder)
    assert names_in(out) == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pictures"]
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("important")
    with pytest.raises(ExportError, match="mine holds other files"):
        export(name, foreign, folder)
    assert names_in(foreign) == {"thesis.tex"}


@pytest.mark.parametrize("name", ["coco-split", "yolo-seg", "masks"])
def test_an_export_that_fails_or_was_killed_leaves_the_earlier_one(tmp_path, folder, name, monkeypatch):
    out = tmp_path / "out"
    export(name, out, folder)
    before = {path: (out / path).read_bytes() for path in names_in(out)}

    def refuse(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        with pytest.raises(ExportError, match="the disk is full"):
            export(name, out, folder)
    assert {path: (out / path).read_bytes() for path in names_in(out)} == before
    out.rename(tmp_path / ".out.before")  # as a process leaves it that is killed between the two renames
    export(name, out, folder)
    assert names_in(out) == set(before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pictures"]


def yolo_lines(out: Path, path: str) -> list[tuple[int, np.ndarray]]:
    (file,) = out.glob(f"labels/*/{path}")
    lines = [line.split() for line in file.read_text().splitlines()]
    return [(int(line[0]), np.array(line[1:], float).reshape(-1, 2)) for line in lines]


def rasterised(corners: np.ndarray) -> np.ndarray:
    flat = (corners * [WIDTH, HEIGHT]).reshape(-1).tolist()
    return coco_mask.decode(coco_mask.frPyObjects([flat], HEIGHT, WIDTH))[..., 0].astype(bool)


def test_yolo_outlines_are_the_masks(tmp_path, folder):
    report = export("yolo-seg", tmp_path / "out", folder, images="link")
    first, second = yolo_lines(tmp_path / "out", "a.txt")
    assert (first[0], second[0]) == (0, 2)
    np.testing.assert_array_equal(rasterised(first[1]), rectangle())
    np.testing.assert_array_equal(rasterised(second[1]), ring())
    parts, _ = yolo_lines(tmp_path / "out", "sub/a.txt")
    assert not (rasterised(parts[1]) ^ two_parts()).any()
    assert yolo_lines(tmp_path / "out", "empty.txt") == []
    data = (tmp_path / "out" / "data.yaml").read_text()
    assert re.findall(r"^(train|val|test): (\S+)$", data, re.M) == [
        ("train", "images/train"),
        ("val", "images/valid"),
        ("test", "images/test"),
    ]
    assert data.endswith('names:\n  0: "cat"\n  1: "Öl-Kännchen 茶"\n  2: "tie"\n')
    assert report.problems == ()


@pytest.mark.parametrize("name", ["yolo-seg", "masks"])
def test_two_pictures_with_one_label_file_are_told_apart(tmp_path, folder, name):
    twins = [
        (image(1, "a.jpg"), [annotation(1, 1, rectangle())]),
        (image(2, "a.png"), [annotation(2, 2, rectangle())]),
    ]
    Image.new("RGB", (WIDTH, HEIGHT)).save(folder / "a.png")
    out = tmp_path / "out"
    options = ExportOptions(ratio=(1, 0, 0), images="copy")
    report = exporters()[name].write(ExportSource(CATEGORIES, twins, folder), out, options)
    assert len(report.problems) == 1 and report.problems[0].startswith("a.png: another picture has the")
    assert [path.name for path in (out / "images").rglob("*.*")] == ["a.jpg"]
    if name == "yolo-seg":
        assert report.notes[-1] == "train: 1 images, valid: 0 images, test: 0 images"


class GrowingRows:
    """A project in which a person finishes one more image while it is exported."""

    def __init__(self) -> None:
        self.n_walks = 0

    def __iter__(self) -> Iterator[ImageRow]:
        self.n_walks += 1
        yield from rows()
        if self.n_walks > 1:
            yield image(90, "late.png"), [annotation(90, 90, rectangle())]


@pytest.mark.parametrize("name", ["coco-split", "yolo-seg"])
def test_an_image_that_is_finished_while_the_parts_are_written_waits_for_the_next_export(tmp_path, folder, name):
    images = GrowingRows()
    report = exporters()[name].write(ExportSource(CATEGORIES, images, folder), tmp_path / "out", ExportOptions())
    assert images.n_walks == 2
    assert (report.n_images, report.problems) == (20, ())
    assert not any("late" in path for path in names_in(tmp_path / "out"))


def test_labels_of_a_picture_that_is_copied_as_png_stand_beside_it(tmp_path, folder):
    Image.new("RGB", (WIDTH, HEIGHT)).save(folder / "moving.gif")
    source = ExportSource(CATEGORIES, [(image(1, "moving.gif"), [annotation(1, 1, rectangle())])], folder)
    exporters()["yolo-seg"].write(source, tmp_path / "out", ExportOptions(ratio=(1, 0, 0), images="copy"))
    assert names_in(tmp_path / "out") >= {"images/train/moving.gif.png", "labels/train/moving.gif.txt"}


PIXELS = arrays.arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12))).filter(np.any)


@settings(max_examples=300, deadline=None)
@given(PIXELS)
def test_one_outline_holds_all_parts_and_adds_no_more_than_its_bridges(pixels):
    height, width = pixels.shape
    parts = polygons(Mask.encode(pixels))
    outline = one_outline(parts)
    read = coco_mask.decode(coco_mask.frPyObjects([outline], height, width))[..., 0].astype(bool)
    assert not (pixels & ~read).any()
    assert (read & ~pixels).sum() <= (len(parts) - 1) * (height + width)


def test_indexed_masks_hold_category_numbers_with_the_smaller_thing_on_top(tmp_path, folder):
    report = export("masks", tmp_path / "out", folder)
    with Image.open(tmp_path / "out" / "masks" / "a.png") as picture:
        assert picture.mode == "P"
        indices, palette = np.asarray(picture), picture.getpalette()
    numbers = {row["name"]: row for row in json.loads((tmp_path / "out" / "categories.json").read_text())["categories"]}
    expected = np.zeros((HEIGHT, WIDTH), np.uint8)
    larger, smaller = sorted([(rectangle(), "cat"), (ring(), "tie")], key=lambda one: -one[0].sum())
    for pixels, name in (larger, smaller):
        expected[pixels] = numbers[name]["id"]
    np.testing.assert_array_equal(indices, expected)
    for row in numbers.values():
        assert palette[3 * row["id"] : 3 * row["id"] + 3] == row["colour"]
    assert len({tuple(row["colour"]) for row in numbers.values()}) == 3
    assert report.n_images == 20


def test_the_colour_map_is_that_of_pascal_voc():
    from annotator.exporters.masks import colour_map

    # The development kit's table, as published: background, aeroplane, bicycle, bird, boat, bottle, bus, car.
    table = [0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128], [128, 0, 128], [0, 128, 128], [128] * 3
    assert colour_map(7) == list(table)
    assert colour_map(20)[20] == [0, 64, 128]


@pytest.mark.parametrize("name", list(exporters()))
def test_every_format_says_how_it_is_loaded_and_which_options_it_heeds(name):
    exporter = exporters()[name]
    assert exporter.how_to_load and exporter.title
    assert exporter.options <= set(ExportOptions.__dataclass_fields__)


def test_an_option_that_does_nothing_is_refused():
    with pytest.raises(
        CommandError, match="--by-folder does nothing for the format coco, only for: coco-split, yolo-seg"
    ):
        check_options("coco", ExportOptions(by_folder=True))
    check_options("coco-split", ExportOptions(by_folder=True))


@pytest.mark.parametrize(
    "options", [{"images": "move"}, {"layout": "flat"}, {"ratio": (0, 0, 0)}, {"ratio": (-1, 1, 1)}]
)
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options)).rstrip("s")):
        ExportOptions(**options)
