"""Measures full-size SAM 3 on a GPU: how right each precision is, how long each part takes, what fetching masks costs.

    python benchmarks/gpu_check.py [--device cuda:0] [--minutes 8] [--checkpoint FOLDER] [--json FILE]

The weights are random: differences between precisions of one graph are real, scores mean nothing. It needs torch,
transformers, onnx, onnxscript, onnxruntime and CuPy, and uses onnxruntime's CUDA provider, TensorRT and TensorRT for
RTX where they are there. What is missing, fails, or no longer fits into the minutes gets a line that says so.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import numpy as np  # noqa: E402

from engines.check_report import mask_iou  # noqa: E402
from engines.export.checkpoint import Checkpoint, find_checkpoint, native_image_size  # noqa: E402
from engines.export.graph_export import (  # noqa: E402
    build_module,
    export_graph,
    feature_width,
    graph_spec,
    n_queries,
)
from engines.loader import runtimes  # noqa: E402

ROLES = ("vision", "text", "decoder")
FEATURES = ("features_0", "features_1", "features_2")
ANSWERS = ("logits", "presence", "boxes_xyxy", "mask_logits")
N_TIMED = 10
BEST_K = 100
N_COMPARED = 10
"""Masks of the best queries of the reference are compared: random weights give no sure instances."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    how: str
    value: str


