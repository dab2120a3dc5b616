"""Choosing a model on the page: from the starter to SAM 3 and back, in a real browser."""

from __future__ import annotations

import shutil

import pytest
from page_on_screen import ROOT, PageOnScreen, served

from annotator.errors import CommandError
from annotator.model_choice import ModelChoice, use_model, use_remembered_model
from annotator.models import model_loader
from annotator.predictor import Predictor
from annotator.ui.panels.models import model_functions
from annotator.workspace import Workspace
from engines.errors import BundleNotFoundError

pytestmark = pytest.mark.browser
SHAPES = ROOT / "tests" / "assets" / "shapes_bundle"


@pytest.fixture
def images(tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("shapes_01.png", "shapes_10.png"):
        shutil.copy(ROOT / "tests" / "assets" / "shapes_pictures" / name, tmp_path / "images")
    return tmp_path / "images"


@pytest.fixture
def workspace(tmp_path, images, monkeypatch):
    (tmp_path / "models").mkdir()
    shutil.copytree(SHAPES, tmp_path / "models" / "shapes")
    monkeypatch.setenv("PHRASEMASK_MODELS", str(tmp_path / "models"))
    opened = Workspace.open(tmp_path / "project", Predictor(model_loader("starter", "auto", "cpu")), images)
    yield opened
    opened.close()


@pytest.fixture
def address(workspace):
    with served(workspace) as url:
        yield url


def looking_at(browser, address) -> PageOnScreen:
    screen = PageOnScreen(browser.new_page(viewport={"width": 1280, "height": 800}), address)
    screen.wait("page.state.model && !page.state.activity")
    return screen


@pytest.fixture
def screen(browser, address):
    on_screen = looking_at(browser, address)
    yield on_screen
    on_screen.page.close()
    assert on_screen.faults == []


def choose(screen: PageOnScreen, title: str) -> None:
    screen.page.click("[data-dialog='models']")
    screen.page.click(f"[aria-label^='Use {title}']")
    screen.page.wait_for_selector(".models-said:has-text('is in use, by')")
    screen.page.keyboard.press("Escape")


def test_another_model_answers_once_it_is_chosen(screen, workspace):
    screen.open("shapes_10.png")
    assert "starter" in screen.page.inner_text(".status-model")
    screen.page.keyboard.press("/")
    screen.page.keyboard.type("orange object")
    screen.wait("page.state.draft?.text === 'orange object' && !page.state.asked")
    assert screen.rows() == []
    choose(screen, "SAM 3")
    assert workspace.predictor.info.family == "sam3"
    screen.wait(
        "page.state.model.exemplar_boxes && !page.state.activity && page.state.view.image.path === 'shapes_10.png'"
    )
    assert "shapes" in screen.page.inner_text(".status-model")
    screen.page.wait_for_function("window.phrasemask.visibleInstances().length === 3")
    choose(screen, "Starter")
    assert workspace.predictor.info.family == "starter"
    screen.wait("!page.state.model.exemplar_boxes")


def test_the_dialog_tells_the_models_apart_and_how_to_get_sam_3(screen):
    screen.page.click("[data-dialog='models']")
    cards = screen.page.locator(".model-card")
    cards.nth(1).wait_for()
    texts = " ".join(cards.all_inner_texts())
    assert "80 everyday things" in texts and "any noun phrase" in texts and "fp32: full precision" in texts
    assert screen.page.locator(".model-card.is-in-use").count() == 1
    assert "TensorRT cannot be used here" in screen.page.inner_text(".runtimes-list")
    screen.page.click("text=How to get SAM 3")
    help_text = screen.page.inner_text(".models-help")
    for words in ("facebook/sam3", "SAM License", "models export --checkpoint sam3", "trade controls"):
        assert words in help_text


def test_a_folder_that_holds_no_model_is_refused_and_the_old_one_stays(screen, workspace, images):
    screen.page.click("[data-dialog='models']")
    screen.page.fill("#model-folder", str(images))
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_selector(".models-said.is-error")
    assert "manifest" in screen.page.inner_text(".models-said")
    assert workspace.predictor.info.family == "starter"
    screen.page.fill("#model-folder", str(SHAPES))
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_selector(".models-said:has-text('is in use, by')")
    assert workspace.predictor.info.family == "sam3"


def test_another_tab_follows(browser, address, screen):
    other = looking_at(browser, address)
    choose(screen, "SAM 3")
    other.wait("page.state.model.family === 'sam3'")
    other.page.close()
    assert other.faults == []


def test_what_is_typed_is_counted_against_what_the_model_takes(screen):
    choose(screen, "SAM 3")
    screen.open("shapes_01.png")
    screen.page.keyboard.press("/")
    screen.page.keyboard.type("green triangle")
    screen.page.wait_for_selector(".token-count:has-text('2/30')")
    screen.page.keyboard.press("Control+A")
    screen.page.keyboard.insert_text("ein grünes Dreieck 三角形 " + "triangle " * 30)
    screen.page.wait_for_selector(".token-count.is-too-long")
    screen.page.keyboard.press("Control+A")
    screen.page.keyboard.press("Backspace")
    screen.page.wait_for_selector(".token-count", state="hidden")


def test_a_model_that_takes_any_length_has_no_count(screen):
    screen.type_phrase("cup")
    assert screen.page.locator(".token-count").is_hidden()


def test_boxes_stay_for_the_next_phrase_on_request(screen):
    choose(screen, "SAM 3")
    screen.open("shapes_10.png")
    screen.type_phrase("circle")
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("-")
    screen.drag_pixels((605, 253), (765, 410))
    screen.wait("page.visibleInstances().length === 2 && !page.state.asked")
    screen.page.check("text=keep them for the next phrase")
    screen.page.click(".keep")
    screen.wait("page.state.view.annotations.length === 2 && page.state.exemplars.length === 1 && !page.state.wanted")
    screen.page.uncheck("text=keep them for the next phrase")
    screen.page.click("text=drop the boxes")
    screen.wait("page.state.exemplars.length === 0")


def opened_again(workspace: Workspace) -> Workspace:
    predictor = Predictor(model_loader("starter", "auto", "cpu"))
    return Workspace(workspace.store, workspace.folder, predictor, workspace.project)


def test_the_times_of_the_last_edits_are_shown_and_follow(screen):
    screen.type_phrase("cup")
    screen.page.keyboard.press("Escape")
    screen.page.click(".status-times")
    screen.page.wait_for_selector(".speed-table td:has-text('an edit as a whole')")
    n_bars = screen.page.locator(".speed-bars span").count()
    assert n_bars >= 1
    assert "milliseconds" in screen.page.inner_text(".speed-table")
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("/")
    screen.page.keyboard.press("Control+A")
    screen.page.keyboard.type("dog")
    screen.wait("page.state.draft?.text === 'dog' && !page.state.asked")
    screen.page.keyboard.press("Escape")
    screen.page.click(".status-times")
    screen.page.wait_for_function(f"document.querySelectorAll('.speed-bars span').length > {n_bars}")


def test_the_choice_is_remembered_with_the_project(workspace):
    use_model(workspace, ModelChoice("shapes", "auto", "cpu"))
    again = Workspace(
        workspace.store, workspace.folder, Predictor(model_loader("starter", "auto", "cpu")), workspace.project
    )
    assert use_remembered_model(again) == ""
    assert again.predictor.info.family == "sam3"


def test_a_remembered_model_that_is_gone_is_named(workspace, tmp_path):
    use_model(workspace, ModelChoice("shapes", "auto", "cpu"))
    shutil.rmtree(tmp_path / "models" / "shapes")
    again = Workspace(
        workspace.store, workspace.folder, Predictor(model_loader("starter", "auto", "cpu")), workspace.project
    )
    assert use_remembered_model(again).startswith("the model chosen last cannot be used: there is no model 'shapes'")
    assert again.predictor.info.family == "starter"


def test_a_model_that_cannot_be_loaded_leaves_the_one_in_use(workspace):
    before = workspace.predictor.info
    with pytest.raises(BundleNotFoundError):
        use_model(workspace, ModelChoice("no such model"))
    assert workspace.predictor.info is before


def test_from_another_machine_only_installed_models_can_be_chosen(workspace):
    _, choose_model = model_functions(workspace, any_folder=False)
    with pytest.raises(CommandError, match="only installed models"):
        choose_model({"model": str(SHAPES), "runtime": "auto", "device": "cpu"})
