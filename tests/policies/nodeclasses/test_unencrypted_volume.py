from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.nodeclasses.unencrypted_volume import Params, check
from gpugate.policies.sdk.findings import Stance

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

BY_ACCOUNT = "the volume is encrypted only if the account encrypts EBS volumes by default"


@pytest.mark.parametrize(
    ("volume", "by_default", "expected"),
    [
        ({}, None, (f"encrypted: true is missing: {BY_ACCOUNT}", Stance.WARN)),
        ({"encrypted": False}, None, (f"encrypted is false: {BY_ACCOUNT}", Stance.WARN)),
        ({}, False, ("encrypted: true is missing: the volume is not encrypted", Stance.WARN)),
        ({"encrypted": False}, False, ("encrypted is false: the volume is not encrypted", Stance.WARN)),
        ({"encrypted": False}, True, None),
        ({}, True, None),
        ({"encrypted": True}, None, None),
        (
            {"snapshotID": "snap-0123456789abcdef0"},
            False,
            ("encrypted: true is missing: the volume is encrypted only if its snapshot is", Stance.WARN),
        ),
    ],
)
def test_it_says_what_is_known_of_the_account(  # and warns, because no pool refers to the class
    context: Callable[..., Context[Any]],
    volume: dict[str, Any],
    by_default: bool | None,  # noqa: FBT001 -- a column of the table
    expected: tuple[str, Stance] | None,
) -> None:
    node_class = {"spec": {"blockDeviceMappings": [{"ebs": {"volumeSize": "1Gi", **volume}}]}}
    ctx = context(node_class, params=Params(encrypted_by_default=by_default))
    assert [(found.message, found.at_most) for found in check(ctx.subject, ctx)] == ([expected] if expected else [])
