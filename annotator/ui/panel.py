"""How a panel of the page is made: a static HTML file, a JavaScript file, and Python functions the script can call."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from annotator.errors import RevisionConflictError
from engines.errors import PhrasemaskError
from engines.types import BoxPrompt

if TYPE_CHECKING:
    import gradio

Request = dict[str, Any]
Reply = dict[str, Any]
ServerFunction = Callable[[Request], Reply]

_log = logging.getLogger(__name__)


def build_panel(name: str, server_functions: list[ServerFunction]) -> gradio.HTML:
    """The panel of `panels/<name>.html` and `panels/<name>.js`; its element id is the name."""
    import gradio

    return gradio.HTML(
        html_template=_asset(f"panels/{name}.html"),
        js_on_load=_asset(f"panels/{name}.js"),
        server_functions=[_answering(function) for function in server_functions],
        apply_default_css=False,
        elem_id=name,
        elem_classes="panel",
    )


def text_in(request: Request, name: str) -> str:
    """A field that must be text."""
    value = request[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is not text")
    return value


def boxes_in(request: Request) -> list[BoxPrompt]:
    """The exemplar boxes of a request; none where there is no such field."""
    return [_box(entry) for entry in request.get("boxes", ())]


def _box(entry: Mapping[str, Any]) -> BoxPrompt:
    x1, y1, x2, y2 = (float(value) for value in entry["xyxy"])
    return BoxPrompt((x1, y1, x2, y2), bool(entry["positive"]))


def page_asset(name: str) -> str:
    """The text of a file beside this module."""
    return _asset(name)


def _asset(name: str) -> str:
    return (files("annotator.ui") / name).read_text(encoding="utf-8")


def _answering(function: ServerFunction) -> ServerFunction:
    """Turn what goes wrong into a sentence for the page: the script shows it where it happened."""

    @functools.wraps(function)
    def answer(request: Request) -> Reply:
        try:
            return function(request if isinstance(request, dict) else {})
        except RevisionConflictError as error:
            return {"error": str(error), "conflict": True}
        except PhrasemaskError as error:
            return {"error": str(error)}
        except OSError as error:
            return {"error": f"{error.strerror or error}: {error.filename or 'a file'}; nothing of this step was saved"}
        except (KeyError, TypeError, ValueError, OverflowError):
            _log.exception("the page asked %s for something that cannot be", function.__name__)
            return {"error": "the page and the program do not agree; reload the page"}
        except Exception as error:  # noqa: BLE001 - an answer of any kind, so that the page can say what happened
            _log.exception("%s failed", function.__name__)
            return {"error": f"the program met a fault ({type(error).__name__}: {error}); this step was not saved"}

    return answer
