"""Fixtures: a fake API server, and reflectors that call it without waiting.

`api` serves Deployments, HorizontalPodAutoscalers, NodePools and Namespaces. `clock` advances only by the test.
A separate `world` has the `holder` of a Lease and an `other` candidate.
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
    """Create a server that is not started, so its port refuses connections."""
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
    connection = connected(api, tmp_path)
    yield connection
    connection.close()


@pytest.fixture
def synced(api: FakeApiServer, connection: Connection, clock: FakeClock) -> Reflected:
    """Create a reflector that has listed the Deployments `a` and `b`; its next step is a watch."""
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
    candidate = world.candidate("a")
    candidate.step()
    return candidate


@pytest.fixture
def other(world: World, holder: Candidate) -> Candidate:
    """Create a candidate that has read the Lease of the holder."""
    assert holder.is_leader
    candidate = world.candidate("b")
    candidate.step()
    return candidate
