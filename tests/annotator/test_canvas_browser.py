"""The mask canvas under the hands of a person, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from browser_support import launch_chromium
from canvas_page import HEIGHT, WIDTH, CanvasPage, instance, open_canvas, rectangle
from numpy.typing import NDArray
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[CanvasPage]:
    with open_canvas(browser) as opened:
        yield opened


@pytest.fixture
def canvas(window: CanvasPage) -> CanvasPage:
    window.restart()
    return window


@pytest.mark.parametrize("counts", ["\x01", "P", "00000", "é", "44"])
def test_a_damaged_mask_is_named_and_the_others_are_shown(canvas: CanvasPage, counts: str):
    good = instance("good", rectangle(10, 10, 60, 60))
    canvas.show([good, instance("bad", rectangle(0, 0, 9, 9), counts=counts, label="cup", number=2)])
    assert canvas.call("visibleInstances()") == ["good"]
    assert [sentence.startswith("cup 2: This mask") for sentence in canvas.told("onProblem")] == [True]


def test_the_smallest_instance_under_the_pointer_wins(canvas: CanvasPage):
    canvas.show([instance("small", rectangle(100, 100, 140, 140)), instance("large", rectangle(50, 50, 300, 250))])
    assert canvas.call("hitTest(120, 120)") == "small"
    assert canvas.call("hitTest(200, 200)") == "large"
    assert canvas.call("hitTest(10, 10)") is None


def test_a_tiny_instance_is_caught_beside_its_pixels(canvas: CanvasPage):
    canvas.show([instance("dot", rectangle(200, 150, 202, 152))])
    assert canvas.call("hitTest(204, 151)") == "dot"
    assert canvas.call("hitTest(215, 151)") is None


def test_hovering_tells_the_instance_and_lights_it_up(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    canvas.page.mouse.move(*canvas.screen(150, 150))
    canvas.settle()
    assert canvas.color_at("top", 150, 150)[3] > 0
    canvas.page.mouse.move(*canvas.screen(20, 20))
    canvas.settle()
    assert canvas.color_at("top", 150, 150)[3] == 0
    assert canvas.told("onHover") == ["a", None]


def test_the_threshold_hides_pending_predictions_only(canvas: CanvasPage):
    at = iter(range(0, 300, 40))
    canvas.show(
        [
            instance("low", rectangle(next(at), 0, 30, 30), score=0.3),
            instance("even", rectangle(next(at), 0, 70, 30), score=0.5),
            instance("accepted", rectangle(next(at), 0, 110, 30), score=0.3, decision="accepted"),
            instance("rejected", rectangle(next(at), 0, 150, 30), score=0.3, decision="rejected"),
            instance("drawn", rectangle(next(at), 0, 190, 30), score=None, drawn=True),
        ]
    )
    canvas.call("setThreshold(0.5)")
    assert sorted(canvas.call("visibleInstances()")) == ["accepted", "drawn", "even", "rejected"]
    assert canvas.call("hitTest(15, 15)") is None
    canvas.call("setRejectedVisible(false)")
    assert sorted(canvas.call("visibleInstances()")) == ["accepted", "drawn", "even"]
    canvas.call("setThreshold(0.2)")
    assert "low" in canvas.call("visibleInstances()")


def test_a_click_toggles_and_one_beside_the_masks_does_not(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    canvas.click(150, 150)
    canvas.click(20, 20)
    assert canvas.told("onToggle") == ["a"]


def test_a_drag_pans_and_does_not_toggle(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    before = canvas.screen(150, 150)
    canvas.drag(before, (before[0] + 60, before[1] - 30))
    assert canvas.screen(150, 150) == pytest.approx((before[0] + 60, before[1] - 30), abs=0.01)
    assert canvas.told("onToggle") == []


def test_the_wheel_zooms_and_keeps_the_point_under_the_pointer(canvas: CanvasPage):
    canvas.show([])
    pointer = (470, 130)
    point = canvas.call("view.toImage(...argument)", pointer)
    zoom = canvas.call("view.zoom")
    canvas.page.mouse.move(*pointer)
    for _ in range(3):
        canvas.page.mouse.wheel(0, -120)
    canvas.settle()
    assert canvas.call("view.zoom") > 1.9 * zoom
    assert canvas.screen(*point) == pytest.approx(pointer, abs=0.01)
    assert canvas.told("onViewChange")[-1]["isFit"] is False


def test_the_zoom_is_bounded(canvas: CanvasPage):
    canvas.show([])
    fit = canvas.call("view.fitZoom")
    canvas.call("zoomBy(1e9)")
    canvas.settle()
    assert canvas.call("view.zoom") == pytest.approx(24)
    canvas.call("zoomBy(1e-9)")
    canvas.settle()
    assert canvas.call("view.zoom") == pytest.approx(fit / 2)


@pytest.mark.parametrize("how", ["key", "double click", "call"])
def test_the_picture_can_be_fitted_again(canvas: CanvasPage, how: str):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    fit = canvas.call("view.fitZoom")
    canvas.call("zoomBy(5)")
    canvas.settle()
    if how == "key":
        canvas.page.focus(".pm-canvas")
        canvas.page.keyboard.press("0")
    elif how == "double click":
        canvas.page.mouse.dblclick(*canvas.screen(230, 150))
    else:
        canvas.call("fit()")
    canvas.settle()
    assert canvas.call("view.zoom") == pytest.approx(fit)
    assert canvas.screen(WIDTH / 2, HEIGHT / 2) == pytest.approx((320, 240))


def test_a_double_click_on_an_instance_is_two_clicks(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    canvas.call("zoomBy(1.2)")
    canvas.settle()
    zoom = canvas.call("view.zoom")
    canvas.page.mouse.dblclick(*canvas.screen(150, 150))
    canvas.settle()
    assert canvas.told("onToggle") == ["a", "a"]
    assert canvas.call("view.zoom") == zoom


def test_two_fingers_zoom_around_the_point_between_them(canvas: CanvasPage):
    canvas.show([])
    before = canvas.call("view.toImage(320, 240)")
    zoom = canvas.call("view.zoom")
    canvas.page.evaluate(
        """() => {
          canvas.root.setPointerCapture = () => {};
          const send = (type, pointerId, clientX) => canvas.root.dispatchEvent(
            new PointerEvent(type, { pointerId, clientX, clientY: 240, pointerType: "touch", bubbles: true }));
          send("pointerdown", 11, 270); send("pointerdown", 12, 370);
          send("pointermove", 11, 220); send("pointermove", 12, 420);
          send("pointerup", 12, 420); send("pointerup", 11, 220);
        }"""
    )
    assert canvas.call("view.zoom") == pytest.approx(2 * zoom)
    assert canvas.call("view.toImage(320, 240)") == pytest.approx(before)
    assert canvas.told("onToggle") == []


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("zoomed", [False, True])
def test_a_drawn_box_comes_in_pixels_of_the_original(browser: Browser, ratio: int, zoomed: bool):
    with open_canvas(browser, device_scale_factor=ratio) as canvas:
        canvas.show([instance("a", rectangle(100, 100, 200, 200))], size=(3000, 4000))
        if zoomed:
            canvas.call("view.zoomAt(0.4, 320, 240)")
        canvas.call("setTool('box')")
        start, end = canvas.screen(2300, 1700), canvas.screen(1850.5, 1400.25)
        canvas.drag(start, end)
        assert canvas.told("onBox") == [pytest.approx([1850.5, 1400.25, 2300, 1700], abs=0.5)]
        assert canvas.told("onToggle") == []


def test_a_drawn_box_is_clipped_to_the_picture(canvas: CanvasPage):
    canvas.show([])
    canvas.call("setTool('box')")
    canvas.drag(canvas.screen(350, 250), (638, 478))
    assert canvas.told("onBox") == [pytest.approx([350, 250, WIDTH, HEIGHT], abs=0.1)]


def test_a_drawn_box_stays_to_be_seen_until_it_is_answered(canvas: CanvasPage):
    canvas.show([])
    canvas.call("setTool('box')")
    canvas.page.evaluate("() => { window.boxAnswer = new Promise((done) => { window.answerBox = done; }); }")
    canvas.drag(canvas.screen(100, 100), canvas.screen(200, 180))
    canvas.call("setTool('select')")
    canvas.settle()
    assert canvas.color_at("top", 150, 140)[3] > 0
    canvas.page.evaluate("answerBox()")
    canvas.settle()
    assert canvas.color_at("top", 150, 140)[3] == 0


def test_a_tiny_drag_with_the_box_tool_draws_nothing(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    canvas.call("setTool('box')")
    x, y = canvas.screen(150, 150)
    canvas.drag((x, y), (x + 3, y + 40))
    canvas.click(150, 150)
    assert canvas.told("onBox") == []
    assert canvas.told("onToggle") == []


def test_escape_cancels_the_box_and_nothing_else(canvas: CanvasPage):
    canvas.show([])
    canvas.call("setTool('box')")
    canvas.page.evaluate("document.addEventListener('keydown', (event) => window.told.push(['key', event.key]))")
    canvas.drag(canvas.screen(100, 100), canvas.screen(200, 200), release=False)
    canvas.page.keyboard.press("Escape")
    canvas.page.mouse.up()
    canvas.settle()
    assert canvas.told("onBox") == []
    assert canvas.told("key") == []
    canvas.page.keyboard.press("Escape")
    assert canvas.told("key") == ["Escape"]


def test_hidden_masks_are_neither_painted_nor_hit(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    assert canvas.color_at("masks", 150, 150)[3] > 0
    canvas.call("setMasksHidden(true)")
    canvas.settle()
    assert canvas.color_at("masks", 150, 150)[3] == 0
    canvas.click(150, 150)
    canvas.call("setMasksHidden(false)")
    canvas.settle()
    assert canvas.color_at("masks", 150, 150)[3] > 0
    assert canvas.told("onToggle") == []


def test_decisions_differ_in_more_than_colour(canvas: CanvasPage):
    """Fill, no fill, and the width of the outline: measured as painted pixels at the middle and at the edge."""
    masks = {
        decision: rectangle(20 + 120 * i, 100, 100 + 120 * i, 200)
        for i, decision in enumerate(["pending", "accepted", "rejected"])
    }
    canvas.show([instance(decision, mask, decision=decision) for decision, mask in masks.items()])
    widths = {}
    for i, decision in enumerate(masks):
        edge = 20 + 120 * i
        alphas = [canvas.color_at("masks", edge + step / 4, 150)[3] for step in range(-16, 17)]
        widths[decision] = sum(alpha > 150 for alpha in alphas)
    assert widths["accepted"] > widths["pending"] > 0
    middle = {canvas.color_at("masks", 300 + step, 150)[3] for step in range(12)}
    assert len(middle) > 1, "a rejected instance is hatched, not filled evenly"
    assert canvas.page.evaluate(
        "PhrasemaskCanvas.tagParts({number: 1, decision: 'accepted'}).some((part) => part.mark)"
    )


def test_the_hover_tag_tells_number_label_and_score(canvas: CanvasPage):
    script = "(given) => PhrasemaskCanvas.tagParts(given, true).filter((part) => part.text).map((part) => part.text)"
    found = instance("a", rectangle(0, 0, 9, 9), number=12, label="<b>cup</b>", score=0.914)
    assert canvas.page.evaluate(script, found) == ["12", "<b>cup</b>", "0.91"]
    assert canvas.page.evaluate(script, found | {"drawn": True, "score": None}) == ["12", "<b>cup</b>", "drawn"]
    assert canvas.page.evaluate("(given) => PhrasemaskCanvas.tagParts(given, false)", found) == []


def test_neighbours_of_one_category_differ_and_keep_their_colour(canvas: CanvasPage):
    row = [instance(f"n{i}", rectangle(100 * i, 50, 100 * i + 99, 150), number=i + 1) for i in range(4)]
    far = instance("far", rectangle(0, 250, 40, 290), number=5)
    canvas.show([*row, far])
    colors = "() => Object.fromEntries(canvas.items.map((item) => [item.instance.id, item.color]))"
    before = canvas.page.evaluate(colors)
    assert all(before[f"n{i}"] != before[f"n{i + 1}"] for i in range(3))
    assert before["far"] == canvas.page.evaluate("PhrasemaskCanvas.categoryColor(0)")
    canvas.call("setInstances(argument)", [row[1], row[3]])
    after = canvas.page.evaluate(colors)
    assert after == {"n1": before["n1"], "n3": before["n3"]}


def test_the_hues_stay_apart_for_colour_blind_eyes(canvas: CanvasPage):
    colors = [canvas.page.evaluate("(i) => PhrasemaskCanvas.categoryColor(i)", i) for i in range(8)]
    srgb = np.array([[int(value) for value in re.findall(r"\d+", color)] for color in colors]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    for sight, matrix in _SIGHTS.items():
        lab = oklab(np.clip(linear @ np.array(matrix).T, 0, 1))
        distances = np.linalg.norm(lab[:, None] - lab[None], axis=-1)[np.triu_indices(8, 1)]
        assert distances.min() > 0.12, sight


# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
_SIGHTS = {
    "full": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def oklab(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    """Björn Ottosson's OKLab of linear sRGB, (N, 3)."""
    to_lms = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.2119035, 0.6806995, 0.10739696],
        [0.08830246, 0.28171884, 0.6299787],
    ]
    to_lab = [
        [0.21045426, 0.79361779, -0.00407205],
        [1.9779985, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return np.cbrt(linear @ np.array(to_lms).T) @ np.array(to_lab).T


def test_resizing_keeps_the_fit_and_any_other_view_its_middle(canvas: CanvasPage):
    canvas.show([])
    canvas.page.set_viewport_size({"width": 320, "height": 300})
    canvas.settle()
    assert canvas.call("view.zoom") == pytest.approx(canvas.call("view.fitZoom"))
    assert canvas.screen(WIDTH / 2, HEIGHT / 2) == pytest.approx((160, 150))
    canvas.call("view.zoomAt(2, 100, 100)")
    middle = canvas.call("view.toImage(160, 150)")
    canvas.page.set_viewport_size({"width": 640, "height": 480})
    canvas.settle()
    assert canvas.call("view.toImage(320, 240)") == pytest.approx(middle)
    assert canvas.call("view.zoom") == 2


def test_the_same_image_keeps_its_view_and_another_one_is_fitted(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    canvas.call("view.zoomAt(3, 100, 100)")
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    assert canvas.call("view.zoom") == 3
    canvas.call("setImage(argument)", {"id": "two", "url": "data:,", "width": 200, "height": 100})
    assert canvas.call("visibleInstances()") == []
    assert canvas.call("view.zoom") == pytest.approx(canvas.call("view.fitZoom"))
    canvas.settle()
    assert canvas.color_at("masks", 100, 50)[3] == 0


def test_a_picture_that_does_not_load_says_so(canvas: CanvasPage):
    canvas.call("setImage(argument)", {"id": "gone", "url": "data:image/png;base64,AAAA", "width": 200, "height": 100})
    canvas.page.wait_for_selector(".pm-canvas-notice:not([hidden])")
    assert "could not be loaded" in canvas.page.inner_text(".pm-canvas-notice")
    assert canvas.page.get_attribute(".pm-canvas", "data-busy") == "false"


def test_an_instance_can_be_brought_to_the_middle(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(10, 20, 30, 50))])
    canvas.call("centerOn('a')")
    canvas.settle()
    assert canvas.screen(20, 35) == pytest.approx((320, 240))


def test_a_changed_decision_or_a_repeated_phrase_decodes_nothing(canvas: CanvasPage):
    shown = [instance("a", rectangle(100, 100, 200, 200)), instance("b", rectangle(220, 100, 300, 200))]
    canvas.show(shown)
    canvas.call("setInstances(argument)", [shown[0] | {"decision": "accepted"}, shown[1]])
    canvas.call("setInstances([])")
    canvas.call("setInstances(argument)", [one | {"id": one["id"] + "2"} for one in shown])
    canvas.settle()
    assert canvas.call("shapes.decoded") == 2


def test_unchanged_instances_are_not_painted_again(canvas: CanvasPage):
    shown = [instance("a", rectangle(100, 100, 200, 200))]
    canvas.show(shown)
    paints = len(canvas.told("onPaint"))
    sequence = canvas.call("setInstances(argument)", shown)
    canvas.call("setOpacity(0.42)")
    canvas.call("setThreshold(0)")
    canvas.settle()
    assert len(canvas.told("onPaint")) == paints
    assert canvas.told("onPaint")[-1] == sequence


def test_the_canvas_takes_the_focus_and_shows_it(canvas: CanvasPage):
    canvas.page.keyboard.press("Tab")
    assert canvas.page.evaluate("document.activeElement.getAttribute('role')") == "application"
    assert canvas.page.evaluate("document.activeElement.getAttribute('aria-label')")
    ring = canvas.page.evaluate("getComputedStyle(document.activeElement, '::after').borderTopWidth")
    assert ring == "2px"


def test_a_destroyed_canvas_leaves_nothing_behind(canvas: CanvasPage):
    canvas.show([instance("a", rectangle(100, 100, 200, 200))])
    canvas.call("destroy()")
    assert canvas.page.evaluate("document.getElementById('host').childElementCount") == 0
    canvas.page.keyboard.press("Escape")
    canvas.page.set_viewport_size({"width": 500, "height": 400})
