"""A checkpoint on disk: what it is, and its weights, a part at a time so that memory holds one part only."""

from __future__ import annotations

import hashlib
import importlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.export.errors import CheckpointError, ExportSettingError, first_line
from engines.export.extra import import_or_explain
from engines.export.weights import read_weights

PATCH = 14
CONTEXT_LENGTH = 32
SAM3, LITE_TEXT = "sam3", "sam3_lite_text"
PARTS = {
    "vision": ("vision_encoder.backbone.", "vision_encoder.neck.fpn_layers."),
    "text": ("text_encoder.", "text_projection."),
    "decoder": ("geometry_encoder.", "detr_encoder.", "detr_decoder.", "mask_decoder.", "dot_product_scoring."),
}
# Of what is listed here the graphs use nothing: a head for a summed-up phrase, the fourth scale, and two heads' spares.
_UNUSED = (
    "vision_encoder.neck.fpn_layers.3.",
    "text_encoder.text_projection.",
    "text_encoder.projection.",
    "mask_decoder.semantic_projection.",
)
_MODULES = {
    SAM3: ("transformers.models.sam3", "Sam3Config", "Sam3Model"),
    LITE_TEXT: ("transformers.models.sam3_lite_text", "Sam3LiteTextConfig", "Sam3LiteTextModel"),
}


@dataclass(frozen=True)
class Checkpoint:
    """A SAM 3 checkpoint whose kind is known; its weights are still on disk."""

    path: Path
    kind: str
    """`sam3` or `sam3_lite_text`."""
    settings: Mapping[str, Any]
    """The configuration as transformers reads it; empty for Meta's own file, which is always SAM 3 at full size."""
    weights: tuple[Path, ...]
    tokenizer: Path

    def setting(self, section: str, name: str, default: int) -> int:
        """A number of the configuration; raises `CheckpointError` where something else stands there."""
        try:
            return int(self.settings.get(section, {}).get(name, default))
        except (AttributeError, TypeError, ValueError):
            raise CheckpointError(self.path, f"its configuration has no number for {name} of {section}") from None

    def fingerprint(self) -> str:
        """Changes when a weight file is replaced; does not read the weights."""
        stats = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in self.weights]
        content = json.dumps([self.kind, self.settings, stats], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def find_checkpoint(path: Path) -> Checkpoint:
    """A Hugging Face folder, or Meta's `sam3.pt` with `tokenizer.json` beside it. Raises `CheckpointError`."""
    if path.is_dir():
        return _hugging_face_folder(path)
    if not path.is_file():
        raise CheckpointError(path, "it does not exist; give a folder with config.json, or Meta's sam3.pt")
    if not zipfile.is_zipfile(path):
        raise CheckpointError(path, "it is not a PyTorch file of today's format; download sam3.pt again")
    return Checkpoint(path, SAM3, {}, (path,), _tokenizer(path, path.parent))


def load_part(checkpoint: Checkpoint, role: str, image_size: int) -> Any:
    """The transformers model in float32 with the weights of one part; all others stay empty (on `meta`)."""
    model = empty_model(checkpoint, image_size)
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items() if _belongs(name, role)}
    weights = read_weights(checkpoint.weights, wanted)
    missing = sorted(wanted.keys() - weights.keys())
    if missing:
        named = ", ".join(missing[:3])
        raise CheckpointError(checkpoint.path, f"it lacks {len(missing)} weights of SAM 3, such as {named}")
    model.load_state_dict(weights, strict=False, assign=True)
    return model.requires_grad_(False).eval()


def empty_model(checkpoint: Checkpoint, image_size: int) -> Any:
    """The transformers model for pictures of that side, without memory for weights (on `meta`)."""
    torch, _ = import_or_explain("torch"), import_or_explain("transformers")
    configuration, model_class = model_classes(checkpoint.kind)
    try:
        config = configuration(**_resized(checkpoint, image_size))
        with torch.device("meta"):
            return model_class(config)
    except Exception as error:  # noqa: BLE001 - a configuration of something else fails anywhere in there
        reason = f"its configuration is not that of SAM 3 ({first_line(error)})"
        raise CheckpointError(checkpoint.path, reason) from None


def model_classes(kind: str) -> tuple[Any, Any]:
    """The classes of configuration and model that transformers has for `sam3` or `sam3_lite_text`."""
    package, configuration, model = _MODULES[kind]
    name = package.rpartition(".")[2]
    with _without_torchvision():
        config_module = importlib.import_module(f"{package}.configuration_{name}")
        model_module = importlib.import_module(f"{package}.modeling_{name}")
    return getattr(config_module, configuration), getattr(model_module, model)


def native_image_size(checkpoint: Checkpoint) -> int:
    """The side that the checkpoint was trained for, in pixels."""
    if not checkpoint.settings:
        return 1008
    try:
        return int(checkpoint.settings["vision_config"]["backbone_config"]["image_size"])
    except (KeyError, TypeError, ValueError):
        return 1008


def check_image_size(image_size: int) -> None:
    """Raise `ExportSettingError` unless it is a positive multiple of the patch."""
    if image_size < 4 * PATCH or image_size % PATCH:
        raise ExportSettingError("the image size", image_size, f"a multiple of {PATCH} from {4 * PATCH} on, like 1008")


def _hugging_face_folder(folder: Path) -> Checkpoint:
    settings = _settings(folder / "config.json")
    kind = settings.get("model_type")
    if kind not in _MODULES:
        raise CheckpointError(folder, f"it holds a model of the kind '{kind}', not SAM 3")
    weights = tuple(sorted(folder.glob("model*.safetensors")))
    if not weights:
        raise CheckpointError(folder, "it holds no model.safetensors; download the model with all its files")
    return Checkpoint(folder, kind, settings, weights, _tokenizer(folder, folder))


def _settings(path: Path) -> dict[str, Any]:
    """Of the detector, where the file describes a model for video."""
    try:
        settings = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(
            path.parent, "it holds no config.json; give the folder that the model was downloaded to"
        ) from None
    except OSError as error:
        raise CheckpointError(path, f"it cannot be read ({error.strerror})") from None
    except ValueError:
        raise CheckpointError(path, "it is not JSON; download the model again") from None
    if isinstance(settings, dict):
        settings = settings.get("detector_config") or settings
    if not isinstance(settings, dict):
        raise CheckpointError(path, "it does not describe a model; download the model again")
    return settings


def _tokenizer(checkpoint: Path, folder: Path) -> Path:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(checkpoint, f"there is no {path}; download it from the page that the checkpoint is from")
    return path


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """transformers imports torchvision for one function that the graphs do not use, and its wheel often does not load
    beside a CPU build of torch: while the model's module is imported, it is told that there is none."""
    from transformers import utils

    before = utils.is_torchvision_available
    utils.is_torchvision_available = lambda: False
    try:
        yield
    finally:
        utils.is_torchvision_available = before


def _resized(checkpoint: Checkpoint, image_size: int) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(json.dumps(checkpoint.settings))
    settings.pop("dtype", None)
    if not settings and image_size == native_image_size(checkpoint):
        return settings
    grid = image_size // PATCH
    vision = settings.setdefault("vision_config", {"model_type": "sam3_vision_model"})
    vision["backbone_feature_sizes"] = [[grid * 4] * 2, [grid * 2] * 2, [grid] * 2]
    vision.setdefault("backbone_config", {"model_type": "sam3_vit_model"})["image_size"] = image_size
    return settings


def _belongs(name: str, role: str) -> bool:
    return name.startswith(PARTS[role]) and not name.startswith(_UNUSED)
