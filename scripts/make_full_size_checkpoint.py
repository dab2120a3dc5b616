"""Writes a SAM 3 checkpoint of full size with random weights, for measuring what needs no trained ones.

    python scripts/make_full_size_checkpoint.py FOLDER [--tokenizer tokenizer.json]

It has the form in which Hugging Face has the model: config.json, model.safetensors (3.4 GB), tokenizer.json. Weights
are scaled by their number of inputs, so that activations stay near 1 through all layers and every part of the model
matters. Needs the extra [export].
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from engines.export.checkpoint import SAM3, model_classes  # noqa: E402

CLIP_TOKENIZER = ROOT / "engines" / "models" / "clip_bpe" / "tokenizer.json"
_LOOKED_UP = "embed"
_NOT_LOOKED_UP = ("proj", "conv", "rpb", "mask_embedder")


def make_checkpoint(folder: Path, tokenizer: Path = CLIP_TOKENIZER, seed: int = 0) -> None:
    """The same weights for the same seed; the folder is made if it is not there."""
    import torch
    from safetensors.torch import save_file

    configuration, model = model_classes(SAM3)
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in model(configuration()).state_dict().items()}
    generator = torch.Generator().manual_seed(seed)
    weights = {name: random_weight(name, torch.empty(shape), generator) for name, shape in shapes.items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": SAM3}) + "\n", "utf-8")
    shutil.copyfile(tokenizer, folder / "tokenizer.json")


def random_weight(name: str, weight: Any, generator: Any) -> Any:
    """Normal numbers of a size that fits the weight's place."""
    if weight.dim() < 2:
        mean, spread = (0.0, 0.05) if name.endswith("bias") else (1.0, 0.1)
        return weight.normal_(mean, spread, generator=generator)
    if "reference_points" in name:
        return weight.normal_(0.0, 1.0, generator=generator)
    if _LOOKED_UP in name and not any(part in name for part in _NOT_LOOKED_UP):
        return weight.normal_(0.0, 0.5, generator=generator)
    return weight.normal_(0.0, 1.0 / math.sqrt(weight[0].numel()), generator=generator)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, default=CLIP_TOKENIZER)
    arguments = parser.parse_args()
    make_checkpoint(arguments.folder, arguments.tokenizer)


if __name__ == "__main__":
    main()
