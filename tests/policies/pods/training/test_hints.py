"""A hint names a label of nodes only where the policy file or a NodePool of the run has it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.load import RunFacts

HEAD = {"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig"}
OWN = {**HEAD, "platform": {"workload_classes": {"node_selectors": {"tier": {"train": "training"}}}}}
POD: Any = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "trainer", "namespace": "ml", "labels": {"gpugate.dev/workload-class": "training"}},
    "spec": {"containers": [{"name": "a", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}


def pool(**labels: str) -> Request:
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
            "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g5", "g6"]}],
        },
    }
    obj: Any = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"template": template},
    }
    return Request(GroupVersionKind("karpenter.sh", "v1", "NodePool"), Operation.CREATE, obj, name="gpu")


ON_SPOT: Any = {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}}


@pytest.mark.parametrize(
    ("config", "pools", "hint"),
    [
        pytest.param(
            HEAD,
            [],
            "on nodes of Karpenter, add karpenter.sh/capacity-type: on-demand (or reserved) to nodeSelector",
            id="nothing is known of nodes",
        ),
        pytest.param(
            HEAD,
            [pool(team="a")],
            "add karpenter.sh/capacity-type: on-demand (or reserved) to nodeSelector",
            id="no NodePool has the shipped label",
        ),
        pytest.param(
            HEAD,
            [pool(**{"node-type": "gpu-training"})],
            "add node-type: gpu-training and karpenter.sh/capacity-type: on-demand (or reserved) to nodeSelector",
            id="a NodePool has the shipped label",
        ),
        pytest.param(
            OWN,
            [pool(team="a")],
            "add tier: train and karpenter.sh/capacity-type: on-demand (or reserved) to nodeSelector",
            id="the policy file names a label",
        ),
    ],
)
def test_training_is_sent_to_labels_that_nodes_have(config: Any, pools: list[Request], hint: str) -> None:
    pod: Any = POD if pools else {**POD, "spec": {**POD["spec"], **ON_SPOT}}
    request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod, name="trainer", namespace="ml")
    ruleset = bind(CATALOG, parse_config(config))
    verdict = evaluate(ruleset, request, RunFacts(pools), today=dt.date(2026, 11, 22))
    (found,) = (each for each in verdict.findings if each.policy == "pods/training-on-spot")
    assert found.hint == hint
