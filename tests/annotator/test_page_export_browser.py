"""Exporting from the page: every format, the options it heeds, and what can be downloaded."""

from __future__ import annotations

import json
import zipfile

import pytest

from annotator.errors import CommandError
from annotator.exporting import exporters
from annotator.records import Decision
from annotator.ui.panels.export import export_functions

pytestmark = pytest.mark.browser


@pytest.fixture
def labelled(screen, workspace):
    screen.keep_phrase("cup")
    screen.press("Space", "page.state.view.image.path === 'b.png' && !page.state.activity")
    screen.page.click("[data-dialog=export]")
    screen.page.wait_for_selector("#export-format option:nth-child(2)", state="attached")
    return screen


def export(screen, tmp_path, format_name):
    screen.page.select_option("#export-format", format_name)
    screen.page.click(".export-go")
    screen.page.wait_for_selector(".export-ways li")
    with screen.page.expect_download() as download:
        screen.page.click(".export-result a")
    saved = tmp_path / "downloads" / download.value.suggested_filename
    download.value.save_as(saved)
    return saved


def shown(screen) -> set[str]:
    fields = screen.page.query_selector_all("[data-option]")
    return {field.get_attribute("data-option") for field in fields if field.is_visible()}


def test_every_format_is_offered_with_the_options_that_it_heeds(labelled):
    offered = labelled.page.locator("#export-format option").evaluate_all("all => all.map((one) => one.value)")
    assert offered == list(exporters())
    for name, exporter in exporters().items():
        labelled.page.select_option("#export-format", name)
        labelled.page.select_option("#export-segmentation", "both", force=True)
        labelled.page.evaluate("document.querySelector('#export-segmentation').dispatchEvent(new Event('change'))")
        assert shown(labelled) == exporter.options - {"verify"}


def test_exact_masks_have_no_outline_to_be_set(labelled):
    assert "tolerance_px" not in shown(labelled)
    labelled.page.select_option("#export-segmentation", "polygon")
    assert "tolerance_px" in shown(labelled)


def test_a_single_file_is_downloaded_as_it_is_and_the_way_to_load_it_is_said(labelled, tmp_path):
    saved = export(labelled, tmp_path, "coco")
    assert saved.name == "instances.json"
    assert len(json.loads(saved.read_text())["annotations"]) == 2
    assert 'pycocotools: COCO("instances.json")' in labelled.page.inner_text(".export-ways")


def test_a_dataset_that_is_a_folder_is_downloaded_as_a_zip(labelled, tmp_path, workspace):
    labelled.page.select_option("#export-format", "yolo-seg")
    labelled.page.select_option("#export-images", "copy")
    saved = export(labelled, tmp_path, "yolo-seg")
    assert saved.name == "images-yolo-seg.zip"
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
        assert "yolo-seg/data.yaml" in names
        assert sum(name.endswith("a.png") for name in names) == 1
        assert sum(name.endswith("a.txt") for name in names) == 1
    assert saved.read_bytes() == (workspace.project / "exports" / "images-yolo-seg.zip").read_bytes()


def test_a_second_export_is_what_is_downloaded_then(labelled, tmp_path, workspace):
    export(labelled, tmp_path, "masks")
    image = workspace.store.image_at("b.png")
    workspace.draw(image.image_id, (1.0, 1.0, 9.0, 9.0), "box", None)
    labelled.page.evaluate("document.querySelector('.export-result').replaceChildren()")
    with zipfile.ZipFile(export(labelled, tmp_path, "masks")) as archive:
        assert sum(name.endswith(".png") for name in archive.namelist()) == 2


def test_shares_that_split_nothing_are_refused_with_a_sentence(labelled):
    labelled.page.select_option("#export-format", "coco-split")
    for field in labelled.page.query_selector_all(".export-ratio input"):
        field.fill("0")
    labelled.page.click(".export-go")
    labelled.page.wait_for_selector(".export-result.is-error:has-text('not all 0')")


def test_an_option_that_the_format_does_not_heed_changes_nothing(workspace):
    _, export_dataset = export_functions(workspace)
    image = workspace.store.image_at("a.png")
    workspace.draw(image.image_id, (1.0, 1.0, 9.0, 9.0), "box", None)
    request = {"format": "masks", "decision": Decision.ACCEPTED.value, "min_score": 0, "options": {"seed": "x"}}
    assert export_dataset(request)["summary"].startswith("1 annotation on 1 image")
    with pytest.raises(CommandError, match="images is one of none, copy, link"):
        export_dataset({**request, "options": {"images": "all"}})
