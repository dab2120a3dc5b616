"""Measures the time from a keystroke to the painted masks, in a real browser.

    python benchmarks/keystroke_to_paint.py [--keystrokes 20] [--url http://127.0.0.1:7860 --input SELECTOR]

One Gradio page holds both ways to show the same 30 masks on a 1280×853 picture, each with a model that takes 20 ms:
the mask canvas, fed by a server function, and a textbox with `gr.AnnotatedImage` behind it. Then the page as people
use it shows them, with everything it does besides. Each keystroke brings
other masks, so that no cache helps. Time runs from the browser's own time stamp of the key until two frames after the
masks were painted, when they are surely on the screen. With --url the canvas of a running page is measured, alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "annotator")]

from annotator.ui.canvas import canvas_css, canvas_scripts  # noqa: E402
from engines.masks import Mask  # noqa: E402

if TYPE_CHECKING:
    import gradio
    from playwright.sync_api import Page

HEIGHT, WIDTH = 853, 1280
N_MASKS = 30
MODEL_S = 0.020
TARGET_MS = 100.0
TARGET_RATIO = 10.0
N_BASELINE = 5


@dataclass(frozen=True)
class Target:
    """Where a mask canvas is on a page: what is typed into, the canvas, and how many masks an answer has at least."""

    input_selector: str
    canvas: str
    n_masks: int


REAL_PAGE = Target("#phrases .phrase-input", "window.phrasemask.canvas", N_MASKS)
OWN_PAGE = Target("#canvas-way input", "window.benchmarkCanvas", N_MASKS)


# ---- What is shown ---------------------------------------------------------------------------------------------------


def wobbly_mask(random: np.random.Generator) -> Mask:
    """A smooth blob with lobes, some 200 pixels across."""
    radius, x, y = random.uniform(60, 160), random.uniform(0, WIDTH), random.uniform(0, HEIGHT)
    angles = np.linspace(0, 2 * np.pi, 361)
    lobes = sum(random.normal(0, 0.5 / k) * np.cos(k * angles + random.uniform(0, 7)) for k in range(2, 9))
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    around = np.interp(np.arctan2(rows - y, columns - x) % (2 * np.pi), angles, 1 + 0.5 * lobes)
    return Mask.encode(np.hypot(rows - y, columns - x) < radius * around)


def mask_sets(n_sets: int) -> list[list[Mask]]:
    """`n_sets` different answers: the same blobs, moved a little for each."""
    random = np.random.default_rng(3)
    first = [wobbly_mask(random).decode() for _ in range(N_MASKS)]
    return [[Mask.encode(np.roll(mask, (3 * i, 5 * i), (0, 1))) for mask in first] for i in range(n_sets)]


def instance_view(number: int, mask: Mask) -> dict[str, Any]:
    """An instance as the canvas takes it."""
    return {
        "id": str(number),
        "number": number,
        "counts": mask.counts,
        "height": HEIGHT,
        "width": WIDTH,
        "xyxy": mask.xyxy.tolist(),
        "score": round(1 - number / 100, 3),
        "decision": "pending",
        "drawn": False,
        "color_index": number % 3,
        "label": "thing",
    }


def write_picture(folder: Path) -> Path:
    """A picture with enough detail that its compression is no easier than a photograph's."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    waves = np.stack([127 + 90 * np.sin(rows / (31 + k)) * np.cos(columns / (47 - k)) for k in (0, 9, 17)], axis=-1)
    noise = np.random.default_rng(1).normal(0, 9, waves.shape)
    path = folder / "picture.jpg"
    Image.fromarray((waves + noise).clip(0, 255).astype(np.uint8)).save(path, quality=88)
    return path


# ---- The page with both ways -----------------------------------------------------------------------------------------

_CANVAS_HTML = '<input aria-label="phrase"><div class="host" style="width: 900px; height: 600px"></div>'
_CANVAS_JS = """
const canvas = new PhrasemaskCanvas.MaskCanvas(element.querySelector(".host"));
window.benchmarkCanvas = canvas;
window.benchmarkServer = server;
let asked = 0;
server.picture("").then((image) => canvas.setImage(image));
element.querySelector("input").addEventListener("input", async (event) => {
  const ticket = ++asked;
  const instances = await server.find(event.target.value);
  window.benchmarkAnswered = performance.now();
  if (ticket === asked) canvas.setInstances(instances);
});
"""


