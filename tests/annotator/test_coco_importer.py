"""COCO files as other programs write them; masks are compared with pycocotools' own reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

from annotator.importers.coco import read
from annotator.importers.protocol import DatasetError, ImportedDataset
from annotator.records import Decision

HEIGHT, WIDTH = 30, 40
RING = [[5, 5, 25, 5, 25, 25, 5, 25]]
HOLED = [[5, 5, 25, 5, 25, 25, 5, 25, 5, 5, 10, 10, 10, 20, 20, 20, 20, 10, 10, 10]]
TWO_PARTS = [[0, 0, 5, 0, 5, 5, 0, 5], [30, 20, 38, 20, 38, 28]]


def pixels() -> np.ndarray:
    array = np.zeros((HEIGHT, WIDTH), np.uint8)
    array[3:9, 4:20] = 1
    array[5:7, 6:10] = 0
    return array


def compressed() -> dict[str, Any]:
    rle = coco_mask.encode(np.asfortranarray(pixels()))
    return {"size": [HEIGHT, WIDTH], "counts": rle["counts"].decode()}


def uncompressed() -> dict[str, Any]:
    flat = pixels().flatten(order="F")
    changes = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff([0, *changes, flat.size]).tolist()
    return {"size": [HEIGHT, WIDTH], "counts": runs if flat[0] == 0 else [0, *runs]}


def content(*segmentations: Any, **changes: Any) -> dict[str, Any]:
    annotations = [
        {"id": 10 + place, "image_id": 1, "category_id": 1, "segmentation": one, "iscrowd": 0, "area": 1.0, "bbox": []}
        for place, one in enumerate(segmentations)
    ]
    return {
        "images": [{"id": 1, "file_name": "a.jpg", "height": HEIGHT, "width": WIDTH}],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "cat"}],
        **changes,
    }


def read_back(tmp_path: Path, value: Any) -> ImportedDataset:
    path = tmp_path / "dataset.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return read(path)


def masks(dataset: ImportedDataset) -> list[np.ndarray]:
    return [
        one.mask.decode() for image in dataset.images for one in image.annotations(*(image.size or (HEIGHT, WIDTH)))
    ]


def refused(tmp_path: Path, value: Any) -> list[str]:
    dataset = read_back(tmp_path, value)
    assert masks(dataset) == []
    return dataset.refusals.sentences()


def test_every_kind_of_mask_is_what_pycocotools_reads(tmp_path):
    written = content(RING, HOLED, TWO_PARTS, compressed(), uncompressed())
    found = masks(read_back(tmp_path, written))
    coco = COCO(str(tmp_path / "dataset.json"))
    wanted = [coco.annToMask(row) for row in coco.loadAnns(coco.getAnnIds())]
    assert len(found) == len(wanted) == 5
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_polygon_that_is_not_in_a_list_of_its_own_counts_as_one(tmp_path):
    np.testing.assert_array_equal(
        masks(read_back(tmp_path, content(RING[0])))[0], masks(read_back(tmp_path, content(RING)))[0]
    )


def test_a_file_needs_no_more_than_its_three_lists(tmp_path):
    bare = {
        "images": [{"id": 0, "file_name": "a.jpg"}],
        "annotations": [{"image_id": 0, "category_id": 0, "segmentation": compressed()}],
        "categories": [{"id": 0, "name": "cat"}],
    }
    dataset = read_back(tmp_path, bare)
    (image,) = dataset.images
    assert image.size is None
    (one,) = image.annotations(HEIGHT, WIDTH)
    assert (one.category, one.score, one.phrase, one.decision) == ("cat", None, None, None)


def test_ids_may_be_text_or_numbers_with_gaps(tmp_path):
    images = [{"id": "img-7", "file_name": "a.jpg"}, {"id": 900.0, "file_name": "b.jpg"}]
    annotations = [
        {"id": "x", "image_id": "img-7", "category_id": "3", "segmentation": RING},
        {"id": 1, "image_id": 900, "category_id": 12, "segmentation": RING},
        {"id": 1, "image_id": "900", "category_id": 3, "segmentation": TWO_PARTS},
    ]
    categories = [{"id": 3, "name": "cat"}, {"id": 12, "name": "cup"}]
    dataset = read_back(tmp_path, {"images": images, "annotations": annotations, "categories": categories})
    found = [[one.category for one in image.annotations(HEIGHT, WIDTH)] for image in dataset.images]
    assert found == [["cat"], ["cup", "cat"]]
    assert dataset.refusals.sentences() == []


def test_what_our_export_adds_is_read(tmp_path):
    written = content(RING)
    written["annotations"][0] |= {"score": 0.75, "phrase": "striped  cat", "decision": "pending"}
    (image,) = read_back(tmp_path, written).images
    (one,) = image.annotations(HEIGHT, WIDTH)
    assert (one.score, one.phrase, one.decision) == (0.75, "striped cat", Decision.PENDING)


@pytest.mark.parametrize("score", [1.5, -0.1, "0.5", None, True, 10**400])
def test_a_score_that_is_none_is_left_out(tmp_path, score):
    written = content(RING)
    written["annotations"][0]["score"] = score
    (image,) = read_back(tmp_path, written).images
    assert image.annotations(HEIGHT, WIDTH)[0].score is None


def test_nan_spoils_one_annotation_and_not_the_file(tmp_path):
    text = json.dumps(content(RING, TWO_PARTS, RING)).replace("[[0, 0, 5, 0", "[[NaN, 0, 5, 0", 1)
    text = text.replace('"area": 1.0', '"score": NaN', 1)
    dataset = read_back(tmp_path, text)
    assert len(masks(dataset)) == 2
    assert dataset.refusals.sentences() == ["annotation 11 of a.jpg: its polygon is no list of x and y in numbers"]


def test_crowds_are_read_and_mentioned(tmp_path):
    written = content(compressed())
    written["annotations"][0]["iscrowd"] = 1
    dataset = read_back(tmp_path, written)
    assert len(masks(dataset)) == 1
    assert dataset.notes.sentences() == ["annotation 10 of a.jpg: marked as a crowd, imported like any other"]


def test_categories_named_twice_are_one_and_nameless_ones_are_refused(tmp_path):
    written = content(RING, RING, RING)
    written["categories"] = [{"id": 1, "name": " cat"}, {"id": 2, "name": "cat "}, {"id": 3, "name": " "}]
    for place, row in enumerate(written["annotations"]):
        row["category_id"] = place + 1
    dataset = read_back(tmp_path, written)
    assert dataset.categories == ("cat",)
    assert len(masks(dataset)) == 2
    assert dataset.refusals.sentences() == [
        "category 3: the category has no name; its annotations are left out",
        "annotation 12 of a.jpg: its category is not among the file's, or has no name",
    ]


LONG = {**uncompressed(), "counts": [*uncompressed()["counts"][:-1], 5000]}


@pytest.mark.parametrize(
    ("segmentation", "words"),
    [
        ([], "it has no mask"),
        ([[]], "it has no mask"),
        (None, "it has no mask"),
        ("mask.png", "it has no mask"),
        ([[1, 2, 3, 4]], "fewer than three corners"),
        ([[1, 2, 3, 4, 5, 6, 7]], "no list of x and y"),
        ([["a", 2, 3, 4, 5, 6]], "no list of x and y"),
        ([[100, 100, 120, 100, 120, 120]], "no pixels in the picture"),
        ([[0, 0, 1e9, 0, 1e9, 1e9]], "far outside the picture"),
        ([[0, 0, -500, 0, 10, 10]], "far outside the picture"),
        ([[0, 0, 1e308, 1e308, -1e308, 1e308]], "far outside the picture"),
        ([[0, 0, 400, 400] * 30_000], "longer than 20 million pixels"),
        (LONG, "add up to"),
        ({"size": [HEIGHT, WIDTH], "counts": "§§"}, "counts"),
        ({"size": [WIDTH, HEIGHT], "counts": compressed()["counts"]}, "its mask is 30×40 and the picture 40×30"),
        ({"counts": [1200]}, "size"),
        ({"size": [HEIGHT, WIDTH], "counts": [HEIGHT * WIDTH]}, "no pixels in the picture"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mask_that_cannot_be_is_named_with_its_reason(tmp_path, segmentation, words):
    (sentence,) = refused(tmp_path, content(segmentation))
    assert sentence.startswith("annotation 10 of a.jpg: ")
    assert words in sentence


def test_equal_reasons_are_counted(tmp_path):
    assert refused(tmp_path, content([], [], [])) == [
        "annotation 10 of a.jpg and 2 more: it has no mask; a box alone is not imported"
    ]


def test_annotations_of_images_that_are_not_listed_are_counted(tmp_path):
    sentences = refused(tmp_path, content(RING, RING, images=[{"id": 5, "file_name": "b.jpg"}]))
    assert sentences == ["annotation 10 and 1 more: it belongs to an image that the file does not list"]


def test_images_that_share_an_id_are_left_out_and_a_row_that_is_there_twice_is_not(tmp_path):
    images = [{"id": n, "file_name": name} for n, name in ((1, "a.jpg"), (2, "b.jpg"), (1, "c.jpg"), (2, "b.jpg"))]
    written = content(RING, RING, images=images)
    written["annotations"][1]["image_id"] = 2
    dataset = read_back(tmp_path, written)
    assert [image.file_name for image in dataset.images] == ["b.jpg"]
    assert len(masks(dataset)) == 1
    assert dataset.refusals.sentences() == ["c.jpg: another image has the same id, so both are left out"]


@pytest.mark.parametrize("height", ["Infinity", "-Infinity", "NaN", "1e30", "1" + "0" * 400])
def test_a_size_that_is_none_counts_as_not_given(tmp_path, height):
    text = json.dumps(content(RING)).replace(f'"height": {HEIGHT}', f'"height": {height}')
    (image,) = read_back(tmp_path, text).images
    assert image.size is None


def test_an_image_without_a_name_is_named_by_its_id(tmp_path):
    assert "image 5: the image has no file name" in refused(tmp_path, content(images=[{"id": 5}]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cut off or no JSON"),
        (json.dumps(content(RING))[:-20], "cut off or no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "it is a list"),
        ("{}", "no list 'images'"),
        (json.dumps(content(images={})), "no list 'images'"),
        (json.dumps(content(annotations=[1])), "no list 'annotations'"),
        (json.dumps(content(RING)).replace("1.0", "1" * 5000), "number that cannot be read"),
    ],
    ids=["empty", "cut off", "nested", "list", "object", "images", "annotations", "number"],
)
def test_what_is_no_dataset_is_refused_with_one_sentence(tmp_path, text, words):
    with pytest.raises(DatasetError, match=words) as error:
        read_back(tmp_path, text)
    assert str(tmp_path / "dataset.json") in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_and_one_that_is_no_text_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="No such file"):
        read(tmp_path / "none.json")
    (tmp_path / "picture.json").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(DatasetError, match="not text in UTF-8"):
        read(tmp_path / "picture.json")


def test_a_byte_order_mark_does_no_harm(tmp_path):
    (tmp_path / "dataset.json").write_text(json.dumps(content(RING)), "utf-8-sig")
    assert len(masks(read(tmp_path / "dataset.json"))) == 1
