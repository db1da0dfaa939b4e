from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.nodeclasses.unpinned_ami import Params, check

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

LATEST = "al2023@latest selects a new image whenever AWS publishes one"
WILDCARD = "a name with a wildcard and without an owner selects the newest match of this account or of Amazon"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("amiSelectorTerms: [{alias: al2023@latest}]", [LATEST]),
        ("amiSelectorTerms: [{alias: al2023@v20261015}]", []),
        ("amiSelectorTerms: [{alias: al2@v20261015}]", ["Amazon Linux 2 has no images for Kubernetes 1.36"]),
        ("{amiFamily: AL2, amiSelectorTerms: [{id: ami-1}]}", []),
        ("{amiFamily: AL2, amiSelectorTerms: [{tags: {team: ml}}]}", []),
        ("{amiFamily: AL2, amiSelectorTerms: [{name: ml-gpu-2026-10-15}]}", []),
        ("{amiFamily: AL2, amiSelectorTerms: [{name: ml-gpu-*}]}", [WILDCARD]),
        ("{amiFamily: AL2, amiSelectorTerms: [{name: ml-gpu-*, owner: self}]}", []),
    ],
)
def test_only_what_changes_by_itself_is_reported(
    context: Callable[..., Context[Any]], spec: str, expected: list[str]
) -> None:
    ctx = context({"spec": yaml.safe_load(spec)}, params=Params())
    assert [found.message for found in check(ctx.subject, ctx)] == expected
