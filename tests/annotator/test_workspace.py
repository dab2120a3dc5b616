"""What a person and a model do to images, over a real store and a fake model."""

from __future__ import annotations

import shutil

import pytest
from fake_segmenter import FakeSegmenter
from projects import open_workspace, write_pictures

from annotator.errors import (
    AnswerReplacedError,
    FolderMismatchError,
    FolderNotFoundError,
    ProjectNotFoundError,
    RevisionConflictError,
)
from annotator.predictor import Predictor
from annotator.records import Decision, ImageState
from annotator.ui.panels.instances import instance_functions
from annotator.workspace import Workspace
from engines.errors import BoxError, PhraseError, UnreadableImageError


@pytest.fixture
def segmenter():
    return FakeSegmenter()


@pytest.fixture
def workspace(tmp_path, segmenter):
    write_pictures(tmp_path / "images", "a.png", "b.png", "sub1/same.png", "sub2/same.png")
    with_project = open_workspace(tmp_path, segmenter)
    yield with_project
    with_project.close()


@pytest.fixture
def first(workspace):
    return workspace.store.image_at("a.png").image_id


def decisions(workspace, image_id):
    return [item.decision for item in workspace.store.annotations(image_id)]


def test_two_files_of_one_name_in_two_folders_are_two_images(workspace):
    assert [image.path for image in workspace.store.images()] == ["a.png", "b.png", "sub1/same.png", "sub2/same.png"]


def test_trying_a_phrase_stores_nothing(workspace, first):
    assert len(workspace.try_phrase(first, "cup").instances) == 3
    assert workspace.store.annotations(first) == []
    assert workspace.store.image(first).state is ImageState.UNTOUCHED


def test_an_answer_is_stored_as_that_of_the_model_that_gave_it(workspace, first, monkeypatch):
    try_phrase = workspace.try_phrase

    def answered_and_replaced(*arguments, **options):
        answer = try_phrase(*arguments, **options)
        workspace.predictor.use(lambda: FakeSegmenter(bundle_id="second"))
        return answer

    monkeypatch.setattr(workspace, "try_phrase", answered_and_replaced)
    workspace.suggest(first, workspace.keep_phrase("cup", "cup"))
    assert {item.bundle_id for item in workspace.store.annotations(first)} == {"fake"}
    assert [kept.text for kept in workspace.missing_phrases(first)] == ["cup"]


def test_a_decision_on_the_answer_of_a_replaced_model_is_refused(workspace, first):
    decide = next(function for function in instance_functions(workspace) if function.__name__ == "decide")
    seen = workspace.try_phrase(first, "cup").bundle_id
    workspace.predictor.use(lambda: FakeSegmenter(bundle_id="second"))
    draft = {"text": "cup", "category": "cup", "bundle_id": seen}
    request = {"id": first, "revision": 0, "decisions": {"draft:0": "accepted"}, "label": "accept", "draft": draft}
    with pytest.raises(AnswerReplacedError):
        decide(request)
    assert workspace.store.annotations(first) == [] and workspace.store.kept_phrases() == []


def test_an_empty_phrase_is_refused(workspace, first):
    with pytest.raises(PhraseError):
        workspace.try_phrase(first, "   ")


def test_a_kept_phrase_is_suggested_on_the_image(workspace, first):
    workspace.suggest(first, workspace.keep_phrase("cup", "vessel"))
    stored = workspace.store.annotations(first)
    assert [item.score for item in stored] == [0.9, 0.7, 0.35]
    assert {workspace.categories()[item.category_id].name for item in stored} == {"vessel"}
    assert workspace.store.image(first).state is ImageState.SUGGESTED


def test_two_phrases_of_one_category_do_not_say_the_same_thing_twice(workspace, first):
    workspace.suggest(first, workspace.keep_phrase("cup", "vessel"))
    assert workspace.suggest(first, workspace.keep_phrase("mug", "vessel")) == {}
    assert len(workspace.suggest(first, workspace.keep_phrase("mug", "mug"))) == 1


def test_a_rejected_instance_does_not_come_back(workspace, first):
    kept = workspace.keep_phrase("cup", "cup")
    ids = workspace.suggest(first, kept)
    workspace.decide(first, {ids[0]: Decision.REJECTED}, None, "reject cup")
    assert 0 not in workspace.suggest(first, kept)
    assert decisions(workspace, first).count(Decision.REJECTED) == 1


