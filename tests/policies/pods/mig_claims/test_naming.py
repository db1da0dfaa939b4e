from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.data.mig_profiles import MIG_GPUS
from gpugate.policies.pods.mig_without_claim import claim_names, template_name

PROFILES = sorted({profile for gpu in MIG_GPUS for profile in gpu.profiles})
containers = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)


@given(container=containers, profile=st.sampled_from(PROFILES), count=st.integers(1, 56))
def test_names_are_different_dns_labels(container: str, profile: str, count: int) -> None:
    names = claim_names(container, profile, count)
    assert len(set(names)) == count
    assert all(len(name) <= 63 and re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name) for name in names)


def test_a_short_name_is_readable() -> None:
    assert claim_names("a", "1g.10gb+me", 1) == ("a-mig-1g-10gb-me",)
    assert claim_names("a", "1g.10gb", 2) == ("a-mig-1g-10gb-0", "a-mig-1g-10gb-1")


def test_a_long_name_keeps_its_start() -> None:
    assert claim_names("c" * 63, "1g.10gb", 1) == ("c" * 50 + "-60a87edd",)


def test_a_template_is_named_for_its_profile() -> None:
    assert template_name("mig-", "1g.10gb") == "mig-1g-10gb"
