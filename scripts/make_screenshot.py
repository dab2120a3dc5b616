"""Makes docs/screenshot.png: starts the page over samples/ and does on it what the README tells.

    pip install -e ".[test]" && python scripts/make_screenshot.py [--dark]

Needs a Chromium; PHRASEMASK_CHROMIUM may name it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "annotator"))

from browser_support import launch_chromium  # noqa: E402
from page_on_screen import PageOnScreen, started  # noqa: E402


def main() -> None:
    """Replace the screenshot."""
    with (
        tempfile.TemporaryDirectory() as folder,
        started(ROOT / "samples", "--project", Path(folder) / "samples") as address,
        launch_chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        screen = PageOnScreen(page, address)
        if "--dark" in sys.argv:
            page.click(".theme")
        screen.wait("page.state.model")
        screen.open("cat.jpg")
        screen.keep_phrase("sleepy cat")
        screen.wait("!page.state.activity")
        screen.press("Space", "page.state.view.image.path !== 'cat.jpg' && !page.state.activity")
        screen.open("grace_hopper.jpg")
        screen.keep_phrase("person")
        screen.wait("!page.state.activity")
        screen.press("Space", "page.state.view.image.path !== 'grace_hopper.jpg' && !page.state.activity")
        screen.open("dog.jpg")
        screen.type_phrase("golden retriever")
        page.fill(".category-input", "dog")
        page.keyboard.press("Escape")
        page.mouse.move(*screen.on_screen(*screen.middle_of_first()))
        page.wait_for_timeout(1500)
        page.screenshot(path=ROOT / "docs" / "screenshot.png")


if __name__ == "__main__":
    main()
