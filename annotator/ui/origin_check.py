"""Refuses requests that another web page makes a person's browser send: only our own page may change anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_READING = ("GET", "HEAD", "OPTIONS")


class OriginCheck:
    """ASGI middleware. A browser names the page that sends a request in `Origin`; it must be on our own host.

    A request without `Origin` does not come from another page in a browser, and passes.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI's own
        if scope["type"] == "http" and scope["method"] not in _READING and _is_foreign(dict(scope["headers"])):
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"refused: the request comes from another web page\n"})
            return
        await self._app(scope, receive, send)


def _is_foreign(headers: dict[bytes, bytes]) -> bool:
    origin = headers.get(b"origin")
    if origin is None:
        return headers.get(b"sec-fetch-site") == b"cross-site"
    return urlsplit(origin.decode("latin-1")).netloc != headers.get(b"host", b"").decode("latin-1")
