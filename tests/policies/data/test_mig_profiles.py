from __future__ import annotations

import pytest

from gpugate.policies.data.mig_profiles import MIG_GPUS, gpus_with, most_per_gpu, near_miss, profile_of, resource_of


@pytest.mark.parametrize(
    ("profile", "families", "most"),
    [
        ("1g.5gb", {"p4d"}, 7),
        ("1g.10gb", {"p4d", "p4de", "p5"}, 7),
        ("3g.40gb", {"p4de", "p5"}, 2),
        ("1g.18gb", {"p5e", "p5en"}, 7),
        ("7g.180gb", {"p6-b200"}, 1),
        ("1g.34gb", {"p6-b300"}, 7),
        ("7g.186gb", {"p6e-gb200"}, 1),
        ("2g.48gb+me.all", {"g7e"}, 1),
        ("1g.6gb", set(), 4),
        ("2g.5gb", set(), 0),
        ("1g10gb", set(), 0),
    ],
)
def test_a_profile_belongs_to_its_gpus(profile: str, families: set[str], most: int) -> None:
    assert {family for gpu in gpus_with(profile) for family in gpu.families} == families
    assert most_per_gpu(profile) == most


@pytest.mark.parametrize(
    ("resource", "profile"),
    [
        ("nvidia.com/mig-1g.10gb", "1g.10gb"),
        ("nvidia.com/mig-1g.10gb.shared", "1g.10gb"),
        ("nvidia.com/mig-1g.10gb.me", "1g.10gb+me"),
        ("nvidia.com/mig-1g.24gb.me.all", "1g.24gb+me.all"),
        ("nvidia.com/mig-1g.24gb-me", "1g.24gb-me"),
        ("nvidia.com/mig-1g10gb", "1g10gb"),
        ("nvidia.com/gpu", None),
        ("nvidia.com/gpu.shared", None),
    ],
)
def test_a_resource_names_a_profile(resource: str, profile: str | None) -> None:
    assert profile_of(resource) == profile


@pytest.mark.parametrize("profile", sorted({name for gpu in MIG_GPUS for name in gpu.profiles}))
def test_every_profile_has_a_resource_that_names_it(profile: str) -> None:
    assert profile_of(resource_of(profile)) == profile


@pytest.mark.parametrize("gpu", MIG_GPUS, ids=lambda gpu: gpu.name)
def test_slices_fit_on_their_gpu(gpu: object) -> None:
    profiles = getattr(gpu, "profiles", {})
    assert all(int(name.partition("g")[0]) * most <= 7 for name, most in profiles.items())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1g10gb", "1g.10gb"),
        ("1g-10gb", "1g.10gb"),
        ("MIG-1g.10GB", "1g.10gb"),
        ("1g.10g", "1g.10gb"),
        ("1g.10Gi", "1g.10gb"),
        ("1g.10gb-me", "1g.10gb+me"),
        ("2g.5gb", None),
        ("small", None),
        ("", None),
    ],
)
def test_a_misspelt_profile_is_recognised(written: str, meant: str | None) -> None:
    assert near_miss(written) == meant
