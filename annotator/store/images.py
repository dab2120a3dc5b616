"""Images of a project: listing, syncing with the folder, what was learnt on opening one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from annotator.errors import RevisionConflictError, UnknownImageError
from annotator.records import FoundImage, ImageOrder, ImageRecord, ImageState, SyncReport, natural_key
from annotator.store.connection import Connection

IMAGE_COLUMNS = (
    "image_id, path, size_bytes, mtime_ns, sha256, height, width, failure, missing, done, revision, "
    "n_pending, n_accepted, n_rejected, labelled_sha256"
)
_N_ANNOTATIONS = "n_pending + n_accepted + n_rejected"
_IN_STATE = {
    ImageState.UNTOUCHED: f"NOT done AND {_N_ANNOTATIONS} = 0",
    ImageState.SUGGESTED: f"NOT done AND {_N_ANNOTATIONS} > 0",
    ImageState.DONE: "done",
}
_ORDER_COLUMNS = {
    ImageOrder.PATH: "path_key, path",
    ImageOrder.NAME: "name_key, path_key, path",
    ImageOrder.MODIFIED: "mtime_ns, path_key, path",
}


class Images(Connection):
    """The images' part of the store."""

    def sync_images(self, found: Iterable[FoundImage]) -> SyncReport:
        """Make the list of images that of the folder, as one action.

        New files are added, vanished ones marked as missing and never removed, returned ones unmarked. A file whose
        size or time changed loses its failure, so that it is tried again; one whose size changed is another picture,
        so its finished runs are forgotten and a run suggests on it anew. Size and time of an image that has been read
        stay those of that reading, beside its hash, until it is read again.
        """
        by_path, refused = _by_valid_path(found)
        with self.atomic():
            known = {
                row[0]: row[1:] for row in self._rows("SELECT path, size_bytes, mtime_ns, missing, image_id FROM image")
            }
            self._insert_images([image for path, image in by_path.items() if path not in known])
            present = {path: row for path, row in known.items() if path in by_path}
            self._update_touched([by_path[path] for path, row in present.items() if _differs(by_path[path], row)])
            resized = [(row[3],) for path, row in present.items() if by_path[path].size_bytes != row[0]]
            self._write_many("DELETE FROM finished_run WHERE image_id = ?", resized)
            vanished = [(row[3],) for path, row in known.items() if path not in by_path and not row[2]]
            self._write_many("UPDATE image SET missing = 1 WHERE image_id = ?", vanished)
            returned = [(row[3],) for row in present.values() if row[2]]
            self._write_many("UPDATE image SET missing = 0 WHERE image_id = ?", returned)
        n_known = len(present)
        return SyncReport(n_known, len(by_path) - n_known, len(known) - n_known, len(returned), refused)

    def images(
        self,
        state: ImageState | None = None,
        order: ImageOrder = ImageOrder.PATH,
        include_missing: bool = True,
    ) -> list[ImageRecord]:
        """The images in that state, or in any; without those whose file is missing on request."""
        wanted = "1" if state is None else _IN_STATE[state]
        there = "1" if include_missing else "NOT missing"
        rows = self._rows(
            f"SELECT {IMAGE_COLUMNS} FROM image WHERE ({wanted}) AND {there} ORDER BY {_ORDER_COLUMNS[order]}"  # noqa: S608
        )
        return [image_from_row(row) for row in rows]

    def image(self, image_id: int) -> ImageRecord:
        """The image of that id; raises `UnknownImageError`."""
        row = self._row(f"SELECT {IMAGE_COLUMNS} FROM image WHERE image_id = ?", (image_id,))  # noqa: S608
        if row is None:
            raise UnknownImageError(image_id)
        return image_from_row(row)

    def image_at(self, path: str) -> ImageRecord | None:
        """The image at that path relative to the folder, missing or not; None if the project holds none."""
        row = self._row(f"SELECT {IMAGE_COLUMNS} FROM image WHERE path = ?", (path,))  # noqa: S608
        return None if row is None else image_from_row(row)

    def next_image(
        self,
        image_id: int | None,
        states: Iterable[ImageState] = (ImageState.UNTOUCHED, ImageState.SUGGESTED),
        order: ImageOrder = ImageOrder.PATH,
    ) -> ImageRecord | None:
        """The next other image in one of those states; after the last one, from the start again; None if there is none.

        `image_id` None means from the start. Missing and failed images are passed over: nothing can be done on them.
        """
        columns = _ORDER_COLUMNS[order]
        wanted = " OR ".join(f"({_IN_STATE[state]})" for state in states) or "0"
        usable = f"({wanted}) AND NOT missing AND failure IS NULL AND image_id IS NOT ?"
        after = f"({columns}) > (SELECT {columns} FROM image WHERE image_id = ?)"  # noqa: S608
        select = f"SELECT {IMAGE_COLUMNS} FROM image WHERE {usable}"  # noqa: S608
        row = self._row(f"{select} AND {after} ORDER BY {columns} LIMIT 1", (image_id, image_id))
        if row is None:
            row = self._row(f"{select} ORDER BY {columns} LIMIT 1", (image_id,))
        return None if row is None else image_from_row(row)

    def labelled_paths(self) -> set[str]:
        """Paths of the images that hold a person's work: decisions, or done. To tell the right folder by."""
        return {row[0] for row in self._rows("SELECT path FROM image WHERE done OR n_accepted OR n_rejected")}

    def record_opened(
        self, image_id: int, sha256: str, height: int, width: int, size_bytes: int, mtime_ns: int
    ) -> bool:
        """Note what an image was when it was read; clears its failure.

        True when its content is another than when it was last read, or than a person last worked on; in the first
        case its finished runs are forgotten too. `height` and `width` are pixels of the upright original.
        """
        with self.atomic():
            before = self.image(image_id)
            replaced = before.sha256 is not None and before.sha256 != sha256
            seen = (before.sha256, before.height, before.width, before.size_bytes, before.mtime_ns, before.failure)
            if seen != (sha256, height, width, size_bytes, mtime_ns, None):
                self._write(
                    "UPDATE image SET sha256 = ?, height = ?, width = ?, size_bytes = ?, mtime_ns = ?, failure = NULL "
                    "WHERE image_id = ?",
                    (sha256, height, width, size_bytes, mtime_ns, image_id),
                )
            if replaced:
                self._write("DELETE FROM finished_run WHERE image_id = ?", (image_id,))
            return replaced or self.image(image_id).changed

    def record_failure(self, image_id: int, reason: str) -> None:
        """Note why an image could not be read; `reason` is a sentence without the path."""
        with self.atomic():
            if self.image(image_id).failure != reason:
                self._write("UPDATE image SET failure = ? WHERE image_id = ?", (reason, image_id))

    def forget_failures(self) -> None:
        """Have files that could not be read tried again."""
        with self.atomic():
            self._write("UPDATE image SET failure = NULL WHERE failure IS NOT NULL")

    def _checked_image(self, image_id: int, expected_revision: int | None) -> ImageRecord:
        """The image, unless it changed since the caller saw it: then `RevisionConflictError`."""
        image = self.image(image_id)
        if expected_revision is not None and image.revision != expected_revision:
            raise RevisionConflictError(image.path, expected_revision, image.revision)
        return image

    def _bump_revision(self, image_id: int) -> None:
        self._write("UPDATE image SET revision = revision + 1 WHERE image_id = ?", (image_id,))

    def _insert_images(self, images: Iterable[FoundImage]) -> None:
        self._write_many(
            "INSERT INTO image (path, path_key, name_key, size_bytes, mtime_ns) VALUES (?, ?, ?, ?, ?)",
            (
                (
                    image.path,
                    natural_key(image.path),
                    natural_key(PurePosixPath(image.path).name),
                    image.size_bytes,
                    image.mtime_ns,
                )
                for image in images
            ),
        )

    def _update_touched(self, images: Iterable[FoundImage]) -> None:
        self._write_many(
            "UPDATE image SET failure = NULL, size_bytes = iif(sha256 IS NULL, ?, size_bytes), "
            "mtime_ns = iif(sha256 IS NULL, ?, mtime_ns) WHERE path = ?",
            ((image.size_bytes, image.mtime_ns, image.path) for image in images),
        )


