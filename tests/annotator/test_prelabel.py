"""Pre-labelling a folder with a fake model."""

from __future__ import annotations

import itertools
import json
import os
from contextlib import closing
from itertools import islice

import pytest
from fake_segmenter import FakeSegmenter
from projects import open_workspace, write_pictures

from annotator.errors import DiskFullError, ModelFailingError, ModelReplacedError
from annotator.prelabel import Prelabeller
from annotator.prelabelling.options import PrelabelOptions
from annotator.records import Decision
from annotator.repeats import ChoiceRules


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


def prelabeller(workspace, *phrases, min_area=1, **options):
    kept = [workspace.keep_phrase(text, text) for text in phrases]
    return Prelabeller(workspace, kept, PrelabelOptions(rules=ChoiceRules(min_area=min_area), **options))


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
    for progress in steps:
        assert progress.n_images == 4
    assert workspace.store.annotations(image.image_id) == []


def fail():
    raise RuntimeError("out of memory")


def failing_at(*numbers):
    """A model's decoder that fails at those of its calls, from 1."""
    calls = itertools.count(1)

    def on_decode():
        if next(calls) in numbers:
            fail()

    return on_decode


def test_an_image_on_which_the_model_fails_is_named_and_the_rest_goes_on(workspace, segmenter):
    segmenter.on_decode = failing_at(2)
    summary = run(workspace, "cup")
    assert summary.failures["1.png"] == "the model failed on it: RuntimeError: out of memory"
    assert summary.n_done == 2
    assert workspace.store.image_at("1.png").sha256 is not None


def test_an_image_fails_as_a_whole(workspace, segmenter):
    segmenter.on_decode = failing_at(2)
    run(workspace, "cup", "cat")
    image = workspace.store.image_at("0.png")
    assert workspace.store.annotations(image.image_id) == []
    assert run(workspace, "cup", "cat").n_done == 1


def many(tmp_path, segmenter, n=30, content=None):
    write_pictures(tmp_path / "many", *(f"{number}.png" for number in range(n)))
    for path in (tmp_path / "many").iterdir():
        if content is not None:
            path.write_bytes(content)
    return open_workspace(tmp_path, segmenter, tmp_path / "many")


def test_a_model_that_fails_on_every_image_stops_the_run(tmp_path, segmenter):
    segmenter.on_decode = fail
    with closing(many(tmp_path, segmenter)) as project:
        worker = prelabeller(project, "cup")
        with pytest.raises(ModelFailingError, match="on 20 images in a row"):
            list(worker.run())
        assert len(worker.summary.failures) == 20


def test_files_that_all_fail_alike_stop_the_run_too(tmp_path, segmenter):
    with closing(many(tmp_path, segmenter, 5, b"")) as project:
        with pytest.raises(ModelFailingError, match=r"on 3 images in a row, .*--max-equal-errors"):
            run(project, "cup", max_equal_errors=3)
        assert len(run(project, "cup", max_equal_errors=0).failures) == 5


def test_equal_errors_with_a_good_image_between_do_not_stop_the_run(tmp_path, segmenter):
    segmenter.on_decode = failing_at(1, 2, 4, 5)
    with closing(many(tmp_path, segmenter, 6)) as project:
        assert run(project, "cup", max_equal_errors=3).n_done == 2


def test_what_is_wrong_with_the_project_ends_the_run(workspace, monkeypatch):
    def refuse(*_):
        raise DiskFullError(workspace.store.path)

    monkeypatch.setattr(workspace.store, "replace_suggestions", refuse)
    with pytest.raises(DiskFullError):
        run(workspace, "cup")


def test_a_model_that_is_replaced_meanwhile_ends_the_run_and_nothing_is_stored_as_the_other_ones(tmp_path, segmenter):
    with closing(many(tmp_path, segmenter)) as project:
        steps = prelabeller(project, "cup").run()
        next(steps)
        project.predictor.use(lambda: FakeSegmenter(bundle_id="another"))
        with pytest.raises(ModelReplacedError):
            list(steps)
        assert {total.bundle_id for total in project.store.run_totals()} == {"fake"}


def test_another_threshold_is_another_run_and_going_back_runs_again(workspace):
    assert run(workspace, "cup").n_done == 3
    assert run(workspace, "cup", score_threshold=0.8).n_done == 3
    totals = [(one.score_threshold, one.n_images, one.n_suggestions) for one in workspace.store.run_totals()]
    assert totals == [(0.5, 3, 6), (0.8, 3, 3)]
    assert run(workspace, "cup", score_threshold=0.8).n_already == 3
    assert run(workspace, "cup").n_done == 3  # the other threshold's suggestions stand there
    assert run(workspace, "cup").n_already == 3


