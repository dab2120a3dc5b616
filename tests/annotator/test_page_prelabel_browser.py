"""Pre-labelling the folder on the page: in the background, in every tab, beside the labelling."""

from __future__ import annotations

import shutil
from threading import Event

import pytest
from fake_segmenter import FakeSegmenter
from page_on_screen import ROOT, PageOnScreen, started

pytestmark = pytest.mark.browser
N_FINISHED = "page.state.job?.phase === 'finished'"


@pytest.fixture
def gate(segmenter):
    """Lets the model answer once it is set; phrases that run in the background wait for it."""
    opened = Event()
    segmenter.on_decode = lambda: opened.wait(20)
    yield opened
    opened.set()


def dialog(screen: PageOnScreen) -> None:
    screen.wait("page.state.job && !page.state.activity")
    screen.page.click("nav [data-dialog=prelabel]")


def start(screen: PageOnScreen, *written: str) -> None:
    dialog(screen)
    for line in written:
        screen.page.fill(".prelabel-add input", line)
        screen.page.press(".prelabel-add input", "Enter")
        screen.page.wait_for_selector(f".prelabel-phrases strong:text-is('{line.partition('=')[0]}')")
    screen.page.click(".prelabel-start")


def test_the_folder_is_pre_labelled_from_the_page(screen, workspace):
    start(screen, "cup", "cat=animal")
    screen.wait(N_FINISHED)
    said = screen.page.inner_text(".prelabel-said")
    assert said.startswith("Finished") and "4 images done, 1 failed" in said
    assert screen.page.locator(".prelabel-counts tbody tr").all_inner_texts() == ["cup\t8", "cat\t4"]
    screen.page.click(".prelabel-failures summary")
    assert screen.page.inner_text(".prelabel-failures li").startswith("broken.jpg: ")
    screen.wait("page.state.images.filter((row) => row.state === 'suggested').length === 4")
    screen.wait("page.state.view.annotations.length === 3")
    assert {item.name for item in workspace.store.categories()} == {"cup", "animal"}
    screen.page.click(".prelabel-another")
    assert screen.page.locator(".prelabel-phrases input:checked").count() == 2


def test_a_phrase_that_is_not_ticked_is_not_run(screen, segmenter):
    dialog(screen)
    for text in ("cup", "cat"):
        screen.page.fill(".prelabel-add input", text)
        screen.page.click(".prelabel-add button")
        screen.page.wait_for_selector(f".prelabel-phrases strong:text-is('{text}')")
    screen.page.uncheck(".prelabel-phrases label:has-text('cup') input")
    screen.page.click(".prelabel-start")
    screen.wait(N_FINISHED)
    assert segmenter.count("decode cup") == 0
    assert screen.state("Object.keys(page.state.job.n_suggestions)") == ["cat"]


def test_duplicates_and_small_masks_are_left_out_as_the_dialog_says(screen):
    dialog(screen)
    screen.page.click(".prelabel-rules summary")
    screen.page.wait_for_function("document.querySelector('.prelabel-containment').value === '0.9'")
    assert screen.page.input_value(".prelabel-iou") == "0.5"
    screen.page.fill(".prelabel-min-area", "150")
    screen.page.keyboard.press("Escape")
    start(screen, "cup", "cat")
    screen.wait(N_FINISHED)
    assert screen.page.locator(".prelabel-counts tbody tr").all_inner_texts() == ["cup\t0", "cat\t4"]
    screen.page.click(".prelabel-another")
    screen.page.fill(".prelabel-min-area", "0")
    screen.page.click(".prelabel-start")
    screen.page.wait_for_selector(".prelabel-said:has-text('the least area is a number of pixels')")


def test_a_thing_found_for_two_categories_stays_with_one_on_request(screen):
    dialog(screen)
    screen.page.click(".prelabel-rules summary")
    screen.page.check(".prelabel-across")
    screen.page.keyboard.press("Escape")
    start(screen, "cup", "mug")
    screen.wait(N_FINISHED)
    assert screen.page.locator(".prelabel-counts tbody tr").all_inner_texts() == ["cup\t8", "mug\t0"]


