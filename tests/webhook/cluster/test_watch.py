"""Test the threads of a cluster watch against a fake API server; tests wait for conditions, never for a fixed time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from cluster.reflected import DEPLOYMENTS, connected, deployment, needs_of

from gpugate.policies.sdk.facts import Known, Unavailable
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE_POOL
from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.facts import ClusterWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fake_api_server import FakeApiServer

    from gpugate.policies.engine.ruleset import Needs
    from gpugate.webhook.cluster.reflector import KindState

# SOME needs replicas of Deployments and autoscalers; MORE needs node selectors of Deployments and NodePools.
SOME, MORE = "disruption/blocking-pdb", "nodepools/shared-by-classes"
# Waits of milliseconds instead of seconds, with the real clock.
SHORT_WAITS = Chance(random=lambda: -0.99)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Watched:
    def __init__(self, api: FakeApiServer, folder: Path, needs: Needs) -> None:
        self.reports: list[KindState] = []
        self.watch = ClusterWatch(connected(api, folder), needs, self.reports.append, SHORT_WAITS)

    def replicas(self) -> list[object] | None:
        fact = self.watch.facts.list(DEPLOYMENT, "ml")
        return [i["spec", "replicas"].value for i in fact.items] if isinstance(fact, Known) else None


@pytest.fixture
def watched(api: FakeApiServer, tmp_path: Path) -> Iterator[Watched]:
    api.store.put(DEPLOYMENTS, deployment("a"))
    cluster_watch = Watched(api, tmp_path, needs_of(SOME))
    yield cluster_watch
    cluster_watch.watch.stop()


def test_changes_reach_policies(api: FakeApiServer, watched: Watched) -> None:
    before = watched.watch.missing()
    watched.watch.start()
    until(lambda: not watched.watch.missing())

    api.store.put(DEPLOYMENTS, deployment("a", replicas=5))
    until(lambda: watched.replicas() == [5])

    assert "facts: deployments.apps not listed yet" in before
    assert watched.watch.ages()[DEPLOYMENT] == 0


def test_a_kind_that_is_not_served_does_not_delay_readiness(api: FakeApiServer, watched: Watched) -> None:
    del api.store.resources["karpenter.sh", "nodepools"]
    watched.watch.update_needs(needs_of(MORE))

    until(lambda: not watched.watch.missing())

    assert isinstance(watched.watch.facts.list(NODE_POOL), Unavailable)


def test_a_forbidden_kind_does_not_delay_readiness(api: FakeApiServer, watched: Watched) -> None:
    api.forbidden.add("deployments")
    watched.watch.start()

    until(lambda: not watched.watch.missing())

    assert watched.watch.facts.list(DEPLOYMENT) == Unavailable("gpugate may not list and watch deployments.apps")


def test_an_api_server_that_starts_late(closed_api: FakeApiServer, tmp_path: Path) -> None:
    watched = Watched(closed_api, tmp_path, needs_of(SOME))
    watched.watch.start()
    until(lambda: all("connection refused" in line for line in watched.watch.missing()))
    before = watched.watch.facts.list(DEPLOYMENT)

    closed_api.start()
    until(lambda: not watched.watch.missing())

    assert before == Unavailable("deployments.apps not read yet")
    assert watched.replicas() == []
    watched.watch.stop()


def test_an_outage_keeps_data_and_readiness(api: FakeApiServer, watched: Watched) -> None:
    watched.watch.start()
    until(lambda: not watched.watch.missing())

    api.stop()
    until(lambda: watched.watch.ages()[DEPLOYMENT] > 0)

    assert watched.watch.missing() == ()
    assert watched.replicas() == [1]


def test_old_data_is_used_until_new_needs_are_read(api: FakeApiServer, watched: Watched) -> None:
    watched.watch.start()
    until(lambda: not watched.watch.missing())
    api.store.put(("karpenter.sh", "nodepools"), {"metadata": {"name": "gpu"}})

    watched.watch.update_needs(needs_of(SOME, MORE))
    replicas, ready = watched.replicas(), watched.watch.missing()
    until(lambda: not watched.watch.unread())

    assert (replicas, ready) == ([1], ())
    assert isinstance(watched.watch.facts.list(NODE_POOL), Known)
    assert len(api.asked("deployments?limit")) == 2
    assert len(api.asked("horizontalpodautoscalers?limit")) == 1


def test_unneeded_kinds_are_removed(watched: Watched) -> None:
    watched.watch.start()
    until(lambda: not watched.watch.missing())

    watched.watch.update_needs(needs_of("pods/unknown-mig-profile"))

    assert watched.watch.facts.list(DEPLOYMENT) == Unavailable("deployments.apps not watched")
    assert DEPLOYMENT not in watched.watch.ages()


def test_stopping_ends_open_watches(api: FakeApiServer, watched: Watched) -> None:
    watched.watch.start()
    until(lambda: not watched.watch.missing() and api.watching == 2)  # Deployments and autoscalers are served

    watched.watch.stop()

    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("facts-")] == []
    assert isinstance(watched.watch.facts.list(DEPLOYMENT), Known)


def test_the_client_is_not_imported_before_a_connection() -> None:
    program = (
        "import sys; import gpugate.webhook.cluster.facts, gpugate.webhook.cluster.connection; "
        "print({'kubernetes', 'urllib3'} & set(sys.modules))"
    )

    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 -- fixed arguments

    assert process.stdout == "set()\n"
