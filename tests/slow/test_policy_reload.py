"""The policy file changes under load: each response has one generation, and no request is lost."""

from __future__ import annotations

import hashlib
import os
import signal
from typing import TYPE_CHECKING, Any

from harness.cases import case
from harness.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# 0 if any process has rejected the file.
METRIC = "gpugate_config_last_reload_successful"
POLICY = "nodepools/missing-gpu-limit"
FILE = f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  {POLICY}: {{mode: %s}}\n"
STRICT, LENIENT = FILE % "enforce", FILE % "audit"


def generation(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def put(file: Path, text: str) -> None:
    """Replace the file atomically."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def judged_by_generation() -> Any:
    decisions = {generation(STRICT): POLICY, generation(LENIENT): ""}
    return case("nodepool-create-unlimited.validate", "/validate", denied=decisions)


def test_every_response_has_one_generation(
    serve: Callable[..., Any],
    load: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
    tmp_path: Path,
) -> None:
    file = tmp_path / "policy.yaml"
    put(file, STRICT)
    server = serve("--policy-file", str(file))
    running = load(server, cases=(judged_by_generation(),))
    reloads = counts(50, 1_000)
    for number in range(reloads):
        text = STRICT if number % 2 else LENIENT
        new = generation(text)
        seen = running.progress().generations[new]
        put(file, text)
        server.signal(signal.SIGHUP)
        wait_until(lambda g=new, n=seen: running.progress().generations[g] > n, "the rules are in force")
    report = running.finish()
    show("policy file reloaded", {**report.figures(), "reloads": reloads})
    assert (report.faults(), len(report.generations)) == ([], 2)


def test_an_invalid_file_keeps_the_last_valid_ruleset(
    serve: Callable[..., Any], load: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    put(file, STRICT)
    server = serve("--policy-file", str(file))
    running = load(server, cases=(judged_by_generation(),))
    put(file, STRICT.replace("mode", "mood"))
    server.signal(signal.SIGHUP)
    wait_until(lambda: f"{METRIC} 0.0" in server.get("/metrics")[1], "the file is refused")
    running.pass_calls(100)
    report = running.finish()
    assert (report.faults(), list(report.generations), server.ready()) == ([], [generation(STRICT)], True)


def test_a_new_worker_starts_with_the_last_valid_ruleset(
    serve: Callable[..., Any], load: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    put(file, STRICT)
    server = serve("--policy-file", str(file))
    put(file, STRICT.replace("mode", "mood"))
    wait_until(lambda: f"{METRIC} 0.0" in server.get("/metrics")[1], "the file is refused")
    old = server.workers()
    for worker in old:
        os.kill(worker, signal.SIGKILL)
    wait_until(lambda: len(set(server.workers()) - set(old)) == len(old) and server.ready(), "new workers serve")
    running = load(server, cases=(judged_by_generation(),))
    running.pass_calls(100)
    report = running.finish()
    assert (report.faults(), list(report.generations)) == ([], [generation(STRICT)])
