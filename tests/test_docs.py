"""The documents are true: every command and option is in them, and so is everything that is installed."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

from annotator.cli import DEFAULT_PORT, DONE, LOOPBACK, NOTHING_DONE, SOME_FAILED, app
from annotator.exporting import exporters
from annotator.models import MODELS_VARIABLE, list_models
from annotator.terminal import STOPPED
from engines.images import IMAGE_SUFFIXES
from engines.loader import families, runtimes

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md")), ROOT / "samples" / "README.md"]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
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


def words(page):
    return page.read_text(encoding="utf-8")


def prose(page):
    """Without blocks of code."""
    return re.sub(r"^```.*?^```", "", words(page), flags=re.M | re.S)


@every_page
def test_links_between_documents_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", prose(page)):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def anchors(page):
    """The headings of a page as GitHub links to them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def shown_commands(text):
    """Everything after `python app.py` that a text shows."""
    lines = re.findall(r"^ {4,}.*?\bpython app\.py\b(.*)$", text, flags=re.M) + re.findall(
        r"`python app\.py\b([^`]*)`", text
    )
    return [re.split(r" {2,}#", line.replace("\\|", "|"))[0].rstrip("\\") for line in lines]


def command_of(parts):
    """The command that is meant; without any, the page is opened."""
    for n_words in (2, 1):
        if " ".join(parts[:n_words]) in COMMANDS:
            return " ".join(parts[:n_words])
    return "serve"


def options_of(name):
    return {opt for param in COMMANDS[name].params for opt in (*param.opts, *param.secondary_opts)} | {"--help"}


@every_page
def test_commands_that_a_page_shows_have_the_options_they_use(page):
    for shown in shown_commands(words(page)):
        parts = shlex.split(shown)
        name = command_of(parts)
        assert {part for part in parts if part.startswith("--")} <= options_of(name), shown


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.epilog])
def test_the_example_of_a_command_is_one_of_it(name):
    [shown] = re.findall(r"^Example: python app\.py(.*)$", COMMANDS[name].epilog)
    parts = shlex.split(shown)
    assert command_of(parts) == name or (name, parts) == ("serve", [])
    assert {part for part in parts if part.startswith("--")} <= options_of(name)


def documented_defaults():
    """Command, option and its default on the page: one word in code, a number, or that there is none."""
    row = re.compile(r"^\| `(--[a-z-]+)[^|]*(?:\\\|[^|]*)*\| ([^|]+) \|", flags=re.M)
    for name in COMMANDS:
        for option, default in row.findall(section(name)):
            if default in ("required", "no", "none") or re.fullmatch(r"`\S+`|[\d.]+", default):
                yield name, option, default.strip("`")


@pytest.mark.parametrize(("name", "option", "told"), list(documented_defaults()))
def test_a_default_on_the_page_is_the_one_in_the_code(name, option, told):
    [param] = [param for param in COMMANDS[name].params if option in param.opts]
    if told == "required":
        assert param.required
    elif told in ("no", "none"):
        assert not param.required and param.default in (None, False, told, "", (), [])
    elif isinstance(param.default, int | float):
        assert float(told) == param.default
    else:
        assert told == param.default


def test_the_exit_codes_are_those_of_the_code():
    codes = re.findall(r"^\| (\d+) \| ", words(ROOT / "docs" / "commands.md"), flags=re.M)
    assert list(map(int, codes)) == [DONE, SOME_FAILED, NOTHING_DONE, STOPPED]


def test_what_the_readme_counts_and_names_is_so():
    readme, project = words(ROOT / "README.md"), tomllib.loads(words(ROOT / "pyproject.toml"))["project"]
    assert f"http://{LOOPBACK}:{DEFAULT_PORT}" in readme
    pictures = [path for path in (ROOT / "samples").iterdir() if path.suffix.lower() in IMAGE_SUFFIXES]
    assert len(pictures) == 10 and "ten photographs" in readme
    oldest, after = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    assert f"Python 3.{oldest} to 3.{int(after) - 1}" in readme
    assert MODELS_VARIABLE in words(ROOT / "docs" / "commands.md")


@every_page
def test_extras_that_a_page_names_can_be_installed(page):
    extras = tomllib.loads(words(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    named = re.findall(r"extras? `\[([a-z-]+)\]`|(?:phrasemask|\.)\[([a-z,-]+)\]", words(page))
    assert {name for one, some in named for name in (one or some).split(",")} <= set(extras)


@every_page
def test_files_that_a_page_names_are_there(page):
    """Paths in code that begin with a folder of the project."""
    path = r"`(?:python )?((?:annotator|benchmarks|engines|samples|scripts|tests)/[\w./-]+)`"
    for named in re.findall(path, words(page)):
        assert (ROOT / named).exists(), named


@pytest.mark.parametrize("package", ["annotator", "engines"])
def test_every_module_has_its_place_in_the_architecture(package):
    page = words(ROOT / "docs" / "architecture.md")
    shown = {path.name + "/" * path.is_dir() for path in (ROOT / package).iterdir() if not path.name.startswith("_")}
    assert {name for name in shown if f"`{name}" not in page} <= {"ui/"}


def test_decisions_are_numbered_in_their_names_and_headings():
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    for number, page in enumerate(pages, start=1):
        assert page.name.startswith(f"{number:04d}-")
        assert words(page).startswith(f"# {number}. ")


def test_the_kinds_of_files_of_others_are_those_that_are_recognised():
    rows = re.findall(r"^\| `(sam3_\w+)` \|", words(ROOT / "docs" / "sam3.md"), flags=re.M)
    assert sorted(rows) == sorted(name for name, family in families().items() if family.recognise)
