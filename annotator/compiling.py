"""Builds a model's engines from the command line: a bar while it lasts, a line for each engine."""

from __future__ import annotations

from datetime import UTC, datetime

from annotator.models import EngineRow, engine_row
from annotator.progress_bar import progress_bar
from engines.bundle import ModelBundle
from engines.tensorrt_engines.key import BuildOptions
from engines.tensorrt_engines.library import Library
from engines.tensorrt_engines.provide import clean_engines, compile_bundle

_SHOWN_KEY_DIGITS = 12
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def compile_model(
    library: Library, bundle: ModelBundle, architecture: str, options: BuildOptions, *, clean: bool
) -> list[str]:
    """Build what is not built; a line for each engine, and for each file that was cleaned away.

    Raises what `compile_bundle` does: `EngineCancelledError` after Ctrl+C.
    """
    bundle.verify()
    with progress_bar() as progress:
        records = compile_bundle(library, bundle, architecture, options, progress)
        dropped = clean_engines(library, bundle, records, progress) if clean else []
    lines = [f"{engine_line(engine_row(record))}, {record.path}" for record in records]
    return [*lines, *(f"deleted {name}" for name in dropped)]


def engine_line(row: EngineRow) -> str:
    """One engine in one line."""
    verdict = f"{row.verdict}, see {row.report}" if row.report else row.verdict
    return (
        f"engine {row.role}: {row.runtime} {row.version} for {row.architecture}, key {row.key[:_SHOWN_KEY_DIGITS]}, "
        f"{row.size_bytes / 1e6:.1f} MB, {age(datetime.fromisoformat(row.built_at))} old, {verdict}"
    )


def age(since: datetime) -> str:
    """How long ago that was, in the largest unit that fits."""
    seconds = max((datetime.now(UTC) - since).total_seconds(), 0)
    for unit_s, unit in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        n = int(seconds // unit_s)
        if n:
            return f"{n} {unit}{'s' if n > 1 else ''}"
    return "less than a minute"
