from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.reflected import connected
from operate.fake_installation import MUTATING, VALIDATING, Cluster

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.operate.installation import Names, find_names
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULESET = bind(CATALOG, PolicyConfig())
SERVERS = {
    "none": (None, Names()),
    "by default": (Server(b"ca"), Names()),
    "elsewhere": (
        Server(b"ca", namespace="platform", service="gate"),
        Names(namespace="platform", service="gate"),
    ),
    "by URL": (Server(b"ca", namespace="platform", url="https://10.0.0.1:8443"), Names(namespace="platform")),
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made.start()
    made.stop()


@pytest.mark.parametrize(("server", "names"), SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("forbidden", [set(), {"mutatingwebhookconfigurations"}], ids=["readable", "half readable"])
def test_names_are_those_that_the_configurations_say(
    cluster: Cluster, tmp_path: Path, server: Server | None, names: Names, forbidden: set[str]
) -> None:
    cluster.forbidden |= forbidden
    if server:
        for plural, found in zip((MUTATING, VALIDATING), webhook_configurations(RULESET, server), strict=True):
            cluster.store.put(plural, found)
    connection = connected(cluster, tmp_path)

    assert find_names(connection, "gpugate", None) == names
    assert find_names(connection, "gpugate", "given").namespace == "given"
    connection.close()


def test_parts_are_called_after_the_configurations(cluster: Cluster, tmp_path: Path) -> None:
    connection = connected(cluster, tmp_path)

    found = find_names(connection, "gate-a", None)
    connection.close()

    assert (found.service, found.secret, found.lease) == ("gate-a", "gate-a-certificates", "gate-a")
    assert found.service_account == "gate-a"
