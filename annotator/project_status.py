"""A project in numbers, for the terminal and for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from annotator.records import phrase_key
from annotator.store import ProjectStore


def describe_project(store: ProjectStore) -> dict[str, Any]:
    """Images by state and annotations by decision and category, as plain values."""
    counts = store.counts()
    images = {state.value: n for state, n in counts.images.items()}
    return {
        "folder": store.setting("folder"),
        "images": {"total": counts.n_images, **images, "failed": counts.n_failed, "missing": counts.n_missing},
        "annotations": {decision.value: n for decision, n in counts.annotations.items()},
        "categories": {
            name: {decision.value: n for decision, n in by_decision.items()}
            for name, by_decision in counts.by_category.items()
        },
        "phrases": {kept.text: _category_name(store, kept.category_id) for kept in store.kept_phrases()},
        "runs": _runs(store),
        "failures": {image.path: image.failure for image in store.images() if image.failure},
    }


def status_lines(described: dict[str, Any]) -> list[str]:
    """The same for a person."""
    return [
        f"folder: {described['folder']}",
        f"images: {_listed(described['images'])}",
        f"annotations: {_listed(described['annotations'])}",
        *(f"  {name}: {_listed(counts)}" for name, counts in described["categories"].items()),
        *(_run_line(run) for run in described["runs"]),
        *(f"failed: {path}: {reason}" for path, reason in described["failures"].items()),
    ]


def _runs(store: ProjectStore) -> list[dict[str, Any]]:
    """One model at one threshold each, with what it found; the run begun first comes first."""
    runs: dict[tuple[str, float], dict[str, Any]] = {}
    spelling = {phrase_key(kept.text): kept.text for kept in store.kept_phrases()}
    for total in store.run_totals():
        run = runs.setdefault(
            (total.bundle_id, total.score_threshold),
            {
                "model": store.setting(f"model {total.bundle_id}") or total.bundle_id[:12],
                "bundle_id": total.bundle_id,
                "score_threshold": total.score_threshold,
                "begun": _time(total.first_at),
                "phrases": {},
            },
        )
        run["last"] = max(run.get("last", ""), _time(total.last_at))
        text = spelling.get(total.phrase_key, total.phrase_key)
        run["phrases"][text] = {"images": total.n_images, "suggestions": total.n_suggestions}
    return list(runs.values())


def _run_line(run: dict[str, Any]) -> str:
    found = ", ".join(f"{text} {n['suggestions']} on {n['images']} images" for text, n in run["phrases"].items())
    return f"run of {run['model']} at {run['score_threshold']:g}, last {run['last']}: {found}"


def _time(seconds: float) -> str:
    """UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items())


def _category_name(store: ProjectStore, category_id: int) -> str:
    return next(category.name for category in store.categories() if category.category_id == category_id)
