from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.claims.removed_api import check, check_old
from gpugate.policies.sdk.findings import Replacement, Violation
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.policies.sdk.platform import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"


def claim(version: str) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu"},
        "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu.nvidia.com"}]}},
    }


def found(ctx: Context[Any]) -> list[Violation]:
    return [item for item in check(ctx.subject, ctx) if isinstance(item, Violation)]


@pytest.mark.parametrize(
    ("version", "target", "message"),
    [
        ("v1alpha3", "1.33", None),
        ("v1alpha3", "1.34", "was removed in Kubernetes 1.34; the target is 1.34"),
        ("v1beta1", "1.33", None),
        ("v1beta1", "1.34", "is off by default, and removed in Kubernetes 1.38; the target is 1.34"),
        ("v1beta1", "1.35", "is off by default, deprecated since Kubernetes 1.35, and removed in 1.38"),
        ("v1beta1", "1.38", "was removed in Kubernetes 1.38; the target is 1.38"),
        ("v1beta2", "1.35", "is off by default, and removed in Kubernetes 1.39; the target is 1.35"),
        ("v1beta2", "1.36", "is off by default, deprecated since Kubernetes 1.36, and removed in 1.39"),
        ("v1beta2", "1.39", "was removed in Kubernetes 1.39; the target is 1.39"),
        ("v1", "1.36", None),
    ],
)
def test_it_says_what_became_of_a_version(context: Contexts, version: str, target: str, message: str | None) -> None:
    ctx = context(claim(version), target=Target(kubernetes=target))
    wanted = [] if message is None else [f"resource.k8s.io/{version} {message}"]
    assert [violation.message for violation in found(ctx)] == wanted


def test_a_claim_that_was_converted_on_its_way_has_no_fix(context: Contexts) -> None:
    ctx = context(claim("v1"))
    sent = GroupVersionKind("resource.k8s.io", "v1beta1", "ResourceClaim")
    (violation,) = found(replace(ctx, request=replace(ctx.request, requested_kind=sent)))
    assert (
        violation.message
        == "resource.k8s.io/v1beta1 is off by default, deprecated since Kubernetes 1.35, and removed in 1.38"
    )
    assert violation.fix is None


def test_what_the_server_and_kubectl_wrote_is_not_in_the_fix(context: Contexts) -> None:
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    written = {"name": "gpu", "namespace": "research", "labels": {"team": "search"}}
    stored = {**written, "uid": "1", "resourceVersion": "2", "managedFields": [], "annotations": last_applied}
    ctx = context({**claim("v1beta1"), "metadata": stored, "status": {"allocation": {}}})
    (violation,) = found(ctx)
    assert isinstance(violation.fix, Replacement)
    (new,) = violation.fix.objects
    assert (new["metadata"], "status" in new) == (written, False)


@pytest.mark.parametrize("request_", [{"name": "a", "deviceClassName": "x", "firstAvailable": []}, "gpu", None])
def test_a_request_that_fits_no_version_has_no_fix(context: Contexts, request_: object) -> None:
    ctx = context({**claim("v1beta1"), "spec": {"devices": {"requests": [request_]}}})
    assert [violation.fix for violation in found(ctx)] == [None]


@pytest.mark.parametrize(
    ("kind", "version", "target", "message"),
    [
        ("ResourceClaim", "v1alpha2", "1.36", "was removed in Kubernetes 1.31; the target is 1.36"),
        ("ResourceClaimTemplate", "v1alpha1", "1.36", "was removed in Kubernetes 1.27; the target is 1.36"),
        ("ResourceClass", "v1alpha2", "1.34", "was removed in Kubernetes 1.31; the target is 1.34"),
        ("ResourceClass", "v1alpha2", "1.33", None),
    ],
)
def test_the_first_model_of_devices_has_no_fix(
    context: Contexts, kind: str, version: str, target: str, message: str | None
) -> None:
    obj = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": {"name": "gpu"}}
    ctx = context(obj, target=Target(kubernetes=target))
    wanted = [] if message is None else [(f"resource.k8s.io/{version} {message}", None)]
    assert [(violation.message, violation.fix) for violation in check_old(ctx.subject, ctx)] == wanted
