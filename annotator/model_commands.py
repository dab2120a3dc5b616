"""The commands about models: list them, export one from a checkpoint, check one against its original."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from annotator.benching import SAMPLES, bench_model
from annotator.checking import check_lines, check_on_terminal
from annotator.comparing import compare_models, comparison_lines, left_out_lines
from annotator.compiling import compile_model, engine_line
from annotator.errors import CommandError
from annotator.models import list_models, list_runtimes, model_folders
from annotator.terminal import SOME_FAILED, STOPPED, say
from engines.bench import table
from engines.bundle import locate_bundle
from engines.check_report import LEAST_MEAN_IOU
from engines.discovery import choose
from engines.errors import EngineCancelledError
from engines.loader import open_bundle
from engines.tensorrt_engines.key import BuildOptions
from engines.tensorrt_engines.library import LIBRARIES
from engines.tensorrt_engines.provide import can_run_here, target_architecture
from engines.triton_repository import write_triton_repository

app = typer.Typer(help="List installed models and runtimes; export, check or compile one.", rich_markup_mode=None)


@app.callback(invoke_without_command=True, epilog="Example: python app.py models")
def models(context: typer.Context) -> None:
    """List installed models and runtimes, and why one cannot be used; or export or check a model."""
    if context.invoked_subcommand is not None:
        return
    for row in list_models():
        print(f"{row.name}: {row.title}")
        print(f"    family {row.family}, precision {row.precision}, licence {row.licence}, in {row.folder}")
        for note in row.notes:
            print(f"    note: {note}")
        for engine in row.engines:
            print(f"    {engine_line(engine)}")
        if row.problem:
            print(f"    cannot be used: {row.problem}")
    for runtime in list_runtimes():
        where = f"runs on {', '.join(runtime.devices)}" if runtime.usable else f"cannot be used: {runtime.reason}"
        print(f"runtime {runtime.name} ({runtime.title}): {where}")


@app.command(epilog="Example: python app.py models export --checkpoint sam3 --out sam3-int8 --precision int8")
def export(
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A Hugging Face SAM 3 folder, or Meta's sam3.pt.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="BUNDLE", help="The model folder to make.")] = None,
    precision: Annotated[str, typer.Option(metavar="fp32|fp16|int8|int8-qdq", help="How weights are kept.")] = "fp32",
    calibrate: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="For int8-qdq: pictures such as it will see; else samples/.")
    ] = None,
    image_size: Annotated[int, typer.Option(min=14, help="Side of the model's picture, a multiple of 14.")] = 1008,
    max_instances: Annotated[int, typer.Option(min=1, help="How many instances a phrase can find.")] = 100,
    model: Annotated[
        str | None, typer.Option(metavar="NAME|DIR", help="With --triton: an exported model, instead of a checkpoint.")
    ] = None,
    triton: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a model repository for a Triton server here too.")
    ] = None,
) -> None:
    """Make a model folder from a SAM 3 checkpoint, part by part, and check it; needs the extra [export]."""
    if checkpoint is not None and out is not None and model is None:
        from engines.export.bundle_export import export_bundle

        pictures = (calibrate or SAMPLES) if precision == "int8-qdq" else None
        folder = export_bundle(
            checkpoint, out, precision, image_size, max_instances, progress=say, calibration=pictures
        )
        print(folder)
    elif model is not None and triton is not None and checkpoint is None and out is None:
        folder = locate_bundle(model, model_folders())
    else:
        raise CommandError("give --checkpoint and --out to make a model, or --model and --triton for one that is made")
    if triton is not None:
        for written in write_triton_repository(open_bundle(folder), triton):
            print(written)


@app.command(epilog="Example: python app.py models check sam3-int8")
def check(
    model: Annotated[str, typer.Argument(metavar="NAME|DIR", help="An exported model.")],
    runtime: Annotated[str, typer.Option(help="What runs it.")] = "auto",
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda:N", help="Where it runs.")] = "auto",
    least_iou: Annotated[
        float, typer.Option(min=0, max=1, help="The least mean IoU of masks that passes.")
    ] = LEAST_MEAN_IOU,
    most_changed: Annotated[
        int, typer.Option(min=0, help="How many sure instances may be lost; of engines, as many gained.")
    ] = 0,
) -> None:
    """Compare a model, or its engines, with the answers of the original, tensor by tensor and mask by mask."""
    _check(locate_bundle(model, model_folders()), runtime, device, least_iou, most_changed)


@app.command(epilog="Example: python app.py models compare sam3 sam3-int8 --images photos --phrase person")
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A model by name or folder: the measure.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The model that is compared with it.")],
    images: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Pictures; else those that A was checked with, or samples/.")
    ] = None,
    phrase: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="What to look for; repeatable.")] = None,
    runtime: Annotated[str, typer.Option(help="What runs both.")] = "auto",
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda:N", help="Where they run.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of lines.")] = False,
) -> None:
    """Ask two models the same: scores, masks, instances that only one of them finds."""
    comparison = compare_models(first, second, images, phrase or (), runtime, device)
    for line in left_out_lines(comparison):
        say(line)
    if not comparison.cases:
        raise CommandError("nothing could be compared: no question was answered by both models; ask something else")
    print(json.dumps(comparison.as_dict(), ensure_ascii=False) if as_json else "\n".join(comparison_lines(comparison)))
    if any(one.failed for one in comparison.left_out):
        raise typer.Exit(SOME_FAILED)


@app.command(epilog="Example: python app.py models bench sam3-fp16 --runtime tensorrt")
def bench(
    model: Annotated[str, typer.Argument(metavar="NAME|DIR", help="A model.")],
    images: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Pictures; else samples/.")] = None,
    phrase: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="What to look for; repeatable.")] = None,
    edits: Annotated[int, typer.Option(min=1, help="Edits of the phrase on each picture.")] = 20,
    pictures: Annotated[int, typer.Option(min=1, help="How many pictures at most.")] = 5,
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Images encoded together; repeatable; else 1, 4 and 8, on a CPU 1.")
    ] = None,
    runtime: Annotated[str, typer.Option(help="What runs it.")] = "auto",
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda:N|HOST:PORT", help="Where it runs.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Measure each stage of a first query and of an edit, images a second, and memory of the GPU."""
    report = bench_model(model, images, phrase or (), edits, pictures, batch or (), runtime, device)
    print(json.dumps(report.as_dict(), ensure_ascii=False) if as_json else "\n".join(table(report)))