def build_page(picture: Path, answers: list[list[Mask]]) -> gradio.Blocks:
    """Both ways on one page; the n-th character typed brings the n-th answer."""
    import gradio

    arrays = [[mask.decode() for mask in answer] for answer in answers[: N_BASELINE + 1]]

    def picture_view(_: str) -> dict[str, Any]:
        return {"id": "picture", "url": f"/gradio_api/file={picture}", "width": WIDTH, "height": HEIGHT}

    def find(text: str) -> list[dict[str, Any]]:
        time.sleep(MODEL_S)
        return [instance_view(i + 1, mask) for i, mask in enumerate(answers[len(text) % len(answers)])]

    def nothing(_: str) -> int:
        return 1

    def annotate(text: str) -> tuple[str, list[tuple[Any, str]]]:
        time.sleep(MODEL_S)
        masks = arrays[len(text) % len(arrays)]
        return str(picture), [(mask, f"thing {i + 1}") for i, mask in enumerate(masks)]

    picture_view.__name__ = "picture"
    with gradio.Blocks() as page:
        gradio.HTML(
            html_template=_CANVAS_HTML,
            js_on_load=_CANVAS_JS,
            server_functions=[picture_view, find, nothing],
            elem_id="canvas-way",
        )
        box = gradio.Textbox(elem_id="plain-way")
        shown = gradio.AnnotatedImage(elem_id="plain-image")
        box.change(annotate, box, shown, show_progress="hidden", trigger_mode="always_last")
    return page


