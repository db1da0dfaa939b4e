"""Hostile policies in a real server: each is charged by its id, switched off, and the others are evaluated as before."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any, Self

import pytest
from own_policies.written import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[[list[str], Path], Any]

COMMAND = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1", "--no-cluster"]
COMMAND += ["--port", "0", "--health-port", "0", "--drain", "0"]
POLICY = '''"""Pod with the label of this policy."""
import os
import time

from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates
{top}

@validates(POD)
def check(pod, ctx):
    label = pod["metadata", "labels", "act"]
    if label.text == "{name}":
        {code}
'''
# What a policy does for a Pod with its name as label, and how the response names it.
HOSTILE = {
    "raises": (
        "raise ValueError('a secret')",
        "[acme/raises] could not evaluate this object (ValueError at raises.py:14)",
    ),
    "sleeps": ("time.sleep(60)", "[acme/sleeps] could not evaluate this object (PolicyTimeoutError at policy_guard.py"),
    "catches": (
        "\n        while True:\n            try:\n                time.sleep(60)\n            except Exception: pass",
        "[acme/catches] could not evaluate this object (PolicyTimeoutError at policy_guard.py",
    ),
    "allocates": (
        "bytearray(1 << 30)",
        "[acme/allocates] could not evaluate this object (MemoryError at allocates.py:14)",
    ),
    "yields": ("yield 'text'", "[acme/yields] could not evaluate this object (UnexpectedYieldError at load.py"),
}
ENDS = "os._exit(7)"
FINDS = 'yield Violation(label.path, "is labelled")'


def source(name: str, code: str, top: str = "") -> str:
    return POLICY.format(name=name, code=code.strip("\n").lstrip() if not code.startswith("\n") else code[9:], top=top)


@pytest.fixture(scope="module")
def served(start_process: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("served")
    files = {f"p/acme/{name}.py": source(name, code) for name, (code, _) in HOSTILE.items()}
    files |= {"p/acme/ends.py": source("ends", ENDS), "p/acme/finds.py": source("finds", FINDS)}
    write(folder, files)
    return started(start_process, folder)


def started(start_process: Start, folder: Path) -> Any:
    ca_file = folder / "ca.crt"
    server = start_process([*COMMAND, "--ca-file", str(ca_file), "--policy-path", str(folder / "p")], ca_file)
    server.folder = folder
    return server


def review(act: str) -> dict[str, Any]:
    metadata = {"name": "pod", "namespace": "team", "labels": {"act": act}}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "pod",
            "namespace": "team",
            "operation": "CREATE",
            "userInfo": {"username": "alice"},
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"containers": [{"name": "main", "image": "registry.example.com/main:1"}]},
            },
        },
    }


def answered(server: Any, act: str) -> str:
    """Return the message of a denial, and nothing if the Pod is allowed."""
    response = server.validate(review(act))
    return "" if response["allowed"] else str(response["status"]["message"])


def eventually(holds: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def scraped(server: Any) -> str:
    with urllib.request.urlopen(f"{server.health_url}/metrics", timeout=30) as opened:  # noqa: S310 -- ours
        return str(opened.read().decode())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_policy_is_named_and_the_others_are_evaluated(served: Any, name: str) -> None:
    assert HOSTILE[name][1] in answered(served, name)
    assert "secret" not in served.log_file.read_text()
    assert "[acme/finds]" in answered(served, "finds")
    assert answered(served, "nothing") == ""


def test_a_policy_that_fails_repeatedly_is_switched_off_with_an_event_and_a_metric(served: Any) -> None:
    denied = sum(bool(answered(served, "raises")) for _ in range(12))

    assert denied <= 10
    assert answered(served, "raises") == ""
    assert eventually(lambda: 'gpugate_policy_switched_off{policy="acme/raises"} 1.0' in scraped(served))
    events = [json.loads(line) for line in served.log_file.read_text().splitlines()]
    off = [event["policy"] for event in events if event["message"] == "policy switched off after repeated failures"]
    assert off == ["acme/raises"]
    assert "[acme/finds]" in answered(served, "finds")


def test_a_policy_that_ends_its_process_is_charged_with_it_and_switched_off(served: Any) -> None:
    def is_off() -> bool:
        try:
            return answered(served, "ends") == ""
        except (http.client.HTTPException, OSError):
            served._connection.close()
            return False

    assert eventually(is_off)
    ended = [json.loads(line) for line in served.log_file.read_text().splitlines() if "worker ended" in line]
    assert {(event["policy"], event["exit_code"]) for event in ended} == {("acme/ends", 7)}
    assert len(ended) <= 3
    assert "[acme/finds]" in answered(served, "finds")


@pytest.fixture
def reloading(start_process: Start, tmp_path: Path) -> Any:
    write(tmp_path, {"p/acme/first.py": source("first", FINDS)})
    return started(start_process, tmp_path)


class Load:
    """Reviews on another connection, one after the other, until it is stopped."""

    def __init__(self, server: Any) -> None:
        self.statuses: list[int] = []
        self._server = server
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        connection = self._server.connect()
        body, headers = json.dumps(review("first")).encode(), {"Content-Type": "application/json"}
        while not self._end.is_set():
            connection.request("POST", "/validate", body, headers)
            response = connection.getresponse()
            self.statuses.append(response.status if b"[acme/first]" in response.read() else 0)
        connection.close()


def test_under_load_policies_are_reloaded_and_a_set_that_does_not_load_is_refused(reloading: Any) -> None:
    with Load(reloading) as load:
        reload_all(reloading)

    # Every answer has the finding of the policy that no reload changes.
    assert set(load.statuses) == {200}
    assert len(load.statuses) > 20


def reload_all(reloading: Any) -> None:
    assert "[acme/first]" in answered(reloading, "first")

    # Renamed in one step, as the kubelet changes a mounted ConfigMap.
    write(reloading.folder, {"p/acme/.new": source("second", FINDS)})
    (reloading.folder / "p/acme/.new").rename(reloading.folder / "p/acme/second.py")
    assert eventually(lambda: "[acme/second]" in answered(reloading, "second"))

    for top, error in (
        ("raise ValueError", "raises ValueError: correct it; no policy was loaded"),
        ("os._exit(3)", "a policy ends the process while it is loaded (exit code 3): remove this code"),
        ("import threading; threading.Thread(target=time.sleep, args=(9,)).start()", "a policy starts a thread while"),
    ):
        write(reloading.folder, {"p/acme/second.py": source("third", FINDS, top)})
        assert eventually(lambda error=error: error in reloading.log_file.read_text()), error
        # The last valid set stays in force.
        assert "[acme/second]" in answered(reloading, "second")
    assert "worker ended" not in reloading.log_file.read_text()

    write(reloading.folder, {"p/acme/second.py": source("fourth", FINDS)})
    assert eventually(lambda: "[acme/second]" in answered(reloading, "fourth"))


DOCUMENT = """apiVersion: gpugate.dev/v1
kind: Policy
id: acme/labelled
title: Pod with the label of this policy
why: The label is reserved.
mode: enforce
match:
  kinds: [Pod]
