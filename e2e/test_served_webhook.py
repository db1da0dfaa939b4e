"""gpugate as the API server meets it: registered, with a policy file that changes, and not registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from violating import UNLIMITED, node_pool

from gpugate.webhook.manifests.policy_file import PolicyFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

OFF = """apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies: {nodepools/missing-gpu-limit: {mode: "off"}}
"""


@pytest.fixture
def changed(webhook: ServedWebhook) -> Iterator[ServedWebhook]:
    yield webhook
    webhook.reset()


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize(("resources", "why"), [(1, "pods/hidden-gpu-access"), (4200, "too large to evaluate")])
def test_a_pod_that_names_gpus_is_denied_whatever_its_size(api: Api, namespace: str, resources: int, why: str) -> None:
    zero = {f"example.com/resource-{number}": "0" for number in range(resources)}
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"limits": zero, "requests": zero},
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
    }
    answer = api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "names-gpus", "namespace": namespace},
            "spec": {"containers": [container]},
        }
    )
    assert (answer.ok, why in answer.message) == (False, True), answer.message


@pytest.mark.usefixtures("webhook")
def test_what_a_policy_denies_is_not_stored(api: Api) -> None:
    pool = node_pool()
    answer = api.create(pool)
    assert not answer.ok
    assert UNLIMITED in answer.message
    assert api.get(pool) == {}


def test_a_policy_that_is_off_denies_nothing(api: Api, changed: ServedWebhook) -> None:
    changed.use(OFF)
    assert api.create(node_pool(), dry_run=True).message == ""


def test_a_policy_file_that_is_refused_says_why(changed: ServedWebhook) -> None:
    with pytest.raises(PolicyFileError, match="nodepools/no-such-policy"):
        changed.use(OFF.replace("missing-gpu-limit", "no-such-policy"))


@pytest.mark.usefixtures("unregistered")
def test_nothing_is_asked_of_a_webhook_that_is_not_registered(api: Api) -> None:
    assert api.create(node_pool(), dry_run=True).message == ""
