from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.engine.shapes import malformed
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request, Subject

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

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
