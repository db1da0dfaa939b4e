"""`gpugate webhook status` of a webhook that is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from operated import NAME, Operated
from violating import node_pool

if TYPE_CHECKING:
    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook

pytestmark = pytest.mark.usefixtures("unregistered")


@pytest.fixture
def operated(api: Api, control_plane: ControlPlane) -> Operated:
    return Operated(api, control_plane.admin_kubeconfig)


def test_what_the_api_server_has_counted(api: Api, operated: Operated, webhook: ServedWebhook) -> None:
    def counted() -> dict[str, dict[str, int]]:
        document = json.loads(operated.webhook("status", "-o", "json").stdout)
        return {entry["webhook"]: entry["counters"] for entry in document["entries"]}

    with operated.registered(webhook.url, webhook.authority.read_bytes()):
        operated.webhook("wait")
        before = counted()
        for _ in range(7):
            api.create(node_pool(), dry_run=True)
        after = counted()

    rose = {name: after[name]["calls"] - before[name]["calls"] for name in after if after[name] != before[name]}
    assert set(rose.values()) == {7}
    assert any(after[name]["denied"] - before[name]["denied"] == 7 for name in rose)


def test_the_table(operated: Operated, webhook: ServedWebhook) -> None:
    with operated.registered(webhook.url, webhook.authority.read_bytes()):
        on = operated.webhook("status")
        operated.webhook("disable", "--yes", "--reason", "INC-1")
        off = operated.webhook("status")
    absent = operated.webhook("status")

    print(on.stdout, off.stdout, absent.stdout)
    assert on.stdout.startswith("CONFIGURATION ")
    assert f"validating/{NAME}  probe.validate.gpugate.dev" in on.stdout
    assert (on.returncode, off.returncode, absent.returncode) == (0, 1, 1)
    assert "by admin: INC-1; to enable it: gpugate webhook enable" in off.stdout
    assert f"MutatingWebhookConfiguration {NAME} does not exist" in absent.stdout
