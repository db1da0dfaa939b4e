"""CPU time and memory of an audit, of a cluster that another process plays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from command_line import ENVIRONMENT, GPUGATE
from figures import Measured, figure

if TYPE_CHECKING:
    from collections.abc import Iterator

# Pods, and what an audit of so many may take, in seconds of its own CPU.
SIZES: Final = ((5_000, 5), (20_000, None), (100_000, 60))
MOST_MEGABYTES: Final = 250
_CLUSTER: Final = Path(__file__).with_name("paged_cluster.py")


class Audit(NamedTuple):
    """CPU time of the audit, in seconds, and the most memory that it had, in megabytes."""

    cpu: float
    megabytes: float


def measure() -> Iterator[Measured]:
    """Measure an audit of clusters of three sizes; each once, because one takes long enough."""
    for pods, aim in SIZES:
        found = audit(pods)
        yield Measured(figure(f"gpugate audit of {pods:,} Pods, own CPU", [found.cpu], "s"), aim)
        yield Measured(figure(f"gpugate audit of {pods:,} Pods, memory", [found.megabytes], "MB"), MOST_MEGABYTES)


def audit(pods: int) -> Audit:
    """Audit a cluster with so many Pods, and a tenth as many workloads."""
    with tempfile.TemporaryDirectory() as folder, _cluster(pods) as url:
        kubeconfig = _kubeconfig(Path(folder), url)
        report = Path(folder) / "report.json"
        command = [GPUGATE, "audit", "--kubeconfig", str(kubeconfig), "-o", f"json={report}", "--qps", "10000"]
        process = subprocess.Popen(command, env=ENVIRONMENT)  # noqa: S603 -- our own program
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        counts = json.loads(report.read_bytes())["counts"]
        if process.returncode or counts.get("Pod") != pods:
            raise RuntimeError(f"the audit ended with {process.returncode} and read {counts}")
        return Audit(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


@contextmanager
def _cluster(pods: int) -> Iterator[str]:
    command = [sys.executable, str(_CLUSTER), str(pods)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 -- ours
    with process:
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.communicate("")


def _kubeconfig(folder: Path, url: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "paged", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {"token": "none"}}],
        "contexts": [{"name": "paged", "context": {"cluster": "paged", "user": "bench"}}],
        "current-context": "paged",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file
