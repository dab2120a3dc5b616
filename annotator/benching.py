"""Measures a model for the command line: on which pictures, with which phrases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from annotator.errors import CommandError, FolderNotFoundError
from annotator.models import model_folders
from engines.bench import BATCHES, BenchReport, bench
from engines.bundle import locate_bundle
from engines.cuda_driver import n_cuda_devices
from engines.images import find_images
from engines.loader import AUTO, open_bundle

SAMPLES = Path(__file__).parents[1] / "samples"
PHRASES = ("person", "cat", "cup", "red car", "green plant")


def bench_model(
    model: str,
    images: Path | None,
    phrases: Sequence[str],
    n_edits: int,
    n_pictures: int,
    batches: Sequence[int],
    runtime: str,
    device: str,
) -> BenchReport:
    """Raises a `BundleError`, `RuntimeUnavailableError`, `CommandError` or `FolderNotFoundError`."""
    folder = images or SAMPLES
    if not folder.is_dir():
        raise FolderNotFoundError(folder)
    pictures = list(find_images(folder))[:n_pictures]
    if not pictures:
        raise CommandError(f"there are no pictures in {folder}; give a folder with some")
    on_cpu = device == "cpu" or (device == AUTO and not n_cuda_devices())
    sizes = batches or (BATCHES[:1] if on_cpu else BATCHES)
    bundle = open_bundle(locate_bundle(model, model_folders()))
    return bench(bundle, pictures, phrases or PHRASES, n_edits, sizes, runtime, device)
