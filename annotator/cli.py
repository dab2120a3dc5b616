"""The commands. Messages go to standard error, results to standard output.

Exit codes: 0 done; 1 done, but some images failed; 2 wrong usage or nothing done; 130 stopped with Ctrl+C.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout, suppress
from pathlib import Path
from threading import Event
from typing import Annotated, NoReturn

import typer

from annotator.dataset_commands import app as datasets_app
from annotator.dataset_commands import print_export
from annotator.errors import CommandError
from annotator.exporters.protocol import ExportOptions
from annotator.feature_files import DEFAULT_LIMIT_BYTES, FeatureFiles
from annotator.model_choice import use_remembered_model
from annotator.model_commands import app as models_app
from annotator.models import DEFAULT_MODEL, model_loader
from annotator.phrase_list import parse_phrases
from annotator.predictor import Predictor
from annotator.prelabel import Prelabeller
from annotator.prelabel_command import Elsewhere, run_prelabelling
from annotator.prelabelling.options import PrelabelOptions
from annotator.repeats import DEFAULT_SUPPRESS_CONTAINMENT, DEFAULT_SUPPRESS_IOU, ChoiceRules
from annotator.terminal import DONE, NOTHING_DONE, SOME_FAILED, ProjectOption, say
from annotator.ui.shell import is_loopback, open_page
from annotator.workspace import Workspace
from engines.errors import PhrasemaskError
from engines.loader import AUTO, runtimes
from engines.protocols import Segmenter
from engines.suppression import SuppressionLimits

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

app.add_typer(datasets_app)
app.add_typer(models_app, name="models")

ModelOption = Annotated[
    str, typer.Option("--model", metavar="NAME|DIR", help="An installed model by name, or a model folder.")
]
ChosenModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME|DIR", help="A model; else the one chosen last on the page.")
]
RuntimeOption = Annotated[str, typer.Option("--runtime", metavar="|".join([AUTO, *runtimes()]), help="What runs it.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Use a model although it has failed its check.")]
DeviceOption = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda:N", help="Where it runs.")]
SuppressIouOption = Annotated[
    float,
    typer.Option("--suppress-iou", min=0, max=1, help="Of masks with a larger IoU the best stays; 1 keeps duplicates."),
]
SuppressContainmentOption = Annotated[
    float,
    typer.Option(
        "--suppress-containment", min=0, max=1, help="A mask with more of it inside a better one goes; 1 keeps it."
    ),
]
CacheDirOption = Annotated[
    Path | None,
    typer.Option("--cache-dir", metavar="DIR", help="Keep encoded pictures here, for models that take long."),
]
CacheLimitOption = Annotated[
    float, typer.Option("--cache-limit", metavar="GB", min=0, help="The most that --cache-dir may hold.")
]
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
    suppress_iou: SuppressIouOption = DEFAULT_SUPPRESS_IOU,
    suppress_containment: SuppressContainmentOption = DEFAULT_SUPPRESS_CONTAINMENT,
    cache_dir: CacheDirOption = None,
    cache_limit: CacheLimitOption = DEFAULT_LIMIT_BYTES / 1e9,
    model: ChosenModelOption = None,
    runtime: RuntimeOption = AUTO,
    device: DeviceOption = AUTO,
    force: ForceOption = False,
) -> None:
    """Open the page over a folder of images."""
    credentials = _credentials(auth, host)
    folder = folder if folder is not None or project is not None else DEFAULT_FOLDER
    load = model_loader(model or DEFAULT_MODEL, runtime, device, force=force)
    files = _feature_files(cache_dir, cache_limit)
    with _workspace(folder, project or _default_project(folder), load, files) as workspace:
        problem = use_remembered_model(workspace) if (model, runtime, device) == (None, AUTO, AUTO) else ""
        if problem:
            say(problem)
        workspace.suppression = SuppressionLimits(suppress_iou, suppress_containment)
        page = open_page(workspace, host, port, credentials, open_browser=browser and _has_screen())
        with page, suppress(KeyboardInterrupt):
            say(f"Phrasemask over {workspace.folder.root}: http://{_shown_host(host)}:{port} (stop with Ctrl+C)")
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
    suppress_iou: SuppressIouOption = DEFAULT_SUPPRESS_IOU,
    suppress_containment: SuppressContainmentOption = DEFAULT_SUPPRESS_CONTAINMENT,
    suppress_across_categories: Annotated[
        bool, typer.Option("--suppress-across-categories", help="Also of masks of different categories the best stays.")
    ] = False,
    min_area: Annotated[int, typer.Option(min=1, help="Masks with fewer pixels are left out.")] = 1,
    max_equal_errors: Annotated[
        int, typer.Option(min=0, help="Stop when so many images in a row fail in the same way; 0 never stops.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Write the summary for programs.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, help="Ask in so many processes of this machine.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option("--ray", metavar="ADDRESS|local", help="Ask on a Ray cluster, or on one started here.")
    ] = None,
    images_url: Annotated[
        str | None, typer.Option("--images-url", metavar="URL", help="With --ray: where the cluster reads the images.")
    ] = None,
    cache_dir: CacheDirOption = None,
    cache_limit: CacheLimitOption = DEFAULT_LIMIT_BYTES / 1e9,
    model: ModelOption = DEFAULT_MODEL,
    runtime: RuntimeOption = AUTO,
    device: DeviceOption = AUTO,
    force: ForceOption = False,
) -> None:
    """Suggest instances for phrases on every image of a folder; run it again to go on where it stopped."""
    elsewhere = Elsewhere(workers, ray_address, images_url, cache_dir)
    wanted = parse_phrases(phrase or [], phrases)
    # What a cluster's machines can run, only they know
    here = (runtime, device) if ray_address is None else (AUTO, AUTO)
    load, files = model_loader(model, *here, force=force), _feature_files(cache_dir, cache_limit)
    with _workspace(folder, project, load, files) as workspace:
        kept = [workspace.keep_phrase(text, category) for text, category in wanted]
        limits = SuppressionLimits(suppress_iou, suppress_containment)
        rules = ChoiceRules(limits, suppress_across_categories, min_area)
        options = PrelabelOptions(score_threshold, accept_above, redo, rules, max_equal_errors)
        answering = elsewhere.answering(workspace.folder.root, model, runtime, device, force=force)
        code = run_prelabelling(Prelabeller(workspace, kept, options, answering), as_json=as_json)
        if export_dir is not None and code in (DONE, SOME_FAILED):
            with redirect_stdout(sys.stderr if as_json else sys.stdout):
                code = max(code, print_export(workspace.store, export_dir, "all", "coco", ExportOptions()))
    raise typer.Exit(code)


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
        say(f"error: {error}")
    except BrokenPipeError:
        os._exit(DONE)
    except OSError as error:
        say(f"error: {error.strerror or error}: {error.filename or 'a file'}; what was saved before is safe")
    sys.exit(NOTHING_DONE)


@contextmanager
def _workspace(
    folder: Path | None, project: Path, load: Callable[[], Segmenter], files: FeatureFiles | None
) -> Iterator[Workspace]:
    predictor = Predictor(load, files)
    with closing(predictor), closing(Workspace.open(project, predictor, folder)) as workspace:
        yield workspace


def _feature_files(folder: Path | None, limit_gb: float) -> FeatureFiles | None:
    return None if folder is None else FeatureFiles(folder, round(limit_gb * 1e9))


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


def _speak_utf8() -> None:
    """File names of any language can be printed, whatever the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
