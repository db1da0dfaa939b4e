"""From nothing to ready: whoever is told that a replica is ready can trust it already."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from eventually import eventually
from kept.cluster import LEASES, MUTATING

from gpugate.certs.pki import common_name, split

if TYPE_CHECKING:
    from collections.abc import Callable

    from kept.cluster import KeptCluster
    from kept.replica import Replica


def test_it_is_ready_when_every_client_trusts_it(cluster: KeptCluster, replica: Callable[..., Replica]) -> None:
    cluster.api.forbidden = {MUTATING[1]}
    started = replica(cluster)
    assert eventually(lambda: any("gpugate may not get" in reason for reason in started.reasons()))
    assert (started.get("/readyz")[0], "missing: certificates: " in started.get("/readyz")[1]) == (503, True)
    cluster.api.forbidden.clear()
    started.signal(signal.SIGHUP)
    assert eventually(started.ready)
    # At once, and by whichever of them.
    for bundle in cluster.bundles():
        started.review(bundle)


def test_a_second_one_joins_and_another_takes_over(cluster: KeptCluster, replica: Callable[..., Replica]) -> None:
    first = replica(cluster)
    assert eventually(first.ready)
    leader = cluster.leader()
    second = replica(cluster)
    assert eventually(second.ready)
    bundle = cluster.bundles()[0]
    leafs = [each.served(bundle) for each in (first, second)]
    assert {common_name(cluster.authorities().active.certificate)} == {first.signed_by(), second.signed_by()}
    assert leafs[0].serial_number != leafs[1].serial_number
    assert (cluster.leader(), len(split(bundle))) == (leader, 2)

    first.stop()
    held = [lease["spec"].get("holderIdentity") or "" for lease in cluster.history(LEASES)]
    assert held[held.index(leader) :].count("") == 1
    assert eventually(lambda: second.metric("gpugate_certificate_leader") == 1)


def test_a_lease_that_may_not_be_written_is_told(cluster: KeptCluster, replica: Callable[..., Replica]) -> None:
    cluster.api.forbidden = {LEASES[1]}
    started = replica(cluster)
    assert eventually(lambda: any("leases 'gpugate'" in reason for reason in started.reasons()))
    assert eventually(lambda: "the leading replica creates it" in started.get("/readyz")[1])
    assert cluster.bundles() == [b""] * len(cluster.bundles())
