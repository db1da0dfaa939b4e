from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.disruption.blocking_pdb import check
from gpugate.policies.sdk.findings import Stance, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"


def budget(spec: str) -> str:
    return (
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: research}\n"
        f"spec: {{selector: {{matchLabels: {{app: a}}}}, {spec}}}"
    )


def workload(kind: str = "Deployment", replicas: int = 3, name: str = "w", resources: str = "", owner: str = "") -> str:
    owners = f", ownerReferences: [{{kind: {owner}, name: x}}]" if owner else ""
    return (
        f"---\napiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: research{owners}}}\n"
        f"spec: {{replicas: {replicas}, template: {{metadata: {{labels: {{app: a}}}}, spec: {{{resources}}}}}}}\n"
    )


GPU = "containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]"
CPU = "containers: [{name: c}]"
UNKNOWN_CLAIM = (
    "resourceClaims: [{name: x, resourceClaimTemplateName: t}], containers: [{resources: {claims: [{name: x}]}}]"
)


def scaled(least: int, most: int) -> str:
    return (
        "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: s, namespace: research}\n"
        f"spec: {{scaleTargetRef: {{name: w}}, minReplicaCount: {least}, maxReplicaCount: {most}}}\n"
    )


def stances(ctx: Context[Any]) -> list[Stance]:
    return [found.at_most for found in check(ctx.subject, ctx) if isinstance(found, Violation)]


@pytest.mark.parametrize(
    ("facts", "stance"),
    [
        pytest.param("", Stance.WARN, id="nothing is known"),
        pytest.param(workload(resources=GPU), Stance.ENFORCE, id="GPUs"),
        pytest.param(workload(resources=CPU), None, id="no GPUs"),
        pytest.param(workload(resources=UNKNOWN_CLAIM), Stance.WARN, id="a claim that is not known"),
        pytest.param(workload(resources=CPU) + workload("StatefulSet", resources=GPU), Stance.ENFORCE, id="both"),
        pytest.param(
            workload("ReplicaSet", resources=GPU, owner="Rollout"), Stance.ENFORCE, id="ReplicaSet of a Rollout"
        ),
        pytest.param(
            workload("ReplicaSet", resources=GPU, owner="Deployment"), Stance.WARN, id="ReplicaSet of a Deployment"
        ),
        pytest.param(workload(resources=GPU).replace("app: a", "app: b"), Stance.WARN, id="GPUs of others"),
        pytest.param(workload(resources=GPU).replace("research", "serving"), Stance.WARN, id="another namespace"),
    ],
)
@pytest.mark.parametrize("spec", ["maxUnavailable: 0", "maxUnavailable: 0%", "minAvailable: 100%"])
def test_a_budget_of_none_costs_what_is_known_of_its_pods(
    context: Contexts, facts: str, stance: Stance | None, spec: str
) -> None:
    assert stances(context(budget(spec), facts=facts)) == ([] if stance is None else [stance])


@pytest.mark.parametrize(
    ("available", "facts", "stance"),
    [
        pytest.param("2", workload(resources=GPU), None, id="2 of 3"),
        pytest.param("3", workload(resources=GPU), Stance.ENFORCE, id="3 of 3"),
        pytest.param("4", workload(resources=GPU), Stance.ENFORCE, id="more than there are"),
        pytest.param("66%", workload(resources=GPU), None, id="66 % of 3 are 2"),
        pytest.param("67%", workload(resources=GPU), Stance.ENFORCE, id="67 % of 3 are 3"),
        pytest.param("50%", workload(resources=GPU, replicas=2), None, id="50 % of 2 are 1"),
        pytest.param("1", workload(resources=GPU, replicas=1), Stance.WARN, id="a single Pod"),
        pytest.param("1", workload(resources=GPU, replicas=0), None, id="scaled to zero"),
        pytest.param("3", workload(resources=CPU), None, id="no GPUs"),
        pytest.param("3", workload(resources=UNKNOWN_CLAIM), Stance.WARN, id="a claim that is not known"),
        pytest.param("3", "", None, id="nothing is known"),
        pytest.param("2", workload(resources=GPU) + scaled(2, 6), Stance.WARN, id="at the minimum of the autoscaler"),
        pytest.param("2", workload(resources=GPU) + scaled(0, 6), None, id="down to zero"),
        pytest.param("6", workload(resources=GPU) + scaled(0, 6), Stance.ENFORCE, id="the maximum of the autoscaler"),
        pytest.param("3", workload(resources=GPU) + scaled(4, 6), None, id="the autoscaler keeps more"),
        pytest.param("'2'", workload(resources=GPU, replicas=2), None, id="not a number, which is refused"),
    ],
)
def test_a_number_is_compared_with_the_pods_there_are(
    context: Contexts, available: str, facts: str, stance: Stance | None
) -> None:
    ctx = context(budget(f"minAvailable: {available}"), facts=facts, complete=True)
    assert stances(ctx) == ([] if stance is None else [stance])


def test_an_autoscaler_that_may_exist_keeps_it_a_warning(context: Contexts) -> None:
    ctx = context(budget("minAvailable: 3"), facts=workload(resources=GPU))
    assert stances(ctx) == [Stance.WARN]


@pytest.mark.parametrize("spec", ["", "selector: {matchLabels: {app: a}}", "maxUnavailable: x", "maxUnavailable: 1"])
def test_a_budget_that_says_no_such_thing_is_left_alone(context: Contexts, spec: str) -> None:
    obj = f"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: b}}\nspec: {{{spec}}}"
    assert stances(context(obj, facts=workload(resources=GPU))) == []
