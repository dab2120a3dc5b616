"""Which instances show a thing once more."""

from __future__ import annotations

from fake_segmenter import rectangle_instance

from annotator.records import Annotation, Decision, KeptPhrase
from annotator.repeats import DEFAULT_LIMITS, ChoiceRules, chosen_places, hidden_ids, places_not_there, places_shown
from engines.suppression import SuppressionLimits

OFF = SuppressionLimits(iou=1.0, containment=1.0)
CUP, MUG, CAT = KeptPhrase(1, "cup", 1), KeptPhrase(2, "mug", 1), KeptPhrase(3, "cat", 2)
WHOLE, SHIFTED, PART, APART = (0, 0, 20, 20), (0, 2, 20, 22), (5, 5, 10, 10), (30, 30, 40, 40)
# WHOLE and SHIFTED share 360 of 440 pixels; PART lies inside both.


def instance(xyxy, score=0.9):
    return rectangle_instance(xyxy, score, 50, 60)


def annotation(annotation_id, xyxy, decision=Decision.PENDING, kept=CUP, score=0.9):
    mask = instance(xyxy).mask
    return Annotation(annotation_id, 1, kept.category_id, kept.text, mask, xyxy, score, "model", decision)


def chosen(*found, there=(), **rules):
    return chosen_places(found, there, ChoiceRules(**rules))


def test_a_duplicate_and_a_fragment_of_one_phrase_go():
    instances = [instance(WHOLE, 0.9), instance(SHIFTED, 0.8), instance(PART, 0.7), instance(APART, 0.6)]
    assert chosen((CUP, instances)) == [[0, 3]]
    assert chosen((CUP, instances), limits=OFF) == [[0, 1, 2, 3]]


def test_of_two_phrases_of_one_category_the_better_one_keeps_the_thing():
    assert chosen((CUP, [instance(WHOLE, 0.7)]), (MUG, [instance(SHIFTED, 0.8)])) == [[], [0]]


def test_categories_share_a_thing_unless_asked_not_to():
    found = (CUP, [instance(WHOLE, 0.7)]), (CAT, [instance(SHIFTED, 0.8)])
    assert chosen(*found) == [[0], [0]]
    assert chosen(*found, across_categories=True) == [[], [0]]


def test_noise_goes_and_drops_nothing_else():
    assert chosen((CUP, [instance(PART, 0.9), instance(APART, 0.8)]), min_area=26) == [[1]]


def test_what_is_there_is_not_added_again_whatever_was_decided_on_it():
    for decision in Decision:
        there = [annotation(1, SHIFTED, decision, MUG)]
        assert chosen((CUP, [instance(WHOLE)]), there=there) == [[]]
        assert chosen((CUP, [instance(WHOLE)]), there=there, limits=OFF) == [[]]
        assert places_not_there(CUP, [instance(WHOLE)], there) == []
        assert chosen((CAT, [instance(WHOLE)]), there=there) == [[0]]


def test_open_suggestions_that_are_replaced_do_not_count():
    there = [annotation(1, WHOLE, Decision.PENDING, CUP)]
    assert chosen((CUP, [instance(WHOLE)]), there=there) == [[0]]
    assert chosen((CUP, [instance(WHOLE)]), (MUG, []), there=there) == [[0], []]


def test_a_part_of_what_a_person_accepted_goes_and_of_what_was_rejected_stays():
    assert chosen((CUP, [instance(PART)]), there=[annotation(1, WHOLE, Decision.ACCEPTED)]) == [[]]
    assert chosen((CUP, [instance(PART)]), there=[annotation(1, WHOLE, Decision.REJECTED)]) == [[0]]


def test_masks_of_an_image_that_had_another_size_are_not_compared():
    small = rectangle_instance((0, 0, 10, 10), 0.9, 20, 20).mask
    there = [Annotation(1, 1, 1, "cup", small, (0, 0, 10, 10), 0.9, "model", Decision.ACCEPTED)]
    assert chosen((CUP, [instance(WHOLE)]), there=there) == [[0]]
    assert hidden_ids([*there, annotation(2, WHOLE)], DEFAULT_LIMITS) == set()


def test_the_worse_of_two_open_suggestions_is_hidden():
    better, worse, apart = annotation(1, WHOLE, score=0.7), annotation(2, SHIFTED, score=0.6), annotation(3, APART)
    assert hidden_ids([apart, better, worse], DEFAULT_LIMITS) == {2}
    assert hidden_ids([apart, better, worse], OFF) == set()


def test_nothing_decided_is_hidden_and_decisions_come_before_scores():
    decided = annotation(1, WHOLE, Decision.ACCEPTED, score=0.4)
    rejected = annotation(2, SHIFTED, Decision.REJECTED, score=0.4)
    assert hidden_ids([decided, rejected, annotation(3, WHOLE)], DEFAULT_LIMITS) == {3}
    assert hidden_ids([rejected, annotation(3, PART)], DEFAULT_LIMITS) == set()


def test_of_a_draft_only_what_would_not_be_hidden_is_shown():
    draft = [instance(WHOLE, 0.9), instance(SHIFTED, 0.8), instance(APART, 0.7)]
    assert places_shown(CUP, draft, [0, 1, 2], [], DEFAULT_LIMITS) == [0, 2]
    assert places_shown(CUP, draft, [0, 1, 2], [], OFF) == [0, 1, 2]
    there = [annotation(1, (29, 29, 41, 41), Decision.ACCEPTED, MUG)]
    assert places_shown(CUP, draft, [0, 2], there, DEFAULT_LIMITS) == [0]
