"""The commands about a project's annotations: write them as a dataset, add those of one, count them."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from annotator.errors import CommandError
from annotator.exporters.protocol import LAYOUTS, PICTURES, SEGMENTATIONS, ExportOptions
from annotator.exporting import DECISIONS, check_options, export_project, exporters
from annotator.importing import ImportOptions, ImportRun, importers, read_dataset
from annotator.models import DEFAULT_MODEL, model_loader
from annotator.predictor import Predictor
from annotator.records import Decision
from annotator.store import ProjectStore
from annotator.terminal import DONE, NOTHING_DONE, SOME_FAILED, ProjectOption, one_of, say, walk_with_progress
from annotator.workspace import Workspace
from engines.loader import AUTO

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: python app.py export --project labels --out dataset --segmentation both")
def export(
    project: ProjectOption,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the dataset is written.")],
    format_name: Annotated[str, typer.Option("--format", metavar="|".join(exporters()))] = "coco",
    segmentation: Annotated[str, typer.Option(metavar="|".join(SEGMENTATIONS), help="How masks are written.")] = "rle",
    decision: Annotated[
        str, typer.Option(metavar="|".join(DECISIONS), help="Which annotations; rejected ones never.")
    ] = "accepted",
    min_score: Annotated[float, typer.Option(min=0, max=1, help="Leave out suggestions with a lower score.")] = 0.0,
    min_area: Annotated[int, typer.Option(min=1, help="Leave out masks with fewer pixels.")] = 1,
    tolerance_px: Annotated[float, typer.Option(min=0, help="How far polygons may leave the mask's edge.")] = 0.0,
    category_base: Annotated[int, typer.Option(min=0, max=1, help="The id of the first category.")] = 1,
    images: Annotated[str, typer.Option(metavar="|".join(PICTURES), help="Whether pictures come along.")] = "none",
    ratio: Annotated[str, typer.Option(metavar="A/B/C", help="Shares of train, valid and test.")] = "80/10/10",
    seed: Annotated[int, typer.Option(help="Which images go into which part.")] = 0,
    by_folder: Annotated[bool, typer.Option("--by-folder", help="Keep sub-folders in one part.")] = False,
    layout: Annotated[str, typer.Option(metavar="|".join(LAYOUTS), help="Where a part's files lie.")] = "annotations",
) -> None:
    """Write the project as a dataset, then read it back and check every mask."""
    options = ExportOptions(
        segmentation=one_of(segmentation, SEGMENTATIONS, "--segmentation"),
        min_area=min_area,
        tolerance_px=tolerance_px,
        category_base=category_base,
        images=one_of(images, PICTURES, "--images"),
        ratio=_ratio(ratio),
        seed=seed,
        by_folder=by_folder,
        layout=one_of(layout, LAYOUTS, "--layout"),
    )
    check_options(format_name, options)
    with ProjectStore.open(project, create=False) as store:
        chosen = one_of(decision, DECISIONS, "--decision")
        raise typer.Exit(print_export(store, out, chosen, format_name, options, min_score))


@app.command("import", epilog="Example: python app.py import instances.json --images photos --project labels")
def import_dataset(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="The dataset.")],
    images: Annotated[Path, typer.Option("--images", metavar="FOLDER", help="The folder of its pictures.")],
    project: ProjectOption,
    format_name: Annotated[str, typer.Option("--format", metavar="|".join(importers()))] = "coco",
    decision: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="accepted|pending", help="As human work or as suggestions; else as the file says."
        ),
    ] = None,
    done: Annotated[bool, typer.Option("--done", help="Call the pictures reviewed.")] = False,
) -> None:
    """Add the annotations of a dataset to a project, for pictures of the folder; nothing there is changed."""
    chosen = None if decision is None else Decision(one_of(decision, ("accepted", "pending"), "--as"))
    dataset = read_dataset(file, format_name)
    workspace = Workspace.open(project, Predictor(model_loader(DEFAULT_MODEL, AUTO, AUTO)), images)
    with closing(workspace):
        run = ImportRun(workspace, dataset, file.name, ImportOptions(chosen, done))
        walk_with_progress(run.run(), run.n_images)
    raise typer.Exit(_report_import(run))


@app.command(epilog="Example: python app.py status --project labels --json")
def status(
    project: ProjectOption,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Count images by state and annotations by decision and category."""
    from annotator.project_status import describe_project, status_lines

    with ProjectStore.open(project, create=False) as store:
        described = describe_project(store)
    print(json.dumps(described, indent=2, ensure_ascii=False) if as_json else "\n".join(status_lines(described)))


def print_export(
    store: ProjectStore, out: Path, decision: str, format_name: str, options: ExportOptions, min_score: float = 0.0
) -> int:
    """Write the dataset and say what was written; the exit code."""
    report = export_project(store, out, format_name, DECISIONS[decision], options, min_score)
    for sentence in (*report.problems, *report.notes):
        say(sentence)
    for file in report.files:
        print(file)
    print(report.summary)
    say(exporters()[format_name].how_to_load)
    return SOME_FAILED if report.problems else DONE


def _report_import(run: ImportRun) -> int:
    """Say what came in; the exit code."""
    summary = run.summary
    for sentence in (*summary.notes, *summary.problems):
        say(sentence)
    print(
        f"{summary.n_images} images: {summary.n_annotations} annotations added, {summary.n_already} were there before"
    )
    if summary.problems:
        return SOME_FAILED if summary.n_images else NOTHING_DONE
    return DONE


def _ratio(text: str) -> tuple[int, int, int]:
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or not any(map(int, parts)):
        raise CommandError(f"--ratio takes the shares of train, valid and test, such as 80/10/10; got '{text}'")
    train, valid, test = map(int, parts)
    return train, valid, test
