"""A folder of ONNX files of a known kind, as a bundle."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from engines.bundle import GraphSpec, ModelBundle, TensorSpec
from engines.errors import BundleFileMissingError, OnnxFileError, SeveralFilesError
from engines.families._sam3_foreign.contract import Contract
from engines.graph_signature import GraphSignature

TOKENIZER_FILE = "tokenizer.json"
NATIVE_SIDE = 1008
"""Where a graph takes pictures of any size: what SAM 3 was trained with."""
CONTEXT_LENGTH = 32
_READ_WHOLE_BELOW = 64 * 2**20
_BLOCK, _N_BLOCKS = 2**16, 64
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def recognise(contract: Contract, folder: Path, signatures: Mapping[str, GraphSignature]) -> ModelBundle | None:
    """The bundle, or None where some graph of that kind is not among the files.

    Raises `SeveralFilesError` where there is more than one to choose from, `BundleFileMissingError` for a missing file
    of weights, `OnnxFileError` for one that is cut off.
    """
    candidates = contract.files(signatures)
    if not all(candidates.values()) or not _connects(contract, candidates, signatures):
        return None
    for role, files in candidates.items():
        if len(files) > 1:
            raise SeveralFilesError(folder, role, files)
    file_of = {role: files[0] for role, files in candidates.items()}
    used = {file: signatures[file] for file in file_of.values()}
    files = [*used, *_data_files(folder, used.values())]
    tokenizer = [TOKENIZER_FILE] if (folder / TOKENIZER_FILE).is_file() else []
    graphs = {role: _graph(role, file, used[file]) for role, file in file_of.items()}
    graphs["decoder"] = _with_small_masks(contract, folder, graphs["decoder"])
    return ModelBundle(
        folder=folder,
        bundle_id=fingerprint([folder / name for name in (*files, *tokenizer)]),
        name=folder.resolve().name,
        title=contract.title,
        family=contract.name,
        precision=_precision(used.values()),
        image_size=max(picture_size(graphs["vision"].inputs[0])),
        licence="SAM License",
        graphs=graphs,
        sha256_by_file=dict.fromkeys((*files, *tokenizer), ""),
        reference=contract.reference,
        context_length=context_length(graphs["text"].inputs[0]),
        notes=_notes(contract, graphs["decoder"]),
    )


def picture_size(spec: TensorSpec) -> tuple[int, int]:
    """Height and width in pixels that a graph with this input takes."""
    height, width = spec.shape[-2:]
    return height or NATIVE_SIDE, width or NATIVE_SIDE


def context_length(spec: TensorSpec) -> int:
    """Number of tokens that a graph with this input takes."""
    return spec.shape[-1] or CONTEXT_LENGTH


def fingerprint(paths: Iterable[Path]) -> str:
    """Sha256 over the names, sizes and contents of files, in the order of their names.

    Of a file of 64 MiB or more, 64 blocks of 64 KiB are read, spread evenly from its first to its last byte: other
    weights differ in them, yet a few changed bytes elsewhere stay unseen. This tells models apart; it proves no copy.
    """
    total = hashlib.sha256()
    for path in sorted(paths):
        size = path.stat().st_size
        total.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as stream:
            if size < _READ_WHOLE_BELOW:
                total.update(hashlib.file_digest(stream, "sha256").digest())
                continue
            for index in range(_N_BLOCKS):
                stream.seek((size - _BLOCK) * index // (_N_BLOCKS - 1))
                total.update(stream.read(_BLOCK))
    return total.hexdigest()


def _connects(
    contract: Contract, candidates: Mapping[str, list[str]], signatures: Mapping[str, GraphSignature]
) -> bool:
    """Whether each input of the decoder that another graph should give is given."""
    given = {spec.name for role in ("vision", "text") for spec in signatures[candidates[role][0]].outputs}
    declared = {slot.name for role in ("vision", "text") for slot in contract.parts[role].outputs}
    wanted = {contract.source(spec.name) for spec in signatures[candidates["decoder"][0]].inputs}
    return wanted & declared <= given


def _data_files(folder: Path, signatures: Iterable[GraphSignature]) -> list[str]:
    found: list[str] = []
    for signature in signatures:
        for name, n_bytes in signature.bytes_by_data_file.items():
            path = folder / name
            if not path.is_file():
                raise BundleFileMissingError(folder, name)
            if path.stat().st_size < n_bytes:
                raise OnnxFileError(path)
            found.append(name)
    return list(dict.fromkeys(found))


def _graph(role: str, file: str, signature: GraphSignature) -> GraphSpec:
    return GraphSpec(role, file, signature.inputs, signature.outputs)


def _with_small_masks(contract: Contract, folder: Path, decoder: GraphSpec) -> GraphSpec:
    """The decoder, asked for its masks as they are before they are stretched to the picture, if that can be had."""
    small = contract.small_masks(folder / decoder.file) if contract.small_masks else None
    if small is None:
        return decoder
    others = tuple(spec for spec in decoder.outputs if spec.name != "masks")
    return replace(decoder, inner_outputs=(*others, small))


def _notes(contract: Contract, decoder: GraphSpec) -> tuple[str, ...]:
    if decoder.inner_outputs or not contract.note_on_whole_masks:
        return contract.notes
    return *contract.notes, contract.note_on_whole_masks


def _precision(signatures: Iterable[GraphSignature]) -> str:
    """By the dtype of most weights."""
    totals: Counter[str] = Counter()
    for signature in signatures:
        totals.update(signature.weights_by_dtype)
    return _PRECISIONS.get(totals.most_common(1)[0][0], "quantised") if totals else "?"
