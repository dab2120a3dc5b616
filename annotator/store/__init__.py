"""The project store: one SQLite file per project, and, with its migrations, the only place that speaks SQL.

Each module adds one part to the one before it: connection → images → categories → annotations → suggestions →
journal → review.
"""

from __future__ import annotations

from annotator.store.review import Review

__all__ = ["ProjectStore"]


class ProjectStore(Review):
    """A project on disk. Every public method that writes is one transaction; `atomic()` joins several into one."""
