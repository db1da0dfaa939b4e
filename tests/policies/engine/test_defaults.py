from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

BUDGETS: Json = [{"nodes": "10%"}]
POD_DEFAULTS: dict[str, Json] = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
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
    "a Pod without limits, or with limits that are not quantities": (
        "v1 Pod",
        {
            "containers": [
                {"resources": {"claims": []}},
                {"resources": {"limits": {"cpu": "two", "memory": 1.5, "pods": True}, "requests": None}},
            ],
        },
        {
            "containers": [
                {"resources": {"claims": []}},
                {
                    "resources": {
                        "limits": {"cpu": "two", "memory": "1.5", "pods": True},
                        "requests": {"memory": "1.5"},
                    },
                },
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
        },
    ),
    "an init container's requests, with a restart policy": (
        "v1 Pod",
        {"restartPolicy": "Never", "initContainers": [{"resources": {"limits": {"cpu": 2}}}]},
        {
            "restartPolicy": "Never",
            "initContainers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}}],
            "terminationGracePeriodSeconds": 30,
        },
    ),
    "a NodePool's budget for some reasons": (
        "karpenter.sh/v1 NodePool",
        {"disruption": {"consolidateAfter": "1h", "budgets": [{"reasons": ["Drifted"]}]}},
        {
            "disruption": {
                "consolidateAfter": "1h",
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "budgets": [{"reasons": ["Drifted"], "nodes": "10%"}],
            },
        },
    ),
    "a NodeClaim": ("karpenter.sh/v1 NodeClaim", {}, {"expireAfter": "720h"}),
    "an EC2NodeClass that says nothing": (
        "karpenter.k8s.aws/v1 EC2NodeClass",
        {},
        {"metadataOptions": METADATA_OPTIONS},
    ),
    "a StatefulSet without a number of replicas": ("apps/v1 StatefulSet", {}, {}),
    "a ReplicaSet of no Pods": ("apps/v1 ReplicaSet", {"replicas": 0}, {"replicas": 0}),
    "a DaemonSet": ("apps/v1 DaemonSet", {"template": {"spec": {}}}, {"template": {"spec": POD_DEFAULTS}}),
    "a Job": (
        "batch/v1 Job",
        {"template": {"spec": {"restartPolicy": "Never"}}},
        {
            "parallelism": 1,
            "completionMode": "NonIndexed",
            "backoffLimit": 6,
            "suspend": False,
            "template": {"spec": POD_DEFAULTS | {"restartPolicy": "Never"}},
        },
    ),
    "a HorizontalPodAutoscaler": ("autoscaling/v2 HorizontalPodAutoscaler", {}, {"minReplicas": 1}),
    "a claim template with alternatives": (
        "resource.k8s.io/v1 ResourceClaimTemplate",
        {
            "spec": {
                "devices": {
                    "requests": [
                        {"firstAvailable": [{"name": "a"}, {"allocationMode": "All"}, {"count": 3}]},
                        {"exactly": {"allocationMode": "All"}},
                        "not a request",
                    ],
                },
            },
        },
        {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "firstAvailable": [
                                {"name": "a", "allocationMode": "ExactCount", "count": 1},
                                {"allocationMode": "All"},
                                {"count": 3, "allocationMode": "ExactCount"},
                            ],
                        },
                        {"exactly": {"allocationMode": "All"}},
                        "not a request",
                    ],
                },
            },
        },
    ),
    "a kind that has no defaults": ("v1 Service", {}, {}),
    "a spec that is no object": ("karpenter.sh/v1 NodePool", [], []),
}


def request(kind: str, spec: Json) -> Request:
    # Each test has its own: one that changed the table would hide that from the next.
    return Request(GroupVersionKind.of(*kind.split(" ")), Operation.CREATE, {"spec": copy.deepcopy(spec)})


@pytest.mark.parametrize(("kind", "spec", "expected"), CASES.values(), ids=CASES)
def test_what_is_left_out_is_filled_in(kind: str, spec: Json, expected: Json) -> None:
    assert with_defaults(request(kind, spec)).object == {"spec": expected}


@pytest.mark.parametrize(("kind", "spec", "expected"), CASES.values(), ids=CASES)
def test_filling_in_again_changes_nothing(kind: str, spec: Json, expected: Json) -> None:
    assert with_defaults(with_defaults(request(kind, spec))).object == {"spec": expected}


@pytest.mark.parametrize(("kind", "spec", "expected"), CASES.values(), ids=CASES)
def test_the_object_itself_is_left_as_it_is(kind: str, spec: Json, expected: Json) -> None:  # noqa: ARG001 -- one table
    made = request(kind, spec)
    with_defaults(made)
    assert made.object == {"spec": spec}


def test_the_old_object_is_filled_in_too() -> None:
    claim = request("karpenter.sh/v1 NodeClaim", {})
    assert with_defaults(replace(claim, object=None, old_object=claim.object)) == replace(
        claim, object=None, old_object={"spec": {"expireAfter": "720h"}}
    )
