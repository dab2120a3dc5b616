"""What is left of an earlier COCO export after one that failed, was refused, or was killed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from coco_samples import (
    ImageRow,
    dataset,
    export,
    left_behind,
)

from annotator.exporters import _coco_check, _draft
from annotator.exporters.protocol import ExportError


@pytest.mark.parametrize("opened_whole_bytes", [0, 2**30])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"area":120', b'"area":121'),
        (b'"bbox":[6.0', b'"bbox":[7.0'),
        (b'"size":[30,40]', b'"size":[40,30]'),
        (b'"counts":"', b'"counts":"1'),
        (b'"id":2,"image_id"', b'"id":1,"image_id"'),
        (b'"image_id":2', b'"image_id":77'),
        (b'"iscrowd":0', b'"iscrowd":1'),
        (b'"score":0.75', b'"score":NaN'),
        (b'"height":30', b'"height":31'),
        (b'"images":[', b'"images":[]['),
    ],
)
def test_a_file_that_does_not_read_back_as_meant_replaces_nothing(tmp_path, monkeypatch, old, new, opened_whole_bytes):
    before = export(tmp_path).files[0].read_bytes()
    finish = _draft.Draft.finish

    def damage(draft: _draft.Draft) -> None:
        finish(draft)
        content = draft.draft_path.read_bytes()
        assert old in content
        draft.draft_path.write_bytes(content.replace(old, new, 1))

    monkeypatch.setattr(_draft.Draft, "finish", damage)
    monkeypatch.setattr(_coco_check, "_OPENED_WHOLE_BYTES", opened_whole_bytes)
    with pytest.raises(ExportError, match=r"instances\.json failed its check: .*; nothing was replaced"):
        export(tmp_path)
    assert (tmp_path / "instances.json").read_bytes() == before
    assert left_behind(tmp_path) == []


def test_an_export_prints_nothing(tmp_path, capsys):
    export(tmp_path)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full; free some space and export again"),
        (errno.EROFS, "the disk is read-only; choose another folder"),
        (errno.EACCES, "there is no permission to write there"),
    ],
)
@pytest.mark.parametrize("fails_at", ["write", "finish", "commit"])
def test_a_disk_that_refuses_leaves_the_previous_export(tmp_path, monkeypatch, number, sentence, fails_at):
    before = export(tmp_path).files[0].read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    if fails_at == "write":
        monkeypatch.setattr(Path, "open", lambda path, mode="r": _FullFile(path, mode, number))
    else:
        monkeypatch.setattr(*{"finish": (os, "fsync"), "commit": (Path, "replace")}[fails_at], refuse)
    with pytest.raises(ExportError) as caught:
        export(tmp_path)
    monkeypatch.undo()
    assert str(caught.value).startswith(f"{tmp_path / 'instances.json'} cannot be written: {sentence}")
    assert (tmp_path / "instances.json").read_bytes() == before
    assert left_behind(tmp_path) == []


class _FullFile:
    """A file on a disk that takes a hundred bytes more."""

    def __init__(self, path: Path, mode: str, number: int) -> None:
        self._file = open(path, mode)  # noqa: PTH123, SIM115
        self._number = number
        self._n_left = 100

    def write(self, content: bytes) -> None:
        self._n_left -= len(content)
        if self._n_left < 0:
            raise OSError(self._number, os.strerror(self._number))

    def close(self) -> None:
        self._file.close()


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ExportError, match="a file stands where the folder should be"):
        export(tmp_path / "out")
    with pytest.raises(ExportError, match="is a file, not a folder"):
        export(tmp_path / "out" / "deeper")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_a_read_only_folder_is_one_sentence():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "read only")
        out.mkdir()
        out.chmod(0o555)
        Path(folder).chmod(0o755)
        sentence = "read only.* cannot be written: there is no permission to write there"
        with as_an_ordinary_user(), pytest.raises(ExportError, match=sentence):
            export(out)


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """The administrator may write anywhere, so the administrator's tests become someone else for a moment."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def test_a_source_that_fails_in_the_middle_leaves_the_previous_export(tmp_path):
    before = export(tmp_path).files[0].read_bytes()

    def rows() -> Iterator[ImageRow]:
        yield from dataset()
        raise RuntimeError("the project is gone")

    with pytest.raises(RuntimeError, match="the project is gone"):
        export(tmp_path, rows())
    assert (tmp_path / "instances.json").read_bytes() == before
    assert left_behind(tmp_path) == []


def test_a_draft_left_by_a_killed_run_is_removed_when_it_is_old(tmp_path):
    old, fresh = tmp_path / ".instances.json.aa.part", tmp_path / ".instances.json.bb.part"
    for path in (old, fresh):
        path.write_text("{")
    yesterday = time.time() - 2 * 24 * 3600
    os.utime(old, (yesterday, yesterday))
    export(tmp_path)
    assert left_behind(tmp_path) == [fresh]


def test_the_file_gets_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "ordinary").write_text("")
    export(tmp_path)
    assert (tmp_path / "instances.json").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


_KILL_EXPORTS = """
import os, random, signal, sys, time
from pathlib import Path
sys.path[:0] = {paths!r}
from coco_samples import RING, annotation, export, image, written
def once():
    rows = ((image(i, f"{{i}}.jpg"), [annotation(i, i, RING)]) for i in range(1, 101))
    export(out, rows, segmentation="both")
out, versions = Path(sys.argv[1]), set()
random.seed(1)
once()
start = time.monotonic()
once()
took_s = time.monotonic() - start
for _ in range(30):
    child = os.fork()
    while child == 0:
        once()
    time.sleep(random.uniform(0, 3 * took_s))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for name in ("instances.json", "instances_polygon.json"):
        content = written(out, name)
        assert len(content["images"]) == len(content["annotations"]) == 100
    versions.add((out / name).stat().st_mtime_ns)
print(len(versions), len(list(out.glob(".*.part"))))
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_an_export_killed_at_any_moment_leaves_whole_files(tmp_path):
    script = _KILL_EXPORTS.format(paths=[str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    command = [sys.executable, "-c", script, str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    n_versions, n_cut_off = map(int, finished.stdout.split())
    assert n_versions > 3
    assert n_cut_off > 3
