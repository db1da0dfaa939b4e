from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.engine.config import ConfigError, parse
from gpugate.policies.pods.missing_gpu_toleration import Params, mutate
from gpugate.policies.sdk.findings import Patch, Skip
from gpugate.policies.sdk.platform import Platform, Taint

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
SPOT = {"key": "karpenter.sh/capacity-type", "value": "spot"}


def params(**extra: list[dict[str, str]]) -> Params:
    return parse({"extra_tolerations": extra}, Params, ())


def pod(limits: dict[str, object], claims: tuple[str, ...] = (), **labels: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": limits, "claims": [{"name": name} for name in claims]}}
    entries = [{"name": name, "resourceClaimTemplateName": name} for name in claims]
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], "resourceClaims": entries}}


def added(ctx: Context[Any]) -> list[Any]:
    return [item.value for item in mutate(ctx.subject, ctx) if isinstance(item, Patch)]


def test_one_toleration_for_all_that_share_a_taint(context: Contexts) -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 1, "aws.amazon.com/neuron": 1}
    keys = [value["key"] for value in added(context(pod(limits), params=Params()))]
    assert keys == ["aws.amazon.com/neuron", "nvidia.com/gpu"]


def test_a_claim_that_is_not_known_is_said_beside_what_is(context: Contexts) -> None:
    ctx = context(pod({"nvidia.com/gpu": 1}, ("net",)), params=Params())
    patch, skip = mutate(ctx.subject, ctx)
    assert isinstance(patch, Patch)
    assert skip == Skip("the devices of claim net are unknown")


