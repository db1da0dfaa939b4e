"""Whose number of replicas it is, in objects as the API server sends them and as an audit reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.scaling.pinned_replicas import check
from gpugate.policies.sdk.findings import Violation
from gpugate.webhook.audit.verdicts import as_created

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"
SCALER = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llm, namespace: research}
spec: {scaleTargetRef: {name: llm}, minReplicaCount: 1, maxReplicaCount: 8}
"""
CREATED: dict[str, object] = {"uid": "59335066-bbf4-42e8-b16f-fd2280dff98e"}
MUTATED: dict[str, object] = {"managedFields": [{"manager": "kubectl-create", "operation": "Update"}]}
STORED = {**CREATED, "resourceVersion": "4711"}


def deployment(replicas: int | None, metadata: dict[str, object]) -> dict[str, Any]:
    container = {"name": "llm", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    spec = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "llm", "namespace": "research", **metadata},
        "spec": {**spec, "template": {"spec": {"containers": [container]}}},
    }


def is_reported(context: Contexts, replicas: int | None, metadata: dict[str, object], before: int | None) -> bool:
    ctx = context(deployment(replicas, metadata), facts=SCALER)
    old = None if before is None else deployment(before, STORED)
    ctx = replace(ctx, request=replace(ctx.request, old_object=old))
    return any(isinstance(item, Violation) for item in check(ctx.subject, ctx))


CASES: dict[str, tuple[int | None, dict[str, object], int | None, bool]] = {
    "a file": (1, {}, None, True),
    "a file that leaves it out": (None, {}, None, False),
    "a new object with the default": (1, CREATED, None, False),
    "a new object with the default, while it is mutated": (1, MUTATED, None, False),
    "a new object with another number": (3, CREATED, None, True),
    "an update that changes it": (2, STORED, 6, True),
    "an update of something else": (6, STORED, 6, False),
    "a stored object": (6, STORED, None, False),
}


@pytest.mark.parametrize(("replicas", "metadata", "before", "expected"), CASES.values(), ids=CASES)
def test_it_is_reported_where_the_author_certainly_wrote_it(
    context: Contexts, replicas: int | None, metadata: dict[str, object], before: int | None, *, expected: bool
) -> None:
    assert is_reported(context, replicas, metadata, before) is expected


def test_an_audit_reads_a_number_as_that_of_a_stored_object(context: Contexts) -> None:
    audited = as_created(deployment(6, STORED), keep_version=True)["metadata"]
    assert is_reported(context, 6, {"resourceVersion": audited["resourceVersion"]}, None) is False
