"""By what name a graph goes on a Triton server: one that tells its content, so that a wrong graph is never asked."""

from __future__ import annotations

SHA256_PARAMETER = "graph_sha256"
"""Parameter of a model's configuration: sha256 over the files of its graph."""
_DIGITS = 16


def name_of(role: str, sha256: str) -> str:
    """Such as `vision_0123456789abcdef`."""
    return f"{role}_{sha256[:_DIGITS]}"
