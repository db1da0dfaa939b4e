"""Replicas of a webhook that keep their certificates in a fake cluster.

`cluster` is one of its own with an API server that listens; `replica(cluster, ...)` starts a replica. `kept` is one
replica in a cluster for all tests of a file, ready, and put right after each of them.
"""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, NamedTuple

import pytest
from eventually import eventually
from kept.cluster import KeptCluster
from kept.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def listening() -> Iterator[KeptCluster]:
    made = KeptCluster()
    made.api.start()
    yield made
    made.api.stop()


@pytest.fixture
def cluster() -> Iterator[KeptCluster]:
    with listening() as made:
        yield made


@pytest.fixture
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Replica]]:
    with contextlib.ExitStack() as stack:

        def start(cluster: KeptCluster, *flags: str) -> Replica:
            started = Replica(cluster, tmp_path_factory.mktemp("replica"), *flags)
            stack.callback(started.stop)
            return started

        yield start


class Kept(NamedTuple):
    cluster: KeptCluster
    replica: Replica


@pytest.fixture(scope="module")
def kept_by_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with listening() as cluster:
        replica = Replica(cluster, tmp_path_factory.mktemp("replica"))
        try:
            assert eventually(replica.ready)
            yield Kept(cluster, replica)
        finally:
            replica.stop()


@pytest.fixture
def kept(kept_by_one: Kept) -> Iterator[Kept]:
    yield kept_by_one
    kept_by_one.cluster.api.forbidden.clear()
    kept_by_one.replica.signal(signal.SIGHUP)
    assert eventually(lambda: kept_by_one.replica.metric("gpugate_certificate_management_healthy") == 1)
