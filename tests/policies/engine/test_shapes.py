from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.engine.shapes import malformed
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath

NODE_POOL = GroupVersionKind.of("karpenter.sh/v1", "NodePool")
EC2_NODE_CLASS = GroupVersionKind.of("karpenter.k8s.aws/v1", "EC2NodeClass")


@pytest.mark.parametrize(
    ("kind", "spec", "wrong"),
    [
        (NODE_POOL, {"disruption": {"consolidateAfter": 30}}, "spec.disruption.consolidateAfter"),
        (NODE_POOL, {"disruption": {"budgets": {"nodes": "0"}}}, "spec.disruption.budgets"),
        (NODE_POOL, {"disruption": {"budgets": [{"reasons": "Empty"}]}}, "spec.disruption.budgets[0].reasons"),
        (NODE_POOL, {"template": {"spec": {"expireAfter": 720}}}, "spec.template.spec.expireAfter"),
        (NODE_POOL, {"weight": "10"}, "spec.weight"),
        # In Python a boolean is a number.
        (NODE_POOL, {"weight": True}, "spec.weight"),
        (NODE_POOL, {"replicas": False}, "spec.replicas"),
        (NODE_POOL, {"limits": {"cpu": True}}, "spec.limits.cpu"),
        (EC2_NODE_CLASS, {"metadataOptions": {"httpPutResponseHopLimit": True}}, ".httpPutResponseHopLimit"),
        (EC2_NODE_CLASS, {"metadataOptions": {"httpPutResponseHopLimit": "2"}}, ".httpPutResponseHopLimit"),
        (EC2_NODE_CLASS, {"blockDeviceMappings": [{"ebs": {"encrypted": "true"}}]}, "[0].ebs.encrypted"),
        (EC2_NODE_CLASS, {"amiSelectorTerms": [{"alias": 2023}]}, "spec.amiSelectorTerms[0].alias"),
    ],
)
def test_a_field_of_another_type_is_named(kind: GroupVersionKind, spec: Json, wrong: str) -> None:
    (found,) = malformed(Subject(kind, Field({"spec": spec})))
    assert render(found.path).endswith(wrong)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (NODE_POOL, {"weight": 10.0, "disruption": {"budgets": [{"nodes": 0}], "consolidateAfter": "30m"}}),
        (EC2_NODE_CLASS, {"blockDeviceMappings": [{"ebs": {"encrypted": True}}], "amiFamily": None}),
    ],
)
def test_the_right_types_pass(kind: GroupVersionKind, spec: Any) -> None:
    assert list(malformed(Subject(kind, Field({"spec": spec})))) == []


@pytest.mark.parametrize(("policies", "allowed"), [(["malformed"], True), (["*"], False), (["schema"], False)])
def test_only_its_name_exempts_a_field_of_the_wrong_type(policies: list[str], *, allowed: bool) -> None:
    exemption = {"policies": policies, "reason": "r", "owner": "o", "expires": "2027-01-01", "names": ["a"]}
    config = {"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "exemptions": [exemption]}
    obj: Any = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": 3}}
    request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, obj, name="a", namespace="b")

    verdict = evaluate(bind(CATALOG, parse_config(config)), request, NoFacts(), today=dt.date(2026, 11, 22))

    assert (verdict.allowed, len(verdict.malformed)) == (allowed, 1)


WHOLE: Final = yaml.safe_load(Path(__file__).with_name("whole_objects.yaml").read_text())
# Of the other kinds, only the types of `metadata` are checked.
TYPED_KINDS: Final = {
    *("EC2NodeClass", "HorizontalPodAutoscaler", "NodeClaim", "NodePool", "Pod", "ResourceQuota", "ScaledObject"),
}
# Policies accept any type of these, or read only how many there are.
UNTYPED: Final = {
    *("affinity", "args", "command", "env", "envFrom", "ephemeralContainers", "finalizers", "metrics", "nodes"),
    *("ownerReferences", "ports", "schedulingGates", "topologySpreadConstraints", "triggers"),
    *("volumeDevices", "volumeMounts", "volumes"),
    *("amiSelector", "securityGroupSelector", "subnetSelector"),
    *("capacityReservationSelectorTerms", "securityGroupSelectorTerms", "subnetSelectorTerms"),
}
WANTED: Final = {bool: "true or false", int: "a whole number", str: "a string", list: "a list", dict: "an object"}
whole_objects = pytest.mark.parametrize("obj", WHOLE, ids=lambda obj: obj["kind"])


def parts(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Yield each value in an object, with its path."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key), member
        yield from parts(member, (*path, key))


def with_value(obj: Any, path: FieldPath, value: Any) -> Any:
    """Return the object with another value at a path."""
    if not path:
        return value
    copied = obj.copy()
    copied[path[0]] = with_value(obj[path[0]], path[1:], value)  # type: ignore[index] # a key or an index
    return copied


def found_in(obj: Any) -> list[tuple[FieldPath, str]]:
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    return [(found.path, found.message) for found in malformed(Subject(kind, Field(obj)))]


def expected(obj: Any, path: FieldPath, value: Any) -> list[str]:
    """Return what is said of a value of another type at a path."""
    if UNTYPED & set(path) or (path[0] == "spec" and obj["kind"] not in TYPED_KINDS):
        return []
    other = "a string" if isinstance(value, bool) else "a boolean"
    if path[-1] == "any":
        is_quantity = path[-2] in {"hard", "limits", "requests"}
        quantity = "a boolean is not a quantity: write a number such as 1 or 16Gi"
        return [quantity if is_quantity else "must be a string, not a boolean: put it in quotes"]
    wanted = WANTED[type(value)]
    if isinstance(value, dict) and "any" in value:
        wanted = "an object of quantities" if path[-1] in {"hard", "limits", "requests"} else "an object of strings"
    return [f"must be {wanted}, not {other}"]


@whole_objects
def test_another_type_of_any_field_is_reported_at_the_field(obj: Any) -> None:
    assert found_in(obj) == []
    for path, value in parts(obj):
        if path[0] not in {"metadata", "spec"}:
            continue
        wrong = "true" if isinstance(value, bool) else True
        said = [(path, message) for message in expected(obj, path, value)]
        assert found_in(with_value(obj, path, wrong)) == said, path


@whole_objects
def test_null_is_a_value_of_every_field(obj: Any) -> None:
    for path, _ in parts(obj):
        if isinstance(path[-1], str) and path[0] in {"metadata", "spec"}:
            assert found_in(with_value(obj, path, None)) == [], path