def test_a_run_never_changes_what_a_person_decided(workspace, first):
    kept = workspace.keep_phrase("cup", "cup")
    ids = workspace.suggest(first, kept)
    workspace.decide(first, {ids[0]: Decision.ACCEPTED, ids[1]: Decision.REJECTED}, None, "decide")
    before = {item.annotation_id: item for item in workspace.store.annotations(first) if item.decision != "pending"}
    workspace.suggest(first, kept, 0.3)
    after = {item.annotation_id: item for item in workspace.store.annotations(first)}
    assert all(after[key] == item for key, item in before.items())
    assert len(after) == 3


def test_kept_phrases_run_once_on_each_image(workspace, segmenter, first):
    workspace.keep_phrase("cup", "cup")
    workspace.keep_phrase("cat", "cat")
    workspace.run_kept_phrases(first)
    workspace.run_kept_phrases(first)
    assert segmenter.count("decode") == 2
    assert len(workspace.store.annotations(first)) == 4


def test_kept_phrases_leave_reviewed_images_alone(workspace, segmenter, first):
    workspace.keep_phrase("cup", "cup")
    workspace.finish(first, 0.5, None)
    workspace.run_kept_phrases(first)
    assert segmenter.calls == []


def test_an_answer_that_comes_after_the_review_is_not_stored(workspace, segmenter, first):
    kept = workspace.keep_phrase("cup", "cup")
    segmenter.on_decode = lambda: workspace.finish(first, 0.5, None)
    workspace.run_kept_phrases(first)
    assert workspace.store.annotations(first) == []
    assert workspace.suggest(first, kept) == {}


def test_an_answer_for_a_phrase_that_was_forgotten_meanwhile_is_not_stored(workspace, segmenter, first):
    kept = workspace.keep_phrase("cup", "cup")
    segmenter.on_decode = lambda: workspace.store.forget_phrase(kept.phrase_id)
    workspace.run_kept_phrases(first)
    assert workspace.store.annotations(first) == []


def test_an_answer_goes_to_the_category_its_phrase_has_by_then(workspace, segmenter, first):
    workspace.keep_phrase("cup", "cup")
    segmenter.on_decode = lambda: workspace.keep_phrase("cup", "vessel")
    workspace.run_kept_phrases(first)
    stored = workspace.store.annotations(first)
    assert {workspace.categories()[item.category_id].name for item in stored} == {"vessel"}


def test_a_category_is_the_same_in_any_case(workspace, first):
    workspace.keep_phrase("cup", "Cup")
    workspace.keep_phrase("mug", "cup")
    assert [category.name for category in workspace.store.categories()] == ["Cup"]


def test_a_project_inside_its_folder_shows_none_of_its_own_copies(tmp_path):
    write_pictures(tmp_path / "images", "a.png")
    inside = Workspace.open(tmp_path / "images" / "labels", Predictor(FakeSegmenter), tmp_path / "images")
    inside.pictures.thumbnail(inside.store.image_at("a.png"))
    inside.rescan()
    assert [image.path for image in inside.store.images()] == ["a.png"]
    inside.close()


def test_a_drive_that_was_away_is_read_again_after_a_rescan(workspace, tmp_path, first):
    (tmp_path / "images").rename(tmp_path / "away")
    with pytest.raises(UnreadableImageError):
        workspace.open_image(first)
    (tmp_path / "away").rename(tmp_path / "images")
    workspace.rescan()
    assert [image.failure for image in workspace.store.images()] == [None] * 4


def test_finishing_accepts_what_is_at_or_above_the_threshold(workspace, first):
    workspace.suggest(first, workspace.keep_phrase("cup", "cup"))
    workspace.finish(first, 0.7, workspace.store.image(first).revision)
    assert decisions(workspace, first) == [Decision.ACCEPTED, Decision.ACCEPTED, Decision.PENDING]
    assert workspace.store.image(first).state is ImageState.DONE


