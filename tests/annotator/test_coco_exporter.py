"""COCO files as their readers see them: pycocotools, COCOeval, plain JSON."""

from __future__ import annotations

import json
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from coco_samples import (
    HEIGHT,
    RING,
    WIDTH,
    ImageRow,
    annotation,
    dataset,
    export,
    image,
    opened,
    pixel,
    rectangle,
    ring,
    written,
)
from PIL import Image
from pycocotools import mask as coco_mask
from pycocotools.cocoeval import COCOeval

import annotator.exporters
from annotator.exporters import _coco_check
from annotator.exporters.coco import EXPORTER
from annotator.exporters.protocol import Exporter, ExportError, ExportOptions, ExportReport, ExportSource
from annotator.records import Category, Decision, ImageRecord
from engines.discovery import discover
from engines.masks import Mask


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


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="segmentation is one of rle, polygon, both"):
        ExportOptions(segmentation="png")
    with pytest.raises(ValueError, match="counted from 1 or 0"):
        ExportOptions(category_base=2)