@pytest.mark.parametrize(
    ("labels", "spot"),
    [
        ({"workload": "inference"}, True),
        ({"workload": "training"}, False),
        ({"workload": "inference", "training.kubeflow.org/job-name": "j"}, False),
        ({}, False),
    ],
    ids=["inference", "training", "inference that a framework trains", "unknown"],
)
def test_only_pods_of_the_class_get_its_tolerations(context: Contexts, labels: dict[str, str], *, spot: bool) -> None:
    ctx = context(pod({"nvidia.com/gpu": 1}, **labels), params=params(inference=[SPOT]))
    assert ({**SPOT, "operator": "Equal", "effect": "NoSchedule"} in added(ctx)) is spot


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"training": [SPOT]}, "training"),
        ({"inference": [{**SPOT, "operator": "Exists"}]}, "operator Exists takes no value"),
        ({"inference": [{**SPOT, "effect": "NoExecute"}]}, "NoExecute"),
        ({"inference": [{"value": "spot"}]}, "key"),
    ],
)
def test_a_toleration_that_makes_no_sense_is_refused(extra: dict[str, list[dict[str, str]]], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        params(**extra)


def pools(*taints: str, requirements: str = "") -> str:
    """A NodePool for each list of taints, named a, b, ..."""
    return "---\n".join(
        f"""
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {name}}}
spec: {{template: {{spec: {{taints: [{each}], requirements: [{requirements}]}}}}}}
"""
        for name, each in zip("abc", taints, strict=False)
    )


PRESENT = "{key: nvidia.com/gpu, value: present, effect: NoSchedule}"
TRUE = '{key: nvidia.com/gpu, value: "true", effect: NoSchedule}'
EVICTS = "{key: nvidia.com/gpu, effect: NoExecute}"
PREFERS = "{key: nvidia.com/gpu, effect: PreferNoSchedule}"
TEAM = "{key: team, value: vision, effect: NoSchedule}"
USUAL = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
OF_VALUE = {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("facts", "own", "expected"),
    [
        pytest.param("", [], [USUAL], id="no pool is known"),
        pytest.param(pools("", PREFERS), [], [USUAL], id="no pool has the taint"),
        pytest.param(pools(PRESENT), [], [OF_VALUE], id="a value"),
        pytest.param(pools(TRUE), [], [USUAL], id="the usual value"),
        pytest.param(pools(TRUE, PRESENT), [], [USUAL], id="two values"),
        pytest.param(pools(EVICTS), [], [{**USUAL, "effect": "NoExecute"}], id="another effect"),
        pytest.param(
            pools(f"{TRUE}, {EVICTS}"), [], [{"key": "nvidia.com/gpu", "operator": "Exists"}], id="two effects"
        ),
        pytest.param(pools(PRESENT), [OF_VALUE], [], id="tolerated"),
        pytest.param(pools(PRESENT, TRUE), [OF_VALUE], [], id="one of two is tolerated"),
        pytest.param(pools(TRUE), [OF_VALUE], [USUAL], id="another value is tolerated"),
        pytest.param("", [OF_VALUE], [], id="a value that may be right"),
        pytest.param("", [{**OF_VALUE, "effect": "NoExecute"}], [USUAL], id="another effect is tolerated"),
        pytest.param(pools(f"{PRESENT}, {TEAM}"), [], [USUAL], id="a pool that is another team's"),
        pytest.param(
            pools(f"{PRESENT}, {TEAM}"),
            [{"key": "team", "operator": "Exists"}],
            [OF_VALUE],
            id="a pool that is the Pod's team's",
        ),
    ],
)
def test_the_toleration_follows_the_taint_of_the_pools(
    context: Contexts, facts: str, own: list[dict[str, str]], expected: list[dict[str, str]]
) -> None:
    obj = pod({"nvidia.com/gpu": 1})
    obj["spec"]["tolerations"] = own
    assert added(context(obj, facts=facts, params=Params())) == expected


def test_a_pool_that_the_pod_does_not_select_says_nothing(context: Contexts) -> None:
    obj = pod({"nvidia.com/gpu": 1})
    obj["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "b"}
    assert added(context(obj, facts=pools(PRESENT, EVICTS), params=Params())) == [{**USUAL, "effect": "NoExecute"}]


@pytest.mark.parametrize(("selected", "expected"), [("a", []), ("b", [USUAL]), ("unknown", [USUAL])])
def test_a_known_pool_without_the_taint_needs_no_toleration(
    context: Contexts, selected: str, expected: list[dict[str, str]]
) -> None:
    obj = pod({"nvidia.com/gpu": 1})
    obj["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": selected}
    assert added(context(obj, facts=pools("", TRUE), params=Params())) == expected


ON = Platform(extended_resource_toleration=True)


@pytest.mark.parametrize(
    ("limits", "facts", "platform", "reason"),
    [
        ("nvidia.com/gpu", "", Platform(), "nvidia.com/gpu:NoSchedule, the usual taint of nodes with nvidia.com/gpu"),
        (
            "nvidia.com/gpu",
            pools(PRESENT),
            Platform(),
            "nvidia.com/gpu=present:NoSchedule, because NodePool a has that taint",
        ),
        (
            "nvidia.com/gpu",
            "",
            ON,
            "nvidia.com/gpu:NoSchedule, as the API server does (ExtendedResourceToleration)",
        ),
        ("nvidia.com/gpu", pools(EVICTS), ON, "nvidia.com/gpu:NoExecute, because NodePool a has that taint"),
        (
            "nvidia.com/mig-1g.10gb",
            "",
            ON,
            "nvidia.com/gpu:NoSchedule, the usual taint of nodes with nvidia.com/mig-1g.10gb",
        ),
        (
            "nvidia.com/gpu",
            pools(PRESENT),
            Platform(taints={"nvidia.com/gpu": (Taint(key="gpu"),)}),
            "gpu:NoSchedule, because nodes with nvidia.com/gpu have that taint (platform.taints)",
        ),
    ],
)
def test_it_says_why_it_adds_the_toleration(
    context: Contexts, limits: str, facts: str, platform: Platform, reason: str
) -> None:
    ctx = context(pod({limits: 1}), facts=facts, platform=platform, params=Params())
    (patch,) = mutate(ctx.subject, ctx)
    assert isinstance(patch, Patch)
    assert patch.reason == f"adds the toleration {reason}"
