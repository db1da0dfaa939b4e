from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.engine.patching import apply_all
from gpugate.policies.nodepools.legacy_field import check_node_class, check_pool
from gpugate.policies.sdk.findings import Patches, Violation

if TYPE_CHECKING:
    from collections.abc import Callable


def findings(context: Callable[..., Any], spec: str, kind: str = "NodePool") -> list[Violation]:
    group = "karpenter.sh" if kind == "NodePool" else "karpenter.k8s.aws"
    ctx = context({"apiVersion": f"{group}/v1", "kind": kind, "spec": yaml.safe_load(spec)})
    check = check_pool if kind == "NodePool" else check_node_class
    return list(check(ctx.subject, ctx))


def fixed(context: Callable[..., Any], spec: str, kind: str = "NodePool") -> Any:
    obj: Any = {"spec": yaml.safe_load(spec)}
    for found in findings(context, spec, kind):
        if isinstance(found.fix, Patches):
            obj = apply_all(obj, found.fix.patches)
    return obj["spec"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            "limits: {resources: {cpu: 100, nvidia.com/gpu: 8}, cpu: 50}",
            {"limits": {"nvidia.com/gpu": 8, "cpu": 50}},
            id="limits, of which v1's own win",
        ),
        pytest.param(
            "{ttlSecondsAfterEmpty: 30, disruption: {consolidateAfter: 5m}}",
            {"disruption": {"consolidateAfter": "5m"}},
            id="what v1 says already is kept",
        ),
        pytest.param(
            "{disruption: {expireAfter: 24h}, template: {spec: {expireAfter: Never}}}",
            {"disruption": {}, "template": {"spec": {"expireAfter": "Never"}}},
            id="a lifetime that v1 has too",
        ),
        pytest.param(
            "{disruption: {expireAfter: 24h}, template: {spec: {expireAfter: 720h}}}",
            {"disruption": {}, "template": {"spec": {"expireAfter": "24h"}}},
            id="a lifetime beside the default",
        ),
        pytest.param(
            "{labels: {a: b}, template: {metadata: {labels: {c: d}}}}",
            {"labels": {"a": "b"}, "template": {"metadata": {"labels": {"c": "d"}}}},
            id="labels in both places are left to a person",
        ),
        pytest.param("consolidation: {enabled: true}", {"consolidation": {"enabled": True}}, id="no certain successor"),
        pytest.param("ttlSecondsUntilExpired: soon", {"ttlSecondsUntilExpired": "soon"}, id="no number of seconds"),
    ],
)
def test_the_fix_of_a_pool(context: Callable[..., Any], spec: str, expected: Any) -> None:
    assert fixed(context, spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            "subnetSelector: {aws-ids: 'subnet-1,subnet-2'}",
            {"subnetSelectorTerms": [{"id": "subnet-1"}, {"id": "subnet-2"}]},
            id="ids",
        ),
        pytest.param(
            "{amiSelector: {purpose: gpu}, amiSelectorTerms: [{alias: al2023@v20261015}]}",
            {"amiSelectorTerms": [{"alias": "al2023@v20261015"}]},
            id="terms that v1 has too",
        ),
        pytest.param("subnetSelector: {}", {"subnetSelector": {}}, id="a selector of nothing"),
    ],
)
def test_the_fix_of_a_node_class(context: Callable[..., Any], spec: str, expected: Any) -> None:
    assert fixed(context, spec, "EC2NodeClass") == expected


def test_a_field_without_effect_is_removed_safely(context: Callable[..., Any]) -> None:
    (found,) = findings(context, "{ttlSecondsAfterEmpty: 30, disruption: {consolidateAfter: 5m}}")
    assert isinstance(found.fix, Patches)
    assert found.fix.safe


def test_what_becomes_of_a_field_depends_on_the_validation(context: Callable[..., Any]) -> None:
    (found,) = findings(context, "template: {spec: {kubelet: {maxPods: 10}}}")
    assert found.message == "v1 has no field kubelet at this path"
    assert found.why == (
        "kubectl refuses the file (strict validation); "
        "with other clients the API server drops kubelet, and the kubelet's defaults apply."
    )


def test_limits_of_another_type_are_refused_not_dropped(context: Callable[..., Any]) -> None:
    (found,) = findings(context, "limits: {resources: {cpu: 100}}")
    assert found.why == "The API server refuses the object, because v1 expects another type at this path."
