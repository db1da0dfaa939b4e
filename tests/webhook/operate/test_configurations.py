from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.reflected import connected
from operate.fake_installation import MUTATING, Cluster

from gpugate.webhook.cluster.errors import ApiError
from gpugate.webhook.operate.installation import both

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpugate.webhook.cluster.connection import Connection

Json = dict[str, Any]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.install()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def connection(cluster: Cluster, tmp_path: Path) -> Iterator[Connection]:
    made = connected(cluster, tmp_path)
    yield made
    made.close()


def labelled(found: Json, **labels: str) -> Json:
    return {**found, "metadata": {**found["metadata"], "labels": {**found["metadata"]["labels"], **labels}}}


def meanwhile(cluster: Cluster, times: int) -> Callable[[Json], Json]:
    """Change a configuration, while another client writes it some times."""
    left = [times]

    def change(found: Json) -> Json:
        if left[0]:
            left[0] -= 1
            cluster.store.put(MUTATING, labelled(cluster.store.all(MUTATING)[0], theirs=str(left[0])))
        return labelled(found, ours="yes")

    return change


@pytest.mark.parametrize("times", [0, 1, 4])
def test_concurrent_changes_are_not_lost(cluster: Cluster, connection: Connection, times: int) -> None:
    mutating, _ = both("gpugate")

    assert mutating.change(connection, meanwhile(cluster, times))

    labels = cluster.store.all(MUTATING)[0]["metadata"]["labels"]
    assert labels["ours"] == "yes"
    assert labels.get("theirs") == ("0" if times else None)


def test_a_writer_that_never_stops(cluster: Cluster, connection: Connection) -> None:
    mutating, _ = both("gpugate")

    with pytest.raises(ApiError, match="409"):
        mutating.change(connection, meanwhile(cluster, 100))


def test_an_unchanged_configuration_is_not_written(cluster: Cluster, connection: Connection) -> None:
    mutating, _ = both("gpugate")

    assert not mutating.change(connection, lambda found: found)
    assert cluster.asked("PUT") == []


def test_one_that_does_not_exist(cluster: Cluster, connection: Connection) -> None:
    absent, _ = both("another")

    assert (absent.read(connection), absent.change(connection, labelled), absent.delete(connection)) == (
        None,
        False,
        False,
    )
    assert cluster.asked("PUT") == []
