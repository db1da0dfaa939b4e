"""Every kind that policies evaluate, with invalid spec and metadata: there is a verdict, and nothing breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from example_laws import for_each_case

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

KINDS = [
    "v1/Pod",
    "v1/Namespace",
    "apps/v1/Deployment",
    "apps/v1/StatefulSet",
    "batch/v1/Job",
    "batch/v1/CronJob",
    "argoproj.io/v1alpha1/Workflow",
    "ray.io/v1/RayJob",
    "serving.kserve.io/v1beta1/InferenceService",
    "karpenter.sh/v1/NodePool",
    "karpenter.sh/v1/NodeClaim",
    "karpenter.sh/v1alpha5/Provisioner",
    "karpenter.k8s.aws/v1/EC2NodeClass",
    "eks.amazonaws.com/v1/NodeClass",
    "keda.sh/v1alpha1/ScaledObject",
    "keda.sh/v1alpha1/ScaledJob",
    "autoscaling/v2/HorizontalPodAutoscaler",
    "policy/v1/PodDisruptionBudget",
    "resource.k8s.io/v1/ResourceClaim",
    "resource.k8s.io/v1beta1/ResourceClaimTemplate",
    "resource.k8s.io/v1/DeviceClass",
]
PATHS = ("/mutate", "/validate")
SPECS = {
    "missing": ...,
    "null": None,
    "list": [],
    "list-of-null": [None],
    "string": "x",
    "number": 5,
    "boolean": True,
    "empty": {},
    "members-null": dict.fromkeys(("template", "spec", "containers", "requirements", "limits", "triggers", "devices")),
    "members-lists": {"template": [], "containers": [[]], "limits": [], "disruption": [], "scaleTargetRef": []},
    "members-objects": {
        "containers": {},
        "requirements": {},
        "taints": {"a": 1},
        "triggers": {},
        "templates": {"a": 5},
    },
    "members-strings": {"template": "x", "containers": "x", "limits": "x", "tolerations": "x", "devices": "x"},
}
METADATA = {
    "missing": ...,
    "null": None,
    "list": [],
    "string": "x",
    "members-null": dict.fromkeys(("name", "labels", "annotations", "ownerReferences", "finalizers")),
    "members-wrong": {"labels": [], "annotations": "x", "ownerReferences": {"a": 1}},
    "odd-owners": {"name": "a", "ownerReferences": [None, 5, {"kind": ["x"], "controller": "yes"}]},
}


def make(kind: str, members: Json) -> Json:
    version, _, name = kind.rpartition("/")
    members = {"metadata": {"name": "a"}, "spec": {}} | members
    return {"apiVersion": version, "kind": name} | {key: value for key, value in members.items() if value is not ...}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.rpartition("/")[2])
@for_each_case({f"{name} spec to {path}": (path, spec) for name, spec in SPECS.items() for path in PATHS})
def test_specs(case: tuple[str, Any], ask: Callable[..., Any], review: Callable[..., Any], kind: str) -> None:
    path, spec = case
    ask(path, review(make(kind, {"spec": spec})))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.rpartition("/")[2])
@for_each_case({f"{name} metadata to {path}": (path, value) for name, value in METADATA.items() for path in PATHS})
def test_metadata(case: tuple[str, Any], ask: Callable[..., Any], review: Callable[..., Any], kind: str) -> None:
    path, metadata = case
    ask(path, review(make(kind, {"metadata": metadata}), name="a"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"74-{kind.rpartition('/')[2]}")
def test_updates_from_and_to_nothing(ask: Callable[..., Any], review: Callable[..., Any], kind: str) -> None:
    whole, empty = make(kind, {}), make(kind, {"metadata": ..., "spec": ...})
    for old, new in ((whole, empty), (empty, whole)):
        ask("/validate", review(new, operation="UPDATE", oldObject=old))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param(..., None, id="missing"),
        pytest.param(None, None, id="null"),
        pytest.param([], "spec: must be an object, not a list", id="list"),
        pytest.param("x", "spec: must be an object, not a string", id="string"),
    ],
)
def test_specs_of_pods(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], spec: Any, says: str | None
) -> None:
    assert_verdict(review(make("v1/Pod", {"spec": spec})), says)


def test_node_pool_without_spec_lacks_what_its_policies_need(
    assert_verdict: Callable[..., Any], review: Callable[..., Any]
) -> None:
    assert_verdict(review(make("karpenter.sh/v1/NodePool", {"spec": ...})), "nodeClassRef")
