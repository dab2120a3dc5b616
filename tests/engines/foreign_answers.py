"""Questions for SAM 3 files of others, and what it means that two models answer alike."""

from __future__ import annotations

import numpy as np
from sam3_shapes import PICTURES, boxes_of

from engines.masks import iou_matrix
from engines.types import Phrase, SegmentOptions

META = ("sam3_samexporter", "sam3_osam")
TRANSFORMERS = ("sam3_usls", "sam3_danilobukvic")
SOME = ("shapes_01.png", "shapes_03.png", "shapes_10.png")
EVERYTHING = SegmentOptions(score_threshold=0.0)


def found_by(segmenter, encoded, file, prompt, options=SegmentOptions()):
    phrase = segmenter.encode_phrase(Phrase(prompt["phrase"]))
    return segmenter.decode(encoded(segmenter, file), phrase, boxes_of(prompt), options)


def assert_same_answers(got, wanted, score_tolerance=1e-3):
    assert len(got) == len(wanted)
    np.testing.assert_allclose([a.score for a in got], [b.score for b in wanted], atol=score_tolerance)
    for one, other in zip(got, wanted, strict=True):
        assert iou_matrix([one.mask], [other.mask])[0, 0] >= 0.99
        np.testing.assert_allclose(one.xyxy, other.xyxy, atol=2)


def prompts_of(*kinds):
    return [(file, prompt) for file in SOME for prompt in PICTURES[file]["prompts"] if prompt["kind"] in kinds]


WITHOUT_BOXES = prompts_of("colour+shape", "shape", "colour", "absent")
WITH_BOX = prompts_of("exemplar", "negative", "text+positive")
