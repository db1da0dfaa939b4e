from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.pods.mig_without_claim import ClaimParams, assign, mutate, slices_of
from gpugate.policies.sdk.findings import Patch, Skip, Violation
from gpugate.policies.sdk.gpu_demand import gpu_demand

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
STATIC = ClaimParams(mig_nodes="static")
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mig-1g-10gb, namespace: research}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: mig.nvidia.com}}]}}}
"""


def asking(name: str, count: int, profile: str = "1g.10gb", **more: object) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": {f"nvidia.com/mig-{profile}": count}}, **more}


def pod(containers: list[dict[str, Any]], init: list[dict[str, Any]] | None = None, **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": init or [], **spec}}


@pytest.mark.parametrize(
    ("obj", "used"),
    [
        pytest.param(pod([asking("a", 1)]), {"a": ["a-mig-1g-10gb"]}, id="one"),
        pytest.param(
            pod([asking("a", 1), asking("b", 1)]),
            {"a": ["a-mig-1g-10gb"], "b": ["b-mig-1g-10gb"]},
            id="apps do not share",
        ),
        pytest.param(
            pod([asking("a", 1)], [asking("i", 1)]),
            {"i": ["a-mig-1g-10gb"], "a": ["a-mig-1g-10gb"]},
            id="init uses the app's",
        ),
        pytest.param(
            pod([asking("a", 1)], [asking("i", 2), asking("j", 3)]),
            {
                "i": ["a-mig-1g-10gb", "i-mig-1g-10gb"],
                "j": ["a-mig-1g-10gb", "i-mig-1g-10gb", "j-mig-1g-10gb"],
                "a": ["a-mig-1g-10gb"],
            },
            id="later init containers use what earlier ones added",
        ),
        pytest.param(
            pod([asking("a", 1)], [asking("s", 1, restartPolicy="Always")]),
            {"s": ["s-mig-1g-10gb"], "a": ["a-mig-1g-10gb"]},
            id="a sidecar shares with none",
        ),
        pytest.param(
            pod([asking("a", 1)], [asking("i", 1, "2g.20gb")]),
            {"i": ["i-mig-2g-20gb"], "a": ["a-mig-1g-10gb"]},
            id="another profile",
        ),
    ],
)
def test_containers_hold_no_more_slices_than_before(
    context: Contexts, obj: dict[str, Any], used: dict[str, list[str]]
) -> None:
    demand = context(obj).derived(gpu_demand)
    slices = slices_of(demand)
    claims = assign(slices)
    names = {one.container["name"].text: list(n) for one, n in zip(slices, claims.used, strict=True)}
    assert names == used
    made = [name for own in claims.own for name in own]
    assert len(made) == sum(demand.resources.values())


def outcome(ctx: Context[Any]) -> list[Patch | Violation | Skip]:
    return list(mutate(ctx.subject, ctx))


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        pytest.param(pod([asking("a", 1, "1g.10gb.shared")]), "is a shared slice", id="shared"),
        pytest.param(
            pod([asking("a", 57)]), "57 slices of profile 1g.10gb in one container (maximum of a node: 56)", id="many"
        ),
        pytest.param(
            pod([asking("a", 1)], resourceClaims=[{"name": "a-mig-1g-10gb", "resourceClaimName": "mine"}]),
            "already has a claim a-mig-1g-10gb",
            id="a name that is taken",
        ),
        pytest.param(
            {**pod([asking("a", 1)]), "metadata": {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}},
            "it is a Pod of a DaemonSet",
            id="a DaemonSet",
        ),
    ],
)
def test_it_says_why_it_leaves_a_pod_as_it_is(context: Contexts, obj: dict[str, Any], says: str) -> None:
    (refused,) = outcome(context(obj, facts=TEMPLATE, params=STATIC))
    assert isinstance(refused, Violation)
    assert says in refused.message


def test_a_container_with_a_claim_for_a_gpu_is_left_as_it_is(context: Contexts) -> None:
    container = asking("a", 1)
    container["resources"]["claims"] = [{"name": "x"}]
    obj = pod([container], resourceClaims=[{"name": "x", "resourceClaimTemplateName": "mig-1g-10gb"}])
    (refused,) = outcome(context(obj, facts=TEMPLATE, params=STATIC))
    assert isinstance(refused, Violation)
    assert "container a already uses a claim" in refused.message


def test_one_refusal_stops_the_whole_pod(context: Contexts) -> None:
    found = outcome(context(pod([asking("a", 1), asking("b", 1, "9g.9gb")]), facts=TEMPLATE, params=STATIC))
    assert [type(item) for item in found] == [Violation]


@pytest.mark.parametrize("facts", ["", TEMPLATE.replace("mig-1g-10gb", "another")], ids=["none", "incomplete"])
def test_a_template_that_may_exist_is_no_reason_to_refuse(context: Contexts, facts: str) -> None:
    (skipped,) = outcome(context(pod([asking("a", 1)]), facts=facts, params=STATIC))
    assert isinstance(skipped, Skip)
