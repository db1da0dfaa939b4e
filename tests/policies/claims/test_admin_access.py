from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.claims.admin_access import Params, check_namespace

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"

LABELLED = """
apiVersion: v1
kind: Namespace
metadata: {name: research, labels: {resource.kubernetes.io/admin-access: "true"}}
"""


@pytest.mark.parametrize(
    ("groups", "params", "denied"),
    [
        pytest.param((), Params(), True, id="a file, which has no user"),
        pytest.param(("system:authenticated", "team-a"), Params(), True, id="somebody of a team"),
        pytest.param(("system:masters",), Params(), False, id="a cluster administrator"),
        pytest.param(
            ("system:masters",), Params(admin_groups=("platform",)), True, id="not in the groups of this platform"
        ),
        pytest.param(("platform",), Params(admin_groups=("platform",)), False, id="in the groups of this platform"),
    ],
)
def test_who_may_label_a_namespace(
    context: Contexts,
    groups: tuple[str, ...],
    params: Params,
    denied: bool,  # noqa: FBT001 -- a column
) -> None:
    ctx = context(LABELLED, params=params)
    ctx = replace(ctx, request=replace(ctx.request, groups=groups))
    assert bool(list(check_namespace(ctx.subject, ctx))) is denied
