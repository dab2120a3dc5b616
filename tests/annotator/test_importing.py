"""Datasets into projects: what is added, what is left alone, and what an export brings back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_samples import image
from projects import open_workspace, write_pictures

from annotator.dataset_names import PictureNames
from annotator.exporters.protocol import ExportOptions
from annotator.exporting import export_project
from annotator.importing import ImportOptions, ImportRun, ImportSummary, read_dataset
from annotator.records import Decision, ImageState, NewAnnotation
from annotator.workspace import Workspace
from engines.masks import Mask

ROOT = Path(__file__).parents[2]
HEIGHT, WIDTH = 48, 64


def mask(left: int = 5, top: int = 6, width: int = 20, height: int = 10) -> Mask:
    pixels = np.zeros((HEIGHT, WIDTH), bool)
    pixels[top : top + height, left : left + width] = True
    return Mask.encode(pixels)


def dataset(tmp_path: Path, *rows: tuple[str, str, Mask], name: str = "dataset.json", **extra: Any) -> Path:
    """Rows of file name, category and mask."""
    files, names = list(dict.fromkeys(row[0] for row in rows)), list(dict.fromkeys(row[1] for row in rows))
    content = {
        "images": [{"id": n, "file_name": one, "height": HEIGHT, "width": WIDTH} for n, one in enumerate(files)],
        "categories": [{"id": n, "name": one} for n, one in enumerate(names)],
        "annotations": [
            {"id": n, "image_id": files.index(file), "category_id": names.index(category), "segmentation": one.rle}
            | extra
            for n, (file, category, one) in enumerate(rows)
        ],
    }
    path = tmp_path / name
    path.write_text(json.dumps(content), "utf-8")
    return path


def bring_in(workspace: Workspace, path: Path, decision: Decision | None = None, done: bool = False) -> ImportSummary:
    run = ImportRun(workspace, read_dataset(path), path.name, ImportOptions(decision, done))
    for _ in run.run():
        pass
    return run.summary


@pytest.fixture
def workspace(tmp_path):
    write_pictures(tmp_path / "images", "a.png", "b.png", "sub/a.png", "sub/c.png")
    with_project = open_workspace(tmp_path)
    yield with_project
    with_project.close()


def annotations(workspace: Workspace, path: str):
    return workspace.store.annotations(workspace.store.image_at(path).image_id)


def test_annotations_come_in_as_human_work(workspace, tmp_path):
    summary = bring_in(workspace, dataset(tmp_path, ("a.png", "cat", mask())))
    assert (summary.n_images, summary.n_annotations, summary.problems) == (1, 1, [])
    (one,) = annotations(workspace, "a.png")
    assert (one.mask, one.decision, one.score, one.drawn) == (mask(), Decision.ACCEPTED, None, True)
    assert one.xyxy == (5.0, 6.0, 25.0, 16.0)
    assert [category.name for category in workspace.store.categories()] == ["cat"]
    assert workspace.store.image_at("a.png").state is ImageState.SUGGESTED


def test_annotations_come_in_as_suggestions_on_request(workspace, tmp_path):
    bring_in(workspace, dataset(tmp_path, ("a.png", "cat", mask())), Decision.PENDING)
    (one,) = annotations(workspace, "a.png")
    assert (one.decision, one.score) == (Decision.PENDING, 1.0)


def test_pictures_are_called_reviewed_on_request(workspace, tmp_path):
    bring_in(workspace, dataset(tmp_path, ("a.png", "cat", mask())), done=True)
    assert workspace.store.image_at("a.png").done
    assert not workspace.store.image_at("b.png").done


@pytest.mark.parametrize(
    ("file_name", "path"),
    [
        ("a.png", "a.png"),
        ("sub/a.png", "sub/a.png"),
        ("sub\\a.png", "sub/a.png"),
        ("./sub/a.png", "sub/a.png"),
        ("C:\\data\\sub\\a.png", "sub/a.png"),
        ("/mnt/data/train/sub/a.png", "sub/a.png"),
        ("train2017/b.png", "b.png"),
        ("c.png", "sub/c.png"),
        ("../../b.png", "b.png"),
    ],
)
def test_a_picture_is_found_however_its_name_is_written(workspace, tmp_path, file_name, path):
    assert bring_in(workspace, dataset(tmp_path, (file_name, "cat", mask()))).problems == []
    assert len(annotations(workspace, path)) == 1


def test_a_name_with_accents_is_found_in_either_spelling(tmp_path):
    write_pictures(tmp_path / "images", "e\u0301.png")
    workspace = open_workspace(tmp_path)
    assert bring_in(workspace, dataset(tmp_path, ("\u00e9.png", "cat", mask()))).n_annotations == 1
    workspace.close()


def test_a_bare_name_of_several_pictures_is_not_guessed(tmp_path):
    write_pictures(tmp_path / "images", "one/a.png", "two/a.png")
    workspace = open_workspace(tmp_path)
    (problem,) = bring_in(workspace, dataset(tmp_path, ("a.png", "cat", mask()))).problems
    assert problem == "a.png: 2 pictures of the folder have that name; write its sub-folder too"
    workspace.close()


def test_two_names_that_fit_one_picture_equally_well_are_both_left_out(workspace, tmp_path):
    rows = ("x/b.png", "cat", mask()), ("y/b.png", "cat", mask(30))
    assert bring_in(workspace, dataset(tmp_path, *rows)).problems == [
        "x/b.png: it would be the picture b.png, as y/b.png is",
        "y/b.png: it would be the picture b.png, as x/b.png is",
    ]
    assert annotations(workspace, "b.png") == []


@pytest.mark.parametrize("other_first", [True, False])
def test_of_two_names_for_one_picture_the_one_that_fits_better_is_taken(workspace, tmp_path, other_first):
    rows = [("train/b.png", "cat", mask()), ("images/b.png", "cat", mask(30))]  # the folder is called images
    (problem,) = bring_in(workspace, dataset(tmp_path, *rows[:: 1 if other_first else -1])).problems
    assert problem == "train/b.png: it would be the picture b.png, as images/b.png is"
    assert [one.mask for one in annotations(workspace, "b.png")] == [mask(30)]


def test_a_name_in_another_sub_folder_is_not_that_picture(workspace, tmp_path):
    (problem,) = bring_in(workspace, dataset(tmp_path, ("other/c.png", "cat", mask()))).problems
    assert problem == "other/c.png: there is no such picture in the folder"
    assert annotations(workspace, "sub/c.png") == []


@pytest.mark.skipif(sys.platform != "linux", reason="only there are such names two files")
@pytest.mark.parametrize("twins", [("\u00e9.png", "e\u0301.png"), ("x\\y.png", "x/y.png")])
def test_names_that_look_the_same_are_told_apart_by_their_spelling(tmp_path, twins):
    write_pictures(tmp_path / "images", *twins)
    workspace = open_workspace(tmp_path)
    rows = (twins[0], "cat", mask()), (twins[1], "cat", mask(30))
    assert bring_in(workspace, dataset(tmp_path, *rows)).problems == []
    assert [[one.mask for one in annotations(workspace, path)] for path in twins] == [[mask()], [mask(30)]]
    workspace.close()


def test_names_are_found_fast_where_all_pictures_are_called_alike():
    paths = [f"scene{n}/rgb.png" for n in range(20_000)]
    records = [image(n, path) for n, path in enumerate(paths)]
    names = PictureNames(Path("/data/images"), records, [f"old/{path}" for path in paths])
    assert [names.find(f"old/{path}").path for path in paths] == paths


def test_pictures_of_another_size_or_not_there_are_named_and_the_rest_comes_in(workspace, tmp_path):
    path = dataset(tmp_path, ("a.png", "cat", mask()), ("b.png", "cat", mask()), ("gone.png", "cat", mask()))
    content = json.loads(path.read_text())
    content["images"][1] |= {"height": WIDTH, "width": HEIGHT}
    path.write_text(json.dumps(content))
    summary = bring_in(workspace, path)
    assert summary.problems == [
        "b.png: its annotations are for 48×64 pixels and the picture is 64×48",
        "gone.png: there is no such picture in the folder",
    ]
    assert summary.n_annotations == 1


def test_a_broken_picture_is_named_with_its_reason(workspace, tmp_path):
    (tmp_path / "images" / "b.png").write_bytes(b"not a picture")
    workspace.rescan()
    (problem,) = bring_in(workspace, dataset(tmp_path, ("b.png", "cat", mask()))).problems
    assert problem.startswith("b.png: ")
    assert workspace.store.image_at("b.png").failure


def test_importing_twice_adds_nothing(workspace, tmp_path):
    path = dataset(tmp_path, ("a.png", "cat", mask()), ("a.png", "dog", mask()))
    bring_in(workspace, path)
    revision = workspace.store.image_at("a.png").revision
    summary = bring_in(workspace, path)
    assert (summary.n_annotations, summary.n_already) == (0, 2)
    assert workspace.store.image_at("a.png").revision == revision


def test_a_category_is_matched_by_name_whatever_its_case(workspace, tmp_path):
    workspace.store.ensure_category("Coffee Cup")
    bring_in(workspace, dataset(tmp_path, ("a.png", "coffee cup", mask()), ("a.png", "a, b", mask(30))))
    assert [category.name for category in workspace.store.categories()] == ["Coffee Cup", "a, b"]


def test_a_category_s_name_that_is_too_long_is_refused_and_the_rest_comes_in(workspace, tmp_path):
    summary = bring_in(workspace, dataset(tmp_path, ("a.png", "x" * 201, mask()), ("a.png", "cat", mask())))
    assert summary.n_annotations == 1
    (problem,) = summary.problems
    assert "longer than 200 characters" in problem


def test_what_a_person_decided_is_not_changed(workspace, tmp_path):
    image = workspace.open_image(workspace.store.image_at("a.png").image_id)
    category = workspace.store.ensure_category("cat")
    rejected = NewAnnotation(category.category_id, "cat", mask(), (5, 6, 25, 16), 0.9, "b", Decision.REJECTED)
    workspace.store.adopt(image.image_id, [rejected], None, "reject")
    path = dataset(tmp_path, ("a.png", "cat", mask(6)))
    assert bring_in(workspace, path, Decision.PENDING).n_already == 1
    assert bring_in(workspace, dataset(tmp_path, ("a.png", "cat", mask())), Decision.ACCEPTED).n_already == 1
    assert [one.decision for one in annotations(workspace, "a.png")] == [Decision.REJECTED]


def test_a_suggestion_that_the_file_holds_as_accepted_becomes_accepted(workspace, tmp_path):
    path = dataset(tmp_path, ("a.png", "cat", mask()))
    bring_in(workspace, path, Decision.PENDING)
    bring_in(workspace, path, Decision.ACCEPTED)
    assert [one.decision for one in annotations(workspace, "a.png")] == [Decision.ACCEPTED]
    workspace.store.undo()
    assert [one.decision for one in annotations(workspace, "a.png")] == [Decision.PENDING]


def test_an_import_can_be_undone_image_by_image(workspace, tmp_path):
    bring_in(workspace, dataset(tmp_path, ("a.png", "cat", mask()), ("a.png", "cat", mask(30))))
    assert workspace.store.can_undo() == "import 2 of dataset.json"
    workspace.store.undo()
    assert annotations(workspace, "a.png") == []


def exported(workspace: Workspace, out: Path) -> Path:
    decisions = (Decision.ACCEPTED, Decision.PENDING)
    report = export_project(workspace.store, out, "coco", decisions, ExportOptions())
    assert not report.problems
    return out / "instances.json"


def content_of(workspace: Workspace) -> list[tuple[Any, ...]]:
    names = {item.category_id: item.name for item in workspace.store.categories()}
    return sorted(
        (image.path, names[one.category_id], one.mask.counts, one.xyxy, one.score or -1, one.phrase or "", one.decision)
        for image in workspace.store.images()
        for one in workspace.store.annotations(image.image_id)
    )


def test_our_own_export_comes_back_as_it_was(workspace, tmp_path):
    workspace.keep_draft(workspace.store.image_at("a.png").image_id, "cup", "cup")
    workspace.keep_draft(workspace.store.image_at("sub/c.png").image_id, "cat", "animal")
    first = annotations(workspace, "a.png")[0]
    workspace.decide(first.image_id, {first.annotation_id: Decision.ACCEPTED}, None, "accept")
    workspace.draw(workspace.store.image_at("b.png").image_id, (4, 4, 30, 30), "thing", None)
    path = exported(workspace, tmp_path / "out")
    write_pictures(tmp_path / "second" / "images", "a.png", "b.png", "sub/a.png", "sub/c.png")
    other = open_workspace(tmp_path / "second")
    bring_in(other, path)
    assert content_of(other) == content_of(workspace)
    assert len(content_of(other)) >= 4
    other.close()


def test_two_exports_with_the_same_ids_are_merged(workspace, tmp_path):
    one = dataset(tmp_path, ("a.png", "cat", mask()), ("b.png", "cup", mask()), name="one.json")
    two = dataset(tmp_path, ("b.png", "dog", mask(30)), ("sub/c.png", "cat", mask()), name="two.json")
    for path in (one, two):
        bring_in(workspace, path)
    merged = json.loads(exported(workspace, tmp_path / "out").read_text())
    names = {row["id"]: row["name"] for row in merged["categories"]}
    files = {row["id"]: row["file_name"] for row in merged["images"]}
    found = sorted((files[row["image_id"]], names[row["category_id"]]) for row in merged["annotations"])
    assert found == [("a.png", "cat"), ("b.png", "cup"), ("b.png", "dog"), ("sub/c.png", "cat")]
    assert len({row["id"] for row in merged["annotations"]}) == 4


def test_no_model_is_loaded(tmp_path):
    write_pictures(tmp_path / "images", "a.png")

    class NoModel:
        @property
        def info(self):
            raise AssertionError("the model was loaded")

    workspace = open_workspace(tmp_path, NoModel())
    assert bring_in(workspace, dataset(tmp_path, ("a.png", "cat", mask()))).n_annotations == 1
    workspace.close()


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "app.py"), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, encoding="utf-8")


def test_the_command_imports_and_says_what_it_left_out(tmp_path):
    write_pictures(tmp_path / "images", "a.png")
    path = dataset(tmp_path, ("a.png", "cat", mask()), ("gone.png", "cat", mask()))
    done = run("import", path, "--images", tmp_path / "images", "--project", tmp_path / "project")
    assert done.returncode == 1
    assert done.stdout == "1 images: 1 annotations added, 0 were there before\n"
    assert done.stderr == "gone.png: there is no such picture in the folder\n"
    again = run("import", path, "--images", tmp_path / "images", "--project", tmp_path / "project", "--as", "pending")
    assert again.stdout == "1 images: 0 annotations added, 1 were there before\n"


def test_a_file_that_is_no_dataset_leaves_no_project(tmp_path):
    write_pictures(tmp_path / "images", "a.png")
    (tmp_path / "dataset.json").write_text('{"images": [')
    arguments = ["--images", tmp_path / "images", "--project", tmp_path / "project"]
    done = run("import", tmp_path / "dataset.json", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and "cut off" in done.stderr
    assert not (tmp_path / "project").exists()
