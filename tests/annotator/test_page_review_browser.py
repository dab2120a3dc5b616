"""Deciding on the page, over a fake model: what is stored, what is undone, and what waits."""

from __future__ import annotations

import time

import pytest

from annotator.records import Decision, ImageState

pytestmark = pytest.mark.browser


def stored(workspace, name="a.png"):
    return workspace.store.annotations(workspace.store.image_at(name).image_id)


def state(workspace, name="a.png"):
    return workspace.store.image_at(name).state


def test_a_click_rejects_and_a_second_click_accepts(screen, workspace):
    screen.keep_phrase("cup")
    screen.click_pixel(7, 7)
    screen.wait("page.instances()[0].decision === 'rejected'")
    assert stored(workspace)[0].decision is Decision.REJECTED
    screen.click_pixel(7, 7)
    screen.wait("page.instances()[0].decision === 'accepted'")
    assert stored(workspace)[0].decision is Decision.ACCEPTED


def test_a_drag_pans_and_decides_nothing(screen, workspace):
    screen.keep_phrase("cup")
    before = screen.on_screen(7, 7)
    screen.drag_pixels((7, 7), (20, 15))
    screen.page.wait_for_timeout(200)
    assert screen.on_screen(7, 7) != pytest.approx(before)
    assert {item.decision for item in stored(workspace)} == {Decision.PENDING}


def test_hovering_lights_up_the_line_of_the_list(screen):
    screen.keep_phrase("cup")
    screen.page.mouse.move(*screen.on_screen(25, 7))
    screen.page.wait_for_selector(".instance.is-hovered")
    assert screen.page.inner_text(".instance.is-hovered .instance-score") == "0.70"


def test_a_decision_on_typed_masks_keeps_their_phrase(screen, workspace):
    screen.type_phrase("cup")
    screen.page.keyboard.press("Escape")
    screen.press("1", "page.state.view.annotations.length === 3")
    assert [item.decision for item in stored(workspace)] == [Decision.REJECTED, Decision.PENDING, Decision.PENDING]
    assert [kept.text for kept in workspace.store.kept_phrases()] == ["cup"]


