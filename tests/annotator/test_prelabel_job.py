"""Pre-labelling in the background, with a fake model."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

import pytest
from fake_segmenter import FakeSegmenter
from projects import open_workspace, write_pictures

from annotator.errors import CommandError, ModelReplacedError, PrelabelRunningError
from annotator.prelabel_job import JobPhase, JobState, PrelabelJob
from annotator.prelabelling.options import PrelabelOptions
from annotator.records import Decision
from annotator.ui.panels.prelabel import prelabel_functions


class Gate:
    """Holds the model at each phrase until it is opened."""

    def __init__(self, segmenter: FakeSegmenter) -> None:
        self.reached, self.opened = Event(), Event()
        segmenter.on_decode = self._pass

    def _pass(self) -> None:
        self.reached.set()
        assert self.opened.wait(10)


@pytest.fixture
def segmenter():
    return FakeSegmenter()


@pytest.fixture
def workspace(tmp_path, segmenter):
    write_pictures(tmp_path / "images", *(f"{number}.png" for number in range(8)))
    (tmp_path / "images" / "3.png").write_bytes(b"")
    opened = open_workspace(tmp_path, segmenter)
    yield opened
    opened.close()


@pytest.fixture
def job(workspace):
    one = PrelabelJob(workspace)
    yield one
    one.close()


@pytest.fixture
def functions(workspace, job):
    return {function.__name__: function for function in prelabel_functions(workspace, job)}


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(job: PrelabelJob) -> JobState:
    wait(lambda: not job.state.phase.is_under_way)
    return job.state


def start(job, workspace, *phrases, **options):
    return job.start([workspace.keep_phrase(text, text) for text in phrases], PrelabelOptions(**options))


def test_a_run_in_the_background_tells_what_it_did(job, workspace):
    assert job.state.phase is JobPhase.NONE
    assert start(job, workspace, "cup", "cat").phase is JobPhase.LOADING
    state = ended(job)
    assert (state.phase, state.n_images, state.n_looked_at, state.n_done) == (JobPhase.FINISHED, 8, 8, 7)
    assert state.n_suggestions == {"cup": 14, "cat": 7}
    assert [path for path, _ in state.failures] == ["3.png"]
    assert state.as_json()["phase"] == "finished"


def test_only_one_run_is_under_way_at_a_time(job, workspace, segmenter):
    gate = Gate(segmenter)
    start(job, workspace, "cup")
    gate.reached.wait(10)
    with pytest.raises(PrelabelRunningError, match="is running already"):
        start(job, workspace, "cat")
    gate.opened.set()
    assert ended(job).n_done == 7
    assert start(job, workspace, "cat").number == 2
    assert ended(job).n_suggestions == {"cat": 7}


def test_a_stopped_run_goes_on_when_it_is_started_again(job, workspace, segmenter):
    gate = Gate(segmenter)
    start(job, workspace, "cup")
    gate.reached.wait(10)
    job.stop()
    assert job.state.phase is JobPhase.STOPPING
    gate.opened.set()
    first = ended(job)
    assert first.phase is JobPhase.STOPPED
    assert first.n_looked_at < 8
    start(job, workspace, "cup")
    second = ended(job)
    assert second.phase is JobPhase.FINISHED
    assert (second.n_done + first.n_done, second.n_already) == (7, first.n_done)
    assert segmenter.count("decode") == 7


def test_closing_waits_until_the_image_in_work_is_stored(job, workspace, segmenter):
    segmenter.on_decode = lambda: time.sleep(0.05)
    start(job, workspace, "cup")
    wait(lambda: job.state.n_done)
    job.close()
    assert job.state.phase is JobPhase.STOPPED
    assert segmenter.count("decode") == job.state.n_done


def test_another_model_ends_the_run_with_its_sentence(job, workspace, segmenter):
    gate = Gate(segmenter)
    start(job, workspace, "cup")
    gate.reached.wait(10)
    gate.opened.set()
    segmenter.on_decode = lambda: time.sleep(0.02)
    workspace.predictor.use(lambda: FakeSegmenter(bundle_id="other"))
    state = ended(job)
    assert (state.phase, state.error) == (JobPhase.FAILED, str(ModelReplacedError()))
    start(job, workspace, "cup")
    assert ended(job).phase is JobPhase.FINISHED


def test_a_model_that_cannot_be_loaded_is_said(job, workspace):
    kept = workspace.keep_phrase("cup", "cup")

    def refuse():
        raise OSError("no such file")

    workspace.predictor.use_later(refuse)
    workspace.predictor._segmenter = None
    job.start([kept], PrelabelOptions())
    state = ended(job)
    assert state.phase is JobPhase.FAILED
    assert "no such file" in state.error


def test_what_a_person_did_meanwhile_is_left_alone(job, workspace, segmenter):
    gate = Gate(segmenter)
    start(job, workspace, "cup")
    gate.reached.wait(10)
    last = workspace.store.image_at("7.png")
    workspace.finish(last.image_id, 0.5, None)
    gate.opened.set()
    assert ended(job).n_reviewed == 1
    assert workspace.store.annotations(last.image_id) == []


def test_the_person_is_served_before_the_run(job, workspace, segmenter):
    """Of those who wait for the model, the run is the last."""
    gate = Gate(segmenter)
    start(job, workspace, "cup")
    gate.reached.wait(10)
    segmenter.on_decode = lambda: time.sleep(0.02)
    gate.opened.set()
    before = segmenter.count("decode cup")
    workspace.try_phrase(workspace.store.image_at("0.png").image_id, "cat")
    assert segmenter.count("decode cup") - before <= 2
    ended(job)


def test_scores_above_the_one_given_are_accepted_at_once(job, workspace):
    start(job, workspace, "cup", accept_above=0.85)
    ended(job)
    decisions = [item.decision for item in workspace.store.annotations(workspace.store.image_at("0.png").image_id)]
    assert decisions == [Decision.ACCEPTED, Decision.PENDING]


def request(phrases, **changes):
    rules = {"suppress_iou": 0.5, "suppress_containment": 0.9, "across_categories": False, "min_area": 1}
    return {"phrases": phrases, "score_threshold": 0.5, "accept_above": None, "redo": False, **rules, **changes}


@pytest.mark.parametrize("changes", [{"score_threshold": 1.5}, {"score_threshold": None}, {"accept_above": ""}])
def test_a_score_that_is_none_is_refused(functions, workspace, job, changes):
    kept = workspace.keep_phrase("cup", "cup")
    with pytest.raises(CommandError, match="is a number from 0 to 1"):
        functions["start_prelabel"](request([kept.phrase_id], **changes))
    assert job.state.phase is JobPhase.NONE


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"suppress_iou": 2}, "the IoU of duplicates is a number from 0 to 1"),
        ({"suppress_containment": None}, "the share inside a better mask is a number from 0 to 1"),
        ({"min_area": 0}, "the least area is a number of pixels, 1 or more"),
        ({"min_area": float("nan")}, "the least area is a number of pixels, 1 or more"),
    ],
)
def test_rules_that_are_none_are_refused(functions, workspace, job, changes, words):
    kept = workspace.keep_phrase("cup", "cup")
    with pytest.raises(CommandError, match=words):
        functions["start_prelabel"](request([kept.phrase_id], **changes))
    assert job.state.phase is JobPhase.NONE


def test_a_run_without_phrases_is_refused(functions):
    with pytest.raises(CommandError, match="no phrase is chosen"):
        functions["start_prelabel"](request([]))


def test_a_phrase_is_added_as_in_the_command(functions, workspace):
    functions["add_phrase"]({"written": "coffee cup=cup"})
    [phrase] = functions["list_phrases"]({})["phrases"]
    assert (phrase["text"], phrase["category"]) == ("coffee cup", "cup")
    with pytest.raises(CommandError, match="empty"):
        functions["add_phrase"]({"written": "cup="})


def test_a_tab_gets_each_finished_image_once_and_a_new_tab_the_latest(functions, job, workspace):
    start(job, workspace, "cup")
    ended(job)
    watch = functions["watch_prelabel"]
    first = watch({"number": 0, "seen": 5})
    assert [row["path"] for row in first["rows"]] == [f"{number}.png" for number in range(8)]
    assert first["seen"] == 8
    assert first["rows"][3]["failure"]
    assert watch({"number": 1, "seen": 8})["rows"] == []
    assert len(watch({"number": None, "seen": 0})["rows"]) == 8
