from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.pods._placement import is_of_daemon_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

CONTROLLER = "system:serviceaccount:kube-system:daemon-set-controller"
OWNED = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}


def workload(kind: str) -> dict[str, Any]:
    template = {"metadata": {"ownerReferences": [OWNED]}, "spec": {}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("owner", "user", "expected"),
    [
        (OWNED, CONTROLLER, True),
        (OWNED, "", True),
        (OWNED, "developer", False),
        (OWNED, "system:serviceaccount:default:daemon-set-controller", False),
        (OWNED | {"controller": False}, CONTROLLER, False),
        (OWNED | {"kind": "ReplicaSet"}, CONTROLLER, False),
    ],
)
def test_an_owner_counts_where_its_controller_sends_the_pod(
    context: Callable[..., Context[Any]], owner: dict[str, Any], user: str, *, expected: bool
) -> None:
    ctx = context({"metadata": {"ownerReferences": [owner]}, "spec": {}})
    ctx = replace(ctx, request=replace(ctx.request, user=user))
    assert is_of_daemon_set(ctx.subject, ctx) is expected


@pytest.mark.parametrize(("kind", "expected"), [("DaemonSet", True), ("Deployment", False)])
def test_of_a_template_only_its_workload_counts(
    context: Callable[..., Context[Any]], kind: str, *, expected: bool
) -> None:
    ctx = context(workload(kind), subject=1)
    assert is_of_daemon_set(ctx.subject, ctx) is expected
