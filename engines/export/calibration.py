"""Fixed scales for TensorRT: it cannot scale activations as they come, so typical inputs are run once and measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.check_cases import draw_pictures
from engines.export.checkpoint import CONTEXT_LENGTH, Checkpoint
from engines.export.extra import import_or_explain
from engines.export.precision import without_advice
from engines.families._sam3.picture import stretched
from engines.families._sam3.tokens import PhraseTokenizer
from engines.images import find_images, read_image

_MOST_PICTURES = 16
_PHRASES = (
    "person; child; the woman in a red coat; dog; striped cat; bird; horse; white cup; wine glass; bottle; plate; "
    "fork; wooden chair; table; plant; flower; tree; car; yellow bus; bicycle; traffic light; road sign; house; "
    "window; door; screw; bolt; cable; circuit board; box; bag; shoe; hat; book; phone; keyboard; screen; apple; leaf"
)


def calibration_feeds(
    found: Checkpoint, role: str, image_size: int, pictures: Path | None
) -> list[dict[str, NDArray[Any]]]:
    """Inputs of the vision or the text graph: pictures of the folder, else drawn ones; everyday phrases."""
    if role == "text":
        tokenizer = PhraseTokenizer(found.tokenizer, CONTEXT_LENGTH)
        tokens = [tokenizer.tokens(phrase.strip()) for phrase in _PHRASES.split(";")]
        return [{"input_ids": one.padded(CONTEXT_LENGTH)} for one in tokens]
    return [{"image": pixels} for pixels in _pictures(image_size, pictures)]


def quantise_with_scales(source: Path, target: Path, external: bool, feeds: Sequence[dict[str, NDArray[Any]]]) -> None:
    """Weights and activations of matrix products to int8 with fixed scales, written as QuantizeLinear and
    DequantizeLinear around them; one scale for each output channel of a weight, one for an activation, 0 is 0."""
    quantization = import_or_explain("onnxruntime.quantization")
    with without_advice():
        quantization.quantize_static(
            str(source),
            str(target),
            _reader(quantization, feeds),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            use_external_data_format=external,
            extra_options={"ActivationSymmetric": True, "WeightSymmetric": True, "MatMulConstBOnly": True},
        )


def _reader(quantization: Any, feeds: Sequence[dict[str, NDArray[Any]]]) -> Any:
    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self._feeds = iter(feeds)

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self._feeds, None)

    return Reader()


def _pictures(image_size: int, folder: Path | None) -> Iterator[NDArray[np.uint8]]:
    paths = list(find_images(folder))[:_MOST_PICTURES] if folder is not None else []
    for path in paths:
        yield stretched(read_image(path).rgb, image_size)
    if not paths:
        for picture in draw_pictures(image_size):
            yield stretched(np.asarray(picture.convert("RGB")), image_size)