def test_space_accepts_what_is_left_and_goes_on(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("2", "page.instances()[1].decision === 'rejected'")
    screen.press("Space", "page.state.view.image.path === 'b.png'")
    assert [item.decision for item in stored(workspace)] == [Decision.ACCEPTED, Decision.REJECTED, Decision.PENDING]
    assert state(workspace) is ImageState.DONE
    assert screen.page.inner_text(".queue-progress") == "1/5 done"


def test_words_typed_right_after_enter_are_not_lost_as_keys(screen, workspace, segmenter):
    segmenter.on_decode = lambda: time.sleep(0.3)
    screen.page.keyboard.press("/")
    screen.page.keyboard.type("cup", delay=20)
    screen.page.keyboard.press("Enter")
    screen.page.keyboard.press("/")
    screen.page.keyboard.type("cat on a box", delay=40)
    screen.wait(
        "page.state.draft?.text === 'cat on a box' && !page.state.asked && page.state.view.phrases.length === 1"
    )
    assert state(workspace) is not ImageState.DONE
    assert screen.page.input_value(".phrase-input") == "cat on a box"


def test_space_accepts_nothing_that_has_not_been_seen(screen, workspace, segmenter):
    segmenter.on_decode = lambda: time.sleep(0.5)
    screen.page.keyboard.press("/")
    screen.page.keyboard.type("cup")
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("Space")
    assert "press Space again" in screen.page.inner_text(".notice")
    assert state(workspace) is not ImageState.DONE
    screen.wait("page.state.draft?.text === 'cup' && !page.state.asked && !page.state.activity")
    screen.press("Space", "page.state.view.image.path === 'b.png'")
    assert [item.decision for item in stored(workspace)][:2] == [Decision.ACCEPTED, Decision.ACCEPTED]


def test_space_does_not_overtake_a_box_that_is_being_drawn(screen, workspace, segmenter):
    plain = segmenter.mask_box
    segmenter.mask_box = lambda image, box: (time.sleep(0.6), plain(image, box))[1]
    screen.page.keyboard.press("b")
    screen.drag_pixels((10, 10), (30, 20))
    screen.page.keyboard.press("Space")
    screen.wait("page.state.view.annotations.length === 1")
    assert state(workspace) is not ImageState.DONE


def test_a_late_answer_does_not_bring_back_the_image_before(screen, segmenter):
    plain = segmenter.mask_box
    segmenter.mask_box = lambda image, box: (time.sleep(0.6), plain(image, box))[1]
    screen.page.keyboard.press("b")
    screen.drag_pixels((10, 10), (30, 20))
    screen.press("ArrowRight", "page.state.view.image.path === 'b.png'")
    screen.wait("page.state.images.find((row) => row.path === 'a.png').n_accepted === 1")
    assert screen.state("page.state.view.image.path") == "b.png"


def test_several_decisions_in_a_row_do_not_refuse_each_other(screen, workspace):
    screen.type_phrase("cup")
    screen.page.keyboard.press("Escape")
    screen.page.evaluate("() => { for (const id of ['draft:0', 'draft:1']) window.phrasemask.toggle(id); }")
    screen.wait("page.instances().filter((item) => item.decision === 'rejected').length === 2")
    assert [item.decision for item in stored(workspace)][:2] == [Decision.REJECTED, Decision.REJECTED]


def test_a_checkbox_is_toggled_by_space_and_finishes_nothing(screen, workspace):
    screen.page.focus(".show-rejected")
    screen.page.keyboard.press("Space")
    assert screen.state("page.state.showRejected") is False
    assert state(workspace) is not ImageState.DONE


def test_the_next_image_has_its_phrases_run_already(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("Space", "page.state.view.image.path === 'b.png'")
    screen.wait("page.state.view.annotations.length === 3")
    screen.press("Space", "page.state.view.image.path !== 'b.png'")
    assert state(workspace, "b.png") is ImageState.DONE


def test_accept_all_and_reject_all_are_one_step_each(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("a", "page.instances()[1].decision === 'accepted'")
    screen.press("z", "page.instances()[1].decision === 'pending'")
    assert {item.decision for item in stored(workspace)} == {Decision.PENDING}
    screen.press("x", "page.instances()[1].decision === 'rejected'")
    assert [item.decision for item in stored(workspace)] == [Decision.REJECTED, Decision.REJECTED, Decision.PENDING]


def test_undo_goes_back_to_the_image_it_was_on_and_redo_does_it_again(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("Space", "page.state.view.image.path === 'b.png'")
    screen.press("z", "page.state.view.image.path === 'a.png'")
    assert state(workspace) is ImageState.SUGGESTED
    assert "undone: accept 2 and finish" in screen.page.inner_text(".notice")
    screen.press("Z", "page.state.view.image.state === 'done'")
    assert state(workspace) is ImageState.DONE


def test_undo_survives_a_reload(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("1", "page.instances()[0].decision === 'rejected'")
    screen.page.reload()
    screen.wait("page.state.view?.annotations.length === 3")
    screen.press("z", "page.instances()[0].decision === 'pending'")
    assert stored(workspace)[0].decision is Decision.PENDING


def test_a_reload_shows_the_same_image_and_loses_nothing(screen):
    screen.open("b.png")
    screen.keep_phrase("cat")
    screen.press("1", "page.instances()[0].decision === 'rejected'")
    screen.page.reload()
    screen.wait("page.state.view?.image.path === 'b.png' && page.instances()[0]?.decision === 'rejected'")


def test_a_reload_keeps_the_threshold_and_the_opacity(screen):
    screen.page.fill(".threshold input", "0.35")
    screen.page.fill(".opacity", "0.8")
    screen.page.reload()
    screen.wait("page.state.model && page.state.threshold === 0.35 && page.state.opacity === 0.8")


def test_a_drawn_box_becomes_a_mask_of_the_category(screen, workspace):
    screen.page.keyboard.press("b")
    screen.wait("page.state.tool === 'box'")
    screen.drag_pixels((10, 10), (30, 20))
    screen.wait("page.state.view.annotations.length === 1")
    drawn = stored(workspace)[0]
    assert (drawn.drawn, drawn.decision) == (True, Decision.ACCEPTED)
    assert drawn.mask.xywh == pytest.approx((10, 10, 20, 10), abs=1)
    screen.press("z", "page.state.view.annotations.length === 0")
    screen.press("Z", "page.state.view.annotations.length === 1")


def test_the_category_of_an_instance_can_be_changed(screen, workspace):
    screen.keep_phrase("cat")
    screen.page.keyboard.press("c")
    screen.page.keyboard.type("kitten")
    screen.page.keyboard.press("Enter")
    screen.wait("page.instances()[0].label === 'kitten'")
    assert workspace.categories()[stored(workspace)[0].category_id].name == "kitten"


def test_forgetting_a_phrase_keeps_what_was_decided(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("1", "page.instances()[0].decision === 'rejected'")
    screen.page.click(".phrase-list button")
    assert screen.page.inner_text(".phrase-list button") == "forget?"
    screen.page.click(".phrase-list button")
    screen.wait("page.state.view.phrases.length === 0")
    assert [item.decision for item in stored(workspace)] == [Decision.REJECTED]
