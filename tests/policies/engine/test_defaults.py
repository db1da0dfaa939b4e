from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.kinds import GroupVersionKind
from gpugate.policies.sdk.request import Operation, Request

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

BUDGETS: Json = [{"nodes": "10%"}]
METADATA_OPTIONS: dict[str, Json] = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}

CASES: dict[str, tuple[str, Json, Json]] = {
    "a NodePool without a disruption block": (
        "karpenter.sh/v1 NodePool",
        {"template": {"spec": {}}},
        {
            "template": {"spec": {"expireAfter": "720h"}},
            "disruption": {
                "consolidateAfter": "0s",
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "budgets": BUDGETS,
            },
        },
    ),
    "a NodePool that says what it wants": (
        "karpenter.sh/v1 NodePool",
        {
            "template": {"spec": {"expireAfter": "Never"}},
            "disruption": {"consolidateAfter": "30m", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "0"}]},
        },
        {
            "template": {"spec": {"expireAfter": "Never"}},
            "disruption": {"consolidateAfter": "30m", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "0"}]},
        },
    ),
    "a NodePool of v1beta1, which is another kind of thing": (
        "karpenter.sh/v1beta1 NodePool",
        {"template": {"spec": {}}},
        {"template": {"spec": {}}},
    ),
    "an EC2NodeClass with one metadata option": (
        "karpenter.k8s.aws/v1 EC2NodeClass",
        {"metadataOptions": {"httpTokens": "optional"}},
        {"metadataOptions": METADATA_OPTIONS | {"httpTokens": "optional"}},
    ),
    "a Pod's requests from its limits, as strings": (
        "v1 Pod",
        {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}, "requests": {"cpu": "1"}}}]},
        {
            "containers": [
                {
                    "resources": {
                        "limits": {"nvidia.com/gpu": "1", "cpu": "2"},
                        "requests": {"nvidia.com/gpu": "1", "cpu": "1"},
                    },
                },
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
        },
    ),
    "a template's limits stay without requests": (
        "apps/v1 Deployment",
        {"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}},
        {
            "replicas": 1,
            "template": {
                "spec": {
                    "containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}],
                    "restartPolicy": "Always",
                    "terminationGracePeriodSeconds": 30,
                },
            },
        },
    ),
    "a claim for one device": (
        "resource.k8s.io/v1 ResourceClaim",
        {"devices": {"requests": [{"exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        {
            "devices": {
                "requests": [
                    {"exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1}},
                ],
            },
        },
    ),
    "a spec that is no object": ("karpenter.sh/v1 NodePool", [], []),
}


def request(kind: str, spec: Json) -> Request:
    return Request(GroupVersionKind.of(*kind.split(" ")), Operation.CREATE, {"spec": spec})


@pytest.mark.parametrize(("kind", "spec", "expected"), CASES.values(), ids=CASES)
def test_what_is_left_out_is_filled_in(kind: str, spec: Json, expected: Json) -> None:
    assert with_defaults(request(kind, spec)).object == {"spec": expected}


@pytest.mark.parametrize(("kind", "spec", "expected"), CASES.values(), ids=CASES)
def test_filling_in_again_changes_nothing(kind: str, spec: Json, expected: Json) -> None:
    assert with_defaults(with_defaults(request(kind, spec))).object == {"spec": expected}


@pytest.mark.parametrize(("kind", "spec", "expected"), CASES.values(), ids=CASES)
def test_the_object_itself_is_left_as_it_is(kind: str, spec: Json, expected: Json) -> None:  # noqa: ARG001 -- one table
    before = copy.deepcopy(spec)
    with_defaults(request(kind, spec))
    assert spec == before
