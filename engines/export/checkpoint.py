"""A checkpoint on disk: what it is, and its weights, a part at a time so that memory holds one part only."""

from __future__ import annotations

import hashlib
import importlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.export.errors import CheckpointError, ExportSettingError, ExportToolMissingError
from engines.export.meta_keys import DETECTOR_PREFIX, to_transformers

PATCH = 14
CONTEXT_LENGTH = 32
SAM3, LITE_TEXT = "sam3", "sam3_lite_text"
PARTS = {
    "vision": ("vision_encoder.backbone.", "vision_encoder.neck.fpn_layers."),
    "text": ("text_encoder.", "text_projection."),
    "decoder": ("geometry_encoder.", "detr_encoder.", "detr_decoder.", "mask_decoder.", "dot_product_scoring."),
}
_VIDEO_PREFIX = "detector_model."
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
    torch, _ = import_or_explain("torch"), import_or_explain("transformers")
    configuration, model_class = _model_class(checkpoint.kind)
    try:
        config = configuration(**_resized(checkpoint, image_size))
        with torch.device("meta"):
            model = model_class(config)
    except Exception as error:  # noqa: BLE001 - a configuration of something else fails anywhere in there
        raise CheckpointError(checkpoint.path, f"its configuration is not that of SAM 3 ({_first(error)})") from None
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items() if _belongs(name, role)}
    weights = _read(checkpoint, wanted)
    missing = sorted(wanted.keys() - weights.keys())
    if missing:
        named = ", ".join(missing[:3])
        raise CheckpointError(checkpoint.path, f"it lacks {len(missing)} weights of SAM 3, such as {named}")
    model.load_state_dict(weights, strict=False, assign=True)
    return model.requires_grad_(False).eval()


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


def import_or_explain(package: str) -> Any:
    """The package, or `ExportToolMissingError`."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ExportToolMissingError(package) from None


def _hugging_face_folder(folder: Path) -> Checkpoint:
    try:
        settings = json.loads((folder / "config.json").read_bytes())
    except FileNotFoundError:
        raise CheckpointError(
            folder, "it holds no config.json; give the folder that the model was downloaded to"
        ) from None
    except ValueError:
        raise CheckpointError(folder / "config.json", "it is not JSON; download the model again") from None
    if isinstance(settings, dict):
        settings = settings.get("detector_config") or settings
    kind = settings.get("model_type") if isinstance(settings, dict) else None
    if kind not in _MODULES:
        raise CheckpointError(folder, f"it holds a model of the kind '{kind}', not SAM 3")
    weights = tuple(sorted(folder.glob("model*.safetensors")))
    if not weights:
        raise CheckpointError(folder, "it holds no model.safetensors; download the model with all its files")
    return Checkpoint(folder, kind, settings, weights, _tokenizer(folder, folder))


def _tokenizer(checkpoint: Path, folder: Path) -> Path:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(checkpoint, f"there is no {path}; download it from the page that the checkpoint is from")
    return path


def _model_class(kind: str) -> tuple[Any, Any]:
    package, configuration, model = _MODULES[kind]
    name = package.rpartition(".")[2]
    with _without_torchvision():
        config_module = importlib.import_module(f"{package}.configuration_{name}")
        model_module = importlib.import_module(f"{package}.modeling_{name}")
    return getattr(config_module, configuration), getattr(model_module, model)


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
    vision = settings.setdefault("vision_config", {})
    vision["backbone_feature_sizes"] = [[grid * 4] * 2, [grid * 2] * 2, [grid] * 2]
    vision.setdefault("backbone_config", {})["image_size"] = image_size
    return settings


def _belongs(name: str, role: str) -> bool:
    return name.startswith(PARTS[role]) and not name.startswith(_UNUSED)


def _read(checkpoint: Checkpoint, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Weights by transformers' names, in float32. Raises `CheckpointError` for a wrong shape or a broken file."""
    read = _read_safetensors if checkpoint.weights[0].suffix == ".safetensors" else _read_meta
    found: dict[str, Any] = {}
    for path in checkpoint.weights:
        for name, tensor in read(path, wanted.keys().__contains__):
            if tensor.shape != wanted[name]:
                got, shape = list(tensor.shape), list(wanted[name])
                raise CheckpointError(path, f"its weight {name} is {got}, wanted {shape}")
            found[name] = tensor.float().contiguous()
    return found


def _read_safetensors(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    safetensors = import_or_explain("safetensors")
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            for key in file.keys():  # noqa: SIM118 - the reader is no dictionary
                name = key.removeprefix(_VIDEO_PREFIX)
                if is_wanted(name):
                    yield name, file.get_tensor(key)
    except safetensors.SafetensorError as error:
        raise CheckpointError(path, f"the file is cut off or damaged ({_first(error)}); download it again") from None


def _read_meta(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    """Only tensors are unpickled: a file with anything that could run is refused before it does."""
    import pickle

    torch = import_or_explain("torch")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        raise CheckpointError(path, "it holds more than weights and could run code; take it from its authors") from None
    except Exception as error:  # noqa: BLE001 - a damaged archive fails in many ways
        raise CheckpointError(path, f"the file is cut off or damaged ({_first(error)}); download it again") from None
    state = state.get("model", state) if isinstance(state, dict) else {}
    detector = {key.partition(DETECTOR_PREFIX)[2]: value for key, value in state.items() if DETECTOR_PREFIX in key}
    if not detector:
        raise CheckpointError(path, "it holds no weights of SAM 3's detector")
    for name, tensor in to_transformers(detector):
        if is_wanted(name):
            yield name, tensor


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
