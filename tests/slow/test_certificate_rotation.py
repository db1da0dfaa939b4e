"""Authorities and certificates change under load, and every API server trusts every replica at every moment."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from harness.processes import descriptors, megabytes, wait_until
from harness.rotation import LONG, LONG_LAG, SHORT, SHORT_LAG

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.fleet import Fleet

# Allocators keep freed memory; a leak of one certificate or context per renewal is far larger.
GROWN_MEGABYTES = 25
PATIENCE_SECONDS = 3600


def certificates_made(fleet: Fleet) -> int:
    return sum(line["message"] == "certificate made" for each in fleet.replicas for line in each.log())


def processes(fleet: Fleet) -> list[int]:
    return [pid for each in fleet.replicas for pid in (each.pid, *each.workers())]


def test_promotions_and_renewals_lose_nothing(
    fleet: Fleet, load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    full = counts(0, 1)
    fleet.start(3, *(LONG if full else SHORT))
    running = load(fleet.balancer.address, published=fleet.published(LONG_LAG if full else SHORT_LAG))
    # Objects that are allocated once exist by then.
    fleet.wait_for_promotions(4, PATIENCE_SECONDS)
    before, made_before = (
        {pid: (descriptors(pid), megabytes(pid)) for pid in processes(fleet)},
        certificates_made(fleet),
    )
    promotions, renewals = counts(6, 100) - 2, counts(30, 1000)
    fleet.wait_for_promotions(promotions, PATIENCE_SECONDS)
    wait_until(lambda: certificates_made(fleet) >= renewals, "certificates are made", PATIENCE_SECONDS, pause=0.5)
    grown = [megabytes(pid) - before[pid][1] for pid in processes(fleet)]
    more = [descriptors(pid) - before[pid][0] for pid in processes(fleet)]
    made = certificates_made(fleet)
    report = running.finish()
    show("authority promoted", {"promotions": fleet.cluster.promotions(), **report.figures()})
    growth = {"descriptors": f"{max(more):+}", "memory": f"{max(grown):+.1f}MB"}
    show("certificate renewed", {"renewals": made, "seen": len(report.certificates), **growth})
    assert report.faults() == []
    # Descriptors of connections to API servers and of the load vary.
    assert max(more) < 40
    assert max(grown) < GROWN_MEGABYTES
    assert made > made_before


def test_a_replica_that_was_stopped_is_trusted_when_it_goes_on(
    fleet: Fleet, load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    *_, stopped = fleet.start(2, *SHORT)
    times = []
    for _ in range(counts(1, 10)):
        suspended = [stopped.pid, *stopped.workers()]
        for pid in suspended:
            os.kill(pid, signal.SIGSTOP)
        # Long enough for its certificate to expire and for its authority to be replaced.
        fleet.cluster.release()
        fleet.wait_for_promotions(4, PATIENCE_SECONDS)
        for pid in suspended:
            os.kill(pid, signal.SIGCONT)
        times.append(wait_until(lambda: trusted(fleet, stopped), "it is trusted again"))
        running = load(stopped.address, published=fleet.published(SHORT_LAG))
        running.pass_calls(100)
        report = running.finish()
        assert report.faults() == []
    show("replica stopped and continued", {"times": len(times), "trusted after": f"{max(times):.2f}s", "failed": 0})


def trusted(fleet: Fleet, replica: Any) -> bool:
    try:
        for bundle in set(fleet.cluster.bundles()):
            replica.review(bundle)
    except OSError:
        return False
    return True
