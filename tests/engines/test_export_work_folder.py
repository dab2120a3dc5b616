"""Where a bundle is put together: other people's files stay, and a failure leaves nothing."""

from __future__ import annotations

import errno
import json
import os

import pytest

from engines.errors import PhrasemaskError
from engines.export.errors import CheckpointError, ExportFailedError, ExportSettingError
from engines.export.work_folder import WorkFolder


def opened(out, fingerprint="a"):
    work = WorkFolder(out, fingerprint)
    work.open()
    return work


def write(text):
    return lambda room: (room / "graph").write_text(text)


def finished(out, text="first", check=lambda folder: None):
    work = opened(out, fingerprint=text)
    work.make("part", write(text))
    work.describe({"name": "it"})
    work.finish(check)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_finished_bundle_lies_in_its_place_with_the_sha256_of_its_files(tmp_path):
    finished(tmp_path / "new" / "out")
    assert names(tmp_path / "new") == ["out", "out/graph", "out/manifest.json"]
    manifest = json.loads((tmp_path / "new" / "out" / "manifest.json").read_text())
    assert manifest["files"] == {"graph": "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"}


def test_the_check_sees_the_bundle_before_it_takes_its_place(tmp_path):
    def check(folder):
        assert (folder / "manifest.json").is_file()
        assert not (tmp_path / "out").exists()
        (folder / "check_report.json").write_text("{}")

    finished(tmp_path / "out", check=check)
    assert "out/check_report.json" in names(tmp_path)


def test_a_newer_bundle_takes_the_place_of_an_older_one(tmp_path):
    finished(tmp_path / "out", "first")
    (tmp_path / "out" / "check_report.md").write_text("passed")
    finished(tmp_path / "out", "second")
    assert names(tmp_path) == ["out", "out/graph", "out/manifest.json"]
    assert (tmp_path / "out" / "graph").read_text() == "second"


def test_engines_built_from_an_older_bundle_go_with_it(tmp_path):
    finished(tmp_path / "out", "first")
    (tmp_path / "out" / "engines").mkdir()
    (tmp_path / "out" / "engines" / "vision.engine").write_text("program")
    finished(tmp_path / "out", "second")
    assert names(tmp_path) == ["out", "out/graph", "out/manifest.json"]


def test_what_an_interrupted_exchange_left_does_not_stop_the_next(tmp_path):
    finished(tmp_path / "out.replaced")
    finished(tmp_path / "out", "first")
    finished(tmp_path / "out", "second")
    assert names(tmp_path) == ["out", "out/graph", "out/manifest.json"]


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(ExportSettingError, match=r"out, wanted one that is new, empty.*there is thesis\.txt"):
        WorkFolder(tmp_path / "out", "a")
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"


def test_a_model_with_other_files_in_its_folder_is_refused(tmp_path):
    finished(tmp_path / "out")
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(ExportSettingError, match=r"there is thesis\.txt"):
        WorkFolder(tmp_path / "out", "b")


@pytest.mark.parametrize("manifest", ["[]", "{", '{"files": 3}', '{"version": 2}'])
def test_a_folder_with_a_manifest_of_something_else_is_refused(tmp_path, manifest):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(manifest)
    with pytest.raises(ExportSettingError, match=r"there is manifest\.json"):
        WorkFolder(tmp_path / "out", "a")


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("years of work")
    with pytest.raises(ExportSettingError, match="there is out"):
        WorkFolder(tmp_path / "out", "a")


@pytest.mark.parametrize("as_folder", [True, False])
def test_nothing_of_others_is_removed_where_the_parts_would_lie(tmp_path, as_folder):
    place = tmp_path / "out.partial"
    if as_folder:
        place.mkdir()
        place /= "thesis.txt"
    place.write_text("years of work")
    with pytest.raises(ExportSettingError, match=r"out\.partial"):
        opened(tmp_path / "out")
    assert place.read_text() == "years of work"


def test_a_place_that_no_folder_can_be_made_in_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportFailedError, match="could not be written to"):
        opened(tmp_path / "file" / "out")


def test_a_finished_part_is_taken_over_and_an_unfinished_one_is_not(tmp_path):
    first = opened(tmp_path / "out")
    first.make("done", write("whole"))

    def stop(room):
        (room / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.make("stopped", stop)
    second = opened(tmp_path / "out")
    assert second.has("done")
    assert not second.has("stopped")
    assert names(second.folder) == ["graph", "parts.json"]
    second.make("done", lambda room: pytest.fail("it was there"))


@pytest.mark.parametrize("change", ["", "other", None])
def test_a_part_that_changed_is_made_again(tmp_path, change):
    work = opened(tmp_path / "out")
    work.make("part", write("whole"))
    (work.folder / "graph").unlink()
    if change is not None:
        (work.folder / "graph").write_text(change)
    again = opened(tmp_path / "out")
    assert not again.has("part")
    again.make("part", write("whole"))
    assert again.has("part")


@pytest.mark.parametrize("journal", [b"", b"{", b"[]", b"{}", b'{"fingerprint": "other", "parts": {}}'])
def test_parts_of_another_checkpoint_or_setting_are_not_taken_over(tmp_path, journal):
    work = opened(tmp_path / "out")
    work.make("part", write("whole"))
    (work.folder / "parts.json").write_bytes(journal)
    again = opened(tmp_path / "out")
    assert not again.has("part")
    assert names(again.folder) == ["parts.json"]


def full_disk(room):
    (room / "half").write_text("half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(room / "half"))


def broken(room):
    raise CheckpointError(room, "it is broken")


def test_a_full_disk_is_told_and_nothing_is_left(tmp_path):
    work = opened(tmp_path / "out")
    work.make("done", write("whole"))
    with pytest.raises(ExportFailedError, match=r"out: No space left on device; nothing was left there"):
        work.make("full", full_disk)
    assert names(tmp_path) == []


def test_a_checkpoint_found_broken_on_the_way_leaves_nothing(tmp_path):
    work = opened(tmp_path / "out")
    with pytest.raises(CheckpointError):
        work.make("broken", broken)
    assert names(tmp_path) == []


@pytest.mark.parametrize("fault", [full_disk, broken])
def test_a_check_that_cannot_be_done_leaves_an_older_bundle_as_it_is(tmp_path, fault):
    finished(tmp_path / "out", "first")
    with pytest.raises(PhrasemaskError):
        finished(tmp_path / "out", "second", check=fault)
    assert names(tmp_path) == ["out", "out/graph", "out/manifest.json"]
    assert (tmp_path / "out" / "graph").read_text() == "first"
