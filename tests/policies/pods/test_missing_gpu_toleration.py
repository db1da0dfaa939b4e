from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.engine.config import ConfigError, parse
from gpugate.policies.pods.missing_gpu_toleration import Params, mutate
from gpugate.policies.sdk.findings import Patch, Skip

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
    assert skip == Skip("what the claim net asks for is not known")


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
