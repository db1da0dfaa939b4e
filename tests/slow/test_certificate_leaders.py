"""The leader dies at any moment, or a second one exists: no client gets a certificate that it does not trust."""

from __future__ import annotations

import itertools
import os
import random
import signal
from typing import TYPE_CHECKING, Any

from harness.lying_store import LyingStore
from harness.processes import wait_until
from harness.rotation import OUTLASTING, SHORT, SHORT_LAG
from harness.witness import Witness
from kept.cluster import SECRETS, KeptCluster

from gpugate.certs import authorities

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.fleet import Fleet

# Calls of the load before the next kill, at 100 per second.
MOST_CALLS = 300
# A Lease without renewal lasts 15 s; candidates check it every 2.0 to 4.4 s.
CONVERGED_SECONDS = 90


def test_another_replica_replaces_a_killed_leader(
    fleet: Fleet, load: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None]
) -> None:
    fleet.start(3, *OUTLASTING)
    running = load(fleet.balancer.address, published=fleet.published(SHORT_LAG))
    times = []
    with Witness(fleet, SHORT_LAG) as witness:
        for _ in range(counts(3, 20)):
            running.pass_calls(random.randint(1, MOST_CALLS))  # noqa: S311 -- no secret
            wait_until(lambda: fleet.leader() is not None, "somebody leads")
            leader = fleet.leader()
            assert leader
            os.kill(leader.keeper, signal.SIGKILL)
            # A short run sets the Lease of the killed leader to expired.
            if counts(1, 0):
                fleet.cluster.release()
            times.append(fleet.wait_for_promotions(1, CONVERGED_SECONDS))
            leader.find_keeper()
    report = running.finish()
    looked = {"looks": witness.looks, "broken": len(witness.broken)}
    show("leader killed", {"times": len(times), "converged": f"{max(times):.1f}s", **looked, **report.figures()})
    assert report.faults() == []
    assert witness.broken == []


def test_two_that_lead_at_once_lose_nothing(
    fleet_in: Callable[[KeptCluster], Fleet],
    load: Callable[..., Any],
    counts: Callable[[int, int], int],
    show: Callable[..., None],
) -> None:
    fleet = fleet_in(KeptCluster(LyingStore()))
    fleet.start(2, *SHORT)
    running = load(fleet.balancer.address, published=fleet.published(SHORT_LAG))
    with Witness(fleet, SHORT_LAG) as witness:
        for number in range(counts(3, 50)):
            # Both candidates see it at once.
            fleet.cluster.ask_to_rotate(str(number))
            fleet.wait_for_promotions(1, CONVERGED_SECONDS)
    leading = [each.metric("gpugate_certificate_leader") for each in fleet.replicas]
    report = running.finish()
    looked = {"looks": witness.looks, "broken": len(witness.broken)}
    show("two leaders", {"promotions": fleet.cluster.promotions(), **looked, **report.figures()})
    assert leading == [1, 1]
    assert report.faults() == []
    assert witness.broken == []
    assert jumps(fleet.cluster) == []


def jumps(cluster: KeptCluster) -> list[str]:
    """Return each authority that started to sign without being the next one in the previous state."""
    contents = [authorities.decode(cluster.decoded(each)) for each in cluster.history(SECRETS)]
    return [
        str(new.promoted_at) for old, new in itertools.pairwise(contents) if new.active not in (old.active, old.next)
    ]
