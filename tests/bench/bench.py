"""How fast it is: CPU time of one review from bytes to bytes, and wall time of the command line.

Run with `make bench`. Each figure is the median of several runs, with the least and the most beside it; on a noisy
machine the least is the one to compare.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from corpus import write_corpus

from gpugate.policies.catalog import CATALOG
from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Policy

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
GPUGATE = str(Path(sys.executable).with_name("gpugate"))
RUNS = 15
RUNS_OF_A_CORPUS = 3
# As on a user's machine: Python keeps its bytecode from the first run on.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
FIRST_TEN = {
    "nodeclasses/missing-cost-tags",
    "nodepools/incomplete-node-class-ref",
    "nodepools/legacy-api",
    "nodepools/single-instance-type",
    "pods/mig-without-claim",
    "pods/missing-cost-labels",
    "pods/missing-gpu-toleration",
    "pods/unprotected-training",
    "scaling/hpa-conflict",
    "scaling/unbounded-replicas",
}


def review(name: str, size: int = 0) -> bytes:
    """A captured review, its first container's environment filled up to a size in bytes."""
    captured = json.loads((FIXTURES / "reviews" / f"{name}.json").read_text())
    body = json.dumps(captured, separators=(",", ":")).encode()
    if len(body) < size:
        env = captured["request"]["object"]["spec"]["containers"][0].setdefault("env", [])
        while len(body) < size:
            env.append({"name": f"SETTING_{len(env)}", "value": "a value of ordinary length"})
            body = json.dumps(captured, separators=(",", ":")).encode()
    return body


def cpu(work: Callable[[], object], times: int) -> list[float]:
    """Seconds of CPU for one call, measured over many calls, several times."""
    work()
    measured = []
    for _ in range(RUNS):
        started = time.process_time()
        for _ in range(times):
            work()
        measured.append((time.process_time() - started) / times)
    return measured


def wall(*command: str) -> list[float]:
    """Seconds from start to end of a process, several times."""
    measured = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        subprocess.run(command, check=False, capture_output=True, env=ENVIRONMENT)  # noqa: S603 -- our own program
        measured.append(time.perf_counter() - started)
    return measured[1:]


def corpus(files: int) -> tuple[list[float], list[float]]:
    """Seconds from start to end, and MB of the largest process, of checks of so many files."""
    seconds, megabytes = [], []
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), files)
        for _ in range(RUNS_OF_A_CORPUS):
            started = time.perf_counter()
            command = [GPUGATE, "check", folder, "-o", f"json={os.devnull}"]
            process = subprocess.Popen(command, env=ENVIRONMENT)  # noqa: S603 -- our own program
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
            seconds.append(time.perf_counter() - started)
            megabytes.append(usage.ru_maxrss / 1024)
    return seconds, megabytes


def show(what: str, measured: list[float], unit: str, aim: float) -> None:
    scale = {"us": 1e6, "ms": 1e3}.get(unit, 1)
    least, median, most = min(measured) * scale, statistics.median(measured) * scale, max(measured) * scale
    verdict = "" if median <= aim else "   above the aim"
    sys.stdout.write(f"{what:<58}{median:8.1f} {unit:2}  ({least:.1f} to {most:.1f}; aim {aim:g}){verdict}\n")


def share(count: int) -> tuple[Policy, ...]:
    """So many policies, evenly from every part of the catalogue."""
    return tuple(CATALOG[place * len(CATALOG) // count] for place in range(count))


def reviews(policies: tuple[Policy, ...], pod_aim: float, pool_aim: float) -> None:
    """From the bytes of a review to those of the answer, with these policies bound."""
    gate = Gate(bind(policies, PolicyConfig()), NoFacts(), lambda: dt.datetime.now(dt.UTC))
    pod, pool = review("pod-create-by-job.mutate", 6144), review("nodepool-create.validate")
    patched = review("pod-create-gpu-untolerated.mutate", 6144)
    sys.stdout.write(f"{len(policies)} policies\n")
    show(f"  /mutate, a Pod of {len(pod)} bytes, CPU", cpu(lambda: gate.mutate(pod), 400), "us", pod_aim)
    show(
        f"  /mutate, a Pod of {len(patched)} bytes, patched, CPU", cpu(lambda: gate.mutate(patched), 400), "us", pod_aim
    )
    show(f"  /validate, a Pod of {len(pod)} bytes, CPU", cpu(lambda: gate.validate(pod), 400), "us", pod_aim)
    show(f"  /validate, a NodePool of {len(pool)} bytes, CPU", cpu(lambda: gate.validate(pool), 200), "us", pool_aim)


def main() -> None:
    sys.stdout.write(f"median of {RUNS} runs, with the least and the most\n")
    reviews(tuple(policy for policy in CATALOG if policy.id in FIRST_TEN), 200, 400)
    reviews(share(30), 300, 1000)
    reviews(CATALOG, 300, 1000)
    show("instance types loaded, CPU", cpu(load_instance_types, 5), "ms", 15)
    show("gpugate --version, wall", wall(GPUGATE, "--version"), "ms", 80)
    one = str(FIXTURES / "manifests" / "nodepool-gpu-training.yaml")
    show("gpugate check of one file, wall", wall(GPUGATE, "check", one), "ms", 200)
    for files, aim in ((1_000, 1.5), (10_000, 10)):
        seconds, megabytes = corpus(files)
        show(f"gpugate check of {files:,} files, wall", seconds, "s", aim)
        show(f"gpugate check of {files:,} files, largest process", megabytes, "MB", 150)


if __name__ == "__main__":
    main()