@app.command("compile", epilog="Example: python app.py models compile sam3-fp16 --runtime tensorrt")
def compile_engines(
    model: Annotated[str, typer.Argument(metavar="NAME|DIR", help="A model.")],
    runtime: Annotated[str, typer.Option(metavar="|".join(LIBRARIES), help="What is to run the engines.")],
    device: Annotated[str, typer.Option(metavar="auto|cuda:N", help="The GPU to build for.")] = "auto",
    clean: Annotated[bool, typer.Option("--clean", help="Then delete engines that serve nothing any more.")] = False,
    workspace_gb: Annotated[
        float | None, typer.Option(min=0.01, help="GPU memory that a layer may use while it runs, in GiB.")
    ] = None,
    version_compatible: Annotated[
        bool, typer.Option("--version-compatible", help="Later versions of the library load them too.")
    ] = False,
    hardware_compatible: Annotated[
        bool, typer.Option("--hardware-compatible", help="For every GPU from Ampere on.")
    ] = False,
    target_arch: Annotated[
        str, typer.Option(metavar="smNN", help="For a GPU that is not here; tensorrt-rtx alone can.")
    ] = "",
) -> None:
    """Build the engines of a model for TensorRT, once; needs the extra of the runtime."""
    bundle = open_bundle(locate_bundle(model, model_folders()))
    library = choose(LIBRARIES, "runtime with engines", runtime)
    architecture = target_architecture(library, device, hardware_compatible, target_arch)
    options = BuildOptions(workspace_gb, version_compatible)
    with _stopped_in_good_order():
        for line in compile_model(library, bundle, architecture, options, clean=clean):
            print(line)
    if can_run_here(architecture, device):
        _check(bundle.folder, runtime, device)
    else:
        say("not checked yet: the GPU that they are for is not here; the first use on it checks them")


def _check(folder: Path, runtime: str, device: str, least_iou: float = LEAST_MEAN_IOU, most_changed: int = 0) -> None:
    with _stopped_in_good_order():
        report, readable = check_on_terminal(folder, runtime, device, least_iou, most_changed)
    print("\n".join(check_lines(report, readable)))
    if not report.passed:
        raise typer.Exit(SOME_FAILED)


@contextmanager
def _stopped_in_good_order() -> Iterator[None]:
    """Exit code and sentence after Ctrl+C."""
    try:
        yield
    except EngineCancelledError as error:
        say(str(error))
        raise typer.Exit(STOPPED) from None
