"""Duplicates on the page, in a real browser: hidden by default, back on request, and never accepted unseen."""

from __future__ import annotations

import pytest
from fake_segmenter import FakeSegmenter

from annotator.records import Decision

WHOLE, SHIFTED, PART, APART = (2, 2, 22, 22), (2, 3, 22, 23), (6, 6, 12, 12), (40, 2, 60, 22)


@pytest.fixture
def segmenter():
    return FakeSegmenter({"cup": [(WHOLE, 0.9), (SHIFTED, 0.8), (PART, 0.7), (APART, 0.6)]})


def decisions(workspace):
    image = workspace.store.image_at("a.png")
    return {item.score: item.decision for item in workspace.store.annotations(image.image_id)}


def move(screen, slider, value):
    screen.page.eval_on_selector(
        slider, f"node => {{ node.value = {value}; node.dispatchEvent(new Event('change')); }}"
    )


def test_a_duplicate_and_a_fragment_are_hidden_until_they_are_asked_for(screen, segmenter):
    screen.keep_phrase("cup")
    screen.wait("page.visibleInstances().length === 2")
    assert screen.page.inner_text(".repeats-count") == "2 hidden"
    n_calls = len(segmenter.calls)
    move(screen, ".repeats-iou", 1)
    screen.wait("page.visibleInstances().length === 2")
    move(screen, ".repeats-containment", 1)
    screen.wait("page.visibleInstances().length === 4")
    assert len(segmenter.calls) == n_calls
    screen.wait("document.querySelector('.repeats-count').textContent === 'none hidden'")


def test_of_words_being_typed_too(screen, segmenter):
    screen.type_phrase("cup")
    assert screen.state("page.visibleInstances().length") == 2
    n_calls = segmenter.count("decode")
    move(screen, ".repeats-containment", 1)
    move(screen, ".repeats-iou", 1)
    screen.wait("page.visibleInstances().length === 4")
    assert segmenter.count("decode") == n_calls


def test_what_is_hidden_is_not_accepted_with_the_rest(screen, workspace):
    screen.keep_phrase("cup")
    screen.wait("page.visibleInstances().length === 2")
    screen.press("Space", "page.state.view.image.path === 'b.png'")
    pending, accepted = Decision.PENDING, Decision.ACCEPTED
    assert decisions(workspace) == {0.9: accepted, 0.8: pending, 0.7: pending, 0.6: accepted}
