"""Where TensorRT and TensorRT for RTX differ, and what must be so before one of them is imported.

Without an NVIDIA driver parts of TensorRT end the process when they load or unload. So whether a library can be used
is found out from its installed files and from the driver alone.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from engines.cuda_driver import gpu_architecture, n_cuda_devices
from engines.errors import RuntimeUnavailableError
from engines.protocols import Availability

PORTABLE = "sm80+"
"""The architecture of an engine that runs on every GPU from Ampere (sm80) on."""
_NO_DRIVER = Availability(False, "there is no NVIDIA driver or no GPU here")


@dataclass(frozen=True)
class Library:
    """One of the two libraries, by the names under which it is found."""

    runtime: str
    """Also the name of the extra that installs it."""
    title: str
    module: str
    distributions: tuple[str, ...]
    """Packages that may have brought the module; the first that is installed tells its version."""
    cross_compiles: bool
    """Builds for a GPU that is not there, also where there is none at all."""
    keeps_timings: bool
    """Measures kernels while building, and what it measured serves later builds."""

    def version(self) -> str:
        """Of the installed package; empty where there is none. Nothing is imported."""
        for distribution in self.distributions:
            try:
                return version(distribution)
            except PackageNotFoundError:
                continue
        return ""

    def can_build(self) -> Availability:
        """Whether engines can be built here."""
        if not self.version():
            reason = f'it is not installed: pip install "phrasemask[{self.runtime}]"'
            return Availability(False, reason, installed=False)
        return Availability(True) if self.cross_compiles or n_cuda_devices() else _NO_DRIVER

    def can_run(self) -> Availability:
        """Whether engines can be built and run here."""
        able = self.can_build()
        if not able.usable:
            return able
        if not n_cuda_devices():
            return _NO_DRIVER
        if not _is_importable("cuda.bindings"):
            return Availability(False, "the package cuda-python is not installed: pip install cuda-python")
        return self._serves_the_gpus()

    def load(self) -> Any:
        """The module, for building; raises `RuntimeUnavailableError`."""
        able = self.can_build()
        if not able.usable:
            raise RuntimeUnavailableError(self.title, able.reason)
        return self._import()

    def load_for_running(self) -> Any:
        """The module, where there is a GPU to run on; raises `RuntimeUnavailableError`."""
        able = self.can_run()
        if not able.usable:
            raise RuntimeUnavailableError(self.title, able.reason)
        return self._import()

    def architectures(self) -> tuple[str, ...]:
        """Those that can be named to build for, such as `sm89`; empty where only the GPU that is there can be.

        Imports the library.
        """
        if not self.cross_compiles:
            return ()
        return tuple(name.lower() for name in self.load().ComputeCapability.__members__ if name.startswith("SM"))

    def _serves_the_gpus(self) -> Availability:
        known = self.architectures()
        here = {gpu_architecture(index) for index in range(n_cuda_devices())}
        if known and not here & set(known):
            return Availability(False, f"it serves GPUs of {', '.join(known)}, not {', '.join(sorted(here))}")
        return Availability(True)

    def _import(self) -> Any:
        try:
            return importlib.import_module(self.module)
        except (ImportError, OSError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise RuntimeUnavailableError(self.title, f"its package does not load ({reason})") from None


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


TENSORRT = Library(
    runtime="tensorrt",
    title="TensorRT",
    module="tensorrt",
    distributions=("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
    cross_compiles=False,
    keeps_timings=True,
)
TENSORRT_RTX = Library(
    runtime="tensorrt-rtx",
    title="TensorRT for RTX",
    module="tensorrt_rtx",
    distributions=("tensorrt-rtx", "tensorrt-rtx-cu13", "tensorrt-rtx-cu12"),
    cross_compiles=True,
    keeps_timings=False,
)
LIBRARIES = {library.runtime: library for library in (TENSORRT, TENSORRT_RTX)}
