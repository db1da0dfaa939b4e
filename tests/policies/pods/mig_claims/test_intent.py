from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.engine.patching import apply_all
from gpugate.policies.pods.mig_without_claim import ClaimParams, mutate
from gpugate.policies.sdk.findings import Patch, Violation

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


def wanting(profile: str = "1g.10gb", container: str = "", claims: Any = None, **resources: object) -> dict[str, Any]:
    annotations = {"gpugate.dev/mig-profile": profile}
    if container:
        annotations["gpugate.dev/mig-container"] = container
    return {
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"containers": [{"name": "a", "resources": resources}, {"name": "b"}], "resourceClaims": claims or []},
    }


def test_the_first_container_gets_the_claim_and_no_second_one(context: Contexts) -> None:
    ctx = context(wanting(), facts=TEMPLATE, params=STATIC)
    patches = tuple(item for item in mutate(ctx.subject, ctx) if isinstance(item, Patch))
    changed = apply_all(dict(ctx.request.object or {}), patches)
    assert changed["spec"]["containers"][0]["resources"] == {"claims": [{"name": "a-mig-1g-10gb"}]}
    again = context(changed, facts=TEMPLATE, params=STATIC)
    assert list(mutate(again.subject, again)) == []


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        (wanting("1g10gb"), "no GPU has the MIG profile 1g10gb"),
        (wanting(""), "no GPU has the MIG profile"),
        (wanting(container="c"), "the Pod has no container c"),
        (wanting(limits={"nvidia.com/gpu": 1}), "container a already requests nvidia.com/gpu"),
        (wanting(claims=[{"name": "a-mig-1g-10gb"}]), "the Pod already has a claim a-mig-1g-10gb"),
    ],
)
def test_it_says_why_it_leaves_a_pod_as_it_is(context: Contexts, obj: dict[str, Any], says: str) -> None:
    ctx = context(obj, facts=TEMPLATE, params=STATIC)
    refused = [item.message for item in mutate(ctx.subject, ctx) if isinstance(item, Violation)]
    assert len(refused) == 1
    assert says in refused[0]