def image_from_row(row: tuple[Any, ...]) -> ImageRecord:
    """A row of `IMAGE_COLUMNS`."""
    image_id, path, size_bytes, mtime_ns, sha256, height, width, failure, missing, done, revision, *rest = row
    n_pending, n_accepted, n_rejected, labelled_sha256 = rest
    return ImageRecord(
        image_id=image_id,
        path=path,
        size_bytes=size_bytes,
        mtime_ns=mtime_ns,
        sha256=sha256,
        height=height,
        width=width,
        failure=failure,
        missing=bool(missing),
        done=bool(done),
        revision=revision,
        n_pending=n_pending,
        n_accepted=n_accepted,
        n_rejected=n_rejected,
        changed=labelled_sha256 is not None and labelled_sha256 != sha256,
    )


def _differs(image: FoundImage, row: tuple[Any, ...]) -> bool:
    return (image.size_bytes, image.mtime_ns) != (row[0], row[1])


def _by_valid_path(found: Iterable[FoundImage]) -> tuple[dict[str, FoundImage], tuple[str, ...]]:
    """By path, without names that are not valid text: SQLite and JSON could not hold those."""
    by_path: dict[str, FoundImage] = {}
    refused: list[str] = []
    for image in found:
        try:
            image.path.encode()
        except UnicodeEncodeError:
            refused.append(image.path)
        else:
            by_path[image.path] = image
    return by_path, tuple(refused)
