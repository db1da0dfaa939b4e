from __future__ import annotations

import json
import os
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 90
STRICT = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
LENIENT = STRICT + "policies: {nodepools/missing-gpu-limit: {mode: audit}}\n"


@pytest.fixture
def start(start_process: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    started = []

    def serve(*arguments: str) -> Any:
        command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1", "--port", "0"]
        command += ["--health-port", "0", "--ca-file", str(tmp_path / "ca.crt"), *arguments]
        started.append(start_process(command, tmp_path / "ca.crt"))
        return started[-1]

    yield serve
    for webhook in started:
        # Some servers are stopped with an open connection, and would wait for its end.
        webhook.process.send_signal(signal.SIGKILL)
        webhook.stop()


def workers(webhook: Any) -> list[int]:
    """Return the process ids of the workers."""
    pid = webhook.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def denies(webhook: Any, review: bytes) -> bool:
    """Send a review on a new connection, which any worker may accept."""
    connection = webhook.connect()
    connection.request("POST", "/validate", review, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return not answer["response"]["allowed"]


@pytest.fixture
def denied(captured: Callable[[str], bytes]) -> bytes:
    return captured("nodepool-create-unlimited.validate")


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_workers_as_asked_for(start: Callable[..., Any], count: int) -> None:
    # Several workers have another process for expensive reviews.
    assert len(workers(start("--workers", str(count)))) == count + (count > 1)


def test_a_killed_worker_is_replaced(start: Callable[..., Any], denied: bytes) -> None:
    webhook = start("--workers", "1")
    (killed,) = workers(webhook)
    os.kill(killed, signal.SIGKILL)
    assert eventually(lambda: workers(webhook) not in ([], [killed]))
    assert denies(webhook, denied)


def large(review: bytes) -> bytes:
    """Return a review that a worker hands over."""
    parsed = json.loads(review)
    parsed["request"]["object"]["metadata"].setdefault("annotations", {})["a"] = "x" * 300_000
    return json.dumps(parsed).encode()


def test_a_killed_process_for_expensive_reviews_is_replaced(start: Callable[..., Any], denied: bytes) -> None:
    webhook = start("--workers", "2")
    *before, killed = workers(webhook)
    assert denies(webhook, large(denied))
    os.kill(killed, signal.SIGKILL)
    assert eventually(lambda: killed not in workers(webhook))
    # A connection that nothing has accepted yet waits for the next process.
    assert denies(webhook, large(denied))
    assert workers(webhook)[:2] == before


def test_expensive_reviews_are_not_evaluated_by_a_worker(start: Callable[..., Any], denied: bytes) -> None:
    webhook = start("--workers", "2")
    *_, suspended = workers(webhook)
    os.kill(suspended, signal.SIGSTOP)
    connection = webhook.connect()
    connection.request("POST", "/validate", large(denied), {"Content-Type": "application/json"})
    usual = [denies(webhook, denied) for _ in range(8)]
    os.kill(suspended, signal.SIGCONT)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert (usual, answer["response"]["allowed"]) == ([True] * 8, False)


def test_a_second_signal_ends_it_at_once(start: Callable[..., Any]) -> None:
    webhook = start("--drain", "600")
    webhook.process.send_signal(signal.SIGTERM)
    assert eventually(lambda: "shutting down" in webhook.readiness())
    webhook.process.send_signal(signal.SIGTERM)
    assert webhook.process.wait(PATIENCE_SECONDS) == 1


def test_after_a_sigterm_responses_close_the_connection(start: Callable[..., Any], denied: bytes) -> None:
    webhook = start("--drain", "600", "--workers", "1")
    webhook.process.send_signal(signal.SIGTERM)
    assert eventually(lambda: "shutting down" in webhook.readiness())
    connection = webhook.connect()
    connection.request("POST", "/validate", denied, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    response = (answer.status, answer.headers["Connection"])
    answer.close()
    connection.close()
    assert response == (200, "close")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
def test_it_exits_when_no_client_is_connected(start: Callable[..., Any], number: int) -> None:
    webhook = start("--drain", "0")
    webhook.disconnect()
    webhook.process.send_signal(number)
    assert webhook.process.wait(PATIENCE_SECONDS) == 0


def test_a_sighup_reads_the_policy_file_again_in_place(
    start: Callable[..., Any], denied: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(STRICT)
    webhook = start("--policy-file", str(file), "--workers", "1")
    before = workers(webhook), denies(webhook, denied)
    file.write_text(LENIENT)
    webhook.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: not denies(webhook, denied))
    assert (workers(webhook), True) == before


def test_an_invalid_policy_file_keeps_the_last_valid_one(
    start: Callable[..., Any], denied: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(STRICT)
    webhook = start("--policy-file", str(file))
    file.write_text(STRICT + "policies: {nodepools/no-such-policy: {mode: warn}}\n")
    assert eventually(lambda: "policy file invalid" in webhook.log_file.read_text())
    assert (denies(webhook, denied), webhook.readiness()) == (True, "ok\n")


def test_a_later_worker_has_the_last_valid_policy_file(
    start: Callable[..., Any], denied: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(STRICT)
    webhook = start("--policy-file", str(file), "--workers", "1")
    file.write_text(LENIENT)
    assert eventually(lambda: "policy file in force" in webhook.log_file.read_text())
    file.write_text("broken: [")
    assert eventually(lambda: "policy file invalid" in webhook.log_file.read_text())
    (killed,) = workers(webhook)
    os.kill(killed, signal.SIGKILL)
    assert eventually(lambda: workers(webhook) not in ([], [killed]))
    assert not denies(webhook, denied)


def test_metrics_are_of_all_workers(start: Callable[..., Any], denied: bytes) -> None:
    webhook = start("--workers", "3")
    for _ in range(12):
        assert denies(webhook, denied)
    with urllib.request.urlopen(webhook.health_url + "/metrics") as answer:  # noqa: S310 -- on loopback, our own URL
        lines = answer.read().decode().splitlines()
    counted = [line for line in lines if line.startswith("gpugate_reviews_total") and 'decision="deny"' in line]
    assert [line.rpartition(" ")[2] for line in counted] == ["12.0"]
