"""The commands. Messages go to standard error, results to standard output.

Exit codes: 0 done; 1 done, but some images failed; 2 wrong usage or nothing done; 130 stopped with Ctrl+C.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Annotated, NoReturn

import typer

from annotator.errors import CommandError
from annotator.exporters.protocol import LAYOUTS, PICTURES, SEGMENTATIONS, ExportOptions
from annotator.exporting import DECISIONS, check_options, export_project, exporters
from annotator.importing import ImportOptions, ImportRun, importers, read_dataset
from annotator.model_commands import app as models_app
from annotator.models import DEFAULT_MODEL, model_loader
from annotator.phrase_list import parse_phrases
from annotator.predictor import Predictor
from annotator.prelabel import Prelabeller, PrelabelOptions, PrelabelSummary
from annotator.records import Decision
from annotator.store import ProjectStore
from annotator.ui.shell import is_loopback, open_page
from annotator.workspace import Workspace
from engines.errors import PhrasemaskError
from engines.loader import AUTO, runtimes
from engines.protocols import Segmenter

DONE, SOME_FAILED, NOTHING_DONE, STOPPED = 0, 1, 2, 130
DEFAULT_FOLDER = Path(__file__).parents[1] / "samples"
LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 7860

app = typer.Typer(
    help="Label images with instance masks by phrase.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(models_app, name="models")

ModelOption = Annotated[
    str, typer.Option("--model", metavar="NAME|DIR", help="An installed model by name, or a model folder.")
]
RuntimeOption = Annotated[str, typer.Option("--runtime", metavar="|".join([AUTO, *runtimes()]), help="What runs it.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Use a model although it has failed its check.")]
DeviceOption = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda:N", help="Where it runs.")]
ProjectOption = Annotated[Path, typer.Option("--project", metavar="DIR", help="The project folder.")]
ScoreOption = Annotated[float, typer.Option(min=0, max=1, help="Suggestions below this score are left out.")]


@app.command(epilog="Example: python app.py serve ~/photos --project ~/labels/photos")
def serve(
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="Images to label; else samples/.")] = None,
    project: Annotated[
        Path | None, typer.Option("--project", metavar="DIR", help="Project folder; else one in your user data.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; any but loopback needs --auth.")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=1, max=65535)] = DEFAULT_PORT,
    auth: Annotated[str | None, typer.Option(metavar="USER:PASS", help="Ask for this name and password.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
    model: ModelOption = DEFAULT_MODEL,
    runtime: RuntimeOption = AUTO,
    device: DeviceOption = AUTO,
    force: ForceOption = False,
) -> None:
    """Open the page over a folder of images."""
    credentials = _credentials(auth, host)
    folder = folder if folder is not None or project is not None else DEFAULT_FOLDER
    with _workspace(
        folder, project or _default_project(folder), model_loader(model, runtime, device, force=force)
    ) as workspace:
        page = open_page(workspace, host, port, credentials, open_browser=browser and _has_screen())
        with page, suppress(KeyboardInterrupt):
            _say(f"Phrasemask over {workspace.folder.root}: http://{_shown_host(host)}:{port} (stop with Ctrl+C)")
            Event().wait()


@app.command(epilog='Example: python app.py prelabel photos --phrase "coffee cup=cup" --project labels')
def prelabel(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Images to pre-label.")],
    project: ProjectOption,
    phrase: Annotated[
        list[str] | None, typer.Option("--phrase", metavar="TEXT[=CATEGORY]", help="What to look for; repeatable.")
    ] = None,
    phrases: Annotated[
        Path | None, typer.Option("--phrases", metavar="FILE", help="A file with one TEXT[=CATEGORY] a line.")
    ] = None,
    score_threshold: ScoreOption = 0.5,
    accept_above: Annotated[
        float | None, typer.Option(min=0, max=1, help="Store suggestions at or above this score as accepted.")
    ] = None,
    redo: Annotated[bool, typer.Option("--redo", help="Run again; only open suggestions are replaced.")] = False,
    export_dir: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Export accepted and open suggestions here after.")
    ] = None,
    model: ModelOption = DEFAULT_MODEL,
    runtime: RuntimeOption = AUTO,
    device: DeviceOption = AUTO,
    force: ForceOption = False,
) -> None:
    """Suggest instances for phrases on every image of a folder; run it again to go on where it stopped."""
    wanted = parse_phrases(phrase or [], phrases)
    with _workspace(folder, project, model_loader(model, runtime, device, force=force)) as workspace:
        kept = [workspace.keep_phrase(text, category) for text, category in wanted]
        run = Prelabeller(workspace, kept, PrelabelOptions(score_threshold, accept_above, redo))
        _run_with_progress(run)
        code = _report_run(run.summary)
        if export_dir is not None:
            code = max(code, _print_export(workspace.store, export_dir, "all", "coco", ExportOptions()))
    raise typer.Exit(code)


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
        segmentation=_one_of(segmentation, SEGMENTATIONS, "--segmentation"),
        min_area=min_area,
        tolerance_px=tolerance_px,
        category_base=category_base,
        images=_one_of(images, PICTURES, "--images"),
        ratio=_ratio(ratio),
        seed=seed,
        by_folder=by_folder,
        layout=_one_of(layout, LAYOUTS, "--layout"),
    )
    check_options(format_name, options)
    with ProjectStore.open(project, create=False) as store:
        chosen = _one_of(decision, DECISIONS, "--decision")
        raise typer.Exit(_print_export(store, out, chosen, format_name, options, min_score))


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
    chosen = None if decision is None else Decision(_one_of(decision, ("accepted", "pending"), "--as"))
    dataset = read_dataset(file, format_name)
    with _workspace(images, project, model_loader(DEFAULT_MODEL, AUTO, AUTO)) as workspace:
        run = ImportRun(workspace, dataset, file.name, ImportOptions(chosen, done))
        _walk_with_progress(run.run(), run.n_images)
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


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end the process. Without a command the page is opened."""
    _speak_utf8()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in ("--help", "-h")):
        given.insert(0, "serve")
    try:
        if "" in given:
            raise CommandError("one argument is empty, perhaps an unset variable of the shell; write it out")
        app(given, prog_name="python app.py")
    except PhrasemaskError as error:
        _say(f"error: {error}")
    except BrokenPipeError:
        os._exit(DONE)
    except OSError as error:
        _say(f"error: {error.strerror or error}: {error.filename or 'a file'}; what was saved before is safe")
    sys.exit(NOTHING_DONE)


