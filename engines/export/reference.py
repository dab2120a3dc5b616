"""The answers of the original model in float32, computed by PyTorch, by which the graphs of a bundle are checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engines.check_cases import CASES, CheckCase, draw_pictures
from engines.check_files import CASES_FILE, DECODER_FILE, FOLDER, N_BEST, REFERENCE_FILE, BestInstances, sample
from engines.export.checkpoint import CONTEXT_LENGTH, Checkpoint
from engines.export.extra import import_or_explain
from engines.export.graph_export import build_module
from engines.families._sam3.tokens import PhraseTokenizer

Array = NDArray[Any]
_FEATURES = ("features_0", "features_1", "features_2")
_ANSWERS = ("logits", "presence", "boxes_xyxy", "mask_logits")
_NO_BOX = -10


def write_reference(
    checkpoint: Checkpoint, image_size: int, n_instances: int, room: Path, progress: Callable[[str], None]
) -> None:
    """Fill `room/checks` with pictures, questions and answers. Raises OSError."""
    (room / FOLDER).mkdir(parents=True)
    pictures = _write_pictures(room, draw_pictures(image_size))
    progress("checks: answering with PyTorch")
    vision = build_module(checkpoint, "vision", image_size, n_instances)
    features = [_run(vision, _FEATURES, [pixels]) for pixels in pictures]
    del vision
    text = build_module(checkpoint, "text", image_size, n_instances)
    ids, masks = _tokens(checkpoint, [case.phrase for case in CASES])
    phrases = _run(text, ("text_features",), [ids])["text_features"]
    del text
    decoder = build_module(checkpoint, "decoder", image_size, n_instances)
    arrays: dict[str, Array] = {"input_ids": ids, "text_mask": masks, "text_features": phrases}
    for index, answer in enumerate(features):
        arrays |= {f"vision/{index}/{name}": sample(values) for name, values in answer.items()}
    for index, case in enumerate(CASES):
        prompt = _prompt(case, phrases[index : index + 1], masks[index : index + 1])
        outputs = _run(decoder, _ANSWERS, [*features[case.picture].values(), *prompt.values()])
        arrays |= BestInstances.of(outputs).packed(f"case/{index}")
    _save(room / REFERENCE_FILE, arrays)
    _save(room / DECODER_FILE, _decoder_alone(decoder, features[0], phrases, masks))


def _decoder_alone(decoder: Any, features: dict[str, Array], phrases: Array, masks: Array) -> dict[str, Array]:
    """All cases of the first picture in one run. The features are rounded first, so that half the bytes are exact."""
    rounded = {name: values.astype(np.float16) for name, values in features.items()}
    rows = [index for index, case in enumerate(CASES) if case.picture == 0]
    prompts = [_prompt(CASES[row], phrases[row : row + 1], masks[row : row + 1]) for row in rows]
    feeds = {name: np.concatenate([prompt[name] for prompt in prompts]) for name in prompts[0]}
    single = [values.astype(np.float32) for values in rounded.values()]
    outputs = _run(decoder, _ANSWERS, [*single, *feeds.values()])
    masks_of_best = outputs["mask_logits"][:, :N_BEST]
    outputs["mask_logits"] = np.stack([np.stack([sample(mask) for mask in phrase]) for phrase in masks_of_best])
    given = {f"in/{name}": values for name, values in {**rounded, **feeds}.items()}
    return given | {f"out/{name}": values for name, values in outputs.items()}


def _save(path: Path, arrays: Mapping[str, Any]) -> None:
    np.savez_compressed(path, **arrays)


def _prompt(case: CheckCase, phrase: Array, mask: Array) -> dict[str, Array]:
    boxes = np.array([case.boxes or ((0.0,) * 4,)], dtype=np.float32)
    labels = np.array([case.labels or (_NO_BOX,)], dtype=np.int32)
    return {"text_features": phrase, "text_mask": mask, "boxes": boxes, "labels": labels}


def _tokens(checkpoint: Checkpoint, phrases: Sequence[str]) -> tuple[Array, Array]:
    tokenizer = PhraseTokenizer(checkpoint.tokenizer, CONTEXT_LENGTH)
    tokens = [tokenizer.tokens(phrase) for phrase in phrases]
    ids = np.concatenate([one.padded(CONTEXT_LENGTH) for one in tokens])
    return ids, np.concatenate([one.mask(CONTEXT_LENGTH) for one in tokens])


def _run(module: Any, names: Sequence[str], inputs: Sequence[Array]) -> dict[str, Array]:
    torch = import_or_explain("torch")
    with torch.no_grad():
        outputs = module(*(torch.from_numpy(values) for values in inputs))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return {name: values.numpy() for name, values in zip(names, outputs, strict=True)}


def _write_pictures(room: Path, pictures: Sequence[Image.Image]) -> list[Array]:
    """The files, and what the vision graph is given for each."""
    names = [f"{FOLDER}/picture_{index}.png" for index in range(len(pictures))]
    cases = [
        {"picture": names[case.picture], "phrase": case.phrase, "boxes": case.boxes, "labels": case.labels}
        for case in CASES
    ]
    (room / CASES_FILE).write_text(json.dumps(cases, indent=2) + "\n", "utf-8")
    for name, picture in zip(names, pictures, strict=True):
        picture.save(room / name)
    return [np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1)[None]) for picture in pictures]
