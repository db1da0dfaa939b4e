from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.engine.config import ConfigError, parse
from gpugate.policies.pods.unprotected_training import Params, mutate
from gpugate.policies.sdk.findings import Patch, Skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"


@pytest.mark.parametrize("value", ["true", "12h", "30m", "1h30m", "1.5h", "90s"])
def test_a_value_that_karpenter_reads_is_taken(value: str) -> None:
    assert parse({"value": value}, Params, ()).value == value


@pytest.mark.parametrize("value", ["True", "yes", "1", "0s", "0h0m", "-5m", "12 h", "12h\n", "h", "", "false"])
def test_any_other_value_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        parse({"value": value}, Params, ())


def pod(resources: dict[str, Any], **labels: str) -> dict[str, Any]:
    claims = [{"name": "x", "resourceClaimTemplateName": "unknown"}]
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "resources": resources}], "resourceClaims": claims},
    }


def test_a_claim_that_is_not_known_is_said(context: Contexts) -> None:
    ctx = context(pod({"claims": [{"name": "x"}]}, workload="training"), params=Params())
    assert list(mutate(ctx.subject, ctx)) == [Skip("the devices of claim x are unknown")]


def test_a_job_that_nobody_has_heard_of_is_said(context: Contexts) -> None:
    labels = {"batch.kubernetes.io/job-name": "j"}
    ctx = context(pod({"limits": {"nvidia.com/gpu": 1}}, **labels), params=Params())
    assert list(mutate(ctx.subject, ctx)) == [Skip("Job j was not found, and may be parallel")]


def test_it_is_not_said_of_pods_that_do_not_train(context: Contexts) -> None:
    ctx = context(pod({"claims": [{"name": "x"}]}, workload="inference"), params=Params())
    assert list(mutate(ctx.subject, ctx)) == []


def test_the_platform_may_protect_more_classes(context: Contexts) -> None:
    limits = {"limits": {"nvidia.com/gpu": 1}}
    obj = pod(limits, **{"gpugate.dev/workload-class": "interactive"})
    ctx = context(obj, params=Params(classes=("training", "interactive")))
    (patch,) = mutate(ctx.subject, ctx)
    assert isinstance(patch, Patch)
    assert patch.path == ("metadata", "annotations", "karpenter.sh/do-not-disrupt")


def test_the_annotation_of_an_older_karpenter_does_not_protect(context: Contexts) -> None:
    obj = pod({"limits": {"nvidia.com/gpu": 1}}, workload="training")
    obj["metadata"]["annotations"] = {"karpenter.sh/do-not-evict": "true"}
    ctx = context(obj, params=Params())
    (patch,) = mutate(ctx.subject, ctx)
    assert isinstance(patch, Patch)
    assert patch.path == ("metadata", "annotations", "karpenter.sh/do-not-disrupt")
