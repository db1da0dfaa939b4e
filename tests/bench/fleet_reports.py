"""Time, CPU time and memory of `gpugate fleet report` over generated tables of 500 clusters."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from command_line import ENVIRONMENT, GPUGATE
from figures import Measured, figure
from fleets import NOW, Fleet, write_fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTERS: Final = 500
OBJECTS: Final = 2_000
DAYS: Final = (5, 15, 30)
"""The last is all that is generated: about 30 million rows of `objects`, in 75,000 files."""
REPETITIONS: Final = 2
MOST_SECONDS: Final = 60
MOST_MEGABYTES: Final = 2_000


class Report(NamedTuple):
    """What a report took: seconds, seconds of CPU time, and its peak memory in megabytes."""

    wall: float
    cpu: float
    megabytes: float


def measure() -> Iterator[Measured]:
    """Generate the tables, which takes minutes and 2 GB of disk, and measure reports of the last days."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(clusters=CLUSTERS, days=max(DAYS), objects=OBJECTS)
        rows = write_fleet(Path(folder), fleet).rows
        for days in DAYS:
            reports = [report(Path(folder), days) for _ in range(REPETITIONS)]
            wall, cpu, megabytes = (list(each) for each in zip(*reports, strict=True))
            name = f"fleet report of {days} days, {rows * days // max(DAYS):,} rows"
            yield Measured(figure(f"{name}, wall", wall, "s"), MOST_SECONDS)
            yield Measured(figure(f"{name}, CPU", cpu, "s"))
            yield Measured(figure(f"{name}, memory", megabytes, "MB"), MOST_MEGABYTES)


def report(path: Path, days: int) -> Report:
    """Report on the tables in a directory, as of the time at which the generated fleet ends."""
    out = path / "report.json"
    command = [GPUGATE, "fleet", "report", str(path), "--days", str(days), "--at", NOW.isoformat(), "-o", f"json={out}"]
    begin = time.monotonic()
    process = subprocess.Popen(command, env=ENVIRONMENT)  # noqa: S603 -- our own program
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    clusters = json.loads(out.read_bytes())["totals"]["clusters"]
    if process.returncode or clusters != CLUSTERS:
        raise RuntimeError(f"the report ended with {process.returncode} and has {clusters} clusters")
    return Report(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
