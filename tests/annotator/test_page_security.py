"""Who the page answers: this machine, by its own names, and elsewhere only those with the password."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from page_on_screen import free_port
from projects import open_workspace, write_pictures

from annotator.ui.shell import is_loopback, open_page


@pytest.fixture
def workspace(tmp_path):
    write_pictures(tmp_path / "images", "a.png")
    opened = open_workspace(tmp_path)
    opened.pictures.preview(opened.store.image_at("a.png"))
    yield opened
    opened.close()


def status_of(port, path, host="127.0.0.1", body=None, origin=None, content_type="application/json"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body)
    request.add_header("Host", f"{host}:{port}")
    if body:
        request.add_header("Content-Type", content_type)
    if origin:
        request.add_header("Origin", origin)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def call(workspace_page, name):
    component = next(
        block
        for block in workspace_page.blocks.values()
        if hasattr(block, "server_fns") and name in [function.__name__ for function in block.server_fns]
    )
    return json.dumps({"data": {}, "component_id": component._id, "fn_name": name, "session_hash": "x"}).encode()


def test_another_name_for_this_machine_is_refused(workspace):
    port = free_port()
    with open_page(workspace, "127.0.0.1", port):
        assert status_of(port, "/") == 200
        assert status_of(port, "/", host="localhost") == 200
        assert status_of(port, "/", host="evil.example") == 400


def test_another_web_page_can_change_nothing(workspace):
    port = free_port()
    with open_page(workspace, "127.0.0.1", port) as page:
        body = call(page, "undo")
        path = "/gradio_api/component_server"
        assert status_of(port, path, body=body, origin=f"http://127.0.0.1:{port}") == 200
        assert status_of(port, path, body=body, origin="http://evil.example") == 403
        assert status_of(port, path, body=body, origin="null") == 403
        assert status_of(port, path, body=body, content_type="text/plain", origin="http://evil.example") == 403


def test_without_the_password_neither_pictures_nor_functions_are_reached(workspace):
    port = free_port()
    preview = workspace.pictures.preview(workspace.store.image_at("a.png"))
    with open_page(workspace, "127.0.0.1", port, ("anna", "secret")) as page:
        assert status_of(port, f"/gradio_api/file={preview}") == 401
        assert status_of(port, "/gradio_api/component_server", body=call(page, "undo")) == 401
    port = free_port()
    with open_page(workspace, "127.0.0.1", port) as page:
        assert status_of(port, f"/gradio_api/file={preview}") == 200
        assert status_of(port, "/gradio_api/component_server", body=call(page, "undo")) == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_only_loopback_addresses_go_without_a_password(host, expected):
    assert is_loopback(host) is expected
