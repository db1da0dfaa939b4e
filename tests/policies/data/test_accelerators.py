from __future__ import annotations

import pytest

from gpugate.policies.data.accelerators import AMOUNTS, COVERING, RESOURCES, SHARES, VIRTUAL
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.platform import Platform


def matches_any(patterns: tuple[str, ...], name: str) -> bool:
    return any(formats.matches(pattern, name) for pattern in patterns)


@pytest.mark.parametrize("pattern", RESOURCES)
@pytest.mark.parametrize("text", ["", "x", "1g.10gb"])
def test_every_resource_is_among_those_that_the_api_server_sends(pattern: str, text: str) -> None:
    assert matches_any(COVERING, pattern.replace("*", text))


@pytest.mark.parametrize("pattern", [*AMOUNTS, *VIRTUAL, *(name for name in SHARES if "/" in name)])
def test_amounts_and_shares_are_resources_of_accelerators(pattern: str) -> None:
    assert Platform().is_accelerator(pattern.replace("*", "x")) or pattern == "nvidia.com/*.shared"


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/hostdev",
        "nvidia.com/rdma_shared_device",
        "nvidia.com/nvswitch",
        "amd.com/xilinx_u30",
        "volcano.sh/x",
        "cpu",
    ],
)
def test_other_resources_are_no_accelerators(name: str) -> None:
    assert not Platform().is_accelerator(name)
