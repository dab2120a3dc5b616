"""The page as a person uses it, over a fake model: every promise of the page that a browser can check."""

from __future__ import annotations

import time

import pytest
from browser_support import launch_chromium
from fake_segmenter import FakeSegmenter
from page_on_screen import PageOnScreen, served
from projects import open_workspace, write_pictures

from annotator.records import Decision, ImageState

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    with launch_chromium() as chromium:
        yield chromium


@pytest.fixture
def segmenter():
    return FakeSegmenter()


@pytest.fixture
def workspace(tmp_path, segmenter):
    write_pictures(tmp_path / "images", "a.png", "b.png", "c & é #1%.png", "sub/a.png")
    (tmp_path / "images" / "broken.jpg").write_bytes(b"<html>404</html>")
    opened = open_workspace(tmp_path, segmenter)
    yield opened
    opened.close()


@pytest.fixture
def address(workspace):
    with served(workspace) as url:
        yield url


@pytest.fixture
def screen(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    on_screen = PageOnScreen(page, address)
    yield on_screen
    page.close()
    assert on_screen.faults == []


def stored(workspace, name="a.png"):
    return workspace.store.annotations(workspace.store.image_at(name).image_id)


def state(workspace, name="a.png"):
    return workspace.store.image_at(name).state


def test_the_first_image_that_is_not_done_is_shown_at_once(browser, workspace, address):
    workspace.finish(workspace.store.image_at("a.png").image_id, 0.5, None)
    screen = PageOnScreen(browser.new_page(), address)
    screen.wait("page.state.view.image.path === 'b.png'")
    assert screen.page.inner_text(".queue-progress") == "1/5 done"
    screen.page.close()


def test_masks_follow_the_typing_and_nothing_is_stored(screen, workspace, segmenter):
    screen.type_phrase("cup")
    assert screen.rows() == [("cup", "pending"), ("cup", "pending")]
    assert "2 found" in screen.page.inner_text(".understood")
    assert stored(workspace) == []
    encodings = segmenter.count("encode")
    screen.page.keyboard.press("Control+A")
    screen.page.keyboard.type("cat")
    screen.wait("page.state.draft?.text === 'cat' && !page.state.asked")
    assert screen.rows() == [("cat", "pending")]
    assert segmenter.count("encode") == encodings


def test_emptying_the_phrase_box_takes_its_masks_away(screen):
    screen.type_phrase("cup")
    screen.page.keyboard.press("Control+A")
    screen.page.keyboard.press("Backspace")
    screen.wait("!page.state.draft")
    assert screen.rows() == []


def test_pasting_a_phrase_works_like_typing_it(screen):
    screen.page.click(".phrase-input")
    screen.page.keyboard.insert_text("cup")
    screen.wait("page.state.draft?.text === 'cup'")


def test_a_phrase_outside_the_vocabulary_is_said(screen):
    screen.type_phrase("temple")
    assert "outside this model's vocabulary" in screen.page.inner_text(".understood")


def test_phrases_that_work_on_the_picture_are_offered(screen):
    screen.wait("page.state.examples.length")
    assert [chip.inner_text() for chip in screen.page.query_selector_all(".chip")] == ["cup", "mug", "cat"]
    screen.page.click(".chip >> text=mug")
    screen.wait("page.state.draft?.text === 'mug'")
    assert screen.rows() == [("mug", "pending")]


def test_enter_keeps_the_phrase_for_the_category_beside_it(screen, workspace):
    screen.type_phrase("cup")
    screen.page.fill(".category-input", "vessel")
    screen.page.press(".category-input", "Enter")
    screen.wait("page.state.view.phrases.length === 1")
    assert {workspace.categories()[item.category_id].name for item in stored(workspace)} == {"vessel"}
    assert screen.page.input_value(".phrase-input") == ""


def test_two_phrases_can_go_to_one_category_without_saying_things_twice(screen, workspace):
    screen.keep_phrase("cup")
    screen.type_phrase("mug")
    screen.page.fill(".category-input", "cup")
    screen.page.press(".category-input", "Enter")
    screen.wait("page.state.view.phrases.length === 2")
    assert len(stored(workspace)) == 3


def test_the_threshold_acts_in_the_browser_alone(screen, segmenter):
    screen.keep_phrase("cup")
    n_decoded = segmenter.calls.count("decode cup")
    screen.page.fill(".threshold input", "0.3")
    screen.wait("page.visibleInstances().length === 3")
    screen.page.fill(".threshold input", "0.8")
    screen.wait("page.visibleInstances().length === 1")
    assert segmenter.calls.count("decode cup") == n_decoded


def test_a_low_answer_is_offered_instead_of_an_empty_picture(screen, segmenter):
    segmenter.answers = {"shy": [((2, 2, 12, 12), 0.41)]}
    screen.type_phrase("shy")
    assert "no instance of 'shy' at or above 0.50 (best 0.41)" in screen.page.inner_text(".understood")
    screen.page.click(".understood button")
    screen.wait("page.visibleInstances().length === 1")


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


def test_keys_do_nothing_while_something_is_typed(screen, workspace):
    screen.keep_phrase("cup")
    screen.page.keyboard.press("/")
    screen.page.keyboard.type("axb 1")
    screen.page.wait_for_timeout(300)
    assert {item.decision for item in stored(workspace)} == {Decision.PENDING}
    assert screen.state("page.state.tool") == "select"


def test_holding_h_hides_the_masks(screen):
    screen.page.keyboard.down("h")
    screen.wait("page.state.masksHidden")
    screen.page.keyboard.up("h")
    screen.wait("!page.state.masksHidden")


def test_the_keys_are_listed_by_the_question_mark(screen):
    screen.press("?", "document.querySelector('#keys dialog').open")
    screen.press("Escape", "!document.querySelector('#keys dialog').open")


def test_a_broken_file_stays_in_the_queue_with_its_reason(screen):
    screen.open("broken.jpg")
    assert screen.page.inner_text(".stage-failure").startswith("broken.jpg: ")
    screen.press("Space", "page.state.view.image.path !== 'broken.jpg'")


def test_a_name_with_odd_characters_is_shown(screen):
    screen.open("c & é #1%.png")
    screen.page.wait_for_function("window.phrasemask.canvas.pictures !== undefined")
    image = screen.state("page.state.view.image.url")
    assert screen.page.request.get(screen.page.url.split("/#")[0] + image).ok


def test_the_queue_can_be_filtered(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("Space", "page.state.view.image.path === 'b.png'")
    screen.page.click("[data-filter=done]")
    assert [item.inner_text() for item in screen.page.query_selector_all(".queue-name")] == ["a.png"]


def test_a_second_tab_says_so_and_follows(screen, browser, address, workspace):
    screen.keep_phrase("cup")
    other = PageOnScreen(browser.new_page(), address)
    other.open("a.png")
    other.wait("page.state.elsewhere")
    assert "also open in another tab" in other.page.inner_text(".notice")
    screen.press("1", "page.instances()[0].decision === 'rejected'")
    other.wait("page.instances()[0].decision === 'rejected'")
    other.page.close()


def test_a_stale_tab_cannot_overwrite_and_shows_the_newer_state(screen, workspace):
    screen.keep_phrase("cup")
    image = workspace.store.image_at("a.png")
    first = stored(workspace)[0]
    workspace.decide(image.image_id, {first.annotation_id: Decision.ACCEPTED}, None, "elsewhere")
    screen.page.keyboard.press("x")
    screen.wait("page.state.message?.kind === 'error' && page.instances()[0].decision === 'accepted'")
    assert "changed meanwhile" in screen.page.inner_text(".notice")
    assert [item.decision for item in stored(workspace)][:2] == [Decision.ACCEPTED, Decision.PENDING]


def test_only_copies_made_for_the_page_are_served(screen, workspace, tmp_path):
    base = screen.page.url.split("/#")[0]
    for path in (tmp_path / "images" / "a.png", tmp_path / "project" / "project.sqlite", "/etc/passwd"):
        assert not screen.page.request.get(f"{base}/gradio_api/file={path}").ok
    assert screen.page.request.get(base + screen.state("page.state.view.image.url")).ok


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_the_window_in_light_and_dark(screen, size, dark):
    screen.page.set_viewport_size({"width": size[0], "height": size[1]})
    if dark:
        screen.page.click(".theme")
    assert screen.page.evaluate("document.body.classList.contains('dark')") == dark
    scrolls = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert screen.page.evaluate(scrolls) == list(size)
    canvas = screen.page.locator(".canvas-host").bounding_box()
    assert canvas["width"] > size[0] / 2
    assert canvas["height"] > size[1] * 0.75
    for button in screen.page.query_selector_all("#workbench button, #status button"):
        box = button.bounding_box()
        assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= size[0])


def test_every_button_has_a_name_for_screen_readers(screen):
    names = screen.page.evaluate(
        "[...document.querySelectorAll('.panel button')].map((b) => b.getAttribute('aria-label') || b.textContent)"
    )
    assert all(name.strip() for name in names)
