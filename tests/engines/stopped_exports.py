"""An export that is stopped after each of its parts and started again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engines.export.bundle_export import export_bundle

STOPS = ("text: exporting", "decoder: exporting", "checks: answering", "checks: comparing")


class Stopped(BaseException):
    """Like Ctrl+C: nothing may catch it."""


@dataclass(frozen=True)
class StoppedExport:
    """The bundle; what had been made at each stop, as inode and time by file name; and what each run said."""

    bundle: Path
    made: list[dict[str, tuple[int, int]]]
    said: list[list[str]]


def export_with_stops(folder: Path, out: Path, image_size: int, max_instances: int) -> StoppedExport:
    made, said = [], []
    for stop in (*STOPS, None):
        lines: list[str] = []
        said.append(lines)

        def say(line: str, stop: str | None = stop, lines: list[str] = lines) -> None:
            lines.append(line)
            if stop is not None and line.startswith(stop):
                raise Stopped

        try:
            export_bundle(folder, out, "fp32", image_size, max_instances, say)
        except Stopped:
            assert not out.exists()
            made.append(stamps(out.with_name(f"{out.name}.partial")))
    return StoppedExport(out, made, said)


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of each file at the top of the folder but those that an export writes again each time."""
    paths = [path for path in folder.iterdir() if path.is_file() and path.suffix in (".onnx", ".data")]
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}
