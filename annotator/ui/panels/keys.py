"""The list of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.ui.panel import build_panel

if TYPE_CHECKING:
    import gradio


def build_keys() -> gradio.HTML:
    """The dialog that `?` opens."""
    return build_panel("keys", [])
