"""A rolling update of three replicas behind a balancer with a delay loses no request."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from harness.certificate_folder import CertificateFolder
from harness.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPLICAS = 3


@pytest.mark.parametrize("lag", [0, 1, 5], ids="endpoints-{}s-late".format)
def test_rolling_restarts_lose_nothing(  # noqa: PLR0917 -- fixtures
    serve: Callable[..., Any],
    load: Callable[..., Any],
    balance: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
    tmp_path: Path,
    lag: float,
) -> None:
    certificate = CertificateFolder(tmp_path)
    balancer = balance(lag)

    def start() -> Any:
        server = serve("--drain", str(lag + 1), *certificate.flags)
        balancer.watch(server.address, server.health)
        wait_until(lambda: server.address in balancer.endpoints(), "the replica is an endpoint")
        return server

    replicas = [start() for _ in range(REPLICAS)]
    running = load(balancer.address, certificate.ca_file)
    running.pass_calls(50)
    leaving = []
    for _ in range(counts(1, 7) * REPLICAS):
        replicas.append(start())
        leaving.append(replicas.pop(0))
        leaving[-1].signal(signal.SIGTERM)
    wait_until(lambda: len(balancer.endpoints()) == REPLICAS, "those that leave are no endpoints")
    exit_codes = [server.wait() for server in leaving]
    running.pass_calls(50)
    report = running.finish()
    show(f"rolling restart, {lag} s late", {**report.figures(), "replaced": len(leaving)})
    assert (report.faults(), set(exit_codes)) == ([], {0})
