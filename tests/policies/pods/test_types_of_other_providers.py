"""Policies on the CPU and memory beside a GPU, with the instance types of providers other than EC2."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from library_examples import ruleset_of

from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.load import RunFacts

Json = dict[str, Any]
TYPE = "node.kubernetes.io/instance-type"
SHARE = ": up to 11 CPU and 62 GiB for each GPU fit on every instance type that the Pod can get"
LARGE = {"name": "rack-8", "capacity": {"cpu": 96, "memory": "515Gi"}}
RACK = {**LARGE, "allocatable": {"cpu": "95", "memory": "500Gi", "nvidia.com/gpu": 8}}
OTHER = {"name": "rack-4", "capacity": {"cpu": 64, "memory": "515Gi"}}
SMALL = {**OTHER, "allocatable": {"cpu": "63", "memory": "507Gi", "nvidia.com/gpu": 4}}


def node_pool(name: str, group: str, kind: str, **labels: str) -> Json:
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    reference = {"group": group, "kind": kind, "name": "gpu"}
    taints = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements, "taints": taints}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template},
    }


ON_PREMISES = node_pool("rack", "karpenter.example.com", "RackNodeClass", **{TYPE: "rack-8"})
ON_EC2 = node_pool("ec2", "karpenter.k8s.aws", "EC2NodeClass", **{TYPE: "p4d.24xlarge"})


def findings(
    policy: str, requests: Json, *pools: Json, types: tuple[Json, ...] = (RACK,), select: str = "", **own: Any
) -> list[str]:
    """Return message and hint of what a policy finds in a Deployment whose Pods request one GPU."""
    platform = {"catalogue": {"types": list(types), **own}}
    config = parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "platform": platform})
    spec: Json = {
        "containers": [
            {"name": "c", "image": "i:1", "resources": {"requests": requests, "limits": {"nvidia.com/gpu": 1}}}
        ],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    }
    if select:
        spec["nodeSelector"] = {TYPE: select}
    obj: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {"template": {"spec": spec}},
    }
    pool_kind = GroupVersionKind("karpenter.sh", "v1", "NodePool")
    facts = RunFacts([with_defaults(Request(pool_kind, Operation.CREATE, pool)) for pool in pools], complete=True)
    kind = GroupVersionKind("apps", "v1", "Deployment")
    request = with_defaults(Request(kind, Operation.CREATE, obj, name="llm", namespace="ml"))
    verdict = evaluate(ruleset_of(config), request, facts, today=dt.date(2026, 11, 23))
    assert not [outcome.error for outcome in verdict.outcomes if outcome.error]
    return [f"{found.message}; {found.hint}" for found in verdict.findings if found.policy == policy]


MOST_OF_A_RACK = {"cpu": "90", "memory": "60Gi"}
REMAIN = (
    "requests 90 CPU with 1 of the 8 GPUs of rack-8: 5 CPU remain for the other 7; "
    "request at most 11 CPU, or let a NodePool launch an instance type with fewer GPUs"
)


@pytest.mark.parametrize(
    ("pools", "own", "expected"),
    [
        pytest.param([ON_PREMISES], {}, [REMAIN], id="the pool names its type"),
        pytest.param([ON_PREMISES], {"types": (SMALL,)}, [], id="its type is not listed"),
        pytest.param([ON_PREMISES, ON_EC2], {}, [], id="types of two catalogues"),
        pytest.param(
            [node_pool("rack", "karpenter.example.com", "RackNodeClass")],
            {},
            [],
            id="a type that is not listed may come",
        ),
        pytest.param(
            [node_pool("rack", "karpenter.example.com", "RackNodeClass")],
            {"complete": True},
            [REMAIN],
            id="all types are listed",
        ),
        pytest.param([], {"select": "rack-8"}, [REMAIN], id="the Pod selects the type"),
        pytest.param([], {"select": "rack-9"}, [], id="the Pod selects an unknown type"),
    ],
)
def test_what_a_pod_leaves_for_the_other_gpus(pools: list[Json], own: Json, expected: list[str]) -> None:
    assert findings("pods/oversized-requests", MOST_OF_A_RACK, *pools, **own) == expected


@pytest.mark.parametrize(
    ("pools", "own", "share"),
    [
        pytest.param([ON_PREMISES], {}, SHARE, id="the pool names its type"),
        pytest.param([ON_PREMISES, ON_EC2], {}, "", id="types of two catalogues"),
        pytest.param([ON_PREMISES], {"types": (SMALL,)}, "", id="its type is not listed"),
        pytest.param([], {"select": "rack-8"}, SHARE, id="the Pod selects the type"),
        pytest.param([], {}, "", id="any type"),
    ],
)
def test_the_share_of_a_gpu(pools: list[Json], own: Json, share: str) -> None:
    (found,) = findings("pods/missing-requests", {}, *pools, **own)
    assert found == f"container c is missing requests cpu, memory; add requests for cpu and memory{share}"
