"""Wall time and memory of the command line, each run a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from captured import FIXTURES
from corpus import write_corpus, write_mixed_corpus
from figures import Measured, figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS: Final = 15
RUNS_OF_A_CORPUS: Final = 3
GPUGATE: Final = str(Path(sys.executable).with_name("gpugate"))
# As on a user's machine: Python keeps its bytecode from the first run on.
ENVIRONMENT: Final = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def measure() -> Iterator[Measured]:
    """Measure the start, a check of one file and checks of many."""
    yield Measured(figure("gpugate --version, wall", _wall(GPUGATE, "--version"), "ms"), 80)
    one = str(FIXTURES / "manifests" / "nodepool-gpu-training.yaml")
    yield Measured(figure("gpugate check of one file, wall", _wall(GPUGATE, "check", one), "ms"), 200)
    for kind, write in (("files", write_corpus), ("mixed files", write_mixed_corpus)):
        for files, aim in ((1_000, 1.5), (10_000, 10)):
            seconds, megabytes = _corpus(files, write)
            yield Measured(figure(f"gpugate check of {files:,} {kind}, wall", seconds, "s"), aim)
            yield Measured(figure(f"gpugate check of {files:,} {kind}, largest process", megabytes, "MB"), 150)


def _wall(*command: str) -> list[float]:
    """Seconds from start to end of a process, several times."""
    measured = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        subprocess.run(command, check=False, capture_output=True, env=ENVIRONMENT)  # noqa: S603 -- our own program
        measured.append(time.perf_counter() - started)
    return measured[1:]


def _corpus(files: int, write: Callable[[Path, int], None]) -> tuple[list[float], list[float]]:
    """Seconds from start to end, and MB of the largest process, of checks of so many files."""
    seconds, megabytes = [], []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), files)
        for _ in range(RUNS_OF_A_CORPUS):
            started = time.perf_counter()
            command = [GPUGATE, "check", folder, "-o", f"json={os.devnull}"]
            process = subprocess.Popen(command, env=ENVIRONMENT)  # noqa: S603 -- our own program
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
            seconds.append(time.perf_counter() - started)
            megabytes.append(usage.ru_maxrss / 1024)
    return seconds, megabytes
