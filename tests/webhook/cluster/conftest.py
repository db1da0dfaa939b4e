"""A fake API server that listens, and reflectors that look at it without waiting.

`api` serves Deployments, HorizontalPodAutoscalers, NodePools and Namespaces. `clock` stands still until it is turned.
Beside it, in a `world` of its own, the `holder` of a Lease and an `other` candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.candidates import World
from cluster.fake_api_server import FakeApiServer
from cluster.reflected import DEPLOYMENTS, FakeClock, Reflected, connected, deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.candidates import Candidate

    from gpugate.webhook.cluster.connection import Connection


@pytest.fixture
def closed_api() -> Iterator[FakeApiServer]:
    """Not started: its port refuses connections."""
    server = FakeApiServer()
    server.serve("apps", ("v1",), "Deployment", "deployments")
    server.serve("autoscaling", ("v2", "v1"), "HorizontalPodAutoscaler", "horizontalpodautoscalers")
    server.serve("karpenter.sh", ("v1",), "NodePool", "nodepools", namespaced=False)
    server.serve("", ("v1",), "Namespace", "namespaces", namespaced=False)
    yield server
    server.stop()


@pytest.fixture
def api(closed_api: FakeApiServer) -> FakeApiServer:
    return closed_api.start()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def connection(api: FakeApiServer, tmp_path: Path) -> Iterator[Connection]:
    made = connected(api, tmp_path)
    yield made
    made.close()


@pytest.fixture
def synced(api: FakeApiServer, connection: Connection, clock: FakeClock) -> Reflected:
    """Has listed the Deployments `a` and `b`, and is about to watch."""
    api.short_watches = True
    api.store.put(DEPLOYMENTS, deployment("a"))
    api.store.put(DEPLOYMENTS, deployment("b"))
    reflected = Reflected(connection, clock)
    reflected.steps(2)
    return reflected


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def holder(world: World) -> Candidate:
    made = world.candidate("a")
    made.step()
    return made


@pytest.fixture
def other(world: World, holder: Candidate) -> Candidate:
    """Has just seen that somebody else holds the Lease."""
    assert holder.is_leader
    made = world.candidate("b")
    made.step()
    return made
