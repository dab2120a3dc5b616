"""The SAM 3 family from end to end, on a small SAM 3 that knows shapes and colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sam3_shapes import BUNDLE, PICTURES, STEADY, boxes_of, load_shapes, meant_by, picture

from engines.bundle import TensorSpec, read_bundle
from engines.errors import BoxError, BundleManifestError, NothingFoundError, PhraseError
from engines.families.sam3 import FAMILY, Sam3Segmenter
from engines.loader import load_segmenter
from engines.masks import Mask, iou_matrix
from engines.protocols import (
    DecodesTogether,
    EncodesTogether,
    decode_many,
    encode_images,
    images_at_once,
    prepare_image,
)
from engines.types import BoxPrompt, ImageFeatures, Instance, Phrase, SegmentOptions

EVERYTHING = SegmentOptions(score_threshold=0.0)


@pytest.fixture(scope="module")
def runs() -> Counter[str]:
    return Counter()


@pytest.fixture(scope="module")
def segmenter(runs: Counter[str]) -> Sam3Segmenter:
    return load_shapes(runs)


@pytest.fixture(scope="module")
def encoded(segmenter: Sam3Segmenter) -> Callable[[str], ImageFeatures]:
    features: dict[str, ImageFeatures] = {}

    def encode(file: str) -> ImageFeatures:
        if file not in features:
            features[file] = segmenter.encode_image(picture(file), file)
        return features[file]

    return encode


def masks_of(instances: list[Instance]) -> list[Mask]:
    return [instance.mask for instance in instances]


def assert_same_things(got: list[Mask], wanted: list[Mask]) -> None:
    assert len(got) == len(wanted)
    if wanted:
        overlap = iou_matrix(got, wanted)
        assert overlap.max(axis=0).min() >= 0.7
        assert overlap.max(axis=1).min() >= 0.7


@pytest.mark.parametrize(
    ("file", "prompt"), STEADY, ids=lambda value: value if isinstance(value, str) else value["kind"]
)
def test_what_pytorch_answers_surely_is_answered_right(file, prompt, segmenter, encoded):
    phrase = segmenter.encode_phrase(Phrase(prompt["phrase"]))
    found = segmenter.decode(encoded(file), phrase, boxes_of(prompt))
    assert_same_things(masks_of(found), meant_by(file, prompt))
    assert [instance.score for instance in found] == sorted((one.score for one in found), reverse=True)
    # PyTorch's scores leave out a geometry token that is always in here, as in training.
    np.testing.assert_allclose([one.score for one in found], prompt["scores"], atol=0.15)


def test_the_steady_prompts_cover_every_kind():
    kinds = Counter(prompt["kind"] for _, prompt in STEADY)
    assert set(kinds) == {"colour+shape", "shape", "colour", "absent", "exemplar", "negative", "text+positive"}


def test_what_is_not_there_is_not_found_at_one_half(segmenter, encoded):
    for file, picture_truth in PICTURES.items():
        for prompt in picture_truth["prompts"]:
            if prompt["kind"] == "absent":
                assert segmenter.decode(encoded(file), segmenter.encode_phrase(Phrase(prompt["phrase"]))) == []


def test_a_negative_box_takes_away_what_is_like_it(segmenter, encoded):
    file, prompt = next((file, prompt) for file, prompt in STEADY if prompt["kind"] == "negative")
    phrase, [box] = segmenter.encode_phrase(Phrase(prompt["phrase"])), boxes_of(prompt)
    without = segmenter.decode(encoded(file), phrase)
    left = segmenter.decode(encoded(file), phrase, [box])
    assert len(without) > len(left) > 0
    assert any(lies_in(instance, box) for instance in without)
    assert not any(lies_in(instance, box) for instance in left)


def lies_in(instance: Instance, box: BoxPrompt) -> bool:
    x, y = (instance.xyxy[:2] + instance.xyxy[2:]) / 2
    return bool(box.xyxy[0] < x < box.xyxy[2] and box.xyxy[1] < y < box.xyxy[3])


def test_boxes_alone_go_with_the_phrase_that_the_model_names(segmenter, encoded):
    assert segmenter.info.capabilities.exemplar_boxes
    assert segmenter.info.capabilities.exemplar_phrase == "visual"


def test_several_boxes_and_both_signs_go_together(segmenter, encoded):
    first, second, third = (tuple(thing["box"]) for thing in PICTURES["shapes_05.png"]["objects"][:3])
    boxes = [BoxPrompt(first), BoxPrompt(second), BoxPrompt(third, positive=False)]
    found = segmenter.decode(encoded("shapes_05.png"), segmenter.encode_phrase(Phrase("visual")), boxes, EVERYTHING)
    assert all(0.1 <= instance.score <= 1 for instance in found)


def test_a_second_phrase_runs_neither_the_vision_graph_nor_a_known_phrase_the_text_graph(segmenter, runs):
    features = segmenter.encode_image(picture("shapes_00.png"), "counted")
    runs.clear()
    for text in ("brown octopus", "brown octopuses", "brown octopus"):
        segmenter.decode(features, segmenter.encode_phrase(Phrase(text)))
    assert runs == {"text": 2, "decoder": 3}


def test_case_and_spaces_around_do_not_matter(segmenter, runs):
    usual = segmenter.encode_phrase(Phrase("white star"))
    runs.clear()
    for text in ("  White   STAR \n", "WHITE STAR", "white\u00a0star"):
        assert segmenter.encode_phrase(Phrase(text)).tensors is usual.tensors
    assert not runs


def test_several_phrases_in_one_run_find_what_each_finds_alone(segmenter, encoded, runs):
    image = encoded("shapes_10.png")
    texts = list(dict.fromkeys(prompt["phrase"] for prompt in PICTURES["shapes_10.png"]["prompts"]))[:5]
    phrases = [segmenter.encode_phrase(Phrase(text)) for text in texts]
    alone = [segmenter.decode(image, phrase) for phrase in phrases]
    runs.clear()
    together = segmenter.decode_many(image, phrases)
    assert runs == {"decoder": 2}
    assert any(alone)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose([a.score for a in one], [b.score for b in other], atol=1e-4)
        assert all(iou_matrix([a.mask], [b.mask])[0, 0] > 0.999 for a, b in zip(one, other, strict=True))


def test_pictures_of_different_sizes_encoded_together_are_as_encoded_alone(segmenter, runs):
    files = ["shapes_00.png", "shapes_10.png", "shapes_01.png"]
    alone = [segmenter.encode_image(picture(file), file) for file in files]
    runs.clear()
    prepared = [prepare_image(segmenter, picture(file), file) for file in files]
    together = encode_images(segmenter, prepared)
    assert runs == {"vision": 1}
    for one, other in zip(alone, together, strict=True):
        assert (one.image_id, one.height, one.width, one.nbytes) == (
            other.image_id,
            other.height,
            other.width,
            other.nbytes,
        )
        for name, tensor in one.tensors.items():
            np.testing.assert_allclose(other.tensors[name], tensor, atol=1e-3)
            assert other.tensors[name].base is None


def test_on_a_cpu_pictures_go_through_the_encoder_one_by_one(segmenter):
    assert images_at_once(segmenter) == 1


def test_pictures_together_work_with_any_segmenter(segmenter):
    class OneByOne:
        def encode_image(self, rgb, image_id):
            return image_id, rgb.shape

    assert isinstance(segmenter, EncodesTogether)
    images = [prepare_image(OneByOne(), np.zeros((4, side, 3), np.uint8), str(side)) for side in (5, 6)]
    assert images_at_once(OneByOne()) == 1
    assert encode_images(OneByOne(), images) == [("5", (4, 5, 3)), ("6", (4, 6, 3))]


def test_no_phrase_finds_nothing_and_runs_nothing(segmenter, encoded, runs):
    image = encoded("shapes_00.png")
    runs.clear()
    assert segmenter.decode_many(image, []) == []
    assert not runs


def test_phrases_together_work_with_any_segmenter(segmenter, encoded):
    class OneByOne:
        def decode(self, image, phrase, boxes=(), options=SegmentOptions()):
            return [phrase, options.score_threshold]

    assert isinstance(segmenter, DecodesTogether)
    assert not isinstance(OneByOne(), DecodesTogether)
    assert decode_many(OneByOne(), encoded("shapes_00.png"), ["a", "b"], EVERYTHING) == [["a", 0.0], ["b", 0.0]]
    phrases = [segmenter.encode_phrase(Phrase("white star"))]
    assert len(decode_many(segmenter, encoded("shapes_00.png"), phrases)) == 1


@pytest.mark.parametrize("text", ["一只条纹猫", "赤い 丸", "красный круг", "🐱", "cat’s toy &amp; ½ ﬁsh"])
def test_any_script_is_taken(text, segmenter, encoded):
    phrase = segmenter.encode_phrase(Phrase(text))
    assert phrase.understanding.sentence == ""
    segmenter.decode(encoded("shapes_00.png"), phrase)


def test_five_thousand_characters_are_cut_and_the_person_is_told(segmenter, encoded):
    text = "Red Circle " * 454 + "Thing"
    phrase = segmenter.encode_phrase(Phrase(text))
    assert phrase.understanding.cut == "Red Circle " * 439 + "Thing"
    assert phrase.understanding.sentence.startswith("too long, cut off: Red Circle Red")
    assert phrase.tensors["text_mask"].all()
    segmenter.decode(encoded("shapes_00.png"), phrase)


@pytest.mark.parametrize("text", ["...", "?!", "—", "&nbsp;", "\u200b", "“”"])
def test_a_phrase_without_a_word_is_refused(text, segmenter):
    with pytest.raises(PhraseError, match=r"holds no word; type a noun phrase"):
        segmenter.encode_phrase(Phrase(text))


def test_threads_may_ask_for_phrases_at_once(segmenter):
    texts = [f"{colour} {shape}" for colour in ("red", "mauve") for shape in ("star", "lamp")] * 8
    with ThreadPoolExecutor(8) as pool:
        encoded = list(pool.map(lambda text: segmenter.encode_phrase(Phrase(text)), texts))
    by_text: dict[str, np.ndarray] = {}
    for text, phrase in zip(texts, encoded, strict=True):
        np.testing.assert_array_equal(
            phrase.tensors["text_features"], by_text.setdefault(text, phrase.tensors["text_features"])
        )


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 400), (60, 6000), (3000, 4000)])
def test_pictures_of_any_size_work(height, width, segmenter):
    rows, columns = np.mgrid[:height, :width]
    disc = ((rows / height - 0.5) ** 2 + (columns / width - 0.5) ** 2 < 0.05)[..., None]
    rgb = np.where(disc, np.array([220, 30, 30]), 120).astype(np.uint8)
    features = segmenter.encode_image(rgb, "odd")
    assert features.nbytes == sum(tensor.nbytes for tensor in features.tensors.values())
    for text in ("red circle", "circle"):
        for instance in segmenter.decode(features, segmenter.encode_phrase(Phrase(text)), (), EVERYTHING):
            assert (instance.mask.height, instance.mask.width) == (height, width)
            assert instance.mask.area > 0
            np.testing.assert_array_equal(instance.xyxy, instance.mask.xyxy)


def test_the_stretched_circle_of_a_wide_picture_is_masked_where_it_is(segmenter):
    rows, columns = np.mgrid[:300, :900]
    disc = (rows - 150) ** 2 + (columns / 3 - 150) ** 2 < 60**2
    rgb = np.where(disc[..., None], np.array([220, 30, 30]), 120).astype(np.uint8)
    found = segmenter.decode(segmenter.encode_image(rgb, "wide"), segmenter.encode_phrase(Phrase("red circle")))
    assert iou_matrix(masks_of(found), [Mask.encode(disc)])[0, 0] > 0.8


@pytest.mark.parametrize("xyxy", [(10, 10, 10, 50), (50, 50, 20, 20), (-20, 0, 0, 10), (640, 0, 700, 10)])
def test_a_box_without_area_in_the_picture_is_refused(xyxy, segmenter, encoded):
    phrase = segmenter.encode_phrase(Phrase("visual"))
    with pytest.raises(BoxError, match="covers nothing of the 640×480 image"):
        segmenter.decode(encoded("shapes_00.png"), phrase, [BoxPrompt(xyxy)])
    with pytest.raises(BoxError, match="draw it over the object"):
        segmenter.mask_box(encoded("shapes_00.png"), BoxPrompt(xyxy))


def test_a_box_that_hangs_over_the_edge_counts_as_its_part_inside(segmenter, encoded):
    phrase = segmenter.encode_phrase(Phrase("visual"))
    over, inside = BoxPrompt((486, 179, 900, 330)), BoxPrompt((486, 179, 640, 330))
    first, second = (segmenter.decode(encoded("shapes_00.png"), phrase, [box]) for box in (over, inside))
    assert len(first) > 0
    assert masks_of(first) == masks_of(second)


def test_a_drawn_box_gives_the_thing_inside_it_alone(segmenter, encoded):
    for file, prompt in STEADY:
        if prompt["kind"] == "exemplar":
            [box] = boxes_of(prompt)
            thing = segmenter.mask_box(encoded(file), box)
            assert lies_in(thing, box)
            assert iou_matrix([thing.mask], meant_by(file, prompt)).max() >= 0.7
            assert iou_matrix([thing.mask], meant_by(file, prompt)).sum() < 1.2


def test_most_things_are_masked_by_their_own_box(segmenter, encoded):
    overlaps = []
    for file, picture_truth in PICTURES.items():
        for thing in picture_truth["objects"]:
            instance = segmenter.mask_box(encoded(file), BoxPrompt(tuple(thing["box"])))
            overlaps.append(iou_matrix([instance.mask], [Mask.from_rle(thing["mask"])])[0, 0])
    assert np.mean(overlaps) > 0.7


def test_a_box_on_nothing_says_so(segmenter):
    grey = segmenter.encode_image(np.full((200, 200, 3), 128, dtype=np.uint8), "grey")
    with pytest.raises(NothingFoundError, match=r"finds nothing in the box \(20, 20, 60, 60\); draw it closely"):
        segmenter.mask_box(grey, BoxPrompt((20, 20, 60, 60)))


def test_it_proposes_no_phrase(segmenter, encoded):
    assert segmenter.example_phrases(encoded("shapes_00.png")) == []


def test_the_loader_finds_the_family_and_says_what_was_loaded():
    info = load_segmenter(read_bundle(BUNDLE), "onnxruntime", "cpu").info
    assert (info.family, info.runtime, info.device) == ("sam3", "onnxruntime", "cpu")
    assert info.capabilities.open_vocabulary
    assert info.capabilities.score_floor == 0.1


def test_a_bundle_without_a_graph_or_with_other_tensors_is_refused():
    bundle = read_bundle(BUNDLE)
    without = {role: graph for role, graph in bundle.graphs.items() if role != "text"}
    with pytest.raises(BundleManifestError, match="a SAM 3 model needs a graph 'text'; copy or export"):
        FAMILY.load(replace(bundle, graphs=without), pytest.fail)
    foreign = replace(bundle.graphs["text"], inputs=(TensorSpec("tokens", "int64", (1, 32)),))
    with pytest.raises(BundleManifestError, match="the inputs of graph 'text' are tokens, wanted input_ids"):
        FAMILY.load(replace(bundle, graphs={**bundle.graphs, "text": foreign}), pytest.fail)
    open_ended = replace(bundle.graphs["text"], inputs=(TensorSpec("input_ids", "int32", (None, None)),))
    with pytest.raises(BundleManifestError, match="'input_ids' of graph 'text' has no fixed size on axis 1"):
        FAMILY.load(replace(bundle, graphs={**bundle.graphs, "text": open_ended}), pytest.fail)
