"""Measures features on the disk at the size of SAM 3's: writing, reading back, and the forms that were considered.

    python benchmarks/feature_cache.py [--bundle BUNDLE] [--folder DIR]

Prints medians. With a bundle, encoding a 12-megapixel picture is measured against reading its features back; that says
something of SAM 3 only for a bundle of full size. The row of safetensors needs that package, which Phrasemask
does not.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from annotator.feature_files import FeatureFiles  # noqa: E402
from annotator.feature_format import pack_features, read_features, write_pieces  # noqa: E402
from engines.bundle import read_bundle  # noqa: E402
from engines.loader import load_segmenter  # noqa: E402
from engines.types import ImageFeatures  # noqa: E402

SHAPES = {"features_0": (1, 256, 288, 288), "features_1": (1, 256, 144, 144), "features_2": (1, 256, 72, 72)}
HEIGHT, WIDTH = 3000, 4000
N_RUNS = 7
LONG_MS = 5000
"""An encoding that takes longer is not repeated."""
Arrays = Mapping[str, Any]


def made_up() -> ImageFeatures:
    generator = np.random.default_rng(0)
    tensors = {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    return ImageFeatures("bundle", "image", HEIGHT, WIDTH, tensors, sum(one.nbytes for one in tensors.values()))


def median_ms(work: Callable[[], Any], n_runs: int = N_RUNS) -> float:
    taken = []
    for _ in range(n_runs):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def show(name: str, path: Path, write: Callable[[], Any], read: Callable[[], Any]) -> None:
    """One row of the table."""
    write_ms, read_ms = median_ms(write), median_ms(read)
    print(
        f"{name:32} {path.stat().st_size / 1e6:6.1f} MB, write {write_ms:6.0f} ms, read {read_ms:6.0f} ms", flush=True
    )


def halves(arrays: Arrays) -> dict[str, Any]:
    return {name: one.astype(np.float16) for name, one in arrays.items()}


def floats(arrays: Arrays) -> dict[str, Any]:
    return {name: one.astype(np.float32) for name, one in arrays.items()}


def read_archive(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        return floats({name: archive[name] for name in archive.files})


def show_forms(given: ImageFeatures, folder: Path) -> None:
    """Each from the model's float32 to a file and back to float32."""
    path, arrays = folder / "form.npz", given.tensors
    show("numpy.savez, float32", path, lambda: np.savez(path, **arrays), lambda: read_archive(path))
    show("numpy.savez, float16", path, lambda: np.savez(path, **halves(arrays)), lambda: read_archive(path))
    show(
        "the same, compressed",
        path,
        lambda: np.savez_compressed(path, **halves(arrays)),
        lambda: read_archive(path),
    )
    if importlib.util.find_spec("safetensors") is not None:
        from safetensors.numpy import load_file, save_file

        show(
            "safetensors, float16",
            path,
            lambda: save_file(halves(arrays), path),
            lambda: floats(load_file(path)),
        )
    path.unlink()


def show_kept(given: ImageFeatures, folder: Path) -> None:
    path = folder / "kept.features"

    def write() -> None:
        with path.open("wb") as file:
            write_pieces(file, pack_features("key", given))

    show("as kept: float16 with sha256", path, write, lambda: read_features(path, "key", "image", "bundle"))


def show_encoding(folder: Path, room: Path) -> None:
    segmenter = load_segmenter(read_bundle(folder), "onnxruntime", "cpu")
    rgb = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    started = time.perf_counter()
    encoded = segmenter.encode_image(rgb, "image")
    first_ms = (time.perf_counter() - started) * 1000
    encode_ms = first_ms if first_ms > LONG_MS else median_ms(lambda: segmenter.encode_image(rgb, "image"))
    info, files = segmenter.info, FeatureFiles(room / "cache")
    put_ms = median_ms(lambda: files.put(info.features_id, encoded), 1)
    files.close()
    get_ms = median_ms(lambda: files.get(info.features_id, "image", info.bundle_id))
    print(f"{info.name}, {info.precision}, {info.device}, {encoded.nbytes / 1e6:.1f} MB of features")
    print(f"encode {encode_ms:.0f} ms, hand over to be written {put_ms:.2f} ms, read back {get_ms:.0f} ms")
    print(f"reading back takes 1/{encode_ms / get_ms:.0f} of encoding")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as room:
        given = made_up()
        show_forms(given, Path(room))
        show_kept(given, Path(room))
        if arguments.bundle is not None:
            show_encoding(arguments.bundle, Path(room))


if __name__ == "__main__":
    main()
