"""What the commands share: exit codes, choices, progress, and where sentences go."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

import typer

from annotator.errors import CommandError

DONE, SOME_FAILED, NOTHING_DONE, STOPPED = 0, 1, 2, 130

ProjectOption = Annotated[Path, typer.Option("--project", metavar="DIR", help="The project folder.")]


def walk_with_progress(steps: Iterator[object], n_images: int) -> None:
    """Take each step, one an image, showing how far it is where that takes longer; Ctrl+C ends it."""
    from tqdm import tqdm

    n_done = 0
    with tqdm(total=n_images, unit="image", delay=1, disable=None) as bar:
        try:
            for _ in steps:
                bar.update()
                n_done += 1
        except KeyboardInterrupt:
            bar.close()
            say(f"stopped after {n_done} of {n_images} images; run it again to go on")
            raise typer.Exit(STOPPED) from None


def one_of(value: str, choices: Collection[str], option: str) -> str:
    """The value, or `CommandError` naming the choices."""
    if value not in choices:
        raise CommandError(f"{option} takes one of: {', '.join(choices)}; got '{value}'")
    return value


def say(sentence: str) -> None:
    """A message for the person: on standard error, since results go to standard output."""
    print(sentence, file=sys.stderr, flush=True)
