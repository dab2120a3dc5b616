"""The whole job on real photographs with the starter, started as the README tells and driven as a person drives it."""

from __future__ import annotations

import json
import shutil

import pytest
from page_on_screen import ROOT, PageOnScreen, started
from pycocotools.coco import COCO

pytestmark = pytest.mark.browser


@pytest.fixture
def photographs(tmp_path):
    folder = tmp_path / "photographs"
    (folder / "pets").mkdir(parents=True)
    shutil.copy(ROOT / "samples" / "coffee.jpg", folder)
    shutil.copy(ROOT / "samples" / "cat.jpg", folder / "pets")
    return folder


def test_from_a_folder_of_photographs_to_a_valid_dataset(browser, photographs, tmp_path):
    before = {path: path.read_bytes() for path in photographs.rglob("*.jpg")}
    with started(photographs, "--project", tmp_path / "project") as address:
        screen = PageOnScreen(browser.new_page(viewport={"width": 1280, "height": 800}), address)
        screen.open("coffee.jpg")
        screen.type_phrase("coffee cup")
        assert "matched as: cup" in screen.page.inner_text(".understood")
        screen.page.fill(".category-input", "cup")
        screen.page.press(".category-input", "Enter")
        screen.wait("page.state.view.phrases.length === 1")

        screen.click_pixel(*screen.middle_of_first())
        screen.wait("page.visibleInstances()[0].decision === 'rejected'")
        screen.press("z", "page.visibleInstances()[0].decision === 'pending'")

        screen.open("pets/cat.jpg")
        screen.keep_phrase("sleepy cat")
        screen.page.reload()
        screen.wait("page.state.view?.image.path === 'pets/cat.jpg' && page.visibleInstances().length >= 1")
        screen.wait("!page.state.activity")
        screen.press("Space", "page.state.view.image.path === 'coffee.jpg' && !page.state.activity")
        screen.press("Space", "page.state.images.every((row) => row.state === 'done')")

        screen.page.click("[data-dialog=export]")
        screen.page.click(".export-go")
        screen.page.wait_for_selector(".export-result a")
        with screen.page.expect_download() as download:
            screen.page.click(".export-result a")
        download.value.save_as(tmp_path / "instances.json")
        assert screen.faults == []

    dataset = json.loads((tmp_path / "instances.json").read_text(encoding="utf-8"))
    assert {image["file_name"] for image in dataset["images"]} == {"coffee.jpg", "pets/cat.jpg"}
    assert [category["name"] for category in dataset["categories"]] == ["cup", "sleepy cat"]
    coco = COCO(tmp_path / "instances.json")
    assert {annotation["category_id"] for annotation in coco.anns.values()} == {1, 2}
    for annotation in coco.anns.values():
        mask = coco.annToMask(annotation)
        image = coco.imgs[annotation["image_id"]]
        assert mask.shape == (image["height"], image["width"])
        assert mask.sum() == annotation["area"] > 100
        assert annotation["iscrowd"] == 0
    assert {path: path.read_bytes() for path in photographs.rglob("*") if path.is_file()} == before
