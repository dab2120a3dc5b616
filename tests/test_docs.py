"""The documents are true: every command and option is in them, and so is everything that is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from annotator.cli import app
from annotator.exporting import exporters
from annotator.models import list_models
from engines.loader import runtimes

ROOT = Path(__file__).parents[1]
MODEL_OPTIONS = {"--model", "--runtime", "--device", "--force"}


def commands() -> dict[str, Any]:
    """Every command by what is typed for it, also those of a group."""
    top = typer.main.get_command(app).commands
    found = dict(top)
    for name, command in top.items():
        found |= {f"{name} {inner}": one for inner, one in getattr(command, "commands", {}).items()}
    return found


COMMANDS = commands()


def section(command: str) -> str:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    return re.split(rf"^## {re.escape(command)}$", text, flags=re.M)[1].partition("\n## ")[0]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_and_option_is_documented(name):
    documented = set(re.findall(r"`(--[a-z-]+)", section(name))) | MODEL_OPTIONS
    options = {
        opt for param in COMMANDS[name].params for opt in (*param.opts, *param.secondary_opts) if opt[:2] == "--"
    }
    assert options - {"--help"} <= documented
    assert documented - MODEL_OPTIONS <= options


def test_the_readme_lists_what_is_installed():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| (?:model|runtime|format) \| `([a-z0-9-]+)` \|", readme, flags=re.M))
    assert listed == {row.name for row in list_models()} | set(runtimes()) | set(exporters())


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"], ids=lambda page: page.name
)
def test_links_between_documents_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