@dataclass
class Table:
    """What was measured so far, printed as it comes, and the time that is left."""

    deadline_s: float
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, how: str, value: str) -> None:
        self.rows.append(Row(what, how, value))
        print(f"{what:34} {how:30} {value}", flush=True)

    def step(self, what: str, work: Callable[[], None], needs_s: float) -> None:
        """Do a step if there is time for it; one that fails does not end the others."""
        left_s = self.deadline_s - time.monotonic()
        if left_s < needs_s:
            self.add(what, "left out", f"it needs about {needs_s:.0f} s, {left_s:.0f} s are left")
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever a library raises belongs into the table
            self.add(what, "failed", f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")


@dataclass(frozen=True)
class Bench:
    """The model, the inputs, and where it runs."""

    checkpoint: Checkpoint
    image_size: int
    device: str
    table: Table

    @property
    def n_instances(self) -> int:
        return n_queries(self.checkpoint)

    def inputs(self) -> dict[str, Array]:
        """One picture of noise and edges, one phrase of eight tokens, no box."""
        generator = np.random.default_rng(0)
        image = generator.integers(0, 255, (1, 3, self.image_size, self.image_size), dtype=np.uint8)
        image[..., self.image_size // 4 : self.image_size // 2] //= 4
        ids = np.zeros((1, 32), dtype=np.int32)
        ids[0, :8] = [49406, *generator.integers(300, 40000, 6), 49407]
        return {
            "image": image,
            "input_ids": ids,
            "text_mask": np.arange(32)[None] < 8,
            "boxes": np.zeros((1, 1, 4), dtype=np.float32),
            "labels": np.full((1, 1), -10, dtype=np.int32),
        }


def torch_precisions(bench: Bench) -> None:
    """PyTorch with explicit attention in float32, then bfloat16 and float16 against it; then fused attention."""
    reference = run_parts(bench, "fp32", fused=False)
    for precision in ("bf16", "fp16"):
        for fused in (False, True):
            how = f"torch {precision}, {'fused' if fused else 'explicit'} attention"
            bench.table.step(how, lambda p=precision, f=fused, h=how: compare(bench, h, reference, p, f), 20)


def compare(bench: Bench, how: str, reference: Mapping[str, Array], precision: str, fused: bool) -> None:
    add_differences(bench.table, how, reference, run_parts(bench, precision, fused))


def add_differences(table: Table, how: str, reference: Mapping[str, Array], got: Mapping[str, Array]) -> None:
    got = in_rows_of(reference, got)
    for name in (*FEATURES, "text_features", *ANSWERS):
        wanted, given = reference[name].astype(np.float64), got[name].astype(np.float64)
        relative = np.abs(given - wanted).max() / max(np.abs(wanted).max(), 1e-12)
        cosine = (given * wanted).sum() / max(np.linalg.norm(given) * np.linalg.norm(wanted), 1e-12)
        table.add(how, name, f"largest difference {relative:.1e} relative, cosine {cosine:.6f}")
    wanted, given = (side["mask_logits"][0][:N_COMPARED] > 0 for side in (reference, got))
    ious = np.diag(mask_iou(wanted, given))
    table.add(how, "mask IoU", f"mean {ious.mean():.4f}, worst {ious.min():.4f} of {len(ious)}")


def in_rows_of(reference: Mapping[str, Array], got: Mapping[str, Array]) -> dict[str, Array]:
    """The answer with its queries in the order of the reference, by the nearest box: where two score alike, a rounding
    lets them change places."""
    distance = np.abs(reference["boxes_xyxy"][0][:, None] - got["boxes_xyxy"][0][None]).sum(axis=2)
    rows = distance.argmin(axis=1)
    return {**got, **{name: got[name][:, rows] for name in ("logits", "boxes_xyxy", "mask_logits")}}


def run_parts(bench: Bench, precision: str, fused: bool) -> dict[str, Array]:
    """Outputs of all parts in a row, float32 on the host; adds milliseconds and memory to the table."""
    import torch

    how = f"torch {precision}{', fused attention' if fused else ''}"
    tensors: dict[str, Any] = {name: torch.from_numpy(one).to(bench.device) for name, one in bench.inputs().items()}
    features = (
        torch.float32 if precision == "fp32" else getattr(torch, {"fp16": "float16", "bf16": "bfloat16"}[precision])
    )
    with attention_of_torch(fused), torch.no_grad():
        for role in ROLES:
            spec = graph_spec(role, bench.image_size, feature_width(bench.checkpoint), bench.n_instances)
            module = part(bench, role, precision)
            feeds = [tensors[one.name] for one in spec.inputs]
            feeds = [one.to(features) if spec.inputs[at].name in FEATURES else one for at, one in enumerate(feeds)]
            outputs, took_ms = timed(bench, lambda m=module, f=feeds: m(*f))
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            tensors |= dict(zip([one.name for one in spec.outputs], outputs, strict=True))
            bench.table.add(how, role, f"{took_ms:.2f} ms{peak_memory(bench)}")
            del module, outputs
            free(bench)
    names = (*FEATURES, "text_features", *ANSWERS)
    return {name: tensors[name].float().cpu().numpy() for name in names}


def part(bench: Bench, role: str, precision: str) -> Any:
    """The exported part on its device; bfloat16 is the float16 one with every half turned into bfloat16."""
    import torch

    module = build_module(bench.checkpoint, role, bench.image_size, bench.n_instances, precision != "fp32")
    of_half = torch.bfloat16 if precision == "bf16" else torch.float16
    for tensor in (*module.parameters(), *module.buffers()):
        if not tensor.is_meta:  # weights of the other parts were never loaded
            tensor.data = tensor.data.to(bench.device, of_half if tensor.dtype == torch.float16 else tensor.dtype)
    for one in module.modules():
        if vars(one).get("dtype") == torch.float16:
            one.dtype = of_half
    return module


@contextmanager
def attention_of_torch(fused: bool) -> Iterator[None]:
    """Let the vision graph use PyTorch's fused attention instead of the explicit one."""
    from torch.nn.functional import scaled_dot_product_attention

    from engines.export import vision_graph

    explicit = vision_graph.attention
    if fused:
        vision_graph.attention = lambda q, k, v, bias=None: scaled_dot_product_attention(q, k, v, bias, scale=1.0)
    try:
        yield
    finally:
        vision_graph.attention = explicit


def timed(bench: Bench, work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the median milliseconds of some runs after two to warm up."""
    import torch

    def wait() -> None:
        if bench.device.startswith("cuda"):
            torch.cuda.synchronize()

    if bench.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    taken = []
    for turn in range(N_TIMED + 2):
        wait()
        started = time.perf_counter()
        result = work()
        wait()
        if turn >= 2:
            taken.append((time.perf_counter() - started) * 1000)
    return result, statistics.median(taken)


def peak_memory(bench: Bench) -> str:
    import torch

    if not bench.device.startswith("cuda"):
        return ""
    return f", {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB at most"


def free(bench: Bench) -> None:
    import torch

    gc.collect()
    if bench.device.startswith("cuda"):
        torch.cuda.empty_cache()


def fetching(bench: Bench) -> None:
    """Bringing back all mask logits of a phrase, against the best K alone, with CuPy."""
    import cupy

    side = 4 * (bench.image_size // 14)
    masks = cupy.random.standard_normal((bench.n_instances, side, side), dtype=cupy.float32)
    for name, rows in (("all masks", len(masks)), (f"best {BEST_K}", BEST_K), ("best 10", 10)):
        chosen = masks[:rows]
        pinned = cupy.cuda.alloc_pinned_memory(chosen.nbytes)
        host = np.frombuffer(pinned, np.float32, chosen.size).reshape(chosen.shape)
        stream = cupy.cuda.get_current_stream()

        def fetch(chosen: Any = chosen, host: Array = host, stream: Any = stream) -> None:
            chosen.get(out=host, blocking=False)
            stream.synchronize()

        for kind, work in (("pageable", lambda one=chosen: one.get()), ("pinned", fetch)):
            work()
            _, took_ms = timed(bench, work)
            bench.table.add(
                "fetching masks", f"{name}, {kind}", f"{took_ms:.2f} ms for {chosen.nbytes / 2**20:.0f} MiB"
            )


def exported(bench: Bench, folder: Path) -> None:
    """The three graphs in ONNX, float32 and float16, run by every runtime that is usable here."""
    for precision in ("fp32", "fp16"):
        for role in ROLES:
            bench.table.step(f"export {precision}", lambda r=role, p=precision: export(bench, folder, r, p), 60)
    for runtime in runtimes().values():
        availability = runtime.availability()
        if not availability.usable:
            bench.table.add(runtime.title, "not usable", availability.reason)
            continue
        for precision in ("fp32", "fp16"):
            name = f"{runtime.title} {precision}"
            bench.table.step(name, lambda p=precision, n=name, r=runtime: run_graphs(bench, folder / p, n, r), 60)


def spec_of(bench: Bench, role: str, precision: str) -> Any:
    features = "float16" if precision == "fp16" else "float32"
    return graph_spec(role, bench.image_size, feature_width(bench.checkpoint), bench.n_instances, features)


def export(bench: Bench, folder: Path, role: str, precision: str) -> None:
    (folder / precision).mkdir(exist_ok=True)
    module = build_module(bench.checkpoint, role, bench.image_size, bench.n_instances, precision == "fp16")
    started = time.perf_counter()
    export_graph(module, role, spec_of(bench, role, precision), folder / precision / f"{role}.onnx")
    bench.table.add(f"export {precision}", role, f"{time.perf_counter() - started:.0f} s")


def run_graphs(bench: Bench, folder: Path, name: str, runtime: Any) -> None:
    """Load and run the graphs; the outputs of one are the inputs of the next."""
    tensors = bench.inputs()
    for role in ROLES:
        spec = spec_of(bench, role, folder.name)
        started = time.perf_counter()
        session = runtime.load_graph(folder / spec.file, spec, bench.device)
        loaded_s = time.perf_counter() - started
        feeds = {one.name: tensors[one.name] for one in spec.inputs}
        outputs, took_ms = timed(bench, lambda s=session, f=feeds: s.run(f))
        tensors |= outputs
        bench.table.add(name, role, f"{took_ms:.2f} ms on {session.device}, loaded or built in {loaded_s:.0f} s")
        del session
        gc.collect()


def checkpoint_in(folder: Path) -> Path:
    """A full-size checkpoint with random weights."""
    from make_full_size_checkpoint import make_checkpoint

    make_checkpoint(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--checkpoint", type=Path, help="a Hugging Face SAM 3 folder; else random weights")
    parser.add_argument("--json", type=Path, help="write the table here too")
    arguments = parser.parse_args()
    table = Table(time.monotonic() + arguments.minutes * 60)
    with tempfile.TemporaryDirectory() as room:
        folder = arguments.checkpoint or checkpoint_in(Path(room) / "checkpoint")
        found = find_checkpoint(folder)
        bench = Bench(found, native_image_size(found), arguments.device, table)
        describe(bench)
        table.step("torch", lambda: torch_precisions(bench), 45)
        table.step("fetching masks", lambda: fetching(bench), 10)
        table.step("graphs", lambda: exported(bench, Path(room)), 0)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in table.rows], indent=2) + "\n", "utf-8")


def describe(bench: Bench) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    name = torch.cuda.get_device_name(bench.device) if bench.device.startswith("cuda") else "CPU"
    bench.table.add("machine", name, f"torch {torch.__version__}, {bench.image_size} px, {bench.n_instances} queries")


if __name__ == "__main__":
    main()
