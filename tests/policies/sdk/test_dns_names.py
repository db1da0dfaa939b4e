from __future__ import annotations

import pytest

from gpugate.policies.sdk.formats import is_label, is_subdomain


@pytest.mark.parametrize(
    ("name", "label", "subdomain"),
    [
        ("gpu", True, True),
        ("0", True, True),
        ("mig-1g-10gb", True, True),
        ("gpu.nvidia.com", False, True),
        ("mig-1g-12gb.gpu.nvidia.com", False, True),
        ("nvidia.com/mig-1g.10gb", False, False),
        ("GPU", False, False),
        ("gpu_a", False, False),
        ("-gpu", False, False),
        ("gpu-", False, False),
        ("gpu..nvidia", False, False),
        ("gpu.", False, False),
        ("gpu\n", False, False),
        ("", False, False),
        ("a" * 63, True, True),
        ("a" * 64, False, True),
        (".".join(["a" * 63] * 4)[:253], False, True),
        (".".join(["a" * 63] * 4)[:254], False, False),
    ],
)
def test_a_name_is_a_label_or_a_subdomain(name: str, label: bool, subdomain: bool) -> None:  # noqa: FBT001 -- columns
    assert (is_label(name), is_subdomain(name)) == (label, subdomain)
