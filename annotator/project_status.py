"""A project in numbers, for the terminal and for programs."""

from __future__ import annotations

from typing import Any

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
        "failures": {image.path: image.failure for image in store.images() if image.failure},
    }


def status_lines(described: dict[str, Any]) -> list[str]:
    """The same for a person."""
    return [
        f"folder: {described['folder']}",
        f"images: {_listed(described['images'])}",
        f"annotations: {_listed(described['annotations'])}",
        *(f"  {name}: {_listed(counts)}" for name, counts in described["categories"].items()),
        *(f"failed: {path}: {reason}" for path, reason in described["failures"].items()),
    ]


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items())


def _category_name(store: ProjectStore, category_id: int) -> str:
    return next(category.name for category in store.categories() if category.category_id == category_id)
