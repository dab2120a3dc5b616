"""The error family of the engines. Every message is one sentence that says what is wrong, with what, and what to do.

    PhrasemaskError
    ├── ImageError(ValueError)
    │   ├── UnreadableImageError           not a picture, empty, cut off, or damaged
    │   ├── ImageTooLargeError             more pixels than the stated limit
    │   └── MissingImageLibraryError(ImportError)   readable with an optional package
    ├── PhraseError(ValueError)            a phrase without a word
    ├── BoxError(ValueError)               a box without area, or outside the image
    ├── BoxesNotTakenError(ValueError)     more boxes, or other ones, than the model takes
    ├── NothingFoundError(LookupError)     nothing stands in a drawn box
    ├── MaskError(ValueError)              a mask of the wrong size, type or run lengths
    ├── TensorMismatchError(ValueError)    a tensor that is not what the graph declares
    ├── BundleError
    │   ├── BundleNotFoundError(FileNotFoundError)      no such model
    │   ├── BundleFileMissingError(FileNotFoundError)   a file that the manifest names is not there
    │   ├── BundleManifestError(ValueError)             the manifest cannot be read or is incomplete
    │   ├── BundleDamagedError(ValueError)              a file differs from its sha256
    │   ├── BundleTooNewError(ValueError)               written for a later version
    │   ├── OnnxFileError(ValueError)                   no ONNX file, or one that is cut off
    │   ├── SeveralFilesError(ValueError)               several files for one graph, and no manifest to choose
    │   ├── UnknownGraphsError(ValueError)              ONNX files without a manifest that no family knows
    │   └── NoReferenceAnswersError(LookupError)        a model that holds no answers of its original
    ├── UnknownKindError(LookupError)      a family, runtime or format that is not installed
    ├── RuntimeUnavailableError(RuntimeError)   a runtime or device that cannot be used here
    ├── DeviceMemoryError(MemoryError)     a GPU without room for what is run
    ├── CudaCallError(RuntimeError)        a GPU whose driver refuses
    ├── GraphLoadError(RuntimeError)       a graph that the runtime refuses
    │   ├── EngineBuildError               no engine can be built of it
    │   ├── EngineUncheckedError           nobody knows whether its engine answers rightly
    │   └── EngineFailedCheckError         its engine answers wrongly
    ├── EngineCancelledError(RuntimeError) building an engine was stopped
    ├── EngineFolderError(OSError)         built engines cannot be kept
    ├── ServerError(ConnectionError)       a server that runs graphs for us, and does not
    └── TritonRepositoryError(OSError)     a model repository that cannot be written

Each leaf is also the built-in class that a stranger to this project would catch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path


class PhrasemaskError(Exception):
    """Anything this project refuses with a sentence meant for a person."""


class ImageError(PhrasemaskError, ValueError):
    """A picture that cannot be used; `path` names it and `reason` says why, without the path."""

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class UnreadableImageError(ImageError):
    """The bytes are not a whole picture."""


class ImageTooLargeError(ImageError):
    """The picture has more pixels than the limit; nothing was decoded."""

    def __init__(self, path: str | Path, height: int, width: int, limit_pixels: int) -> None:
        super().__init__(
            path,
            f"the picture claims {width}×{height} pixels ({width * height / 1e6:.0f} MP), more than the limit of "
            f"{limit_pixels / 1e6:.0f} MP; scale it down or cut it into tiles",
        )


class MissingImageLibraryError(ImageError, ImportError):  # type: ignore[misc]  # its own path is a str
    """The format needs an optional package."""

    def __init__(self, path: str | Path, format_name: str, package: str, extra: str) -> None:
        super().__init__(
            path, f'{format_name} files need the package {package}; install it with pip install "phrasemask[{extra}]"'
        )


class PhraseError(PhrasemaskError, ValueError):
    """The phrase has nothing to look for."""

    def __init__(self, text: str = "") -> None:
        reason = f"the phrase '{text:.60}' holds no word" if text else "the phrase is empty"
        super().__init__(f"{reason}; type a noun phrase such as: striped cat")


class BoxError(PhrasemaskError, ValueError):
    """The box has no area inside the image."""

    def __init__(self, xyxy: Iterable[float], height: int, width: int) -> None:
        corners = ", ".join(f"{value:g}" for value in xyxy)
        super().__init__(f"the box ({corners}) covers nothing of the {width}×{height} image; draw it over the object")


class BoxesNotTakenError(PhrasemaskError, ValueError):
    """Boxes that the graphs of this model have no place for; `takes` says what they have one for."""

    def __init__(self, model: str, takes: str) -> None:
        super().__init__(f"the model {model} takes {takes}; take the other boxes away, or choose another model")


class NothingFoundError(PhrasemaskError, LookupError):
    """The model finds nothing in a drawn box."""

    def __init__(self, xyxy: Iterable[float]) -> None:
        corners = ", ".join(f"{value:g}" for value in xyxy)
        super().__init__(f"the model finds nothing in the box ({corners}); draw it closely around one object")


class MaskError(PhrasemaskError, ValueError):
    """A mask that breaks COCO's rules for run-length encoding."""


class TensorMismatchError(PhrasemaskError, ValueError):
    """A tensor whose name, dtype or shape is not what the graph declares."""

    def __init__(self, graph: str, tensor: str, got: str, wanted: str) -> None:
        super().__init__(f"{graph}: tensor '{tensor}' is {got}, wanted {wanted}")


class BundleError(PhrasemaskError):
    """A model folder that cannot be used."""


