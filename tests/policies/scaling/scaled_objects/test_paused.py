from __future__ import annotations

import pytest

from gpugate.policies.scaling._scaled_objects import PAUSED_REPLICAS, paused_at
from gpugate.policies.sdk.field import Field


@pytest.mark.parametrize(
    ("text", "replicas"),
    [
        ("0", 0),
        ("500", 500),
        ("+500", 500),
        ("00000000000000500", 500),
        ("2147483647", 2147483647),
        ("2147483648", None),
        ("-1", None),
        ("5.0", None),
        ("5_0", None),
        (" 5", None),
        ("true", None),
        ("", None),
        ("\u0665", None),
        (5, None),
        (None, None),
    ],
)
def test_paused_replicas_are_read_as_go_reads_an_integer(text: str | int | None, replicas: int | None) -> None:
    found = paused_at(Field({"metadata": {"annotations": {PAUSED_REPLICAS: text}}}))
    assert (found[1] if found else None) == replicas
