"""Packs an exported folder into one file for download."""

from __future__ import annotations

import os
import secrets
import zipfile
from pathlib import Path

from annotator.exporters._folder import MARKER
from annotator.exporters.protocol import ExportError

_PACKED_ALREADY = {".avif", ".gif", ".heic", ".jpeg", ".jpg", ".png", ".webp"}


def zip_folder(folder: Path, target: Path) -> Path:
    """Write the files of `folder`, below its name, into the ZIP file `target`, put in its place when it is whole.

    Links are followed; drafts that another export is writing are left out. Raises `ExportError`.
    """
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with draft.open("xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
                for path in sorted(folder.rglob("*")):
                    _add(archive, path, folder)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        raise ExportError.unwritable(target, error) from error
    finally:
        draft.unlink(missing_ok=True)
    return target


def _add(archive: zipfile.ZipFile, path: Path, folder: Path) -> None:
    inside = path.relative_to(folder)
    is_draft = any(part.startswith(".") and part.endswith(".part") for part in inside.parts)
    if path.is_file() and not is_draft and path.name != MARKER:
        how = zipfile.ZIP_STORED if path.suffix.lower() in _PACKED_ALREADY else zipfile.ZIP_DEFLATED
        archive.write(path, Path(folder.name) / inside, how)