class BundleNotFoundError(BundleError, FileNotFoundError):
    """No installed model has that name and no folder stands at that path."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"there is no model '{name}': give a folder that holds a manifest.json, or one of: {', '.join(known)}"
        )

    def __str__(self) -> str:
        return str(self.args[0])


class BundleFileMissingError(BundleError, FileNotFoundError):
    """The manifest names a file that is not in the folder."""

    def __init__(self, folder: Path, file: str) -> None:
        super().__init__(f"the model in {folder} lacks its file {file}; copy the folder again, with all its files")

    def __str__(self) -> str:
        return str(self.args[0])


class BundleManifestError(BundleError, ValueError):
    """The manifest is not valid."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is not a usable model manifest: {reason}; copy or export the model again")


class BundleDamagedError(BundleError, ValueError):
    """A file's content is not the content the manifest was written for."""

    def __init__(self, path: Path, got_sha256: str, wanted_sha256: str) -> None:
        super().__init__(
            f"{path} is damaged: its sha256 is {got_sha256[:12]}…, the manifest says {wanted_sha256[:12]}…; "
            "copy the model again"
        )


class BundleTooNewError(BundleError, ValueError):
    """The manifest was written for a later version of this project."""

    def __init__(self, path: Path, version: int, known: int) -> None:
        super().__init__(
            f"{path} has manifest version {version} and this Phrasemask reads up to {known}; update Phrasemask"
        )


class OnnxFileError(BundleError, ValueError):
    """A file that should hold a graph and does not."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is no ONNX file or is cut off; copy it again")


class UnknownGraphsError(BundleError, ValueError):
    """ONNX files without a manifest, with tensors that no family knows; `found` tells the tensors by file."""

    def __init__(self, folder: Path, found: Mapping[str, object]) -> None:
        listed = "; ".join(f"{name}: {tensors}" for name, tensors in found.items())
        super().__init__(
            f"{folder} has no manifest.json, and its ONNX files are not together a model that Phrasemask knows; "
            f"export the model with 'models export' instead (found {listed})"
        )


class SeveralFilesError(BundleError, ValueError):
    """Several files that could each be the same graph."""

    def __init__(self, folder: Path, role: str, files: Iterable[str]) -> None:
        super().__init__(
            f"{folder} holds several files for the {role} graph ({', '.join(files)}); leave one of them there"
        )


class NoReferenceAnswersError(BundleError, LookupError):
    """The model cannot be checked: only an exported one holds its original's answers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"the model in {folder} holds no answers of its original to check it by; compare it with another model "
            f"instead: models compare OTHER {folder}"
        )


class UnknownKindError(PhrasemaskError, LookupError):
    """A family, runtime or format that nothing here provides."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no {kind} '{name}'; choose one of: {', '.join(known)}")


class RuntimeUnavailableError(PhrasemaskError, RuntimeError):
    """A runtime or device that this machine does not have."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot be used here: {reason}")


class DeviceMemoryError(PhrasemaskError, MemoryError):
    """A device has no memory left for what is run on it; runtimes raise it, so that a smaller batch can be tried."""

    def __init__(self, device: str, graph: str) -> None:
        super().__init__(
            f"{device} has no memory left to run {graph}; close other programs that use it, or choose a smaller model"
        )


class CudaCallError(PhrasemaskError, RuntimeError):
    """The driver refuses something else than memory."""

    def __init__(self, device: str, graph: str, status: str) -> None:
        super().__init__(f"{device} fails while it runs {graph}: CUDA says {status}; start again, or use --device cpu")


class GraphLoadError(PhrasemaskError, RuntimeError):
    """The runtime refuses the graph."""

    def __init__(self, path: Path, runtime: str, reason: str) -> None:
        super().__init__(f"{runtime} cannot load {path}: {reason}")


class ServerError(PhrasemaskError, ConnectionError):
    """A server that runs graphs for us is not there, or refuses."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"the server at {address} does not run the model: {reason}; see that it is up, and try again")


class TritonRepositoryError(PhrasemaskError, OSError):
    """A model repository that cannot be written."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} cannot be made a Triton model repository: {reason}; choose another folder")

    def __str__(self) -> str:
        return str(self.args[0])


class EngineBuildError(GraphLoadError):
    """TensorRT builds no engine of the graph; `reason` holds its own words."""

    def __init__(self, path: Path, library: str, reason: str) -> None:
        self.reason = reason
        super().__init__(path, library, f"no engine can be built of it: {reason}; ONNX Runtime may run it instead")


class EngineUncheckedError(GraphLoadError):
    """The engine was not compared with ONNX Runtime on this kind of GPU yet."""

    def __init__(self, engine: Path, library: str) -> None:
        super().__init__(
            engine, library, f"this engine has not passed a check yet: models check MODEL --runtime {library}"
        )


class EngineFailedCheckError(GraphLoadError):
    """The engine has failed its check against ONNX Runtime; `report` says how."""

    def __init__(self, engine: Path, library: str, report: str) -> None:
        super().__init__(
            engine,
            library,
            f"this engine has failed its check, see {report}; use another runtime, or take it with --force",
        )


class EngineCancelledError(PhrasemaskError, RuntimeError):
    """Building an engine was stopped before it was done; nothing was kept."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"building the engine of {path} was stopped; start it again when there is time")


class EngineFolderError(PhrasemaskError, OSError):
    """Neither the bundle's own folder nor the user's cache takes engines."""

    def __init__(self, folders: Iterable[Path], reason: str) -> None:
        listed = " or ".join(map(str, folders))
        super().__init__(f"engines cannot be kept in {listed}: {reason}; make room or let one of them be written to")
