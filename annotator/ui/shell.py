"""The page: puts the panels together and serves them on this machine alone, unless told otherwise."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from annotator.ahead import RunAhead
from annotator.errors import CommandError, PortInUseError
from annotator.exporting import EXPORTS_FOLDER
from annotator.prelabel_job import PrelabelJob
from annotator.ui.canvas import canvas_css, canvas_scripts
from annotator.ui.origin_check import OriginCheck
from annotator.ui.panel import page_asset
from annotator.ui.panels.export import build_export
from annotator.ui.panels.instances import build_instances
from annotator.ui.panels.keys import build_keys
from annotator.ui.panels.models import build_models
from annotator.ui.panels.phrases import build_phrases
from annotator.ui.panels.prelabel import build_prelabel
from annotator.ui.panels.queue import build_queue
from annotator.ui.panels.speed import build_speed
from annotator.ui.panels.stage import build_stage
from annotator.ui.panels.status import build_status
from annotator.workspace import Workspace

if TYPE_CHECKING:
    import gradio
    from starlette.middleware import Middleware

TITLE = "Phrasemask"
_A_DAY_S = (86_400, 86_400)
"""How often Gradio's temporary files are looked through, and the age at which they go."""


def build_page(workspace: Workspace, ahead: RunAhead, job: PrelabelJob, *, local: bool) -> gradio.Blocks:
    """The page over an open workspace. It holds ids only: a reload shows what is on disk.

    With `local`, only people at this machine see it, who may name any folder of theirs.
    """
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    import gradio

    with gradio.Blocks(title=TITLE, analytics_enabled=False, fill_width=True, delete_cache=_A_DAY_S) as page:
        build_status(workspace)
        with gradio.Row(elem_id="workbench"):
            build_queue(workspace)
            build_stage(workspace, ahead)
            with gradio.Column(elem_id="side"):
                build_phrases(workspace)
                build_instances(workspace)
        build_prelabel(workspace, job)
        build_export(workspace)
        build_models(workspace, any_folder=local)
        build_speed(workspace)
        build_keys()
    return page


@contextmanager
def open_page(
    workspace: Workspace, host: str, port: int, auth: tuple[str, str] | None = None, *, open_browser: bool = False
) -> Iterator[gradio.Blocks]:
    """Serve the page while the block runs; the model is loaded meanwhile, so that the page is there at once.

    Raises `PortInUseError` when the address is taken.
    """
    _check_port(host, port)
    ahead = RunAhead()
    ahead.ask(workspace.predictor.load)
    job = PrelabelJob(workspace)
    page = build_page(workspace, ahead, job, local=is_loopback(host))
    try:
        page.launch(
            server_name=host,
            server_port=port,
            auth=auth,
            inbrowser=open_browser,
            prevent_thread_lock=True,
            quiet=True,
            share=False,
            ssr_mode=False,
            pwa=False,
            enable_monitoring=False,
            run_history=False,
            footer_links=[],
            show_error=True,
            css=canvas_css() + page_asset("page.css"),
            head=_head(),
            app_kwargs={"middleware": _guards(host)},
            allowed_paths=_allowed_paths(workspace),
        )
        yield page
    finally:
        page.close(verbose=False)
        job.close()
        ahead.stop()


def _guards(host: str) -> list[Middleware]:
    """No other web page may change anything; on this machine alone, we answer to its own names only."""
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    guards = [Middleware(OriginCheck)]
    if is_loopback(host):
        guards.append(Middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "[::1]", host]))
    return guards


def _head() -> str:
    scripts = [canvas_scripts(), *map(page_asset, ("page.js", "review.js", "keys.js"))]
    return "".join(f"<script>{script}</script>" for script in scripts)


def _allowed_paths(workspace: Workspace) -> list[str]:
    """Only the copies made for the page and the exported files; never the folder of pictures itself."""
    folders: list[Path] = [workspace.previews.root, workspace.project / EXPORTS_FOLDER]
    return [str(folder.resolve()) for folder in folders]


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except socket.gaierror:
            raise CommandError(f"--host {host} is no address; use 127.0.0.1, or 0.0.0.0 for all") from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUseError(host, port) from None
            raise CommandError(f"port {port} on {host} cannot be opened: {error.strerror}; choose another") from None
