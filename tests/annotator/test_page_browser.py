"""The page as a person uses it, over a fake model: looking, phrases, the queue, the window."""

from __future__ import annotations

import pytest
from page_on_screen import PageOnScreen

from annotator.records import Decision

pytestmark = pytest.mark.browser


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
