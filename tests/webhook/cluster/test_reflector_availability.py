from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, status
from cluster.reflected import DEPLOYMENTS, WATCH, Reflected

from gpugate.policies.sdk.facts import Unavailable
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE_POOL
from gpugate.webhook.cluster.reflector import KindStatus

if TYPE_CHECKING:
    from cluster.fake_api_server import FakeApiServer
    from cluster.reflected import FakeClock

    from gpugate.webhook.cluster.connection import Connection


def test_an_outage_is_reported_after_the_grace_period(api: FakeApiServer, synced: Reflected, clock: FakeClock) -> None:
    api.answers += [Answer(WATCH, cut=True) for _ in range(2)]
    synced.steps(1)
    ages = [synced.reporter.age()]

    clock.now += 10
    api.answers.insert(0, status(WATCH, 429, "TooManyRequests"))
    synced.steps(1)
    ages.append(synced.reporter.age())

    assert synced.statuses == ["synced", "stale"]
    assert ages == pytest.approx([1.2, 1.2 + 10 + 2.4])
    assert synced.names == ["a", "b"]


def test_a_forbidden_kind_is_unavailable_and_reported_once_a_minute(
    api: FakeApiServer, synced: Reflected, clock: FakeClock
) -> None:
    api.forbidden.add("deployments")
    started = clock.now

    while clock.now - started < 119:
        synced.steps(1)

    assert synced.facts.list(DEPLOYMENT) == Unavailable("gpugate may not list and watch deployments.apps")
    assert synced.statuses == ["synced", "forbidden", "forbidden"]


def test_a_kind_is_read_after_permission_is_granted(api: FakeApiServer, synced: Reflected) -> None:
    api.forbidden.add("deployments")
    synced.steps(2)
    api.forbidden.clear()

    synced.steps(2)

    assert synced.names == ["a", "b"]


def test_a_later_crd_is_discovered_within_a_minute(
    api: FakeApiServer, connection: Connection, clock: FakeClock
) -> None:
    nodepools = api.store.resources.pop(("karpenter.sh", "nodepools"))
    reflected = Reflected(connection, clock, NODE_POOL)
    waits = reflected.steps(1)
    before = reflected.facts.list(NODE_POOL)
    api.store.serve(nodepools)
    api.store.put(("karpenter.sh", "nodepools"), {"metadata": {"name": "gpu"}})

    reflected.steps(2)

    assert waits == [52.5]
    assert before == Unavailable("the cluster does not serve nodepools.karpenter.sh")
    assert reflected.names == ["gpu"]
    assert reflected.statuses == ["not_served", "synced"]


def test_a_kind_becomes_unavailable_when_its_crd_is_deleted(api: FakeApiServer, synced: Reflected) -> None:
    del api.store.resources[DEPLOYMENTS]

    synced.steps(2)

    assert synced.facts.list(DEPLOYMENT) == Unavailable("the cluster does not serve deployments.apps")
    assert synced.reporter.state.status is KindStatus.NOT_SERVED
