"""Measures ONNX Runtime's settings on the CPU: time, memory at most and afterwards, and its growth over repeated runs.

    python benchmarks/onnxruntime_settings.py BUNDLE [--role decoder] [--runs 6] [--only WORD ...]

Each setting runs in a process of its own. Processor time is given beside wall time, since others on the machine hardly
change it. "Growth" is from the third run to the last. Linux only: memory is what the system says of the process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]


@dataclass(frozen=True)
class Setting:
    """What differs from ONNX Runtime's own choice."""

    arena: bool = True
    pattern: bool = True
    level: str = "ORT_ENABLE_ALL"
    threads: int = 0
    shrinks: bool = False
    as_requested: bool = False
    entries: dict[str, str] = field(default_factory=dict)

    def session(self, path: Path) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.enable_cpu_mem_arena, options.enable_mem_pattern = self.arena, self.pattern
        options.intra_op_num_threads = self.threads
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, self.level)
        for name, value in self.entries.items():
            options.add_session_config_entry(name, value)
        if self.as_requested:
            register_arena_as_requested()
            options.add_session_config_entry("session.use_env_allocators", "1")
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run_options(self) -> Any:
        import onnxruntime

        options = onnxruntime.RunOptions()
        if self.shrinks:
            options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return options


OUTSIDE = {"session.use_device_allocator_for_initializers": "1"}
NOT_PACKED = {"session.disable_prepacking": "1"}
NO_SPINNING = {"session.intra_op.allow_spinning": "0"}
SETTINGS = {
    "its own choice: arena, memory pattern": Setting(),
    "arena, no memory pattern": Setting(pattern=False),
    "no arena, memory pattern": Setting(arena=False),
    "no arena, no memory pattern": Setting(arena=False, pattern=False),
    "arena, shrunk after each run": Setting(shrinks=True),
    "arena, shrunk, weights outside": Setting(shrinks=True, entries=OUTSIDE),
    "arena, shrunk, weights outside, no pattern": Setting(shrinks=True, pattern=False, entries=OUTSIDE),
    "arena, grows by what is asked for": Setting(as_requested=True),
    "no arena, weights not packed": Setting(arena=False, entries=NOT_PACKED),
    "no arena, threads do not spin": Setting(arena=False, entries=NO_SPINNING),
    "no arena, one thread": Setting(arena=False, threads=1),
    "no arena, level extended": Setting(arena=False, level="ORT_ENABLE_EXTENDED"),
    "no arena, level basic": Setting(arena=False, level="ORT_ENABLE_BASIC"),
    "no arena, level none": Setting(arena=False, level="ORT_DISABLE_ALL"),
}


def register_arena_as_requested() -> None:
    """The arena of a session has no such setting; one that all sessions share has."""
    import onnxruntime

    kinds = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
    memory = onnxruntime.OrtMemoryInfo("Cpu", kinds[0], 0, kinds[1])
    onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg({"arena_extend_strategy": 1}))


def measure(folder: Path, role: str, n_runs: int, setting: Setting) -> dict[str, float]:
    """In this process: median seconds, and resident memory in GiB."""
    from sam3_precision import feeds_of

    from engines.bundle import read_bundle

    bundle = read_bundle(folder)
    started = time.perf_counter()
    session = setting.session(bundle.file(bundle.graphs[role].file))
    opened = {"open_s": time.perf_counter() - started, "open_peak": resident_gib("VmHWM")}
    feeds, run_options, times, resident = feeds_of(bundle, role), setting.run_options(), [], []
    for _ in range(n_runs):
        before = time.perf_counter(), time.process_time()
        session.run(None, feeds, run_options)
        times.append((time.perf_counter() - before[0], time.process_time() - before[1]))
        resident.append(resident_gib("VmRSS"))
    wall_s, processor_s = (statistics.median(column) for column in zip(*times[1:], strict=True))
    return opened | {
        "wall_s": wall_s,
        "processor_s": processor_s,
        "peak": resident_gib("VmHWM"),
        "after": resident[-1],
        "growth": resident[-1] - resident[min(2, n_runs - 1)],
    }


def resident_gib(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 2**20


def measure_in_process(arguments: argparse.Namespace, name: str) -> dict[str, float]:
    command = [sys.executable, __file__, str(arguments.bundle), "--role", arguments.role]
    command += ["--runs", str(arguments.runs), "--setting", name]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--role", default="decoder")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="settings whose name has one of these")
    parser.add_argument("--setting", choices=SETTINGS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.setting:
        print(json.dumps(measure(arguments.bundle, arguments.role, arguments.runs, SETTINGS[arguments.setting])))
        return
    print(f"| {arguments.role} | open | run | processor | most while opening | most | after | growth |")
    print("|---|---|---|---|---|---|---|---|")
    for name in (name for name in SETTINGS if any(word in name for word in arguments.only)):
        found = measure_in_process(arguments, name)
        memory = " | ".join(f"{found[key]:.2f} GiB" for key in ("open_peak", "peak", "after"))
        times = " | ".join(f"{found[key]:.2f} s" for key in ("open_s", "wall_s", "processor_s"))
        print(f"| {name} | {times} | {memory} | {found['growth']:+.3f} GiB |", flush=True)


if __name__ == "__main__":
    main()
