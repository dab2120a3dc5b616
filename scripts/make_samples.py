"""Makes the photographs of samples/ and the two of benchmarks/starter_truth/ from the packages that ship them.

    pip install scikit-image matplotlib
    apt-get download plasma-workspace-data
    python scripts/make_samples.py plasma-workspace-data_*.deb

PNG files are written as JPEG of quality 92 to stay under 400 kB; JPEG files are copied. samples/README.md lists authors
and licences.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
FURTHER = ROOT / "benchmarks" / "starter_truth" / "photos"
JPEG_QUALITY = 92
FROM_SCIKIT_IMAGE = {
    "astronaut.jpg": "data/astronaut.png",
    "chelsea.jpg": "data/chelsea.png",
    "coffee.jpg": "data/coffee.png",
    "rocket.jpg": "data/rocket.jpg",
}
FROM_MATPLOTLIB = {"grace_hopper.jpg": "mpl-data/sample_data/grace_hopper.jpg"}
FROM_PLASMA = {
    "car.jpg": "Car.png",
    "cat.jpg": "Cat.png",
    "dog.jpg": "Dog.png",
    "moonwalk.jpg": "Astronaut.png",
    "parrot.jpg": "Parrot.png",
}
FURTHER_FROM_PLASMA = {"cocktail.jpg": "Cocktail.png", "owl.jpg": "Owl.png"}


def main() -> None:
    """Write every photograph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plasma_deb", type=Path)
    arguments = parser.parse_args()
    for package, photos in (("skimage", FROM_SCIKIT_IMAGE), ("matplotlib", FROM_MATPLOTLIB)):
        _write(_package_folder(package), photos, SAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["/usr/bin/dpkg-deb", "-x", str(arguments.plasma_deb), folder], check=True)
        avatars = Path(folder) / "usr" / "share" / "plasma" / "avatars" / "photos"
        _write(avatars, FROM_PLASMA, SAMPLES)
        _write(avatars, FURTHER_FROM_PLASMA, FURTHER)


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"the package {package} is not installed; install scikit-image and matplotlib first")
    return Path(spec.submodule_search_locations[0])


def _write(source: Path, photos: dict[str, str], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, inside in photos.items():
        if inside.endswith(".jpg"):
            shutil.copyfile(source / inside, target / name)
        else:
            Image.open(source / inside).convert("RGB").save(target / name, quality=JPEG_QUALITY, subsampling=0)
        print(f"{target / name}: {(target / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
