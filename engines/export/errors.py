"""What an export refuses, each in one sentence.

PhrasemaskError
├── CheckpointError(ValueError)        not a SAM 3 checkpoint, damaged, or more than weights
├── ExportSettingError(ValueError)     a precision, size or number of instances that cannot be exported
├── ExportFailedError(OSError)         the bundle cannot be written
└── ExportToolMissingError(ImportError)   the packages of the `[export]` extra are not installed
"""

from __future__ import annotations

from pathlib import Path

from engines.errors import PhrasemaskError


class CheckpointError(PhrasemaskError, ValueError):
    """A checkpoint that cannot be exported."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be exported: {reason}")


class ExportSettingError(PhrasemaskError, ValueError):
    """A setting that no bundle can be made with."""

    def __init__(self, setting: str, value: object, wanted: str) -> None:
        super().__init__(f"{setting} is {value}, wanted {wanted}")


class ExportFailedError(PhrasemaskError, OSError):
    """The bundle could not be written; what was written of it has been removed."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the model could not be written to {path}: {reason}; nothing was left there")


class ExportToolMissingError(PhrasemaskError, ImportError):
    """A package that only the export needs."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f'exporting a model needs the package {package}; install it with pip install "phrasemask[export]"'
        )


def first_line(error: Exception) -> str:
    """What went wrong elsewhere, short enough for the middle of a sentence."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
