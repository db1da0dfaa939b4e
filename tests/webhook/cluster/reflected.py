"""Helpers for tests of reflectors: needs, objects, a clock, and a reflector with recorded reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.objects import DEPLOYMENT
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.facts import ClusterFacts
from gpugate.webhook.cluster.objects import Projection
from gpugate.webhook.cluster.options import ClusterOptions
from gpugate.webhook.cluster.reflector import Reflector, Reporter

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.fake_api_server import FakeApiServer

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.reflector import KindState

DEPLOYMENTS = ("apps", "deployments")
WATCH = "deployments?watch=true"
# Random numbers are 0.5 here: half way between 0.8 and 1.6 seconds at first, then doubled.
FIRST, SECOND, THIRD = (pytest.approx(wait) for wait in (1.2, 2.4, 4.8))


def needs_of(*policies: str) -> Needs:
    return Needs(bind(CATALOG, PolicyConfig(), policies or None).rules)


def deployment(name: str, namespace: str = "ml", replicas: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, "managedFields": [{"manager": "kubectl"}]},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        "status": {"observedGeneration": 1},
    }


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def connected(api: FakeApiServer, folder: Path) -> Connection:
    return connect(ClusterOptions(api.kubeconfig(folder / "kubeconfig")))


class Reflected:
    """A reflector of one kind; `reports` contains its reported states."""

    def __init__(self, connection: Connection, clock: FakeClock, kind: Kind = DEPLOYMENT) -> None:
        self.kind = kind
        self.clock = clock
        self.facts = ClusterFacts()
        self.reports: list[KindState] = []
        self.facts.accept_writer(kind, self)
        self.reporter = Reporter(kind, lambda objects: self.facts.put(kind, self, objects), self.reports.append, clock)
        chance = Chance(clock, lambda: 0.5)
        self.reflector = Reflector(kind, Projection(kind, needs_of()), connection, self.reporter, chance)

    def steps(self, count: int) -> list[float]:
        """Make some calls, advance the clock by the wait after each, and return the waits."""
        waits = []
        for _ in range(count):
            waits.append(self.reflector.step())
            self.clock.now += waits[-1]
        return waits

    @property
    def names(self) -> list[str]:
        fact = self.facts.list(self.kind)
        assert isinstance(fact, Known), fact
        assert fact.complete
        return [item["metadata", "name"].text for item in fact.items]

    @property
    def statuses(self) -> list[str]:
        return [state.status.value for state in self.reports]
