"""The commands about models: list them, export one from a checkpoint, check one against its original."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from annotator.errors import CommandError
from annotator.models import list_models, list_runtimes, model_folders
from engines.bundle import locate_bundle
from engines.loader import open_bundle
from engines.triton_repository import write_triton_repository

FAILED = 1

app = typer.Typer(help="List installed models and runtimes, export or check one.", rich_markup_mode=None)


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
    precision: Annotated[str, typer.Option(metavar="fp32|fp16|int8", help="How weights are kept.")] = "fp32",
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

        folder = export_bundle(checkpoint, out, precision, image_size, max_instances, progress=_say)
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
) -> None:
    """Compare a model with the answers of its original, tensor by tensor and mask by mask."""
    from engines.compare import PAGE_FILE, check_bundle

    folder = locate_bundle(model, model_folders())
    report = check_bundle(folder, runtime, device)
    print(f"{report.name}: {'passed' if report.passed else 'FAILED'}, mean IoU {report.mean_iou:.4f}")
    for failure in report.failures:
        print(f"    {failure}")
    print(folder / PAGE_FILE)
    if not report.passed:
        raise typer.Exit(FAILED)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
