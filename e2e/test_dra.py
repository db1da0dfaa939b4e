"""MIG slices through Dynamic Resource Allocation: from the annotation of a Pod to a device on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mig_devices as mig
import pytest
from cluster.namespaces import made_namespaces
from gpu_pods import (
    IN_EVERY_WORKER,
    added_tolerations,
    claims,
    create,
    is_running,
    pod,
    until,
    until_unscheduled,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

    Object = dict[str, Any]

WANTED = {"gpugate.dev/mig-profile": mig.PROFILE}
STATIC_NODES = """
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies:
  pods/mig-without-claim:
    mode: enforce
    params:
      mig_nodes: static
"""


@pytest.fixture(scope="module", autouse=True)
def claims_are_made(webhook: ServedWebhook) -> Iterator[None]:
    webhook.use(STATIC_NODES)
    yield
    webhook.reset()


@pytest.fixture
def node(api: Api, gpu_node: Callable[..., Object]) -> Iterator[Callable[[int], str]]:
    with mig.mig_nodes(api, gpu_node) as make:
        yield make


@pytest.fixture
def another_namespace(api: Api, namespace: str) -> Iterator[str]:
    name = f"{namespace}-other"
    with made_namespaces(api, name):
        yield name


def wants_a_slice(name: str, namespace: str) -> Object:
    return pod(name, namespace, annotations=WANTED)


def offer_template(api: Api, namespace: str, spec: Object | None = None) -> list[str]:
    """Create the template, wait until gpugate gives claims of it, and return the warnings of its creation."""
    answer = create(api, mig.claim_template(namespace, spec))
    asked = until(
        lambda: api.create(wants_a_slice("asked", namespace), dry_run=True),
        lambda asked: "resourceClaims" in asked.body["spec"],
        IN_EVERY_WORKER,
    )
    assert "resourceClaims" in asked.body["spec"], asked.warnings
    return answer.warnings


def claim_of(api: Api, stored: Object) -> Object:
    """Return the claim that the controller made for a Pod, once it is there."""
    known = api.eventually(stored, lambda found: found["status"].get("resourceClaimStatuses"))
    name = known["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    metadata = {"name": name, "namespace": stored["metadata"]["namespace"]}
    return api.get({"apiVersion": mig.API_VERSION, "kind": "ResourceClaim", "metadata": metadata})


def events_of(api: Api, stored: Object) -> list[str]:
    namespace = stored["metadata"]["namespace"]
    about = f"involvedObject.uid={stored['metadata']['uid']}"
    return [event["message"] for event in api.list("v1", "Event", namespace, fieldSelector=about)]


def test_gets_a_claim_a_device_and_a_node(
    api: Api,
    namespace: str,
    node: Callable[[int], str],
    kubectl: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    name = node(1)
    offer_template(api, namespace)
    stored = create(api, wants_a_slice("llm", namespace)).body
    assert stored["spec"]["resourceClaims"] == [
        {"name": "main-mig-1g-10gb", "resourceClaimTemplateName": mig.TEMPLATE},
    ]
    assert stored["spec"]["containers"][0]["resources"] == {"claims": [{"name": "main-mig-1g-10gb"}]}
    assert [t["key"] for t in added_tolerations(stored)] == ["nvidia.com/gpu"]

    assert api.eventually(stored, is_running)["spec"]["nodeName"] == name
    claim = claim_of(api, stored)
    (device,) = claim["status"]["allocation"]["devices"]["results"]
    assert {key: device[key] for key in ("driver", "pool", "device")} == {
        "driver": mig.DRIVER,
        "pool": name,
        "device": mig.device_name(0),
    }
    assert [consumer["uid"] for consumer in claim["status"]["reservedFor"]] == [stored["metadata"]["uid"]]
    shown = kubectl("get", "resourceclaims", "-n", namespace, "--no-headers").stdout
    assert "allocated,reserved" in shown


def test_an_extended_resource_becomes_a_claim_that_is_allocated(
    api: Api, namespace: str, node: Callable[[int], str]
) -> None:
    name = node(1)
    offer_template(api, namespace)
    stored = create(api, pod("llm", namespace, {"nvidia.com/mig-1g.10gb": "1"})).body
    assert stored["spec"]["containers"][0]["resources"] == {"claims": [{"name": "main-mig-1g-10gb"}]}
    assert api.eventually(stored, is_running)["spec"]["nodeName"] == name
    assert claim_of(api, stored)["status"]["allocation"]["devices"]["results"][0]["device"] == mig.device_name(0)


def test_a_second_pod_waits_while_the_slice_is_exhausted(api: Api, namespace: str, node: Callable[[int], str]) -> None:
    node(1)
    offer_template(api, namespace)
    first = create(api, wants_a_slice("first", namespace)).body
    api.eventually(first, is_running)
    second = create(api, wants_a_slice("second", namespace)).body
    until_unscheduled(api, second, "cannot allocate all claims")
    assert "allocation" not in claim_of(api, second).get("status", {})
    api.delete(first)
    assert api.eventually(second, is_running)["metadata"]["name"] == "second"


def test_two_pods_share_a_gpu_and_no_device(api: Api, namespace: str, node: Callable[[int], str]) -> None:
    node(2)
    offer_template(api, namespace)
    pods = [create(api, wants_a_slice(name, namespace)).body for name in ("first", "second")]
    for stored in pods:
        api.eventually(stored, is_running)
    claims = [claim_of(api, stored) for stored in pods]
    devices = {claim["status"]["allocation"]["devices"]["results"][0]["device"] for claim in claims}
    assert devices == {mig.device_name(0), mig.device_name(1)}


def test_a_template_of_another_namespace_is_not_found(
    api: Api, namespace: str, another_namespace: str, node: Callable[[int], str]
) -> None:
    node(1)
    offer_template(api, another_namespace)
    answer = create(api, wants_a_slice("llm", namespace))
    assert "resourceClaims" not in answer.body["spec"]
    assert any(f"the namespace has no ResourceClaimTemplate {mig.TEMPLATE}" in w for w in answer.warnings)


def test_an_event_is_the_only_sign_that_a_template_is_missing(
    api: Api, namespace: str, another_namespace: str, node: Callable[[int], str]
) -> None:
    node(1)
    offer_template(api, another_namespace)
    answer = create(api, claims("llm", namespace, resourceClaimTemplateName=mig.TEMPLATE))
    assert any(f"namespace {namespace} has no ResourceClaimTemplate {mig.TEMPLATE}" in w for w in answer.warnings)
    said = until(lambda: events_of(api, answer.body), bool)
    assert f'resourceclaimtemplate.resource.k8s.io "{mig.TEMPLATE}" not found' in said[0]
    assert "conditions" not in api.get(answer.body)["status"]


def test_a_template_that_comes_after_the_pod_is_too_late_for_the_toleration(
    api: Api, namespace: str, node: Callable[[int], str]
) -> None:
    node(1)
    stored = create(api, claims("llm", namespace, resourceClaimTemplateName=mig.TEMPLATE)).body
    create(api, mig.claim_template(namespace))
    until_unscheduled(api, stored, "untolerated taint")


def test_a_class_that_does_not_exist_is_named_at_once_and_by_the_scheduler(
    api: Api, namespace: str, node: Callable[[int], str]
) -> None:
    node(1)
    warnings = offer_template(api, namespace, mig.claim_spec("mig-h200.nvidia.com"))
    assert any("DeviceClass mig-h200.nvidia.com does not exist" in warning for warning in warnings)
    stored = create(api, wants_a_slice("llm", namespace)).body
    until_unscheduled(api, stored, "device class mig-h200.nvidia.com does not exist")