@contextmanager
def _workspace(folder: Path | None, project: Path, load: Callable[[], Segmenter]) -> Iterator[Workspace]:
    workspace = Workspace.open(project, Predictor(load), folder)
    try:
        yield workspace
    finally:
        workspace.close()


def _default_project(folder: Path | None) -> Path:
    """A project for this folder in the person's own data, since nothing is written among the pictures."""
    import hashlib

    import platformdirs

    root = (folder or DEFAULT_FOLDER).resolve()
    key = hashlib.sha256(str(root).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return platformdirs.user_data_path("phrasemask", appauthor=False) / "projects" / f"{root.name or 'root'}-{key}"


def _credentials(auth: str | None, host: str) -> tuple[str, str] | None:
    if auth is None:
        if not is_loopback(host):
            raise CommandError(f"--host {host} can be reached from other machines: give --auth USER:PASS too")
        return None
    user, colon, password = auth.partition(":")
    if not (user and colon and password):
        raise CommandError("--auth takes a name and a password with a colon between them, such as --auth anna:secret")
    return user, password


def _shown_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _has_screen() -> bool:
    """Without a screen, opening a browser fails with noise of its own."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _run_with_progress(run: Prelabeller) -> None:
    _walk_with_progress(run.run(), len(run.images))


def _walk_with_progress(steps: Iterator[object], n_images: int) -> None:
    from tqdm import tqdm

    n_done = 0
    with tqdm(total=n_images, unit="image", delay=1, disable=None) as bar:
        try:
            for _ in steps:
                bar.update()
                n_done += 1
        except KeyboardInterrupt:
            bar.close()
            _say(f"stopped after {n_done} of {n_images} images; run it again to go on")
            raise typer.Exit(STOPPED) from None


def _report_import(run: ImportRun) -> int:
    """Say what came in; the exit code."""
    summary = run.summary
    for sentence in (*summary.notes, *summary.problems):
        _say(sentence)
    print(
        f"{summary.n_images} images: {summary.n_annotations} annotations added, {summary.n_already} were there before"
    )
    if summary.problems:
        return SOME_FAILED if summary.n_images else NOTHING_DONE
    return DONE


def _report_run(summary: PrelabelSummary) -> int:
    """Say what was done; the exit code."""
    for text, sentence in summary.understood.items():
        _say(f"'{text}': {sentence}")
    for path, reason in summary.failures.items():
        _say(f"skipped {path}: {reason}")
    for text, n in summary.n_suggestions.items():
        print(f"{text}: {n} new")
    print(
        f"{summary.n_images} images: {summary.n_done} done, {summary.n_already} done before, "
        f"{summary.n_reviewed} reviewed and left alone, {len(summary.failures)} skipped"
    )
    if summary.failures and not summary.n_done + summary.n_already + summary.n_reviewed:
        return NOTHING_DONE
    return SOME_FAILED if summary.failures else DONE


def _print_export(
    store: ProjectStore, out: Path, decision: str, format_name: str, options: ExportOptions, min_score: float = 0.0
) -> int:
    """Write the dataset and say what was written; the exit code."""
    report = export_project(store, out, format_name, DECISIONS[decision], options, min_score)
    for sentence in (*report.problems, *report.notes):
        _say(sentence)
    for file in report.files:
        print(file)
    print(report.summary)
    _say(exporters()[format_name].how_to_load)
    return SOME_FAILED if report.problems else DONE


def _ratio(text: str) -> tuple[int, int, int]:
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or not any(map(int, parts)):
        raise CommandError(f"--ratio takes the shares of train, valid and test, such as 80/10/10; got '{text}'")
    train, valid, test = map(int, parts)
    return train, valid, test


def _one_of(value: str, choices: Collection[str], option: str) -> str:
    if value not in choices:
        raise CommandError(f"{option} takes one of: {', '.join(choices)}; got '{value}'")
    return value


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _speak_utf8() -> None:
    """File names of any language can be printed, whatever the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
