"""Shared by all tests: sibling modules can be imported, and the header names what the tests ran on."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

for folder in ("engines", "annotator"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

_NAMED = ("gradio", "onnxruntime-gpu", "numpy", "pillow", "pycocotools", "opencv-python-headless")


def pytest_report_header() -> str:
    return "packages: " + ", ".join(f"{name} {_version(name)}" for name in _NAMED)


def _version(name: str) -> str:
    try:
        return version(name)
    except ImportError:
        return "absent"
