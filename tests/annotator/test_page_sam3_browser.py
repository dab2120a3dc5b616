"""SAM 3 on the page, for real: the tiny model of shapes, whose answers are known (tests/assets/shapes_pictures)."""

from __future__ import annotations

import shutil

import pytest
from page_on_screen import ROOT, PageOnScreen, served

from annotator.models import model_loader
from annotator.predictor import Predictor
from annotator.records import Decision
from annotator.workspace import Workspace

pytestmark = pytest.mark.browser
ASSETS = ROOT / "tests" / "assets"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("shapes_01.png", "shapes_10.png"):
        shutil.copy(ASSETS / "shapes_pictures" / name, tmp_path / "images")
    predictor = Predictor(model_loader(str(ASSETS / "shapes_bundle"), "auto", "cpu"))
    opened = Workspace.open(tmp_path / "project", predictor, tmp_path / "images")
    yield opened
    opened.close()


@pytest.fixture
def screen(browser, workspace):
    with served(workspace) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        on_screen = PageOnScreen(page, address)
        on_screen.wait("page.state.model && !page.state.activity")
        yield on_screen
        page.close()
        assert on_screen.faults == []


def stored(workspace, name):
    return workspace.store.annotations(workspace.store.image_at(name).image_id)


def test_any_phrase_finds_what_it_names(screen):
    screen.open("shapes_10.png")
    screen.type_phrase("orange object")
    assert len(screen.rows()) == 3
    screen.page.keyboard.press("Control+A")
    screen.page.keyboard.type("triangle")
    screen.wait("page.state.draft?.text === 'triangle' && !page.state.asked")
    assert screen.rows() == []
    assert "no instance of 'triangle' at or above 0.50" in screen.page.inner_text(".understood")


def test_a_box_around_one_thing_finds_everything_like_it(screen, workspace):
    screen.open("shapes_01.png")
    screen.page.keyboard.press("+")
    screen.drag_pixels((84, 79), (219, 230))
    screen.wait("page.visibleInstances().length === 2 && !page.state.asked")
    screen.page.fill(".category-input", "green triangle")
    screen.press("Escape", "true")
    screen.press("Space", "page.state.view.image.path === 'shapes_10.png'")
    accepted = [item for item in stored(workspace, "shapes_01.png") if item.decision is Decision.ACCEPTED]
    assert len(accepted) == 2
    assert {workspace.categories()[item.category_id].name for item in accepted} == {"green triangle"}
    assert workspace.store.kept_phrases() == []
    assert screen.state("page.state.exemplars.length") == 0


def test_a_box_around_what_is_not_meant_takes_it_away(screen, workspace):
    screen.open("shapes_10.png")
    screen.type_phrase("circle")
    assert len(screen.rows()) == 3
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("-")
    screen.drag_pixels((605, 253), (765, 410))
    screen.wait("page.visibleInstances().length === 2 && !page.state.asked")
    screen.page.click("text=drop the boxes")
    screen.wait("page.visibleInstances().length === 3 && !page.state.asked")


def test_a_drawn_box_gives_the_mask_of_the_one_thing_in_it(screen, workspace):
    screen.open("shapes_01.png")
    screen.page.keyboard.press("b")
    screen.drag_pixels((85, 346), (165, 424))
    screen.wait("page.state.view.annotations.length === 1")
    x, y, width, height = stored(workspace, "shapes_01.png")[0].mask.xywh
    assert (x, y, width, height) == pytest.approx((85, 346, 80, 78), abs=14)


def test_a_phrase_that_is_too_long_says_what_was_cut(screen):
    screen.type_phrase(" ".join(["green triangle"] * 20))
    assert "too long, cut off" in screen.page.inner_text(".understood")
