from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.claims import (
    admin_access,
    invalid_device_class,
    invalid_request,
    missing_mig_profile,
    removed_api,
    whole_node_allocation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"

WRONG = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: llm-extended-resources-x7k2p, namespace: research}
spec:
  devices:
    requests:
      - {name: A, deviceClassName: mig.nvidia.com}
      - {name: b, deviceClassName: gpu.nvidia.com, allocationMode: All}
      - {name: c, deviceClassName: gpu.nvidia.com, adminAccess: true}
      - {name: d, deviceClassName: nvidia.com/gpu}
"""

CHECKS: dict[str, Any] = {
    "admin_access": (admin_access.check_claim, admin_access.Params()),
    "invalid_device_class": (invalid_device_class.check_claim, None),
    "invalid_request": (invalid_request.check, invalid_request.Params()),
    "missing_mig_profile": (missing_mig_profile.check, missing_mig_profile.Params()),
    "removed_api": (removed_api.check, None),
    "whole_node_allocation": (whole_node_allocation.check, None),
}


def count(ctx: Context[Any], policy: str, user: str) -> int:
    check, params = CHECKS[policy]
    ctx = replace(ctx, request=replace(ctx.request, user=user), params=params or ctx.params)
    return sum(1 for item in check(ctx.subject, ctx) if hasattr(item, "message"))


@pytest.mark.parametrize("policy", CHECKS)
@pytest.mark.parametrize(
    ("user", "judged"),
    [
        ("developer", True),
        ("system:serviceaccount:ci:deployer", True),
        ("system:serviceaccount:research:resource-claim-controller", True),
        ("system:kube-scheduler", False),
        ("system:kube-controller-manager", False),
        ("system:serviceaccount:kube-system:resource-claim-controller", False),
    ],
)
def test_claims_that_kubernetes_makes_pass(context: Contexts, policy: str, user: str, judged: bool) -> None:  # noqa: FBT001 -- a column
    assert bool(count(context(WRONG), policy, user)) is judged
