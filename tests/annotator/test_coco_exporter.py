"""COCO files as their readers see them: pycocotools, COCOeval, plain JSON; and what is left after a failure."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import annotator.exporters
from annotator.exporters import _coco_check, _draft
from annotator.exporters.coco import EXPORTER
from annotator.exporters.protocol import Exporter, ExportError, ExportOptions, ExportReport, ExportSource
from annotator.records import Annotation, Category, Decision, ImageRecord
from engines.discovery import discover
from engines.masks import Mask

CATEGORIES = (Category(3, "cat"), Category(8, " tie "), Category(5, "Öl-Kännchen 茶", "thing"))
HEIGHT, WIDTH = 30, 40

ImageRow = tuple[ImageRecord, list[Annotation]]


def image(image_id: int, path: str, done: bool = True, height: int | None = HEIGHT, width: int | None = WIDTH):
    return ImageRecord(image_id, path, 1, 1, "00", height, width, None, False, done, 1, 0, 0, 0)


def annotation(annotation_id: int, image_id: int, pixels: np.ndarray | Mask, **changes: Any) -> Annotation:
    mask = pixels if isinstance(pixels, Mask) else Mask.encode(pixels)
    fields = {"category_id": 3, "phrase": "striped cat", "score": 0.75, "bundle_id": "b", **changes}
    fields.setdefault("decision", Decision.ACCEPTED)
    x1, y1, x2, y2 = mask.xyxy.tolist()
    return Annotation(annotation_id, image_id, mask=mask, xyxy=(x1, y1, x2, y2), **fields)


def rectangle(top: int = 5, left: int = 6, height: int = 10, width: int = 12) -> np.ndarray:
    pixels = np.zeros((HEIGHT, WIDTH), dtype=bool)
    pixels[top : top + height, left : left + width] = True
    return pixels


def ring() -> np.ndarray:
    return rectangle(2, 3, 20, 25) & ~rectangle(8, 9, 6, 5) & ~rectangle(16, 20, 3, 4)


def two_parts() -> np.ndarray:
    return rectangle(0, 0, 5, 5) | rectangle(25, 35, 5, 5)


def pixel() -> np.ndarray:
    return rectangle(29, 39, 1, 1)


def dataset() -> list[ImageRow]:
    return [
        (image(1, "a.jpg"), [annotation(1, 1, rectangle()), annotation(2, 1, ring(), category_id=8)]),
        (image(2, "sub/a.jpg"), [annotation(7, 2, two_parts(), score=None, phrase=None), annotation(8, 2, pixel())]),
        (image(4, "empty.png"), []),
        (image(5, "never looked at.png", done=False), []),
        (image(6, 'sub/ö 猫 \'n "q" 😀.v2.jpeg', done=False), [annotation(9, 6, ring(), category_id=5)]),
    ]


def export(
    out: Path, rows: Iterable[ImageRow] | None = None, folder: Path | None = None, **options: Any
) -> ExportReport:
    images = dataset() if rows is None else rows
    source = ExportSource(CATEGORIES, images, folder or out / "pictures", "cats at home")
    return EXPORTER.write(source, out, ExportOptions(**options))


def written(out: Path, name: str = "instances.json") -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in the file")

    content: dict[str, Any] = json.loads((out / name).read_text(encoding="utf-8"), parse_constant=refuse)
    return content


def opened(path: Path) -> COCO:
    coco = COCO(str(path))
    assert coco.anns
    return coco


def left_behind(out: Path) -> list[Path]:
    return [path for path in out.iterdir() if path.name.startswith(".")]


def test_the_line_in_the_documentation_decodes_a_mask(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "coco.md").read_text(encoding="utf-8")
    line = text.split("```python\n")[1].split("```")[0]
    export(tmp_path)
    names = {"annotation": written(tmp_path)["annotations"][1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pycocotools' own, with NumPy 2
        exec(line, names)
    assert np.array_equal(names["pixels"], ring())


def test_the_format_is_found_by_its_file():
    assert discover(annotator.exporters, "EXPORTER", Exporter)["coco"] is EXPORTER
    assert EXPORTER.options <= set(ExportOptions.__dataclass_fields__)


def test_pycocotools_decodes_every_mask_to_the_pixels_it_was_made_of(tmp_path):
    report = export(tmp_path, segmentation="both")
    assert [file.name for file in report.files] == ["instances.json", "instances_polygon.json"]
    for file in report.files:
        coco = opened(file)
        for one in (one for _, on_image in dataset() for one in on_image):
            row = coco.anns[one.annotation_id]
            assert Mask.from_rle(coco.annToRLE(row)) == one.mask
            assert row["area"] == one.mask.area
            assert row["bbox"] == list(one.mask.xywh)


@pytest.mark.parametrize("segmentation", ["rle", "polygon"])
def test_a_dataset_evaluated_against_itself_is_perfect(tmp_path, segmentation):
    (file,) = export(tmp_path, segmentation=segmentation).files
    truth = opened(file)
    results = [{"score": 1.0, **row} for row in json.loads(file.read_text())["annotations"]]
    evaluation = COCOeval(truth, truth.loadRes(results), "segm")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    assert evaluation.stats[0] == pytest.approx(1.0)


def test_the_file_has_the_shape_that_its_readers_want(tmp_path):
    report = export(tmp_path)
    content = written(tmp_path)
    assert list(content) == ["info", "licenses", "categories", "annotations", "images"]
    assert set(content["info"]) == {"description", "version", "year", "contributor", "url", "date_created"}
    assert content["info"]["description"] == "cats at home"
    assert content["licenses"] == [{"id": 1, "name": "Unknown", "url": ""}]
    assert report == ExportReport((tmp_path / "instances.json",), 4, 5, 0, report.notes)
    for row in content["images"]:
        assert set(row) == {"id", "file_name", "width", "height", "license", "date_captured"}
        assert (row["height"], row["width"], row["license"], row["date_captured"]) == (HEIGHT, WIDTH, 1, "")
    for row in content["annotations"]:
        assert row["id"] >= 1
        assert row["iscrowd"] == 0
        assert row["segmentation"]["size"] == [HEIGHT, WIDTH]
        assert row["segmentation"]["counts"].isascii()
        assert type(row["area"]) is int
        assert "ignore" not in row
        assert row["decision"] == "accepted"


def test_categories_count_from_one_without_gaps_and_keep_those_without_objects(tmp_path):
    export(tmp_path, rows=[])
    assert written(tmp_path)["categories"] == [
        {"id": 1, "name": "cat", "supercategory": "object"},
        {"id": 2, "name": "Öl-Kännchen 茶", "supercategory": "thing"},
        {"id": 3, "name": "tie", "supercategory": "object"},
    ]


def test_annotations_name_their_category_by_its_number_in_the_file(tmp_path):
    export(tmp_path)
    assert {row["id"]: row["category_id"] for row in written(tmp_path)["annotations"]} == {1: 1, 2: 3, 7: 1, 8: 1, 9: 2}


def test_categories_can_count_from_zero_with_a_warning(tmp_path):
    report = export(tmp_path, category_base=0)
    assert [row["id"] for row in written(tmp_path)["categories"]] == [0, 1, 2]
    assert {row["category_id"] for row in written(tmp_path)["annotations"]} == {0, 1, 2}
    assert any("counted from 0" in note for note in report.notes)


@pytest.mark.parametrize(
    ("categories", "sentence"),
    [
        ([Category(1, "cat"), Category(2, "cat ")], "two categories are called 'cat'"),
        ([Category(1, " ")], "a category has no name"),
    ],
)
def test_categories_that_cannot_be_told_apart_are_refused(tmp_path, categories, sentence):
    with pytest.raises(ExportError, match=sentence):
        EXPORTER.write(ExportSource(categories, [], tmp_path), tmp_path, ExportOptions())
    assert list(tmp_path.iterdir()) == []


def test_file_names_are_exact_and_equal_names_in_two_folders_stay_two_images(tmp_path):
    export(tmp_path)
    names = {row["id"]: row["file_name"] for row in written(tmp_path)["images"]}
    assert names == {1: "a.jpg", 2: "sub/a.jpg", 4: "empty.png", 6: 'sub/ö 猫 \'n "q" 😀.v2.jpeg'}


def test_a_reviewed_empty_image_stays_and_an_unreviewed_one_goes(tmp_path):
    export(tmp_path)
    ids = {row["id"] for row in written(tmp_path)["images"]}
    assert 4 in ids
    assert 5 not in ids


def test_an_empty_project_is_a_valid_file(tmp_path):
    report = export(tmp_path, rows=[], segmentation="both")
    assert (report.n_images, report.n_annotations) == (0, 0)
    for name in ("instances.json", "instances_polygon.json"):
        assert written(tmp_path, name)["images"] == written(tmp_path, name)["annotations"] == []


def test_only_empty_images_are_a_valid_file(tmp_path):
    export(tmp_path, rows=[(image(1, "a.jpg"), []), (image(2, "b.jpg"), [])])
    assert len(written(tmp_path)["images"]) == 2


@pytest.mark.parametrize(("min_area", "kept"), [(0, [2, 3]), (1, [2, 3]), (2, [3]), (25, [3]), (26, [])])
def test_masks_without_or_with_too_few_pixels_are_dropped_and_counted(tmp_path, min_area, kept):
    masks = [np.zeros((HEIGHT, WIDTH)), pixel(), rectangle(0, 0, 5, 5)]
    rows = [(image(1, "a.jpg"), [annotation(i, 1, mask) for i, mask in enumerate(masks, start=1)])]
    report = export(tmp_path, rows, min_area=min_area)
    assert [row["id"] for row in written(tmp_path)["annotations"]] == kept
    assert report.n_dropped_small == 3 - len(kept)
    assert any(note.startswith(f"{3 - len(kept)} masks with fewer than") for note in report.notes)


def test_an_unreviewed_image_whose_masks_were_all_dropped_goes(tmp_path):
    report = export(tmp_path, [(image(1, "a.jpg", done=False), [annotation(1, 1, pixel())])], min_area=2)
    assert (report.n_images, report.n_dropped_small) == (0, 1)


@pytest.mark.parametrize("score", [None, float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_left_out(tmp_path, score):
    export(tmp_path, [(image(1, "a.jpg"), [annotation(1, 1, ring(), score=score)])])
    assert "score" not in written(tmp_path)["annotations"][0]


def test_score_phrase_and_decision_are_extra_keys(tmp_path):
    one = annotation(1, 1, ring(), score=np.float32(0.5), decision=Decision.PENDING)
    export(tmp_path, [(image(1, "a.jpg"), [one])])
    row = written(tmp_path)["annotations"][0]
    assert (row["score"], row["phrase"], row["decision"]) == (0.5, "striped cat", "pending")


def test_what_a_person_drew_has_neither_score_nor_phrase(tmp_path):
    export(tmp_path, [(image(1, "a.jpg"), [annotation(7, 1, ring(), score=None, phrase=None)])])
    assert not {"score", "phrase"} & set(written(tmp_path)["annotations"][0])


def test_a_mask_of_another_size_is_left_out_and_named(tmp_path):
    turned = annotation(1, 1, np.ones((WIDTH, HEIGHT)))
    report = export(tmp_path, [(image(1, "sub/turned.jpg"), [turned, annotation(2, 1, ring())])])
    assert [row["id"] for row in written(tmp_path)["annotations"]] == [2]
    (problem,) = report.problems
    assert problem.startswith("sub/turned.jpg: annotation 1 was left out, its mask is 30×40 and the picture 40×30")


def test_an_annotation_of_an_unknown_category_is_left_out_and_named(tmp_path):
    report = export(tmp_path, [(image(1, "a.jpg"), [annotation(1, 1, ring(), category_id=99)])])
    assert written(tmp_path)["annotations"] == []
    assert report.problems[0].startswith("a.jpg: annotation 1 was left out, its category 99")


def test_an_image_without_size_or_with_an_unspeakable_name_is_left_out_and_named(tmp_path):
    rows = [(image(1, "new.jpg", height=None), []), (image(2, "bad\udcff.jpg"), []), (image(3, "good.jpg"), [])]
    report = export(tmp_path, rows)
    assert [row["file_name"] for row in written(tmp_path)["images"]] == ["good.jpg"]
    assert report.problems[0].startswith("new.jpg: it has never been opened")
    assert report.problems[1].startswith("bad\\udcff.jpg: the file's name is not valid Unicode")


def test_a_phrase_with_half_a_character_does_not_stop_the_export(tmp_path):
    export(tmp_path, [(image(1, "a.jpg"), [annotation(1, 1, ring(), phrase="cat \ud83d")])])
    assert written(tmp_path)["annotations"][0]["phrase"] == "cat ?"


def test_polygons_are_lists_of_flat_lists_on_pixel_edges(tmp_path):
    export(tmp_path, segmentation="polygon")
    rows = {row["id"]: row["segmentation"] for row in written(tmp_path, "instances_polygon.json")["annotations"]}
    assert rows[1] == [[6, 5, 18, 5, 18, 15, 6, 15]]
    assert len(rows[7]) == 2
    assert rows[8] == [[39, 29, 40, 29, 40, 30, 39, 30]]
    assert len(rows[2]) == 1
    assert not (tmp_path / "instances.json").exists()


def test_simplified_polygons_pass_the_check(tmp_path):
    y, x = np.ogrid[:HEIGHT, :WIDTH]
    disc = (x - 20) ** 2 + (y - 15) ** 2 < 150
    rows = [(image(1, "a.jpg"), [annotation(1, 1, disc), annotation(2, 1, pixel())])]
    export(tmp_path, rows, segmentation="polygon", tolerance_px=1.0)
    outline, small = (row["segmentation"] for row in written(tmp_path, "instances_polygon.json")["annotations"])
    assert len(outline[0]) < 40
    assert len(small[0]) >= 6
    decoded = coco_mask.merge(coco_mask.frPyObjects(outline, HEIGHT, WIDTH))
    assert coco_mask.area(decoded) == pytest.approx(disc.sum(), rel=0.1)


def test_the_images_are_walked_once_and_not_kept(tmp_path):
    alive: weakref.WeakSet[ImageRecord] = weakref.WeakSet()
    most_alive = 0

    def rows() -> Iterator[ImageRow]:
        nonlocal most_alive
        for i in range(1, 500):
            record = image(i, f"{i}.jpg")
            alive.add(record)
            most_alive = max(most_alive, len(alive))
            yield record, [annotation(i, i, RING)]

    assert export(tmp_path, rows()).n_images == len(opened(tmp_path / "instances.json").imgs) == 499
    assert most_alive < 4


RING = Mask.encode(ring())


def test_more_masks_on_one_image_than_pycocotools_takes_at_once(tmp_path):
    export(tmp_path, [(image(1, "crowd.jpg"), [annotation(i, 1, RING) for i in range(1, 700)])])
    assert len(written(tmp_path)["annotations"]) == 699


def test_a_picture_that_changed_its_size_is_named_and_a_missing_one_is_counted(tmp_path):
    pictures = tmp_path / "in"
    pictures.mkdir()
    Image.new("RGB", (WIDTH, HEIGHT)).save(pictures / "same.png")
    Image.new("RGB", (HEIGHT, WIDTH)).save(pictures / "turned.png")
    (pictures / "broken.png").write_bytes(b"not a picture")
    names = ["same.png", "turned.png", "broken.png", "gone.png"]
    report = export(tmp_path / "out", [(image(i, name), []) for i, name in enumerate(names, start=1)], pictures)
    assert report.problems[0].startswith("turned.png: the picture is 30×40 now and was 40×30 when it was labelled")
    assert report.problems[1].startswith("broken.png: ")
    assert len(report.problems) == 2
    assert report.notes == (f"1 of the images are not in {pictures} any more; they were exported",)


def test_an_upright_size_is_compared_with_the_upright_picture(tmp_path):
    exif = Image.Exif()
    exif[274] = 6
    Image.new("RGB", (HEIGHT, WIDTH)).save(tmp_path / "phone.jpg", exif=exif)
    assert export(tmp_path / "out", [(image(1, "phone.jpg"), [])], tmp_path).problems == ()


def test_without_the_check_nothing_is_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(_coco_check, "rows_of", lambda *_: pytest.fail("the file was read"))
    assert export(tmp_path, verify=False).n_annotations == 5


@pytest.mark.parametrize("opened_whole_bytes", [0, 2**30])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"area":120', b'"area":121'),
        (b'"bbox":[6.0', b'"bbox":[7.0'),
        (b'"size":[30,40]', b'"size":[40,30]'),
        (b'"counts":"', b'"counts":"1'),
        (b'"id":2,"image_id"', b'"id":1,"image_id"'),
        (b'"image_id":2', b'"image_id":77'),
        (b'"iscrowd":0', b'"iscrowd":1'),
        (b'"score":0.75', b'"score":NaN'),
        (b'"height":30', b'"height":31'),
        (b'"images":[', b'"images":[]['),
    ],
)
def test_a_file_that_does_not_read_back_as_meant_replaces_nothing(tmp_path, monkeypatch, old, new, opened_whole_bytes):
    before = export(tmp_path).files[0].read_bytes()
    finish = _draft.Draft.finish

    def damage(draft: _draft.Draft) -> None:
        finish(draft)
        content = draft.draft_path.read_bytes()
        assert old in content
        draft.draft_path.write_bytes(content.replace(old, new, 1))

    monkeypatch.setattr(_draft.Draft, "finish", damage)
    monkeypatch.setattr(_coco_check, "_OPENED_WHOLE_BYTES", opened_whole_bytes)
    with pytest.raises(ExportError, match=r"instances\.json failed its check: .*; nothing was replaced"):
        export(tmp_path)
    assert (tmp_path / "instances.json").read_bytes() == before
    assert left_behind(tmp_path) == []


def test_an_export_prints_nothing(tmp_path, capsys):
    export(tmp_path)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full; free some space and export again"),
        (errno.EROFS, "the disk is read-only; choose another folder"),
        (errno.EACCES, "there is no permission to write there"),
    ],
)
@pytest.mark.parametrize("fails_at", ["write", "finish", "commit"])
def test_a_disk_that_refuses_leaves_the_previous_export(tmp_path, monkeypatch, number, sentence, fails_at):
    before = export(tmp_path).files[0].read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    if fails_at == "write":
        monkeypatch.setattr(Path, "open", lambda path, mode="r": _FullFile(path, mode, number))
    else:
        monkeypatch.setattr(*{"finish": (os, "fsync"), "commit": (Path, "replace")}[fails_at], refuse)
    with pytest.raises(ExportError) as caught:
        export(tmp_path)
    monkeypatch.undo()
    assert str(caught.value).startswith(f"{tmp_path / 'instances.json'} cannot be written: {sentence}")
    assert (tmp_path / "instances.json").read_bytes() == before
    assert left_behind(tmp_path) == []


class _FullFile:
    """A file on a disk that takes a hundred bytes more."""

    def __init__(self, path: Path, mode: str, number: int) -> None:
        self._file = open(path, mode)  # noqa: PTH123, SIM115
        self._number = number
        self._n_left = 100

    def write(self, content: bytes) -> None:
        self._n_left -= len(content)
        if self._n_left < 0:
            raise OSError(self._number, os.strerror(self._number))

    def close(self) -> None:
        self._file.close()


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ExportError, match="a file stands where the folder should be"):
        export(tmp_path / "out")
    with pytest.raises(ExportError, match="is a file, not a folder"):
        export(tmp_path / "out" / "deeper")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_a_read_only_folder_is_one_sentence():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "read only")
        out.mkdir()
        out.chmod(0o555)
        Path(folder).chmod(0o755)
        sentence = "read only.* cannot be written: there is no permission to write there"
        with as_an_ordinary_user(), pytest.raises(ExportError, match=sentence):
            export(out)


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """The administrator may write anywhere, so the administrator's tests become someone else for a moment."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def test_a_source_that_fails_in_the_middle_leaves_the_previous_export(tmp_path):
    before = export(tmp_path).files[0].read_bytes()

    def rows() -> Iterator[ImageRow]:
        yield from dataset()
        raise RuntimeError("the project is gone")

    with pytest.raises(RuntimeError, match="the project is gone"):
        export(tmp_path, rows())
    assert (tmp_path / "instances.json").read_bytes() == before
    assert left_behind(tmp_path) == []