def test_what_cannot_be_started_is_said_in_the_dialog(screen):
    dialog(screen)
    screen.page.click(".prelabel-start")
    screen.page.wait_for_selector(".prelabel-said:has-text('no phrase is chosen')")
    screen.page.fill(".prelabel-add input", "cup=")
    screen.page.click(".prelabel-start")
    screen.page.wait_for_selector(".prelabel-said:has-text('the category in')")
    screen.page.fill(".prelabel-add input", "cup")
    screen.page.fill(".prelabel-threshold", "7")
    screen.page.click(".prelabel-start")
    screen.page.wait_for_selector(".prelabel-said:has-text('is a number from 0 to 1')")


def test_a_run_survives_a_reload_shows_in_other_tabs_and_is_stopped_there(screen, browser, address, gate):
    start(screen, "cup")
    screen.wait("page.state.job?.phase === 'running'")
    screen.press("Escape", "page.state.dialog === null")
    screen.page.wait_for_selector(".status-job:has-text('pre-labelling 0 %')")
    screen.page.reload()
    screen.page.wait_for_selector(".status-job:has-text('pre-labelling 0 %')")
    other = PageOnScreen(browser.new_page(viewport={"width": 1280, "height": 800}), address)
    other.page.click(".status-job")
    assert other.page.inner_text(".prelabel-place") == "0 of 5 images"
    other.page.click(".prelabel-stop")
    other.page.wait_for_selector(".prelabel-said:has-text('Stopping after the images in work')")
    screen.wait("page.state.job?.phase === 'stopping'")
    gate.set()
    other.page.wait_for_selector(".prelabel-said:has-text('Start it again, and it goes on there')")
    screen.page.wait_for_selector(".status-job:has-text('pre-labelling ended early')")
    screen.page.click(".status-job")
    screen.page.click(".prelabel-another")
    screen.page.click(".prelabel-start")
    screen.wait(N_FINISHED)
    other.wait(N_FINISHED)
    other.page.close()


def test_labelling_goes_on_meanwhile_and_suggestions_arrive(screen, workspace, segmenter, gate):
    start(screen, "cup")
    screen.wait("page.state.job?.phase === 'running'")
    screen.press("Escape", "page.state.dialog === null")
    workspace.finish(workspace.store.image_at("sub/a.png").image_id, 0.5, None)
    gate.set()
    screen.open("b.png")
    screen.wait("page.visibleInstances().length === 2")
    screen.press("1", "page.instances()[0].decision === 'rejected'")
    screen.wait(N_FINISHED)
    decisions = [
        item.decision.value for item in workspace.store.annotations(workspace.store.image_at("b.png").image_id)
    ]
    assert "rejected" in decisions and "accepted" not in decisions
    assert workspace.store.annotations(workspace.store.image_at("sub/a.png").image_id) == []
    assert screen.state("page.state.job.n_reviewed") == 1
    screen.page.wait_for_selector(".status-job:has-text('pre-labelled: 3 images')")


def test_another_model_ends_the_run_and_the_page_says_why(screen, workspace, segmenter, gate):
    start(screen, "cup")
    screen.wait("page.state.job?.phase === 'running'")
    screen.page.wait_for_timeout(200)
    gate.set()
    workspace.predictor.use(lambda: FakeSegmenter(bundle_id="other"))
    screen.page.wait_for_selector(".prelabel-said.is-error:has-text('another model was chosen meanwhile')")


def test_the_starter_pre_labels_photographs(browser, tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("coffee.jpg", "chelsea.jpg", "dog.jpg"):
        shutil.copy(ROOT / "samples" / name, tmp_path / "images")
    with started(tmp_path / "images", "--project", tmp_path / "project") as url:
        screen = PageOnScreen(browser.new_page(viewport={"width": 1280, "height": 800}), url)
        screen.page.set_default_timeout(60_000)
        screen.wait("page.state.model")
        start(screen, "cat", "coffee cup=cup")
        screen.wait(N_FINISHED)
        assert screen.state("page.state.job.n_suggestions") == {"cat": 1, "coffee cup": 1}
        assert "matched as: cup" in screen.page.inner_text(".prelabel-counts")
        assert screen.faults == []
        screen.page.close()
