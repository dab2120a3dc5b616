"""Compares two models for the command line: what they are asked, one model after the other, and the lines to print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from annotator.errors import CommandError, FolderNotFoundError
from annotator.models import model_folders, model_loader
from engines.bundle import locate_bundle
from engines.check_report import CaseComparison
from engines.images import find_images
from engines.loader import open_bundle
from engines.protocols import Segmenter, SegmenterInfo
from engines.side_by_side import Answer, Comparison, Question, answer_all, check_questions, compare_answers
from engines.types import Phrase

SAMPLES = Path(__file__).parents[1] / "samples"
SAMPLE_PHRASES = ("person", "cat", "dog", "bird", "car", "cup")


def compare_models(
    first: str, second: str, images: Path | None, phrases: Sequence[str], runtime: str, device: str
) -> Comparison:
    """Ask both models the same, one after the other, so that memory holds one of them; the first is the measure.

    A model that has failed its check is taken too. Raises a `BundleError`, `RuntimeUnavailableError`, `CommandError`,
    `FolderNotFoundError` or `PhraseError`.
    """
    questions = choose_questions(first, images, [Phrase(text).text for text in phrases])
    loaders = [model_loader(name, runtime, device, force=True) for name in (first, second)]
    (measure, expected), (other, found) = (_ask(load, questions) for load in loaders)
    return compare_answers(measure, other, zip(questions, expected, found, strict=True))


def choose_questions(model: str, images: Path | None, phrases: Sequence[str]) -> list[Question]:
    """The phrases about each picture in `images`; without a folder, about the pictures that the model was checked with
    when it was exported, else about the samples. Without phrases, what that check asked, else everyday things."""
    if images is None:
        asked = check_questions(open_bundle(locate_bundle(model, model_folders())))
        if asked and not phrases:
            return asked
        if asked:
            pictures = dict.fromkeys((question.picture, question.name) for question in asked)
            return [Question(picture, name, phrase) for picture, name in pictures for phrase in phrases]
    elif not phrases:
        raise CommandError("say what to look for in the pictures, such as: --phrase person")
    return _about_folder(images or SAMPLES, phrases or SAMPLE_PHRASES)


def _about_folder(folder: Path, phrases: Sequence[str]) -> list[Question]:
    if not folder.is_dir():
        raise FolderNotFoundError(folder)
    pictures = [(path, path.relative_to(folder).as_posix()) for path in find_images(folder)]
    found = [Question(path, name, phrase) for path, name in pictures for phrase in phrases]
    if not found:
        raise CommandError(f"there are no pictures in {folder}; give a folder with some")
    return found


def _ask(load: Callable[[], Segmenter], questions: Sequence[Question]) -> tuple[SegmenterInfo, list[Answer]]:
    from tqdm import tqdm

    segmenter = load()
    answers = answer_all(segmenter, questions)
    shown = tqdm(answers, segmenter.info.name, len(questions), unit="question", delay=1, disable=None, leave=False)
    return segmenter.info, list(shown)


def comparison_lines(comparison: Comparison) -> list[str]:
    """For a person: the two models, each question, and the sum of it."""
    lines = []
    for letter, info in zip("AB", (comparison.measure, comparison.other), strict=True):
        lines.append(f"{letter} is {info.name}: {info.precision}, run by {info.runtime} on {info.device}")
        lines += [f"    note: {note}" for note in info.notes]
    return [*lines, *map(_case_line, comparison.cases), _sum_line(comparison)]


def left_out_lines(comparison: Comparison) -> list[str]:
    """The questions without an answer, each with its reason."""
    return [f"left out: '{one.phrase}' on {one.picture}: {one.reason}" for one in comparison.left_out]


def _case_line(case: CaseComparison) -> str:
    boxes = f" with {case.n_boxes} box{'es' if case.n_boxes > 1 else ''}" if case.n_boxes else ""
    found = f"A finds {case.n_expected}, B {case.n_found} ({case.n_lost} lost, {case.n_gained} gained)"
    alike = f"; score drift {case.score_drift:.4f}, mask IoU {np.mean(case.ious):.4f}" if case.ious else ""
    return f"{case.picture}, '{case.phrase}'{boxes}: {found}{alike}"


def _sum_line(comparison: Comparison) -> str:
    n_both = comparison.n_expected - comparison.n_lost
    found = f"of {comparison.n_expected} instances of A, B finds {n_both}, and {comparison.n_gained} that A does not"
    if comparison.mean_iou is None:
        return f"together: {found}"
    return (
        f"together: {found}; mean mask IoU {comparison.mean_iou:.4f}, largest score drift {comparison.score_drift:.4f}"
    )
