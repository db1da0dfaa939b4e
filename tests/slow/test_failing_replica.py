"""One of three replicas behind a balancer fails: which calls are lost, and for how long.

Every call opens a connection, so that the balancer decides which replica answers it. A lost call is a request that the API
server rejects under `failurePolicy: Fail`, and admits unevaluated under `Ignore`: it does not send a review again after
a connection error or a timeout, because a review is a POST (`k8s.io/client-go` rest/request.go, v0.36).
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from harness.certificate_folder import CertificateFolder
from harness.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPLICAS = 3
# The default of the API server for webhooks.
TIMEOUT_SECONDS = 10


@pytest.mark.parametrize(
    ("number", "lag"),
    [
        pytest.param(signal.SIGKILL, 1, id="killed-which-the-kubelet-notices-within-a-second"),
        # Three failed probes, one every two seconds.
        pytest.param(signal.SIGSTOP, 6, id="suspended-which-the-probes-notice-later"),
    ],
)
def test_only_calls_that_reach_a_failed_replica_are_lost(  # noqa: PLR0917 -- fixtures
    serve: Callable[..., Any],
    load: Callable[..., Any],
    balance: Callable[..., Any],
    show: Callable[..., None],
    tmp_path: Path,
    number: signal.Signals,
    lag: float,
) -> None:
    certificate = CertificateFolder(tmp_path)
    balancer = balance(lag)
    replicas = [serve(*certificate.flags) for _ in range(REPLICAS)]
    for replica in replicas:
        balancer.watch(replica.address, replica.health)
    wait_until(lambda: len(balancer.endpoints()) == REPLICAS, "all replicas are endpoints")
    running = load(balancer.address, certificate.ca_file, rate=50, fresh=1.0, timeout=TIMEOUT_SECONDS)
    running.pass_calls(100)

    before, failed = running.progress(), time.monotonic()
    for pid in (replicas[0].pid, *replicas[0].workers()):
        os.kill(pid, number)
    wait_until(lambda: replicas[0].address not in balancer.endpoints(), "the failed replica is no endpoint")
    removed, after = time.monotonic(), running.progress()
    running.pass_calls(100)
    report = running.finish()

    meanwhile = after.sent - before.sent + before.in_flight
    show(
        f"1 of {REPLICAS} replicas: {number.name}",
        {**report.figures(), "sent until it was removed": meanwhile, "removed after": f"{removed - failed:.1f}s"},
    )
    outside = [lost for lost in report.lost if lost.ended < failed or lost.began > removed]
    assert (outside, report.wrong) == ([], [])
    # The balancer sends a third of the connections to each replica.
    assert 0 < len(report.lost) <= meanwhile // 2
