"""Measures an export part by part: seconds, and the most memory that was in use.

    python benchmarks/sam3_export.py CHECKPOINT OUT [--precision fp32|fp16|int8]

Linux only: the system is asked for the peak of each part. scripts/make_full_size_checkpoint.py makes a checkpoint.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from engines.export.bundle_export import export_bundle  # noqa: E402


class Stopwatch:
    """Prints what each step took when the next one begins."""

    def __init__(self) -> None:
        self._step, self._started = "start", time.perf_counter()

    def __call__(self, step: str) -> None:
        taken_s = time.perf_counter() - self._started
        print(f"{self._step:50} {taken_s:7.1f} s, {peak_gib():5.2f} GiB at most", flush=True)
        forget_peak()
        self._step, self._started = step, time.perf_counter()


def peak_gib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 2**20


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--precision", default="fp32")
    arguments = parser.parse_args()
    stopwatch = Stopwatch()
    export_bundle(arguments.checkpoint, arguments.out, arguments.precision, progress=stopwatch)
    stopwatch("end")
    for path in sorted(arguments.out.iterdir()):
        print(f"{path.name:50} {path.stat().st_size / 1e6:9.1f} MB")


if __name__ == "__main__":
    main()
