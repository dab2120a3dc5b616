"""Measures ONNX Runtime's settings for memory on the CPU: time, peak, and growth over repeated runs, each in a process.

python benchmarks/onnxruntime_settings.py BUNDLE [--role decoder] [--runs 20]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

SETTINGS: dict[str, dict[str, bool]] = {
    "arena and memory pattern (default)": {"arena": True, "pattern": True},
    "arena, no memory pattern": {"arena": True, "pattern": False},
    "no arena, memory pattern": {"arena": False, "pattern": True},
    "neither": {"arena": False, "pattern": False},
    "arena, shrunk after each run": {"arena": True, "pattern": True, "shrink": True},
}


def measure(folder: Path, role: str, n_runs: int, setting: dict[str, bool]) -> dict[str, float]:
    """In this process: median seconds, peak and growth of the resident memory in GiB."""
    import onnxruntime
    from sam3_precision import feeds_of

    from engines.bundle import read_bundle

    bundle = read_bundle(folder)
    options, run_options = onnxruntime.SessionOptions(), onnxruntime.RunOptions()
    options.log_severity_level = 3
    options.enable_cpu_mem_arena, options.enable_mem_pattern = setting["arena"], setting["pattern"]
    if setting.get("shrink"):
        run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    path = bundle.file(bundle.graphs[role].file)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds, times, resident = feeds_of(bundle, role), [], []
    for _ in range(n_runs):
        started = time.perf_counter()
        session.run(None, feeds, run_options)
        times.append(time.perf_counter() - started)
        resident.append(resident_gib("VmRSS"))
    warm = min(2, n_runs - 1)
    growth = resident[-1] - resident[warm]
    return {
        "seconds": statistics.median(times[1:]),
        "peak": resident_gib("VmHWM"),
        "after": resident[-1],
        "growth": growth,
    }


def resident_gib(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--role", default="decoder")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.setting:
        print(json.dumps(measure(arguments.bundle, arguments.role, arguments.runs, SETTINGS[arguments.setting])))
        return
    for name in SETTINGS:
        command = [sys.executable, __file__, str(arguments.bundle), "--role", arguments.role]
        command += ["--runs", str(arguments.runs), "--setting", name]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(
            f"{name:36} {found['seconds']:7.2f} s, {found['peak']:5.2f} GiB at most, {found['after']:5.2f} GiB after "
            f"{arguments.runs} runs, {found['growth']:+.2f} GiB since the third",
            flush=True,
        )


if __name__ == "__main__":
    main()