def test_finishing_is_one_step_to_undo(workspace, first):
    workspace.suggest(first, workspace.keep_phrase("cup", "cup"))
    workspace.finish(first, 0.5, None)
    workspace.store.undo()
    assert set(decisions(workspace, first)) == {Decision.PENDING}
    assert workspace.store.image(first).state is ImageState.SUGGESTED


def test_a_drawn_box_becomes_an_accepted_mask_without_a_score(workspace, first):
    drawn = workspace.draw(first, (10, 10, 30.4, 20), "thing", workspace.store.image(first).revision)
    assert (drawn.decision, drawn.score, drawn.drawn) == (Decision.ACCEPTED, None, True)
    assert drawn.mask.xywh == (10, 10, 20, 10)


def test_a_box_outside_the_image_is_refused(workspace, first):
    with pytest.raises(BoxError, match="covers nothing of the 64×48 image"):
        workspace.draw(first, (100, 100, 120, 120), "thing", None)


def test_an_older_revision_is_refused_and_changes_nothing(workspace, first):
    ids = workspace.suggest(first, workspace.keep_phrase("cup", "cup"))
    revision = workspace.store.image(first).revision
    workspace.decide(first, {ids[0]: Decision.ACCEPTED}, revision, "accept")
    with pytest.raises(RevisionConflictError):
        workspace.decide(first, {ids[1]: Decision.ACCEPTED}, revision, "accept")
    assert decisions(workspace, first).count(Decision.ACCEPTED) == 1


def test_a_file_that_is_no_picture_is_named_and_stays_in_the_queue(workspace, tmp_path):
    (tmp_path / "images" / "c.png").write_text("not a picture")
    workspace.rescan()
    image_id = workspace.store.image_at("c.png").image_id
    with pytest.raises(UnreadableImageError):
        workspace.open_image(image_id)
    assert workspace.store.image(image_id).failure


def test_a_repaired_file_is_opened_again(workspace, tmp_path):
    path = tmp_path / "images" / "c.png"
    path.write_text("not a picture")
    workspace.rescan()
    image_id = workspace.store.image_at("c.png").image_id
    with pytest.raises(UnreadableImageError):
        workspace.open_image(image_id)
    shutil.copy(tmp_path / "images" / "a.png", path)
    assert workspace.open_image(image_id).failure is None
    assert workspace.store.image(image_id).width == 64


def test_a_file_that_changed_after_it_was_labelled_is_pointed_out(workspace, tmp_path, first):
    workspace.suggest(first, workspace.keep_phrase("cup", "cup"))
    workspace.finish(first, 0.5, None)
    write_pictures(tmp_path / "images", "x.png", "a.png")
    workspace.pictures.preview(workspace.store.image(first))
    notes = workspace.pictures.notes(workspace.store.image(first))
    assert any("changed since it was labelled" in note for note in notes)


def test_a_file_that_has_not_changed_is_read_once(workspace, first, monkeypatch):
    workspace.open_image(first)
    monkeypatch.setattr("annotator.pictures.read_image", lambda path: pytest.fail("read again"))
    workspace.open_image(first)
    workspace.try_phrase(first, "cup")


def test_a_moved_folder_keeps_its_labels(workspace, tmp_path, first):
    workspace.finish(first, 0.5, None)
    workspace.close()
    (tmp_path / "images").rename(tmp_path / "moved")
    with pytest.raises(FolderNotFoundError, match="give the folder the images were moved to"):
        Workspace.open(tmp_path / "project", Predictor(FakeSegmenter))
    again = open_workspace(tmp_path, folder=tmp_path / "moved")
    assert again.store.image_at("a.png").state is ImageState.DONE
    again.close()


def test_a_project_is_not_laid_over_a_folder_of_other_images(workspace, tmp_path, first):
    workspace.finish(first, 0.5, None)
    workspace.close()
    write_pictures(tmp_path / "others", "z.png")
    with pytest.raises(FolderMismatchError):
        open_workspace(tmp_path, folder=tmp_path / "others")
    again = open_workspace(tmp_path)
    assert len(again.store.images(include_missing=False)) == 4
    again.close()


def test_without_a_folder_the_project_must_exist(tmp_path):
    with pytest.raises(ProjectNotFoundError):
        Workspace.open(tmp_path / "none", Predictor(FakeSegmenter))
    assert not (tmp_path / "none").exists()
