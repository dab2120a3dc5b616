"""Writes the manifest of the starter bundle from the files that lie in its folder; run it after a file has changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "engines" / "models" / "starter"
FILES = ("coco_ssd.onnx", "u2netp.onnx", "vocabulary.json", "LICENSE", "PROVENANCE.md")


def _tensor(name: str, *shape: int) -> dict[str, object]:
    return {"name": name, "dtype": "float32", "shape": list(shape)}


def main() -> None:
    """Replace manifest.json."""
    manifest = {
        "manifest_version": 1,
        "name": "starter",
        "title": "Starter (80 everyday things, and a mask for any box you draw)",
        "family": "starter",
        "precision": "fp32",
        "image_size": 300,
        "licence": "Apache-2.0",
        "graphs": {
            "detector": {
                "file": "coco_ssd.onnx",
                "inputs": [_tensor("image", 1, 300, 300, 3)],
                "outputs": [_tensor("boxes", 1, 1917, 1, 4), _tensor("scores", 1, 1917, 90)],
            },
            "salience": {
                "file": "u2netp.onnx",
                "inputs": [_tensor("input.1", 1, 3, 320, 320)],
                "outputs": [_tensor("1959", 1, 1, 320, 320)],
            },
        },
        "files": {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in FILES},
    }
    (FOLDER / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
