"""GPU Pods reach tainted nodes with gpugate and only with it; other Pods never do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from gpu_pods import added_tolerations, create, is_running, pod, protection, until_unscheduled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

GPU = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
NEURON = {"key": "aws.amazon.com/neuron", "value": "true", "effect": "NoSchedule"}
H100 = {"key": "example.com/h100", "value": "reserved", "effect": "NoSchedule"}
SPOT = {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"}
UNKNOWN = {"key": "example.com/maintenance", "value": "true", "effect": "NoSchedule"}

TWO_TAINTS = """
apiVersion: gpugate.dev/v1
kind: PolicyConfig
platform:
  taints:
    nvidia.com/gpu:
      - key: nvidia.com/gpu
      - key: example.com/h100
        value: reserved
"""
SPOT_FOR_INFERENCE = """
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies:
  pods/missing-gpu-toleration:
    params:
      extra_tolerations:
        inference:
          - key: karpenter.sh/capacity-type
            value: spot
"""


@dataclass(frozen=True)
class Accelerator:
    """What a Pod asks for, the taints of the nodes that have it, and the policy that makes gpugate know them."""

    resource: str
    taints: tuple[dict[str, str], ...] = (GPU,)
    policy: str = ""
    workload: str = "batch"


ACCELERATORS = {
    "whole GPU": Accelerator("nvidia.com/gpu"),
    "shared GPU": Accelerator("nvidia.com/gpu.shared"),
    "MIG slice": Accelerator("nvidia.com/mig-1g.10gb"),
    "Neuron device": Accelerator("aws.amazon.com/neuron", (NEURON,)),
    "Neuron core": Accelerator("aws.amazon.com/neuroncore", (NEURON,)),
    "two taints of the platform": Accelerator("nvidia.com/gpu", (GPU, H100), TWO_TAINTS),
    "inference on Spot": Accelerator("nvidia.com/gpu", (GPU, SPOT), SPOT_FOR_INFERENCE, "inference"),
}
each_accelerator = pytest.mark.parametrize("accelerator", ACCELERATORS.values(), ids=ACCELERATORS)


@pytest.fixture
def use(webhook: ServedWebhook) -> Iterator[Callable[[str], None]]:
    yield webhook.use
    webhook.reset()


@pytest.fixture
def node_of(gpu_node: Callable[..., dict[str, Any]]) -> Callable[[Accelerator], str]:
    """Make a node that has the accelerator; return its name."""

    def make(accelerator: Accelerator) -> str:
        # With room beside Pods that other tests have left pending.
        node = gpu_node({}, accelerator.taints, {accelerator.resource: "64"})
        return str(node["metadata"]["name"])

    return make


def asks_for(accelerator: Accelerator, namespace: str) -> dict[str, Any]:
    labels = {"gpugate.dev/workload-class": accelerator.workload}
    return pod("gpu", namespace, {accelerator.resource: "1"}, labels=labels)


@each_accelerator
def test_is_scheduled_although_its_manifest_tolerates_nothing(
    accelerator: Accelerator,
    api: Api,
    namespace: str,
    use: Callable[[str], None],
    node_of: Callable[[Accelerator], str],
) -> None:
    node = node_of(accelerator)
    if accelerator.policy:
        use(accelerator.policy)
    stored = create(api, asks_for(accelerator, namespace)).body
    assert {t["key"] for t in added_tolerations(stored)} == {taint["key"] for taint in accelerator.taints}
    assert api.eventually(stored, is_running)["spec"]["nodeName"] == node


@each_accelerator
@pytest.mark.usefixtures("unregistered")
def test_stays_pending_without_gpugate(
    accelerator: Accelerator, api: Api, namespace: str, node_of: Callable[[Accelerator], str]
) -> None:
    node_of(accelerator)
    stored = create(api, asks_for(accelerator, namespace)).body
    assert added_tolerations(stored) == []
    until_unscheduled(api, stored, "untolerated taint")


@each_accelerator
@pytest.mark.usefixtures("webhook")
def test_a_pod_without_gpu_stays_off_the_node(
    accelerator: Accelerator, api: Api, namespace: str, node_of: Callable[[Accelerator], str]
) -> None:
    web = pod("web", namespace)
    web["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node_of(accelerator)}
    stored = create(api, web).body
    assert (added_tolerations(stored), protection(stored)) == ([], None)
    until_unscheduled(api, stored, "untolerated taint")


def test_training_stays_off_spot_nodes_where_inference_may_run(
    api: Api, namespace: str, use: Callable[[str], None], node_of: Callable[[Accelerator], str]
) -> None:
    training = Accelerator("nvidia.com/gpu", (GPU, SPOT), SPOT_FOR_INFERENCE, "training")
    node_of(training)
    use(training.policy)
    stored = create(api, asks_for(training, namespace)).body
    assert [t["key"] for t in added_tolerations(stored)] == ["nvidia.com/gpu"]
    until_unscheduled(api, stored, "untolerated taint")


@pytest.mark.usefixtures("webhook")
def test_a_taint_that_is_not_configured_keeps_gpu_pods_away(
    api: Api, namespace: str, node_of: Callable[[Accelerator], str]
) -> None:
    cordoned = Accelerator("nvidia.com/gpu", (GPU, UNKNOWN))
    node_of(cordoned)
    stored = create(api, asks_for(cordoned, namespace)).body
    until_unscheduled(api, stored, "untolerated taint")