validations:
  - expression: object.metadata.?labels.act.orValue('') != 'first'
    message: is labelled
"""


def test_a_document_is_reloaded_and_a_wrong_expression_leaves_the_last_set_in_force(
    start_process: Start, tmp_path: Path
) -> None:
    write(tmp_path, {"p/acme/rules.yaml": DOCUMENT})
    server = started(start_process, tmp_path)
    assert "[acme/labelled] is labelled" in answered(server, "first")
    assert answered(server, "second") == ""

    write(tmp_path, {"p/acme/rules.yaml": DOCUMENT.replace("object.", "objct.")})
    error = "rules.yaml:10:17: validations[0].expression: character 1: unknown variable `objct`; did you mean `object`?"
    assert eventually(lambda: error in server.log_file.read_text())
    assert "[acme/labelled] is labelled" in answered(server, "first")

    write(tmp_path, {"p/acme/rules.yaml": DOCUMENT.replace("first", "second")})
    assert eventually(lambda: "[acme/labelled] is labelled" in answered(server, "second"))
    assert answered(server, "first") == ""


# At its top level the policy tells its process, ignores the signals that it can, and never ends.
HANGS = """
import signal
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path({file!r}).write_text(str(os.getpid()))
time.sleep(3600)
"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_trial_that_hangs_ends_with_the_server(reloading: Any) -> None:
    told = reloading.folder / "pid"
    write(reloading.folder, {"p/acme/hangs.py": source("hangs", FINDS, HANGS.format(file=str(told)))})
    assert eventually(lambda: told.exists() and bool(told.read_text()))

    reloading.process.terminate()

    # A trial may take 15 s.
    assert reloading.process.wait(timeout=14) == 0
    assert not is_alive(int(told.read_text()))


def test_a_trial_at_the_start_ends_with_the_server(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    write(tmp_path, {"p/acme/hangs.py": source("hangs", FINDS, HANGS.format(file=str(told)))})
    with subprocess.Popen([*COMMAND, "--policy-path", str(tmp_path / "p")]) as starting:  # noqa: S603 -- ours
        assert eventually(lambda: told.exists() and bool(told.read_text()))

        starting.terminate()

        assert starting.wait(timeout=14) == 128 + signal.SIGTERM
    assert not is_alive(int(told.read_text()))
