"""Our exports in the hands of the programs that read them: each must see exactly the masks that were exported."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from coco_samples import CATEGORIES, HEIGHT, WIDTH, ImageRow, annotation, image, pixel, rectangle, ring, two_parts
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from annotator.exporters.protocol import ExportOptions, ExportSource
from annotator.exporting import exporters

NAMES = {category.category_id: category.name.strip() for category in CATEGORIES}
FORMS = ["rle", "polygon"]
FILES = {"rle": "instances.json", "polygon": "instances_polygon.json"}


def rows() -> list[ImageRow]:
    """Sub-folders, an empty picture, holes, several parts, a single pixel, overlapping masks, one at the border."""
    return [
        (image(1, "a.png"), [annotation(1, 1, rectangle()), annotation(2, 1, ring(), category_id=8)]),
        (image(2, "sub/b.png"), [annotation(3, 2, two_parts(), category_id=5), annotation(4, 2, pixel())]),
        (image(3, "sub/empty.png"), []),
        (image(4, "c é.png"), [annotation(5, 4, rectangle(0, 0, HEIGHT, 3)), annotation(6, 4, rectangle(2, 1, 9, 9))]),
    ]


EXPECTED = {record.path: [(NAMES[one.category_id], one.mask.decode()) for one in found] for record, found in rows()}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    """`pictures/`, and the export with both forms of masks."""
    folder = tmp_path_factory.mktemp("consumers")
    for record, _ in rows():
        path = folder / "pictures" / record.path
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (WIDTH, HEIGHT), (record.image_id * 40, 80, 120)).save(path)
    source = ExportSource(CATEGORIES, rows(), folder / "pictures", "consumers")
    exporters()["coco"].write(source, folder, ExportOptions(segmentation="both"))
    exporters()["yolo-seg"].write(source, folder / "yolo", ExportOptions(images="copy", ratio=(1, 0, 0)))
    return folder


def quietly(work):
    with contextlib.redirect_stdout(io.StringIO()):
        return work()


def assert_same_masks(found: dict[str, list[tuple[str, np.ndarray]]]) -> None:
    """By picture, in whatever order."""
    assert {path for path, items in found.items() if items} == {path for path, items in EXPECTED.items() if items}
    for path, items in EXPECTED.items():
        count = Counter((name, mask.tobytes()) for name, mask in items)
        got = Counter((name, np.asarray(mask, dtype=bool).tobytes()) for name, mask in found.get(path, []))
        assert got == count, path


def ascontiguous(mask) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(mask) != 0)


for _items in EXPECTED.values():
    _items[:] = [(name, ascontiguous(mask)) for name, mask in _items]


@pytest.mark.parametrize("form", FORMS)
def test_pycocotools(dataset, form):
    coco = quietly(lambda: COCO(str(dataset / FILES[form])))
    found = {
        row["file_name"]: [
            (coco.cats[one["category_id"]]["name"], ascontiguous(coco.annToMask(one)))
            for one in coco.loadAnns(coco.getAnnIds(imgIds=row["id"]))
        ]
        for row in coco.dataset["images"]
    }
    assert_same_masks(found)


def as_results(dataset: Path, form: str) -> list[dict]:
    """The annotations as a model's answer: what is there must be found with precision 1."""
    content = json.loads((dataset / FILES[form]).read_text())
    kept = ("image_id", "category_id", "segmentation", "bbox")
    return [{**{key: row[key] for key in kept}, "score": 0.9} for row in content["annotations"]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["segm", "bbox"])
