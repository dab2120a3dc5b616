"""Choosing a model on the page: from the starter to SAM 3 and back, in a real browser."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest
from page_on_screen import ROOT, PageOnScreen, served

from annotator.errors import CommandError, ModelLoadingError
from annotator.model_choice import ModelChoice, use_model, use_remembered_model
from annotator.models import list_models, model_loader
from annotator.predictor import Predictor
from annotator.ui.panels.models import model_functions
from annotator.workspace import Workspace
from engines.errors import BundleNotFoundError, EngineCancelledError
from engines.types import Phrase

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


def test_the_dialog_tells_the_models_apart_and_how_to_get_sam_3(screen, tmp_path):
    screen.page.click("[data-dialog='models']")
    cards = screen.page.locator(".model-card")
    cards.nth(1).wait_for()
    texts = " ".join(cards.all_inner_texts())
    assert "80 everyday things" in texts and "any noun phrase" in texts and "fp32: full precision" in texts
    assert screen.page.locator(".model-card.is-in-use").count() == 1
    assert "TensorRT cannot be used here" in screen.page.inner_text(".runtimes-list")
    screen.page.click("text=How to get SAM 3")
    help_text = screen.page.inner_text(".models-help")
    assert screen.page.get_attribute(".models-help a", "href") == "https://huggingface.co/facebook/sam3"
    for words in (
        "hf download facebook/sam3",
        str(tmp_path / "models"),
        "SAM License",
        "models export --checkpoint sam3-checkpoint",
        "trade controls",
    ):
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


@pytest.fixture
def slow_model(monkeypatch):
    """Models chosen from now on load when this is set, and say how far they are."""
    go_on = Event()

    def slow_loader(*arguments, progress=None, **options):
        load = model_loader(*arguments, **options)

        def load_slowly():
            deadline = time.monotonic() + 20
            while not go_on.wait(0.02):
                if not progress("building the engine of vision", 0.42):
                    raise EngineCancelledError(Path("vision.onnx"))
                assert time.monotonic() < deadline
            return load()

        return load_slowly

    monkeypatch.setattr("annotator.model_choice.model_loader", slow_loader)
    yield go_on
    go_on.set()


def test_while_a_model_loads_its_progress_is_shown_in_every_tab_and_the_old_one_answers(
    browser, address, screen, slow_model
):
    screen.page.click("[data-dialog='models']")
    screen.page.click("[aria-label='Use SAM 3 (fp32, 168 px)']")
    screen.page.wait_for_selector(".models-said:has-text('loading shapes: building the engine of vision, 42%')")
    assert screen.page.get_attribute(".models-progress", "aria-valuenow") == "42"
    assert screen.page.locator(".model-card button:not(:disabled)").count() == 0
    screen.page.keyboard.press("Escape")
    assert "starter answers until then" in screen.page.inner_text(".status-model")
    screen.type_phrase("cup")
    screen.page.keyboard.press("Escape")

    other = looking_at(browser, address)
    other.page.click("[data-dialog='models']")
    other.page.wait_for_selector(".models-said:has-text('building the engine of vision')")
    slow_model.set()
    for tab in (screen, other):
        tab.wait("page.state.model.family === 'sam3' && !page.state.loadingModel")
    other.page.wait_for_selector(".models-said:has-text('shapes_bundle is in use')")
    other.page.wait_for_selector(".model-card.is-in-use:has-text('SAM 3')")
    other.page.close()
    assert other.faults == []


def test_the_building_of_engines_is_stopped_and_the_old_model_stays(screen, workspace, slow_model):
    screen.page.click("[data-dialog='models']")
    screen.page.click("[aria-label='Use SAM 3 (fp32, 168 px)']")
    screen.page.click(".models-stop")
    screen.page.wait_for_selector(".models-said.is-error:has-text('vision.onnx was stopped')")
    assert screen.page.locator(".models-under-way").is_hidden()
    assert workspace.predictor.info.family == "starter"
    slow_model.set()
    screen.page.click("[aria-label='Use SAM 3 (fp32, 168 px)']")
    screen.page.wait_for_selector(".models-said:has-text('is in use, by')")
    assert workspace.predictor.info.family == "sam3"


def test_two_models_are_not_loaded_at_once(workspace, slow_model):
    _, choose_model, loading_model, _ = model_functions(workspace)
    request = {"model": "shapes", "runtime": "auto", "device": "cpu"}
    first = Thread(target=choose_model, args=(request,))
    first.start()
    while not loading_model({})["words"]:
        time.sleep(0.01)
    with pytest.raises(ModelLoadingError, match="loading shapes"):
        choose_model(request)
    slow_model.set()
    first.join()
    assert loading_model({})["words"] == ""
    assert workspace.predictor.info.family == "sam3"


def test_the_keyboard_alone_chooses_a_model(screen):
    screen.page.locator("[data-dialog='models']").focus()
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_function("document.activeElement.closest('.model-card')")
    for _ in range(10):
        if screen.page.evaluate("document.activeElement.getAttribute('aria-label') ?? ''").startswith("Use SAM 3"):
            break
        screen.page.keyboard.press("Tab")
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_selector(".models-said:has-text('shapes_bundle is in use, by')")
    assert screen.page.evaluate("document.activeElement.closest('dialog') !== null")
    screen.page.keyboard.press("Escape")
    screen.wait("page.state.model.family === 'sam3' && page.state.dialog === null")


def test_a_list_that_is_made_anew_leaves_the_focus_where_it_was(screen):
    screen.page.click("[data-dialog='models']")
    button = screen.page.locator(".model-card button[aria-label^='Use SAM 3']")
    button.focus()
    screen.page.evaluate("document.querySelector('.model-card').classList.add('of-the-old-list')")
    screen.page.evaluate("phrasemask.update({ model: { ...phrasemask.state.model, n_changes: -1 } })")
    screen.page.wait_for_selector(".of-the-old-list", state="detached")
    assert screen.page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Use SAM 3")


def fail_check(folder: Path) -> None:
    bundle_id = next(row.bundle_id for row in list_models() if row.folder == str(folder))
    report = {"bundle_id": bundle_id, "failures": ["mean mask IoU 0.91 is below 0.95"]}
    (folder / "check_report.json").write_text(json.dumps(report))


def test_a_model_that_failed_its_check_says_so_and_cannot_be_chosen(screen, workspace, tmp_path):
    fail_check(tmp_path / "models" / "shapes")
    screen.page.click("[data-dialog='models']")
    card = screen.page.locator(".model-card:has-text('SAM 3')")
    assert "has failed its check (mean mask IoU 0.91 is below 0.95)" in card.locator(".model-problem").inner_text()
    assert card.locator("button").is_disabled()
    screen.page.fill("#model-folder", str(tmp_path / "models" / "shapes"))
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_selector(".models-said.is-error:has-text('has failed its check')")
    assert workspace.predictor.info.family == "starter"


def test_a_model_in_use_that_is_not_installed_is_listed(workspace):
    describe_models, choose_model, *_ = model_functions(workspace)
    shutil.rmtree(next(Path(row.folder) for row in list_models() if row.name == "shapes"))
    choose_model({"model": str(SHAPES), "runtime": "auto", "device": "cpu"})
    in_use = [model for model in describe_models({})["models"] if model["in_use"]]
    assert [(model["name"], model["folder"]) for model in in_use] == [("shapes_bundle", "")]
    assert "any noun phrase" in in_use[0]["summary"]


def test_models_are_listed_while_the_first_one_still_loads(tmp_path, images):
    with closing(Workspace.open(tmp_path / "project", Predictor(must_not_be_called), images)) as opened:
        describe_models, *_ = model_functions(opened)
        assert not any(model["in_use"] for model in describe_models({})["models"])


def must_not_be_called():
    raise AssertionError("the list waits for the model")


def test_tokens_are_counted_while_the_image_is_still_being_encoded(screen, workspace, monkeypatch):
    choose(screen, "SAM 3")
    encode = workspace.predictor.segmenter.encode_image
    go_on = Event()
    monkeypatch.setattr(
        workspace.predictor.segmenter,
        "encode_image",
        lambda *arguments: (go_on.wait(60), encode(*arguments))[1],
        raising=False,
    )
    workspace.predictor._features.clear()
    screen.page.click(".queue-item[title^='shapes_10.png']")
    screen.wait("page.state.view.image.path === 'shapes_10.png' && page.state.activity")
    screen.page.keyboard.press("/")
    screen.page.keyboard.type("日本語 and grün")
    screen.page.wait_for_selector(".token-count:has-text('/30 tokens')")
    assert screen.state("page.state.activity") != ""
    phrase = Phrase("日本語 and grün")
    assert f"{workspace.predictor.n_tokens(phrase)[0]}/30" in screen.page.inner_text(".token-count")
    go_on.set()
    screen.wait("page.state.draft?.text === '日本語 and grün' && !page.state.activity")


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
    _, choose_model, *_ = model_functions(workspace, any_folder=False)
    with pytest.raises(CommandError, match="only installed models"):
        choose_model({"model": str(SHAPES), "runtime": "auto", "device": "cpu"})
