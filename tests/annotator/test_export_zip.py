"""An exported folder as one file."""

from __future__ import annotations

import zipfile

import pytest

from annotator.export_zip import zip_folder
from annotator.exporters.protocol import ExportError


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "exports" / "yolo-seg"
    (made / "labels" / "ä").mkdir(parents=True)
    (made / "data.yaml").write_text("names: {0: cup}\n" * 100)
    (made / "labels" / "ä" / "a.txt").write_text("0 1 2\n")
    (made / "images").mkdir()
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8 photo")
    (made / "images" / "photo.jpg").symlink_to(tmp_path / "photo.jpg")
    (made / ".phrasemask-export").touch()
    (made / ".data.yaml.12ab.part").write_text("half")
    return made


def test_a_folder_is_packed_below_its_name_with_what_links_point_to(folder, tmp_path):
    packed = zip_folder(folder, tmp_path / "exports" / "cups-yolo-seg.zip")
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {
            "yolo-seg/data.yaml",
            "yolo-seg/labels/ä/a.txt",
            "yolo-seg/images/photo.jpg",
        }
        assert archive.read("yolo-seg/images/photo.jpg") == b"\xff\xd8 photo"
        assert archive.getinfo("yolo-seg/data.yaml").compress_size < 200


def test_a_zip_that_cannot_be_finished_leaves_the_earlier_one(folder, tmp_path):
    target = zip_folder(folder, tmp_path / "exports" / "cups.zip")
    before = target.read_bytes()
    (folder / "labels" / "b.txt").write_text("0 1 2")
    (folder / "labels" / "b.txt").unlink()
    (folder / "labels" / "b.txt").symlink_to("/proc/self/mem")  # opens, and cannot be read
    with pytest.raises(ExportError, match=r"cups\.zip cannot be written"):
        zip_folder(folder, target)
    assert target.read_bytes() == before
    assert [path.name for path in target.parent.iterdir() if path.name.endswith(".part")] == []
