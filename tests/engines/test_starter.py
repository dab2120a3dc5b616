"""The starter model with its real weights on the sample photographs."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from engines.boxes import iou_matrix
from engines.bundle import SHIPPED_MODELS, read_bundle
from engines.families._starter.agreement import Candidate, agree
from engines.families._starter.views import View, views_of
from engines.families.starter import FAMILY, StarterSegmenter
from engines.loader import runtimes
from engines.protocols import Session
from engines.types import BoxPrompt, ImageFeatures, Instance, Phrase, SegmentOptions

ROOT = Path(__file__).parents[2]
TRUTH = {
    photo["file"]: photo
    for photo in json.loads((ROOT / "benchmarks" / "starter_truth" / "samples.json").read_text(encoding="utf-8"))[
        "photos"
    ]
}


class CountingSession:
    """A real graph that counts its runs."""

    def __init__(self, session: Session, role: str, runs: Counter[str]) -> None:
        self._session, self._role, self._runs = session, role, runs
        self.runtime, self.device = session.runtime, session.device

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        self._runs[self._role] += 1
        return self._session.run(feeds)


@pytest.fixture(scope="module")
def runs() -> Counter[str]:
    return Counter()


@pytest.fixture(scope="module")
def segmenter(runs: Counter[str]) -> StarterSegmenter:
    bundle = read_bundle(SHIPPED_MODELS / "starter")
    load_graph = runtimes()["onnxruntime"].load_graph

    def open_graph(role: str) -> Session:
        spec = bundle.graphs[role]
        return CountingSession(load_graph(bundle.file(spec.file), spec, "cpu"), role, runs)

    return FAMILY.load(bundle, open_graph)  # type: ignore[return-value]


@pytest.fixture(scope="module")
def encoded(segmenter: StarterSegmenter) -> Callable[[str], ImageFeatures]:
    features: dict[str, ImageFeatures] = {}

    def encode(name: str) -> ImageFeatures:
        if name not in features:
            features[name] = segmenter.encode_image(photograph(name), name)
        return features[name]

    return encode


@pytest.fixture(scope="module")
def grey(segmenter: StarterSegmenter) -> ImageFeatures:
    return segmenter.encode_image(np.full((100, 200, 3), 128, dtype=np.uint8), "grey")


def photograph(name: str) -> NDArray[np.uint8]:
    return np.asarray(Image.open(ROOT / "samples" / name).convert("RGB"))


def drawn_outline(name: str, category: str) -> NDArray[np.bool_]:
    """The outline that a person drew around the one object of a category."""
    height, width = photograph(name).shape[:2]
    image = Image.new("1", (width, height))
    (shape,) = [shape for shape in TRUTH[name]["objects"] if shape["category"] == category]
    for polygon in shape["polygons"]:
        ImageDraw.Draw(image).polygon([tuple(point) for point in polygon], fill=1)
    return np.asarray(image)


def ask(segmenter: StarterSegmenter, image: ImageFeatures, text: str, threshold: float = 0.5) -> list[Instance]:
    phrase = segmenter.encode_phrase(Phrase(text))
    return segmenter.decode(image, phrase, options=SegmentOptions(score_threshold=threshold))


def mask_iou(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    return float((a & b).sum() / (a | b).sum())


@pytest.mark.parametrize(
    ("name", "phrase", "category", "at_least"),
    [
        ("cat.jpg", "cat", "cat", 0.9),
        ("chelsea.jpg", "a cat", "cat", 0.9),
        ("dog.jpg", "golden retriever", "dog", 0.9),
        ("car.jpg", "car", "car", 0.9),
        ("grace_hopper.jpg", "woman", "person", 0.9),
        ("moonwalk.jpg", "astronaut", "person", 0.85),
        ("astronaut.jpg", "astronaut", "person", 0.8),
        ("coffee.jpg", "coffee cup", "cup", 0.8),
        ("parrot.jpg", "parrot", "bird", 0.75),
    ],
)
def test_the_mask_lies_on_the_outline_that_a_person_drew(
    segmenter: StarterSegmenter,
    encoded: Callable[[str], ImageFeatures],
    name: str,
    phrase: str,
    category: str,
    at_least: float,
) -> None:
    (found,) = ask(segmenter, encoded(name), phrase)
    assert mask_iou(found.mask.decode(), drawn_outline(name, category)) > at_least


def test_a_category_that_is_not_on_the_photograph_is_not_answered(
    segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]
) -> None:
    for name, photo in TRUTH.items():
        present = {shape["category"] for shape in photo["objects"]} | set(photo["unsure"])
        absent = [category for category in segmenter._vocabulary.categories if category not in present]
        answered = [category for category in absent if ask(segmenter, encoded(name), category)]
        assert (name, answered) == (name, [])


def test_a_phrase_outside_the_vocabulary_is_answered_with_nothing(
    segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]
) -> None:
    assert segmenter.encode_phrase(Phrase("unicorn")).understanding.outside
    assert ask(segmenter, encoded("cat.jpg"), "unicorn", 0.0) == []


def test_a_second_phrase_costs_no_second_encoding(segmenter: StarterSegmenter, runs: Counter[str]) -> None:
    runs.clear()
    image = segmenter.encode_image(photograph("moonwalk.jpg"), "moonwalk")
    assert runs["detector"] == len(views_of(512, 512))
    runs.clear()
    first = ask(segmenter, image, "person")
    assert runs["detector"] == 0
    assert 1 <= runs["salience"] <= 3
    runs.clear()
    assert masks_of(ask(segmenter, image, "astronaut")) == masks_of(first)
    ask(segmenter, image, "banana")
    assert runs == Counter()


def masks_of(instances: list[Instance]) -> list[str]:
    return [instance.mask.counts for instance in instances]


def test_answers_are_best_first_with_tight_boxes_and_scores_from_the_floor_on(
    segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]
) -> None:
    image = encoded("astronaut.jpg")
    found = ask(segmenter, image, "person, bottle, tie, chair", 0.0)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(segmenter.info.capabilities.score_floor <= score <= 1 for score in scores)
    for one in found:
        assert (one.mask.height, one.mask.width) == (image.height, image.width)
        assert one.mask.area > 0
        assert one.xyxy.tolist() == one.mask.xyxy.tolist()


def test_the_threshold_and_the_number_of_instances_are_kept_to(
    segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]
) -> None:
    image = encoded("cat.jpg")
    phrase = segmenter.encode_phrase(Phrase("animal"))
    assert segmenter.decode(image, phrase, options=SegmentOptions(score_threshold=1.0)) == []
    assert segmenter.decode(image, phrase, options=SegmentOptions(max_instances=0)) == []


def test_a_colour_word_keeps_only_things_of_that_colour(
    segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]
) -> None:
    assert len(ask(segmenter, encoded("car.jpg"), "white car")) == 1
    assert ask(segmenter, encoded("car.jpg"), "green car") == []


def test_the_same_image_gives_the_same_answer_from_any_thread(segmenter: StarterSegmenter) -> None:
    image = segmenter.encode_image(photograph("coffee.jpg"), "coffee")
    again = segmenter.encode_image(photograph("coffee.jpg"), "coffee")
    answers: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda one=one: answers.append(masks_of(ask(segmenter, one, "cup"))))
        for one in (image, image, again)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 3
    assert answers[0] == answers[1] == answers[2] != []


def test_a_large_photograph_is_answered_in_its_own_pixels_from_a_bounded_copy(segmenter: StarterSegmenter) -> None:
    large = np.asarray(Image.fromarray(photograph("cat.jpg")).resize((4000, 3000)))
    image = segmenter.encode_image(large, "large")
    (found,) = ask(segmenter, image, "cat")
    truth = Image.fromarray(drawn_outline("cat.jpg", "cat")).resize((4000, 3000))
    assert mask_iou(found.mask.decode(), np.asarray(truth)) > 0.9
    assert image.nbytes < 16_000_000


def test_bytes_are_counted_honestly(segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]) -> None:
    image = encoded("dog.jpg")
    arrays = sum(value.nbytes for value in image.tensors.values() if isinstance(value, np.ndarray))
    assert arrays <= image.nbytes < 3 * arrays


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 400), (6000, 60)])
def test_an_image_of_any_shape_can_be_asked(segmenter: StarterSegmenter, height: int, width: int) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    image = segmenter.encode_image(noise, "noise")
    for one in ask(segmenter, image, "animal, vehicle, furniture", 0.0):
        assert one.mask.area > 0
    boxed = segmenter.mask_box(image, BoxPrompt((0, 0, width, height)))
    assert (boxed.mask.height, boxed.mask.width) == (height, width)
    assert boxed.mask.area > 0


def test_a_thing_in_a_long_strip_is_found(segmenter: StarterSegmenter) -> None:
    strip = np.full((300, 2400, 3), 200, dtype=np.uint8)
    strip[:, 1100:1400] = np.asarray(Image.fromarray(photograph("cat.jpg")).resize((300, 300)))
    (found,) = ask(segmenter, segmenter.encode_image(strip, "strip"), "cat")
    assert found.xyxy[0] >= 1090
    assert found.xyxy[2] <= 1410


def test_a_drawn_box_gives_the_thing_inside_it_of_any_category(
    segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]
) -> None:
    truth = drawn_outline("parrot.jpg", "bird")
    found = segmenter.mask_box(encoded("parrot.jpg"), BoxPrompt((80, 70, 512, 512)))
    assert mask_iou(found.mask.decode(), truth) > 0.75


@pytest.mark.parametrize("xyxy", [(0.5, 0.5, 1.6, 1.6), (199, 99, 200, 100), (-50, -50, 20, 20)])
def test_a_box_over_nothing_gives_a_mask_inside_it_all_the_same(
    segmenter: StarterSegmenter, grey: ImageFeatures, xyxy: tuple[float, float, float, float]
) -> None:
    found = segmenter.mask_box(grey, BoxPrompt(xyxy))
    assert found.mask.area > 0
    x1, y1, x2, y2 = found.xyxy.tolist()
    assert x1 >= np.floor(xyxy[0])
    assert y1 >= np.floor(xyxy[1])
    assert x2 <= np.ceil(xyxy[2])
    assert y2 <= np.ceil(xyxy[3])


def test_a_box_outside_the_image_is_refused(
    segmenter: StarterSegmenter, encoded: Callable[[str], ImageFeatures]
) -> None:
    with pytest.raises(ValueError, match="covers nothing"):
        segmenter.mask_box(encoded("cat.jpg"), BoxPrompt((600, 600, 700, 700)))


def candidate(score: float, view: int, *, in_tiles_only: bool = False, side: float = 40) -> Candidate:
    return Candidate(np.array([10, 10, 10 + side, 10 + side], dtype=np.float32), score, 1, in_tiles_only, view)


def test_views_that_agree_keep_the_best_score_and_a_lone_view_loses() -> None:
    (agreed,) = agree([candidate(0.4, 0), candidate(0.9, 1)], 8, 10_000)
    (alone,) = agree([candidate(0.9, 1)], 8, 10_000)
    assert agreed.score == pytest.approx(0.9)
    assert alone.score < agreed.score


def test_tiles_alone_are_believed_more_for_small_things() -> None:
    tiles = [candidate(0.9, 5, in_tiles_only=True, side=10), candidate(0.8, 6, in_tiles_only=True, side=10)]
    (small,) = agree(tiles, 8, 10_000)
    (large,) = agree(tiles, 8, 1_000)
    assert small.score > large.score


@pytest.mark.parametrize("view", [View((20, 10, 120, 90)), View((20, 10, 120, 90), mirrored=True, border_px=37)])
def test_a_view_puts_boxes_back_where_they_are_in_the_picture(view: View) -> None:
    picture = np.zeros((100, 200, 3), dtype=np.uint8)
    picture[30:60, 40:80] = 255
    rows, columns = np.nonzero(view.look(picture)[0, :, :, 0] > 0)
    seen = np.array([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]]) / 300
    assert iou_matrix(view.to_picture(seen), [[40, 30, 80, 60]])[0, 0] > 0.9


def test_windows_of_a_strip_cover_it_and_overlap() -> None:
    windows = sorted(view.window for view in views_of(100, 900)[1:])
    assert windows[0][0] == 0
    assert windows[-1][2] == 900
    assert all(left[2] > right[0] for left, right in pairwise(windows))
