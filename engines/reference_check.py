"""Runs the graphs of a bundle on its check files and compares them with the original's answers in float32."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engines.bundle import ModelBundle
from engines.check_files import CASES_FILE, DECODER_FILE, N_BEST, REFERENCE_FILE, BestInstances, sample
from engines.check_report import Array, CaseComparison, Compared, TensorDifference, compare_instances, tensor_difference
from engines.errors import BundleFileMissingError
from engines.protocols import Session

_NO_BOX = -10
_FEATURES = ("features_0", "features_1", "features_2")


def compare_with_reference(bundle: ModelBundle, load: Callable[[str], Session]) -> Compared:
    """What the bundle's graphs, as `load` opens them by role, answer to its check files, beside the stored answers.

    Raises `BundleFileMissingError` for a bundle without them, and what the graphs raise.
    """
    reference, alone = _arrays(bundle, REFERENCE_FILE), _arrays(bundle, DECODER_FILE)
    cases = json.loads(bundle.file(CASES_FILE).read_text("utf-8"))
    session = load("vision")
    features = {name: session.run({"image": _pixels(bundle.file(name))}) for name in _pictures(cases)}
    tensors = list(_vision_differences(features, reference))
    del session  # before the next is loaded: at full size, vision alone holds several gigabytes
    session = load("text")
    phrases = session.run({"input_ids": reference["input_ids"]})["text_features"]
    tensors.append(tensor_difference("text", "text_features", phrases, reference["text_features"]))
    del session
    session = load("decoder")
    tensors += _decoder_differences(session, bundle, alone)
    compared = tuple(_compare_cases(session, cases, features, phrases, reference))
    return Compared(session.runtime, session.device, tuple(tensors), compared)


def _arrays(bundle: ModelBundle, name: str) -> dict[str, Array]:
    if name not in bundle.checks:
        raise BundleFileMissingError(bundle.folder, name)
    with np.load(bundle.file(name)) as archive:
        return dict(archive)


def _pictures(cases: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(case["picture"] for case in cases))


def _pixels(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as picture:
        return np.ascontiguousarray(np.asarray(picture.convert("RGB")).transpose(2, 0, 1)[None])


def _vision_differences(
    features: Mapping[str, Mapping[str, Array]], reference: Mapping[str, Array]
) -> Iterable[TensorDifference]:
    """The worst of all pictures for each scale."""
    for name in _FEATURES:
        each = [
            tensor_difference("vision", name, sample(outputs[name]), reference[f"vision/{index}/{name}"])
            for index, outputs in enumerate(features.values())
        ]
        yield max(each, key=lambda one: np.nan_to_num(one.relative, nan=np.inf))


def _decoder_differences(
    session: Session, bundle: ModelBundle, alone: Mapping[str, Array]
) -> Iterable[TensorDifference]:
    """Rows of the answer may change places where two score alike: each expected row is compared with its nearest."""
    dtypes = {spec.name: spec.dtype for spec in bundle.graphs["decoder"].inputs}
    got = session.run({name: alone[f"in/{name}"].astype(dtype) for name, dtype in dtypes.items()})
    wanted = {name: alone[f"out/{name}"] for name in got}
    n_phrases = len(wanted["logits"])
    yield tensor_difference("decoder", "presence", got["presence"], wanted["presence"])
    rows = [_nearest_rows(got, wanted, phrase) for phrase in range(n_phrases)]
    for name in ("logits", "boxes_xyxy"):
        pairs = [(got[name][phrase][row], wanted[name][phrase][: len(row)]) for phrase, row in enumerate(rows)]
        yield tensor_difference("decoder", name, *map(np.stack, zip(*pairs, strict=True)))
    masks = [[sample(got["mask_logits"][phrase][index]) for index in row] for phrase, row in enumerate(rows)]
    yield tensor_difference("decoder", "mask_logits", np.array(masks), wanted["mask_logits"])


def _nearest_rows(got: Mapping[str, Array], wanted: Mapping[str, Array], phrase: int) -> list[int]:
    """For each of the best expected rows, the row of the answer with the same box and score."""
    n_best = min(N_BEST, wanted["logits"].shape[1])
    columns = [
        np.concatenate((side["boxes_xyxy"][phrase], side["logits"][phrase][:, None]), axis=1) for side in (got, wanted)
    ]
    distance = np.abs(columns[1][:n_best, None] - columns[0][None]).sum(axis=2)
    return [int(row) for row in distance.argmin(axis=1)]


def _compare_cases(
    session: Session,
    cases: list[dict[str, Any]],
    features: Mapping[str, Mapping[str, Array]],
    phrases: Array,
    reference: Mapping[str, Array],
) -> Iterable[CaseComparison]:
    for index, case in enumerate(cases):
        feeds = {
            **{name: features[case["picture"]][name] for name in _FEATURES},
            "text_features": phrases[index : index + 1],
            "text_mask": reference["text_mask"][index : index + 1],
            "boxes": np.array([case["boxes"] or [[0.0] * 4]], dtype=np.float32),
            "labels": np.array([case["labels"] or [_NO_BOX]], dtype=np.int32),
        }
        found = BestInstances.of(session.run(feeds))
        yield compare_instances(case, BestInstances.unpacked(reference, f"case/{index}"), found)
