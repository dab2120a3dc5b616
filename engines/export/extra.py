"""The packages of the `[export]` extra."""

from __future__ import annotations

import importlib
from typing import Any

from engines.export.errors import ExportToolMissingError

PACKAGES = ("torch", "transformers", "safetensors", "onnx", "onnxscript")


def import_or_explain(package: str) -> Any:
    """The package, or `ExportToolMissingError`."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ExportToolMissingError(package) from None


def require_all() -> None:
    """Raise `ExportToolMissingError` for the first package that is not installed."""
    for package in PACKAGES:
        import_or_explain(package)