def test_an_image_whose_content_changed_is_run_with_all_phrases(workspace, tmp_path):
    run(workspace, "cup")
    path = tmp_path / "images" / "0.png"
    content = path.read_bytes()
    write_pictures(tmp_path / "other", "0.png", size=(64, 48))
    image = workspace.store.image_at("0.png")
    workspace.store.record_opened(image.image_id, "another", 48, 64, len(content), 1)
    workspace.store.replace_suggestions(image.image_id, "cup", 1, "fake", 0.5, [])
    summary = run(workspace, "cup", "cat")
    assert summary.n_suggestions == {"cup": 2, "cat": 3}


def test_a_picture_that_is_exchanged_for_one_of_equal_size_is_run_again(workspace, tmp_path):
    run(workspace, "cup")
    folder = tmp_path / "images"
    content = {"0.png": (folder / "1.png").read_bytes(), "1.png": (folder / "1.png").read_bytes()}
    assert len(content["0.png"]) == (folder / "0.png").stat().st_size
    for name, data in content.items():
        (folder / name).write_bytes(data)
        os.utime(folder / name, ns=(1, 1))
    workspace.rescan()
    summary = run(workspace, "cup")
    assert (summary.n_done, summary.n_already) == (1, 2)
    assert {workspace.store.image_at(name).mtime_ns for name in content} == {1}
    assert run(workspace, "cup").n_already == 3


def test_a_finished_picture_that_is_broken_afterwards_is_named(workspace, tmp_path):
    run(workspace, "cup")
    (tmp_path / "images" / "0.png").write_bytes(b"x" * (tmp_path / "images" / "0.png").stat().st_size)
    assert list(run(workspace, "cup").failures) == ["0.png", "2.png"]


def test_a_redo_that_was_stopped_goes_on_and_a_new_one_begins_anew(workspace, segmenter):
    run(workspace, "cup")
    list(islice(prelabeller(workspace, "cup", redo=True).run(), 2))
    assert run(workspace, "cup", redo=True, min_area=2).n_done == 3
    list(islice(prelabeller(workspace, "cup", redo=True).run(), 2))
    summary = run(workspace, "cup", redo=True)
    assert (summary.n_done, summary.n_already) == (1, 2)
    assert run(workspace, "cup", redo=True).n_done == 3


def test_small_masks_are_left_out_on_request(workspace):
    assert run(workspace, "cup", min_area=101).n_suggestions == {"cup": 0}


def test_two_phrases_of_one_category_do_not_suggest_a_thing_twice(workspace):
    kept = [workspace.keep_phrase(text, "cup") for text in ("mug", "cup")]
    worker = Prelabeller(workspace, kept, PrelabelOptions())
    list(worker.run())
    assert worker.summary.n_suggestions == {"mug": 0, "cup": 6}


def test_progress_tells_the_speed_and_the_time_left(workspace):
    first, *_, last = prelabeller(workspace, "cup").run()
    assert (first.path, first.n_images, first.n_looked_at) == ("0.png", 4, 1)
    assert first.images_per_s > 0
    assert first.seconds_left > 0
    assert (last.n_looked_at, last.seconds_left) == (4, 0.0)


def test_a_run_that_is_told_to_stop_ends_and_can_go_on(tmp_path, segmenter):
    with closing(many(tmp_path, segmenter)) as project:
        worker = prelabeller(project, "cup")
        for _ in worker.run():
            worker.stop()
        assert worker.summary.n_done < 12
        assert worker.summary.stopped
        rest = run(project, "cup")
        assert rest.n_done == 30 - worker.summary.n_done
        assert not rest.stopped


def test_the_summary_is_plain_values_for_programs(workspace):
    summary = json.loads(json.dumps(run(workspace, "cup", "temple").as_json()))
    assert summary["images"] == 4
    assert summary["done"] == 3
    assert summary["skipped"] == {"done_before": 0, "reviewed": 0}
    assert list(summary["failed"]) == ["2.png"]
    assert summary["instances"] == {"cup": 6, "temple": 0}
    assert summary["images_per_s"] > 0
    assert summary["stopped"] is False


def test_a_phrase_outside_the_vocabulary_is_said(workspace):
    summary = run(workspace, "temple")
    assert summary.understood == {"temple": "outside this model's vocabulary"}
    assert summary.n_suggestions == {"temple": 0}
