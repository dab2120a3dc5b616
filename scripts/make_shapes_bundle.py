"""Make tests/assets/shapes_bundle from the checkpoint folder of the tiny SAM 3 that was trained on flat shapes.

    python scripts/make_shapes_bundle.py CHECKPOINT

CHECKPOINT is a Hugging Face folder. Needs the `[export]` extra; run it from the folder of the project.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engines.export.bundle_export import export_bundle

BUNDLE = Path(__file__).parents[1] / "tests" / "assets" / "shapes_bundle"


def main(checkpoint: Path) -> None:
    """Write the bundle in float32, for pictures of 168 pixels and 20 of its 25 instances."""
    export_bundle(checkpoint, BUNDLE, "fp32", 168, 20, print, licence="Apache-2.0")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