@contextmanager
def served(page: gradio.Blocks, folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _, url, _ = page.launch(
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        ssr_mode=False,
        css=canvas_css(),
        head=f"<script>{canvas_scripts()}</script>",
        allowed_paths=[str(folder)],
    )
    try:
        yield url
    finally:
        page.close(verbose=False)


@contextmanager
def served_real_page(folder: Path, picture: Path, answers: list[list[Mask]]) -> Iterator[str]:
    """The page as people use it, over a project in `folder`, with the same masks and the same model time."""
    from page_on_screen import served as served_workspace
    from table_segmenter import TableSegmenter

    from annotator.predictor import Predictor
    from annotator.workspace import Workspace

    images = folder / "images"
    images.mkdir()
    shutil.copy(picture, images)
    workspace = Workspace.open(folder / "project", Predictor(lambda: TableSegmenter(answers, MODEL_S)), images)
    with served_workspace(workspace) as url:
        yield url
    workspace.close()


# ---- Measuring -------------------------------------------------------------------------------------------------------

_ARM_KEY = """
  const field = document.querySelector(selector);
  field.addEventListener("keydown", (event) => { window.pressedAt = event.timeStamp; }, { once: true, capture: true });
  const afterPaint = (done) => requestAnimationFrame(() => requestAnimationFrame(done));
"""

# Ends two frames after the one that painted an answer newer than what is shown when the key is pressed.
_ARM_CANVAS = (
    "([selector, nMasks]) => {" + _ARM_KEY + "const canvas = CANVAS;"
    """
  const before = canvas.sequence;
  const told = canvas.callbacks.onPaint;
  window.painted = new Promise((done) => {
    canvas.callbacks.onPaint = (sequence) => {
      if (told) told(sequence);
      if (sequence <= before || canvas.items.length < nMasks) return;
      canvas.callbacks.onPaint = told;
      const madeAt = performance.now();
      afterPaint(() => done({
        total: performance.now() - window.pressedAt,
        answer: window.benchmarkAnswered - window.pressedAt,
        paint: performance.now() - window.benchmarkAnswered,
        masks: canvas.items.length,
      }));
    };
  });
}"""
)

# Ends two frames after the one in which every picture of the component is another one and is decoded.
_ARM_IMAGES = (
    "([selector, root]) => {"
    + _ARM_KEY
    + """
  const images = () => [...document.querySelectorAll(`${root} img`)];
  const before = new Set(images().map((image) => image.src));
  window.painted = new Promise((done) => {
    const look = async () => {
      const now = images();
      const fresh = now.filter((image) => !before.has(image.src));
      const isWhole = now.every((image) => image.complete && image.naturalWidth);
      if (fresh.length < 30 || !isWhole) return requestAnimationFrame(look);
      await Promise.all(now.map((image) => image.decode()));
      afterPaint(() => done({ total: performance.now() - window.pressedAt }));
    };
    look();
  });
}"""
)

_PAINTED = """() => Promise.race([window.painted, new Promise((_, fail) => {
  setTimeout(() => fail(new Error("nothing was painted within 20 s of the keystroke")), 20_000);
})])"""

_ROUND_TRIPS = """async () => {
  const times = [];
  for (let i = 0; i < 20; i += 1) {
    const start = performance.now();
    await window.benchmarkServer.nothing("");
    times.push(performance.now() - start);
  }
  return times;
}"""


def press(page: Page, selector: str, arm: str, argument: list[Any], pause_ms: int = 250) -> dict[str, float]:
    """Press one key and wait until what it brought is painted; all times in ms."""
    page.wait_for_timeout(pause_ms)
    page.focus(selector)
    page.evaluate(arm, argument)
    page.keyboard.press("a")
    measured: dict[str, float] = page.evaluate(_PAINTED)
    return measured


def measure_canvas(page: Page, target: Target, n_keystrokes: int) -> list[dict[str, float]]:
    """One warm-up keystroke, then `n_keystrokes` measured ones."""
    page.wait_for_function(f"{target.canvas} && {target.canvas}.imageId !== null")
    arm = _ARM_CANVAS.replace("CANVAS", target.canvas)
    presses = [
        press(page, target.input_selector, arm, [target.input_selector, target.n_masks])
        for _ in range(n_keystrokes + 1)
    ]
    return presses[1:]


def measure_annotated_image(page: Page, n_keystrokes: int) -> list[dict[str, float]]:
    selector = "#plain-way textarea, #plain-way input"
    presses = [press(page, selector, _ARM_IMAGES, [selector, "#plain-image"]) for _ in range(n_keystrokes + 1)]
    return presses[1:]


def median(presses: list[dict[str, float]], part: str = "total") -> float:
    return statistics.median(measured[part] for measured in presses)


def print_row(name: str, presses: list[dict[str, float]]) -> None:
    totals = sorted(measured["total"] for measured in presses)
    print(f"{name:<44} {median(presses):8.1f} ms   {totals[0]:.0f} to {totals[-1]:.0f}, {len(totals)} keystrokes")


def compare(n_keystrokes: int) -> int:
    """Measure both ways on one page; 0 when both targets are met, 1 otherwise."""
    from browser_support import launch_chromium

    answers = mask_sets(n_keystrokes + 2)
    with tempfile.TemporaryDirectory() as name, launch_chromium() as browser:
        os.environ.update(GRADIO_TEMP_DIR=name, GRADIO_ANALYTICS_ENABLED="False")
        picture = write_picture(Path(name))
        with served(build_page(picture, answers), Path(name)) as url:
            page = browser.new_page(viewport={"width": 1280, "height": 1400})
            page.goto(url)
            page.wait_for_selector(OWN_PAGE.input_selector)
            canvas = measure_canvas(page, OWN_PAGE, n_keystrokes)
            floor = statistics.median(page.evaluate(_ROUND_TRIPS))
            plain = measure_annotated_image(page, N_BASELINE)
            page.close()
        with served_real_page(Path(name), picture, answers) as url:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(url)
            page.wait_for_function("window.phrasemask?.state.view && !window.phrasemask.state.activity")
            real = measure_canvas(page, REAL_PAGE, n_keystrokes)
    payload = len(json.dumps([instance_view(i, mask) for i, mask in enumerate(answers[0])]))
    print(f"{N_MASKS} masks on {WIDTH}×{HEIGHT}, model {1000 * MODEL_S:.0f} ms, answer {payload / 1000:.0f} kB of JSON")
    print_row("the page itself, keystroke to paint", real)
    print_row("mask canvas alone, keystroke to paint", canvas)
    print(f"  of it until the answer is in the page      {median(canvas, 'answer'):8.1f} ms")
    print(f"  of it reading, painting, waiting for frames{median(canvas, 'paint'):8.1f} ms")
    print(f"  an empty server function, there and back   {floor:8.1f} ms")
    print_row("gr.AnnotatedImage, keystroke to paint", plain)
    ratio = median(plain) / median(real)
    print(f"ratio {ratio:.1f} (target ≥ {TARGET_RATIO:.0f}), page {median(real):.1f} ms (target ≤ {TARGET_MS:.0f} ms)")
    return 0 if ratio >= TARGET_RATIO and median(real) <= TARGET_MS else 1


def measure_running(url: str, target: Target, n_keystrokes: int) -> int:
    """Measure the canvas of a page that is already served."""
    from browser_support import launch_chromium

    with launch_chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(url)
        page.wait_for_selector(target.input_selector)
        print_row(f"{url}, keystroke to paint", measure_canvas(page, target, n_keystrokes))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keystrokes", type=int, default=20, help="measured keystrokes on the canvas (default 20)")
    parser.add_argument("--url", help="measure the canvas of this running page instead")
    parser.add_argument("--input", default="#phrases input", help="with --url: the field that is typed into")
    parser.add_argument("--canvas", default="window.phrasemask.canvas", help="with --url: the canvas, in JavaScript")
    parser.add_argument("--masks", type=int, default=1, help="with --url: masks that an answer has at least")
    chosen = parser.parse_args()
    if chosen.url:
        return measure_running(chosen.url, Target(chosen.input, chosen.canvas, chosen.masks), chosen.keystrokes)
    return compare(chosen.keystrokes)


if __name__ == "__main__":
    sys.exit(main())
