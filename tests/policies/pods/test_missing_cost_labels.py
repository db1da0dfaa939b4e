from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.pods.missing_cost_labels import Params, check_namespace, inherit
from gpugate.policies.sdk.findings import Patch, Skip, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
POD = {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}


def namespace(team: str) -> str:
    return f"""
apiVersion: v1
kind: Namespace
metadata: {{name: research, labels: {{team: "{team}"}}}}
"""


@pytest.mark.parametrize("team", ["", "tbd", "N/A", "two words", "${TEAM}", "x" * 64, "-dashed-"])
def test_a_worthless_value_is_not_inherited(context: Contexts, team: str) -> None:
    ctx = context(POD, facts=namespace(team), params=Params())
    assert list(inherit(ctx.subject, ctx)) == []


def test_a_good_value_is_inherited(context: Contexts) -> None:
    ctx = context(POD, facts=namespace("search"), params=Params())
    (patch,) = inherit(ctx.subject, ctx)
    assert isinstance(patch, Patch)
    assert (patch.path, patch.value) == (("metadata", "labels", "team"), "search")


def test_without_the_namespace_nothing_is_known(context: Contexts) -> None:
    ctx = context(POD, params=Params())
    assert list(inherit(ctx.subject, ctx)) == [Skip("namespace research was not found, so its labels are unknown")]


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}}


def workload(kind: str, resources: str, namespace: str = "research") -> str:
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: w, namespace: {namespace}}}
spec: {{template: {{spec: {{containers: [{{resources: {resources}}}]}}}}}}
"""


GPU = "{limits: {nvidia.com/gpu: 1}}"


@pytest.mark.parametrize(
    ("facts", "complete", "kinds"),
    [
        pytest.param(workload("Deployment", GPU), False, [Violation], id="a GPU workload among a few"),
        pytest.param(workload("StatefulSet", GPU), True, [Violation], id="a GPU workload among all"),
        pytest.param(workload("Deployment", GPU, "other"), True, [], id="a GPU workload elsewhere"),
        pytest.param(workload("Deployment", "{}"), True, [], id="no GPU workload"),
        pytest.param(workload("Deployment", "{}"), False, [Skip], id="none among a few"),
        pytest.param("", False, [Skip], id="nothing is known"),
        pytest.param("", True, [], id="an empty cluster"),
    ],
)
def test_a_namespace_is_judged_when_it_holds_gpu_workloads(
    context: Contexts, facts: str, kinds: list[type], *, complete: bool
) -> None:
    ctx = context(NAMESPACE, facts=facts, complete=complete, namespace="research", params=Params())
    assert [type(item) for item in check_namespace(ctx.subject, ctx)] == kinds
