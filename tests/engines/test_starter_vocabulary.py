"""What the starter model makes of a phrase."""

from __future__ import annotations

import json
import time

import pytest

from engines.bundle import SHIPPED_MODELS
from engines.families._starter.colours import has_colour
from engines.families._starter.vocabulary import Vocabulary, Wanted
from engines.types import Understanding

TABLE = SHIPPED_MODELS / "starter" / "vocabulary.json"
VOCABULARY = Vocabulary.read(TABLE)


def understand(text: str) -> Understanding:
    return VOCABULARY.understand(text)[1]


@pytest.mark.parametrize(
    ("phrase", "category"),
    [
        *[
            (word, "person")
            for word in ("person", "man", "Women", "people", "astronaut", "a child", "policemen", "kids")
        ],
        *[(word, "cat") for word in ("cat", "Cats", "the cat", "two kittens", "CAT!", "cat.")],
        *[(word, "cup") for word in ("coffee cup", "mug", "a cup of tea", "cups")],
        ("motorbike", "motorcycle"),
        ("sofa", "couch"),
        ("puppies", "dog"),
        ("golden retriever", "dog"),
        ("brown bear", "bear"),
        ("hen", "bird"),
        ("fishing boats", "boat"),
        ("knives", "knife"),
        ("smartphone", "cell phone"),
        ("traffic_lights", "traffic light"),
        ("hot-dog", "hot dog"),
        ("a pair of scissors", "scissors"),
        ("a photo of a dog", "dog"),
        ("group of people", "person"),
    ],
)
def test_a_word_for_a_category_is_matched_to_it(phrase: str, category: str) -> None:
    answer = understand(phrase)
    assert answer.matched == (category,)
    assert not answer.outside


@pytest.mark.parametrize(
    ("phrase", "category"),
    [
        ("hot dog", "hot dog"),
        ("dog", "dog"),
        ("dining table", "dining table"),
        ("teddy bears", "teddy bear"),
        ("polar bear", "bear"),
        ("baseball bat", "baseball bat"),
        ("orange", "orange"),
        ("tv remote", "remote"),
        ("bus driver", "person"),
        ("wine glasses", "wine glass"),
    ],
)
def test_the_longest_known_ending_decides(phrase: str, category: str) -> None:
    assert understand(phrase).matched == (category,)


@pytest.mark.parametrize(
    "phrase",
    [
        *[
            "mouse pad",
            "car seat",
            "cat food",
            "bus stop",
            "bicycle helmet",
            "koala bear",
            "sea horse",
            "rocking horse",
        ],
        *[
            "bat",
            "glasses",
            "cat's tail",
            "face of a person",
            "phone charger",
            "power plant",
            "guinea pig",
            "horse race",
        ],
        *["flower", "visual word", "red", "no dog", "not a cat", "without people", "snowman"],
        *["猫", "кот", "gato", "voiture", "....", "@#$%", "7", "x" * 5000],
    ],
)
def test_another_thing_is_outside_the_vocabulary(phrase: str) -> None:
    wanted, answer = VOCABULARY.understand(phrase)
    assert wanted == ()
    assert answer.outside
    assert answer.sentence.startswith("outside this model's vocabulary")


@pytest.mark.parametrize(
    ("phrase", "matched", "ignored"),
    [
        ("cat on the sofa", ("cat",), ("on the sofa",)),
        ("a man with a hat", ("person",), ("with a hat",)),
        ("person without helmet", ("person",), ("without helmet",)),
        ("woman riding a bike", ("person",), ("riding a bike",)),
        ("striped cat", ("cat",), ("striped",)),
        ("black and white cat", ("cat",), ("black", "white")),
        ("dog, unicorn", ("dog",), ("unicorn",)),
        ("white man", ("person",), ("white",)),
        ("dark red car", ("red car",), ("dark",)),
    ],
)
def test_words_without_effect_are_named(phrase: str, matched: tuple[str, ...], ignored: tuple[str, ...]) -> None:
    answer = understand(phrase)
    assert (answer.matched, answer.ignored) == (matched, ignored)


def test_two_nouns_are_looked_for_together() -> None:
    assert understand("people; astronaut").matched == ("person",)
    assert understand("a dog and two cats").matched == ("dog", "cat")
    assert understand("cat/dog").matched == ("cat", "dog")


def test_a_general_word_stands_for_several_categories() -> None:
    vehicles = understand("vehicles").matched
    assert {"car", "bus", "truck", "bicycle", "boat"} <= set(vehicles)
    assert {"cat", "dog", "bird", "zebra"} <= set(understand("animal").matched)


def test_a_colour_before_a_thing_is_looked_for() -> None:
    wanted, answer = VOCABULARY.understand("a red coffee cup")
    assert wanted == (Wanted((47,), "red"),)
    assert answer.matched == ("red cup",)


def test_a_phrase_of_5000_letters_is_cut_and_says_so_at_once() -> None:
    started = time.perf_counter()
    answer = understand("small striped cat, " * 270)
    assert time.perf_counter() - started < 0.5
    assert answer.matched == ("cat",)
    assert "small striped cat" in answer.cut
    assert len(answer.sentence) < 300


def test_the_table_holds_the_80_categories_under_their_coco_ids() -> None:
    table = json.loads(TABLE.read_text(encoding="ascii"))
    categories = table["categories"]
    assert len(categories) == 80
    assert [categories[name] for name in ("person", "cat", "dog", "cup", "toothbrush")] == [1, 17, 18, 47, 90]
    assert all(set(names) <= set(categories) for names in table["nouns"].values())


@pytest.mark.parametrize("name", json.loads(TABLE.read_text(encoding="ascii"))["categories"])
def test_every_category_is_found_by_its_own_name(name: str) -> None:
    assert understand(name).matched == (name,)
    assert name.endswith("s") or understand(f"two {name}s").matched == (name,)


@pytest.mark.parametrize(
    ("rgb", "colour"),
    [
        ((200, 20, 20), "red"),
        ((240, 140, 20), "orange"),
        ((230, 220, 30), "yellow"),
        ((30, 160, 40), "green"),
        ((30, 60, 200), "blue"),
        ((110, 60, 30), "brown"),
        ((20, 20, 22), "black"),
        ((245, 245, 245), "white"),
        ((128, 128, 128), "gray"),
    ],
)
def test_a_plain_colour_is_told_from_the_others(rgb: tuple[int, int, int], colour: str) -> None:
    import numpy as np

    pixels = np.tile(np.array(rgb, dtype=np.uint8), (50, 1))
    told = {name for name in ("red", "yellow", "green", "blue", "black", "white", "gray") if has_colour(pixels, name)}
    assert has_colour(pixels, colour)
    assert told <= {colour}
