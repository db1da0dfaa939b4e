from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.nodepools.legacy_api import check
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Replacement, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

V1 = GroupVersionKind("karpenter.sh", "v1", "NodePool")
V1BETA1 = GroupVersionKind("karpenter.sh", "v1beta1", "NodePool")
STORED: dict[str, Json] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpu", "annotations": {"compatibility.karpenter.sh/v1beta1-nodeclass-reference": "{}"}},
    "spec": {"template": {"spec": {"requirements": []}}},
}


def findings(kind: GroupVersionKind, requested: GroupVersionKind | None) -> list[Violation]:
    request = Request(kind, Operation.CREATE, STORED, requested_kind=requested)
    ctx = Context(Params(), Field(STORED), None, request, NoFacts(), Platform(), Target())
    return [found for found in check(ctx.subject, ctx) if isinstance(found, Violation)]


def test_an_object_that_the_api_server_converted_is_still_of_the_api_that_was_asked_for() -> None:
    (found,) = findings(V1, V1BETA1)
    assert found.message == "karpenter.sh/v1beta1 NodePool was removed in Karpenter v1.1.0"


def test_its_replacement_is_the_converted_object() -> None:
    (found,) = findings(V1, V1BETA1)
    assert found.fix == Replacement(({**STORED, "metadata": {"name": "gpu"}},))


@pytest.mark.parametrize(
    ("kind", "requested"), [(V1, None), (V1, V1), (V1BETA1, V1)], ids=["unconverted", "same", "converted back"]
)
def test_an_object_that_was_asked_for_as_v1_is_current(
    kind: GroupVersionKind, requested: GroupVersionKind | None
) -> None:
    assert findings(kind, requested) == []
