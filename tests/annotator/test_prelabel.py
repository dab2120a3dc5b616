"""Pre-labelling a folder with a fake model."""

from __future__ import annotations

from itertools import islice

import pytest
from fake_segmenter import FakeSegmenter
from projects import open_workspace, write_pictures

from annotator.errors import ModelFailingError
from annotator.prelabel import Prelabeller, PrelabelOptions
from annotator.records import Decision


@pytest.fixture
def segmenter():
    return FakeSegmenter()


@pytest.fixture
def workspace(tmp_path, segmenter):
    write_pictures(tmp_path / "images", *(f"{number}.png" for number in range(4)))
    (tmp_path / "images" / "2.png").write_bytes(b"")
    with_project = open_workspace(tmp_path, segmenter)
    yield with_project
    with_project.close()


def prelabeller(workspace, *phrases, **options):
    kept = [workspace.keep_phrase(text, text) for text in phrases]
    return Prelabeller(workspace, kept, PrelabelOptions(**options))


def run(workspace, *phrases, **options):
    worker = prelabeller(workspace, *phrases, **options)
    for _ in worker.run():
        pass
    return worker.summary


def test_every_phrase_is_suggested_on_every_image(workspace):
    summary = run(workspace, "cup", "cat")
    assert (summary.n_images, summary.n_done) == (4, 3)
    assert summary.n_suggestions == {"cup": 6, "cat": 3}


def test_a_bad_file_is_named_and_the_rest_goes_on(workspace):
    assert list(run(workspace, "cup").failures) == ["2.png"]


def test_a_second_run_does_nothing_again(workspace, segmenter):
    run(workspace, "cup")
    calls = len([call for call in segmenter.calls if call.startswith("decode")])
    summary = run(workspace, "cup")
    assert (summary.n_done, summary.n_already) == (0, 3)
    assert len([call for call in segmenter.calls if call.startswith("decode")]) == calls


def test_a_stopped_run_goes_on_where_it_stopped(workspace):
    list(islice(prelabeller(workspace, "cup").run(), 2))
    summary = run(workspace, "cup")
    assert (summary.n_done, summary.n_already) == (1, 2)


def test_a_phrase_added_later_runs_alone(workspace, segmenter):
    run(workspace, "cup")
    segmenter.calls.clear()
    run(workspace, "cup", "cat")
    assert {call for call in segmenter.calls if call.startswith("decode")} == {"decode cat"}


def test_scores_below_the_threshold_are_not_stored(workspace):
    run(workspace, "cup", score_threshold=0.8)
    image = workspace.store.image_at("0.png")
    assert [item.score for item in workspace.store.annotations(image.image_id)] == [0.9]


def test_sure_suggestions_are_accepted_on_request(workspace):
    run(workspace, "cup", accept_above=0.8)
    image = workspace.store.image_at("0.png")
    decided = [(item.score, item.decision) for item in workspace.store.annotations(image.image_id)]
    assert decided == [(0.9, Decision.ACCEPTED), (0.7, Decision.PENDING)]


def test_redo_replaces_open_suggestions_only(workspace):
    run(workspace, "cup")
    image = workspace.store.image_at("0.png")
    best, other = workspace.store.annotations(image.image_id)
    workspace.decide(image.image_id, {best.annotation_id: Decision.ACCEPTED}, None, "accept")
    run(workspace, "cup", redo=True)
    again = workspace.store.annotations(image.image_id)
    assert workspace.store.annotation(best.annotation_id).decision is Decision.ACCEPTED
    assert [item.score for item in again] == [0.9, 0.7]
    assert other.annotation_id not in [item.annotation_id for item in again]


def test_reviewed_images_are_left_alone(workspace):
    image = workspace.store.image_at("0.png")
    workspace.finish(image.image_id, 0.5, None)
    summary = run(workspace, "cup")
    assert summary.n_reviewed == 1
    assert workspace.store.annotations(image.image_id) == []


def test_an_image_that_is_reviewed_during_the_run_is_left_alone(workspace):
    steps = prelabeller(workspace, "cup", accept_above=0.5).run()
    next(steps)
    image = workspace.store.image_at("1.png")
    workspace.finish(image.image_id, 0.5, None)
    for summary in steps:
        assert summary.n_images == 4
    assert workspace.store.annotations(image.image_id) == []


def fail():
    raise RuntimeError("out of memory")


def test_an_image_on_which_the_model_fails_is_named_and_the_rest_goes_on(workspace, segmenter):
    steps = prelabeller(workspace, "cup").run()
    next(steps)
    segmenter.on_decode = fail
    next(steps)
    segmenter.on_decode = lambda: None
    *_, summary = steps
    assert summary.failures["1.png"] == "the model failed on it: RuntimeError: out of memory"
    assert summary.n_done == 2


def test_a_model_that_fails_on_every_image_stops_the_run(tmp_path, segmenter):
    write_pictures(tmp_path / "many", *(f"{number}.png" for number in range(30)))
    segmenter.on_decode = fail
    with_project = open_workspace(tmp_path, segmenter, tmp_path / "many")
    worker = prelabeller(with_project, "cup")
    with pytest.raises(ModelFailingError, match="on 20 images in a row"):
        list(worker.run())
    with_project.close()


def test_a_phrase_outside_the_vocabulary_is_said(workspace):
    summary = run(workspace, "temple")
    assert summary.understood == {"temple": "outside this model's vocabulary"}
    assert summary.n_suggestions == {"temple": 0}
