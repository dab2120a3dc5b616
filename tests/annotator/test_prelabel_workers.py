"""A run whose images are answered by other processes or on Ray: the same result, whoever dies meanwhile."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NoReturn

import crew_segmenters
import pytest
from fake_segmenter import FakeSegmenter
from projects import open_workspace, write_pictures
from test_cli import assert_one_sentence, run, start, wait_for_runs

from annotator.errors import ModelFailingError, WorkerError
from annotator.predictor import Predictor
from annotator.prelabel import Prelabeller
from annotator.prelabelling.answering import Here
from annotator.prelabelling.image_places import FolderPlace, url_place
from annotator.prelabelling.on_ray import ray_crew
from annotator.prelabelling.options import PrelabelOptions
from annotator.prelabelling.processes import process_crew
from annotator.workspace import Workspace
from engines.errors import PhrasemaskError, RuntimeUnavailableError

ROOT = Path(__file__).parents[2]
SHAPES = ROOT / "tests" / "assets" / "shapes_bundle"
HAS_RAY = importlib.util.find_spec("ray") is not None

needs_ray = pytest.mark.skipif(not HAS_RAY, reason='needs Ray: pip install "phrasemask[ray]"')
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills processes as only POSIX can")


@pytest.fixture(scope="module")
def cluster():
    """Two workers, whatever this machine has."""
    import ray

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "annotator"), str(ROOT)])
    ray.init(num_cpus=8, num_gpus=0, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(params=["processes", pytest.param("ray", marks=needs_ray)])
def crew(request):
    """A crew of two for a function that loads a model, over the images at a place."""
    if request.param == "processes":
        return lambda load, place: process_crew(2, lambda _: load, place)
    request.getfixturevalue("cluster")
    return lambda load, place: ray_crew("local", "auto", lambda _: load, place)


def prelabel(project, folder, phrases, answering=None, segmenter=None, on_step=lambda n: None, **options):
    """Run, and answer the summary and all that is stored."""
    predictor = Predictor(lambda: segmenter)
    with closing(Workspace.open(project, predictor, folder)) as workspace:
        kept = [workspace.keep_phrase(text, category) for text, category in phrases.items()]
        worker = Prelabeller(workspace, kept, PrelabelOptions(**options), answering)
        for n, _ in enumerate(worker.run(), start=1):
            on_step(n)
        return worker.summary, stored(workspace)


def stored(workspace):
    found = {}
    for image in workspace.store.images():
        rows = workspace.store.annotations(image.image_id)
        values = [(item.annotation_id, item.phrase, item.mask, item.xyxy, item.score, item.bundle_id) for item in rows]
        found[image.path] = (image.sha256, image.size_bytes, image.mtime_ns, image.failure, values)
    return found


def told(summary):
    """The summary without its times."""
    return {key: value for key, value in summary.as_json().items() if key not in ("seconds", "images_per_s", "notes")}


CUPS = {"cup": "cup", "mug": "cup", "cat": "cat"}
CASES = {
    "fake": (FakeSegmenter, CUPS, None),
    "starter": (crew_segmenters.starter, {"person": "person", "cat": "cat", "dog": "cat"}, "samples"),
    "tiny SAM 3": (partial(crew_segmenters.shapes, SHAPES), {"circle": "circle", "square": "square"}, "shapes"),
}


def some_samples(folder):
    names = {"cat.jpg", "astronaut.jpg", "car.jpg"}
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes((ROOT / "samples" / name).read_bytes())


def make_images(folder, kind):
    write_pictures(folder, *(f"sub/{n:02}.png" for n in range(9 if kind is None else 1)))
    if kind == "samples":
        some_samples(folder)
    if kind == "shapes":
        for picture in (ROOT / "tests" / "assets" / "shapes_pictures").glob("*.png"):
            (folder / picture.name).write_bytes(picture.read_bytes())
    (folder / "broken.jpg").write_bytes(b"")
    return folder


@pytest.mark.parametrize("case", list(CASES))
def test_workers_find_what_one_process_finds(tmp_path, crew, case):
    load, phrases, kind = CASES[case]
    folder = make_images(tmp_path / "images", kind)
    alone, expected = prelabel(tmp_path / "alone", folder, phrases, segmenter=load())
    together, found = prelabel(tmp_path / "together", folder, phrases, crew(load, FolderPlace(folder)))
    assert found == expected
    assert told(together) == told(alone)
    assert sum(alone.n_suggestions.values()) > 0
    again, found = prelabel(tmp_path / "together", folder, phrases, crew(load, FolderPlace(folder)))
    assert (again.n_done, found) == (0, expected)


def test_when_a_worker_is_killed_in_the_middle_no_image_is_lost_and_none_is_done_twice(tmp_path, crew):
    folder, pids = write_pictures(tmp_path / "images", *(f"{n:03}.png" for n in range(60))), tmp_path / "pids"
    pids.mkdir()
    _, expected = prelabel(tmp_path / "alone", folder, CUPS, segmenter=FakeSegmenter())
    killed = []

    def kill(n):
        if n == 10:
            killed.append(int(next(pids.iterdir()).name))
            os.kill(killed[0], signal.SIGKILL)

    load = partial(crew_segmenters.slow, pids)
    summary, found = prelabel(tmp_path / "p", folder, CUPS, crew(load, FolderPlace(folder)), on_step=kill)
    assert killed and found == expected
    assert (summary.n_done, summary.failures) == (60, {})
    assert summary.notes == ["a worker died; its images are done again"]


def test_an_image_that_kills_each_worker_is_named_and_the_others_are_done(tmp_path, crew):
    folder = write_pictures(tmp_path / "images", *(f"{n}.png" for n in range(9)))  # grey 120 is the fifth
    summary, _ = prelabel(tmp_path / "p", folder, CUPS, crew(crew_segmenters.DeadlySegmenter, FolderPlace(folder)))
    assert list(summary.failures) == ["4.png"]
    assert "3 workers died while they had this image" in summary.failures["4.png"]
    assert summary.n_done == 8


def test_a_model_that_fails_on_every_image_stops_the_run(tmp_path, crew):
    folder = write_pictures(tmp_path / "images", *(f"{n:02}.png" for n in range(12)))
    answering = crew(crew_segmenters.failing_decoder, FolderPlace(folder))
    with pytest.raises(ModelFailingError, match="on 3 images in a row, the model failed on it: RuntimeError: not a"):
        prelabel(tmp_path / "p", folder, CUPS, answering, max_equal_errors=3)


def test_what_a_worker_cannot_load_is_said_in_its_words(tmp_path, crew):
    folder = write_pictures(tmp_path / "images", "a.png")
    load = partial(crew_segmenters.shapes, tmp_path / "nothing")
    with pytest.raises(PhrasemaskError, match="nothing"):
        prelabel(tmp_path / "p", folder, CUPS, crew(load, FolderPlace(folder)))


def test_processes_that_die_of_loading_the_model_end_the_run(tmp_path):
    folder = write_pictures(tmp_path / "images", "a.png")
    answering = process_crew(1, lambda _: crew_segmenters.dying, FolderPlace(folder))
    with pytest.raises(WorkerError, match=r"died 3 times while it loaded the model \(exit code 3\)"):
        prelabel(tmp_path / "p", folder, CUPS, answering)


def test_images_are_read_from_an_address_that_fsspec_knows(tmp_path):
    pytest.importorskip("fsspec", reason='needs fsspec: pip install "phrasemask[ray]"')
    folder = make_images(tmp_path / "images", None)
    _, expected = prelabel(tmp_path / "alone", folder, CUPS, segmenter=FakeSegmenter())
    place = url_place(folder.as_uri())
    (folder / "sub" / "03.png").rename(folder / "gone.png")
    (tmp_path / "copy").mkdir()
    copy = write_pictures(tmp_path / "copy", *(f"sub/{n:02}.png" for n in range(9)))
    summary, found = prelabel(tmp_path / "p", copy, CUPS, process_crew(2, lambda _: FakeSegmenter, place))
    assert list(summary.failures) == ["sub/03.png"]
    assert summary.failures["sub/03.png"] == f"there is no such file below {folder.as_uri()}"
    same = [path for path in found if path != "sub/03.png"]
    assert [found[path][0] for path in same] == [expected[path][0] for path in same]
    assert summary.n_suggestions == {"cup": 16, "mug": 0, "cat": 8}


def test_an_address_from_which_nothing_can_be_fetched_ends_the_run(tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec", reason='needs fsspec: pip install "phrasemask[ray]"')
    folder = write_pictures(tmp_path / "images", *(f"{n:02}.png" for n in range(9)))

    def refuse(url: str, mode: str) -> NoReturn:
        raise PermissionError(f"access to {url} is denied")

    monkeypatch.setattr(fsspec, "open", refuse)
    with closing(open_workspace(tmp_path, FakeSegmenter(), folder)) as workspace:
        answering = Here(workspace)
        answering._images = url_place("memory://bucket/folder")
        worker = Prelabeller(
            workspace, [workspace.keep_phrase("cup", "cup")], PrelabelOptions(max_equal_errors=3), answering
        )
        with pytest.raises(ModelFailingError, match="on 3 images in a row, it cannot be fetched from memory://bucket"):
            list(worker.run())


def test_a_run_with_workers_that_is_told_to_stop_ends_and_goes_on(tmp_path):
    folder = write_pictures(tmp_path / "images", *(f"{n:02}.png" for n in range(40)))
    with closing(open_workspace(tmp_path, FakeSegmenter(), folder)) as workspace:
        kept = [workspace.keep_phrase("cup", "cup")]
        for most, stopped in ((20, True), (40, False)):
            answering = process_crew(2, lambda _: FakeSegmenter, FolderPlace(folder))
            worker = Prelabeller(workspace, kept, PrelabelOptions(), answering)
            for progress in worker.run():
                if progress.n_looked_at == 1 and stopped:
                    worker.stop()
            assert worker.summary.n_looked_at <= most
            assert worker.summary.stopped is stopped
        assert worker.summary.n_done + worker.summary.n_already == 40


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_workers_end_when_their_program_is_killed(tmp_path):
    images = write_pictures(tmp_path / "images", *(f"{n:02}.png" for n in range(60)), size=(320, 240))
    arguments = ["--phrase", "cat", "--project", tmp_path / "project", "--workers", "2"]
    process = start("prelabel", images, *arguments)
    wait_for_runs(tmp_path / "project", 1)
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(workers) >= 2
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in workers):
            return
        time.sleep(0.05)
    raise AssertionError("workers are left over")


def test_ctrl_c_ends_a_run_with_workers_after_the_images_in_work(tmp_path):
    images = write_pictures(tmp_path / "images", *(f"{n:02}.png" for n in range(60)), size=(320, 240))
    options = ["--phrase", "cat", "--project", tmp_path / "project", "--workers", "2"]
    process = start("prelabel", images, *options, start_new_session=True)
    wait_for_runs(tmp_path / "project", 1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 60 images; run it again to go on" in stderr
    assert "died" not in stderr and "Traceback" not in stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "2", "--ray", "local"], ["--workers and --ray exclude each other"]),
        (["--workers", "2", "--images-url", "s3://a/b"], ["--images-url is for --ray"]),
        (["--workers", "2", "--cache-dir", "{tmp}/c"], ["--cache-dir is for one process"]),
        (["--ray", "local", "--images-url", "folder"], ["--images-url takes an address such as s3://"]),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_sentence(tmp_path, options, words):
    images = write_pictures(tmp_path / "images", "a.png")
    options = [option.format(tmp=tmp_path) for option in options]
    assert_one_sentence(run("prelabel", images, "--phrase", "a", "--project", tmp_path / "p", *options), *words)


def test_without_ray_one_sentence_says_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "ray.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"))
    images = write_pictures(tmp_path / "images", "a.png")
    done = run("prelabel", images, "--phrase", "a", "--project", tmp_path / "p", "--ray", "local")
    assert_one_sentence(done, 'pip install "phrasemask[ray]"')


@needs_ray
def test_a_cluster_that_is_not_there_is_refused_in_one_sentence(tmp_path):
    images = write_pictures(tmp_path / "images", "a.png")
    done = run("prelabel", images, "--phrase", "a", "--project", tmp_path / "p", "--ray", "127.0.0.1:1")
    assert_one_sentence(done, "no Ray cluster can be used at '127.0.0.1:1'")


def test_the_cores_of_a_worker_are_a_number(monkeypatch):
    monkeypatch.setenv("PHRASEMASK_CPU_THREADS", "many")
    with pytest.raises(RuntimeUnavailableError, match="PHRASEMASK_CPU_THREADS is 'many', wanted a number such as 4"):
        crew_segmenters.shapes(SHAPES)
    monkeypatch.setenv("PHRASEMASK_CPU_THREADS", "1")
    assert crew_segmenters.shapes(SHAPES).info.device == "cpu"