def test_pycocotools_evaluation_of_an_export_against_itself_is_perfect(dataset, form, kind):
    def evaluate():
        coco = COCO(str(dataset / FILES[form]))
        evaluation = COCOeval(coco, coco.loadRes(as_results(dataset, "rle")), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return evaluation.stats[0]

    assert quietly(evaluate) == pytest.approx(1.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["segm", "bbox"])
def test_faster_coco_eval_of_an_export_against_itself_is_perfect(dataset, form, kind):
    faster = pytest.importorskip("faster_coco_eval", reason="faster-coco-eval is not installed")

    def evaluate():
        coco = faster.COCO(str(dataset / FILES[form]))
        evaluation = faster.COCOeval_faster(coco, coco.loadRes(as_results(dataset, "rle")), kind)
        evaluation.run()
        return evaluation.stats[0]

    assert quietly(evaluate) == pytest.approx(1.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_supervision(dataset, form):
    supervision = pytest.importorskip("supervision", reason="supervision is not installed")
    loaded = supervision.DetectionDataset.from_coco(
        images_directory_path=str(dataset / "pictures"), annotations_path=str(dataset / FILES[form]), force_masks=True
    )
    found = {}
    for path, _, detections in loaded:
        relative = Path(path).relative_to(dataset / "pictures").as_posix()
        masks = [] if detections.mask is None else detections.mask
        found[relative] = [
            (loaded.classes[number], ascontiguous(mask))
            for number, mask in zip(detections.class_id, masks, strict=True)
        ]
    if form == "rle":
        return assert_same_masks(found)
    for path, items in EXPECTED.items():  # it fills polygons by pixel centres and draws their outline
        for (name, mask), (other, read) in zip(items, found.get(path, []), strict=True):
            assert name == other
            assert not (mask & ~read).any()
            assert not (read & ~by_one_pixel_larger(mask)).any()
    return None


def by_one_pixel_larger(mask: np.ndarray) -> np.ndarray:
    padded = np.pad(mask, 1)
    return np.any([np.roll(padded, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)], axis=0)[1:-1, 1:-1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_datumaro(dataset, tmp_path, form):
    datumaro = pytest.importorskip("datumaro", reason="datumaro is not installed")
    room = tmp_path / "coco"
    (room / "annotations").mkdir(parents=True)
    (room / "images").mkdir()
    (room / "annotations" / "instances_train.json").write_bytes((dataset / FILES[form]).read_bytes())
    loaded = datumaro.Dataset.import_from(str(room), "coco_instances")
    names = [item.name for item in loaded.categories()[datumaro.AnnotationType.label]]
    found: dict[str, list[tuple[str, np.ndarray]]] = {}
    for item in loaded:
        parts: dict[tuple[int, str], np.ndarray] = {}
        for one in item.annotations:
            if one.type not in (datumaro.AnnotationType.mask, datumaro.AnnotationType.polygon):
                continue
            key = one.group, names[one.label]
            drawn = one.image if one.type == datumaro.AnnotationType.mask else filled(one.points)
            parts[key] = parts.get(key, np.zeros((HEIGHT, WIDTH), bool)) | (np.asarray(drawn) != 0)
        found[f"{item.id}.png"] = [(name, ascontiguous(mask)) for (_, name), mask in parts.items()]
    assert_same_masks(found)


def filled(points) -> np.ndarray:
    from pycocotools import mask as coco_mask

    return coco_mask.decode(coco_mask.frPyObjects([list(points)], HEIGHT, WIDTH))[..., 0]


@pytest.mark.filterwarnings("ignore")
def test_supervision_reads_the_yolo_files(dataset):
    supervision = pytest.importorskip("supervision", reason="supervision is not installed")
    loaded = supervision.DetectionDataset.from_yolo(
        images_directory_path=str(dataset / "yolo" / "images" / "train"),
        annotations_directory_path=str(dataset / "yolo" / "labels" / "train"),
        data_yaml_path=str(dataset / "yolo" / "data.yaml"),
        force_masks=True,
    )
    n_objects = sum(len(detections) for path, _, detections in loaded)
    top = {path: items for path, items in EXPECTED.items() if "/" not in path}  # it does not look into sub-folders
    assert n_objects == sum(map(len, top.values()))
    assert set(loaded.classes) == set(NAMES.values())
