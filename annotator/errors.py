"""The error family of projects and commands. Every message is one sentence: what is wrong, with which file, what to do.

    PhrasemaskError (engines.errors)
    ├── ProjectError
    │   ├── ProjectNotFoundError(FileNotFoundError)   no project in that folder
    │   ├── ProjectTooNewError(ValueError)            written by a later version
    │   ├── ProjectDamagedError(ValueError)           not a project file, or a broken one
    │   ├── ProjectReadOnlyError(PermissionError)     nothing can be written there
    │   ├── ProjectBusyError(TimeoutError)            another process holds it for too long
    │   ├── DiskFullError(OSError)                    no space left to save
    │   └── RevisionConflictError(RuntimeError)       the image changed since it was shown
    ├── FolderNotFoundError(FileNotFoundError)        no such folder of images
    ├── FolderMismatchError(ValueError)               a folder with none of the project's labelled images
    ├── UnknownImageError(LookupError)                an image that the project does not hold
    ├── UnknownAnnotationError(LookupError)           an annotation that the image does not hold
    ├── AnnotationError(ValueError)                   an annotation that cannot be stored as given
    ├── UnknownCategoryError(LookupError)             a category that the project does not hold
    ├── CategoryNameError(ValueError)                 an empty or taken category name
    ├── PortInUseError(OSError)                       the page's address is taken
    ├── ModelFailingError(RuntimeError)               a model that fails on image after image
    ├── FailedCheckError(ValueError)                  a model that answers otherwise than its original
    ├── ModelReplacedError(RuntimeError)              another model was chosen while a run used this one
    ├── AnswerReplacedError(RuntimeError)             another model was chosen while a person looked at an answer
    ├── PrelabelRunningError(RuntimeError)          a pre-labelling was asked for while one is under way
    ├── ModelLoadingError(RuntimeError)               a model is chosen while another one is being loaded
    └── CommandError(ValueError)                      a command that is used wrongly

Each leaf is also the built-in class that a stranger to this project would catch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engines.errors import PhrasemaskError


class ProjectError(PhrasemaskError):
    """A project that cannot be opened, read or written as asked."""


class ProjectNotFoundError(ProjectError, FileNotFoundError):
    """No project stands in that folder and none was to be made."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"there is no project in {folder}; give the folder that holds its project.sqlite")


class ProjectTooNewError(ProjectError, ValueError):
    """The project was written by a later version; nothing of it was changed."""

    def __init__(self, path: Path, version: int, known: int) -> None:
        super().__init__(
            f"{path} has project version {version} and this Phrasemask reads up to {known}; update Phrasemask"
        )


class ProjectDamagedError(ProjectError, ValueError):
    """The file is not a project, or its content is broken."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is not a usable project ({reason}); restore it from a copy or open another folder")


class ProjectReadOnlyError(ProjectError, PermissionError):
    """The project's folder or file takes no writing; `reason` is the system's, such as: Read-only file system."""

    def __init__(self, path: Path, reason: str = "no permission") -> None:
        super().__init__(
            f"{path} cannot be written ({reason}); change its permissions or choose another folder with --project"
        )


class ProjectBusyError(ProjectError, TimeoutError):
    """Another process holds the project for longer than the waiting time."""

    def __init__(self, path: Path, waited_s: float) -> None:
        super().__init__(
            f"{path} has been held by another program for more than {waited_s:g} s; nothing was saved, try again or "
            "close that program"
        )


class DiskFullError(ProjectError, OSError):
    """There is no space to save; nothing of the action was kept and all earlier work is safe."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"no space is left to write {path}; free some and try again, what was saved before is safe")


class RevisionConflictError(ProjectError, RuntimeError):
    """The image was changed elsewhere after it was shown; `expected` and `found` are its revisions."""

    def __init__(self, path: str, expected: int, found: int) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"{path} was changed meanwhile in another tab or by a run; look at it again and repeat the step"
        )


class FolderNotFoundError(PhrasemaskError, FileNotFoundError):
    """The folder of images is not there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"there is no folder {folder}; check its name, or give the folder the images were moved to")


class FolderMismatchError(PhrasemaskError, ValueError):
    """A project was opened with a folder that holds none of its labelled images."""

    def __init__(self, folder: Path, project: Path) -> None:
        super().__init__(
            f"{folder} holds none of the images labelled in the project {project}; give the folder they are in now, "
            "or another project with --project"
        )


class UnknownImageError(PhrasemaskError, LookupError):
    """The project holds no image of that id or path."""

    def __init__(self, image: int | str) -> None:
        super().__init__(f"the project holds no image {image}; open its folder again to refresh the list")


class UnknownAnnotationError(PhrasemaskError, LookupError):
    """The image holds no annotation of that id; it may have been replaced by a newer run."""

    def __init__(self, annotation_id: int) -> None:
        super().__init__(f"there is no annotation {annotation_id} on this image any more; look at the image again")


class AnnotationError(PhrasemaskError, ValueError):
    """The annotation breaks a rule of the project; the message says which."""


class UnknownCategoryError(PhrasemaskError, LookupError):
    """The project holds no category of that id."""

    def __init__(self, category_id: int) -> None:
        super().__init__(f"the project holds no category {category_id}; choose one from the list")


class CategoryNameError(PhrasemaskError, ValueError):
    """The name cannot be given to a category; `reason` says why, with what to do."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the category name '{name}' cannot be used: {reason}")


class PortInUseError(PhrasemaskError, OSError):
    """Another program listens at the page's address."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host} is in use by another program; close it or choose another port with --port"
        )


class ModelFailingError(PhrasemaskError, RuntimeError):
    """Image after image fails in the same way; what was done before is stored."""

    def __init__(self, n_images: int, reason: str) -> None:
        super().__init__(
            f"stopped: on {n_images} images in a row, {reason}; what was done before is stored, and if the files are "
            "to blame, --max-equal-errors 0 goes past them"
        )


class FailedCheckError(PhrasemaskError, ValueError):
    """A model whose answers were found to differ from its original's."""

    def __init__(self, folder: Path, failures: Sequence[str]) -> None:
        more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
        super().__init__(
            f"the model in {folder} has failed its check ({failures[0]}{more}); export it again, or use it with --force"
        )


class ModelReplacedError(PhrasemaskError, RuntimeError):
    """Another model was chosen while a run was using this one."""

    def __init__(self) -> None:
        super().__init__("another model was chosen meanwhile; what was done before is stored, start the run again")


class AnswerReplacedError(PhrasemaskError, RuntimeError):
    """What a person decides on is the answer of a model that has been replaced since."""

    def __init__(self) -> None:
        super().__init__("another model was chosen meanwhile and answers now; look at its answer and decide again")


class ModelLoadingError(PhrasemaskError, RuntimeError):
    """A model was chosen while another one is being loaded."""

    def __init__(self, words: str) -> None:
        super().__init__(f"one model after the other: {words}; choose again when it is in use")


class PrelabelRunningError(PhrasemaskError, RuntimeError):
    """A pre-labelling was asked for while one is under way."""

    def __init__(self) -> None:
        super().__init__("a pre-labelling is running already; wait for its end or stop it, then start this one")


class WorkerError(PhrasemaskError, RuntimeError):
    """What a worker of a run cannot do, in its own words."""


class MissingRayError(PhrasemaskError, ImportError):
    """Ray was asked for and is not installed."""

    def __init__(self) -> None:
        super().__init__('--ray needs the package ray; install it with pip install "phrasemask[ray]"')


class CommandError(PhrasemaskError, ValueError):
    """A command used wrongly; the message says what to write instead."""