def test_a_draft_left_by_a_killed_run_is_removed_when_it_is_old(tmp_path):
    old, fresh = tmp_path / ".instances.json.aa.part", tmp_path / ".instances.json.bb.part"
    for path in (old, fresh):
        path.write_text("{")
    yesterday = time.time() - 2 * 24 * 3600
    os.utime(old, (yesterday, yesterday))
    export(tmp_path)
    assert left_behind(tmp_path) == [fresh]


def test_the_file_gets_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "ordinary").write_text("")
    export(tmp_path)
    assert (tmp_path / "instances.json").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


_KILL_EXPORTS = """
import os, random, signal, sys, time
from pathlib import Path
sys.path[:0] = {paths!r}
from test_coco_exporter import RING, annotation, export, image, written
def once():
    rows = ((image(i, f"{{i}}.jpg"), [annotation(i, i, RING)]) for i in range(1, 101))
    export(out, rows, segmentation="both")
out, versions = Path(sys.argv[1]), set()
random.seed(1)
once()
start = time.monotonic()
once()
took_s = time.monotonic() - start
for _ in range(30):
    child = os.fork()
    while child == 0:
        once()
    time.sleep(random.uniform(0, 3 * took_s))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for name in ("instances.json", "instances_polygon.json"):
        content = written(out, name)
        assert len(content["images"]) == len(content["annotations"]) == 100
    versions.add((out / name).stat().st_mtime_ns)
print(len(versions), len(list(out.glob(".*.part"))))
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_an_export_killed_at_any_moment_leaves_whole_files(tmp_path):
    script = _KILL_EXPORTS.format(paths=[str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    command = [sys.executable, "-c", script, str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    n_versions, n_cut_off = map(int, finished.stdout.split())
    assert n_versions > 3
    assert n_cut_off > 3


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="segmentation is one of rle, polygon, both"):
        ExportOptions(segmentation="png")
    with pytest.raises(ValueError, match="counted from 1 or 0"):
        ExportOptions(category_base=2)
