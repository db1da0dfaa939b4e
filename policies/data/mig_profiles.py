"""The MIG profiles of NVIDIA GPUs, and the EC2 families with each GPU.

Sources: NVIDIA gpu-operator v26.7.0 (`assets/state-mig-manager/0400_configmap.yaml`), mig-parted v0.15.0
(`deployments/systemd/config-default.yaml`), NVIDIA MIG user guide (RTX PRO 6000), k8s-device-plugin v0.20.0 (resource
names). As of 2026-11-21. T4, T4G, A10G, L4, L40S, V100 and AMD GPUs have no MIG.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

RESOURCE_PREFIX: Final = "nvidia.com/mig-"
# The device plugin's suffix for time-sliced devices (`sharing.timeSlicing.renameByDefault`).
SHARED_SUFFIX: Final = ".shared"
# No EC2 type has more GPUs of one kind.
MOST_GPUS_PER_NODE: Final = 8


class MigGpu(msgspec.Struct, frozen=True):
    """A GPU with MIG: the EC2 families that have it, and profile -> the number of slices that fit on one GPU."""

    name: str
    families: tuple[str, ...]
    profiles: Mapping[str, int]


MIG_GPUS: Final = (
    MigGpu(
        "A100 40GB",
        ("p4d",),
        {
            "1g.5gb": 7,
            "1g.5gb+me": 1,
            "1g.10gb": 4,
            "2g.10gb": 3,
            "3g.20gb": 2,
            "4g.20gb": 1,
            "7g.40gb": 1,
        },
    ),
    MigGpu(
        "A100 80GB and H100 80GB",
        ("p4de", "p5"),
        {
            "1g.10gb": 7,
            "1g.10gb+me": 1,
            "1g.20gb": 4,
            "2g.20gb": 3,
            "3g.40gb": 2,
            "4g.40gb": 1,
            "7g.80gb": 1,
        },
    ),
    MigGpu(
        "H100 NVL 94GB",
        (),
        {
            "1g.12gb": 7,
            "1g.12gb+me": 1,
            "1g.24gb": 4,
            "2g.24gb": 3,
            "3g.47gb": 2,
            "4g.47gb": 1,
            "7g.94gb": 1,
        },
    ),
    MigGpu(
        "GH200 96GB",
        (),
        {
            "1g.12gb": 7,
            "1g.12gb+me": 1,
            "1g.24gb": 4,
            "2g.24gb": 3,
            "3g.48gb": 2,
            "4g.48gb": 1,
            "7g.96gb": 1,
        },
    ),
    MigGpu(
        "GH200 144GB",
        (),
        {
            "1g.18gb": 7,
            "1g.18gb+me": 1,
            "1g.36gb": 4,
            "2g.36gb": 3,
            "3g.72gb": 2,
            "4g.72gb": 1,
            "7g.144gb": 1,
        },
    ),
    MigGpu(
        "H200 141GB",
        ("p5e", "p5en"),
        {
            "1g.18gb": 7,
            "1g.18gb+me": 1,
            "1g.35gb": 4,
            "2g.35gb": 3,
            "3g.71gb": 2,
            "4g.71gb": 1,
            "7g.141gb": 1,
        },
    ),
    MigGpu(
        "B200 180GB",
        ("p6-b200",),
        {
            "1g.23gb": 7,
            "1g.23gb+me": 1,
            "1g.45gb": 4,
            "2g.45gb": 3,
            "3g.90gb": 2,
            "4g.90gb": 1,
            "7g.180gb": 1,
        },
    ),
    MigGpu(
        "B300",
        ("p6-b300",),
        {
            "1g.34gb": 7,
            "1g.67gb": 4,
            "2g.67gb": 3,
            "3g.135gb": 2,
            "4g.135gb": 1,
            "7g.269gb": 1,
        },
    ),
    MigGpu(
        "GB200",
        ("p6e-gb200",),
        {
            "1g.23gb": 7,
            "1g.23gb+me": 1,
            "1g.47gb": 4,
            "2g.47gb": 3,
            "3g.93gb": 2,
            "4g.93gb": 1,
            "7g.186gb": 1,
        },
    ),
    MigGpu(
        "RTX PRO 6000 96GB",
        ("g7e",),
        {
            "1g.24gb": 4,
            "1g.24gb+gfx": 4,
            "1g.24gb+me": 1,
            "1g.24gb+me.all": 1,
            "1g.24gb-me": 4,
            "2g.48gb": 2,
            "2g.48gb+gfx": 2,
            "2g.48gb+me.all": 1,
            "2g.48gb-me": 2,
            "4g.96gb": 1,
            "4g.96gb+gfx": 1,
        },
    ),
    MigGpu("A30", (), {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "2g.12gb+me": 1, "4g.24gb": 1}),
)


def gpus_with(profile: str) -> tuple[MigGpu, ...]:
    """Return the GPUs that support a profile; none if the profile is unknown."""
    return tuple(gpu for gpu in MIG_GPUS if profile in gpu.profiles)


def most_per_gpu(profile: str) -> int:
    """Return the largest number of slices of a profile on any GPU; 0 if the profile is unknown."""
    return max((gpu.profiles[profile] for gpu in gpus_with(profile)), default=0)


_WITH_ATTRIBUTE: Final = re.compile(r"(\d+g\.\d+gb)\.(.+)")


def profile_of(resource: str) -> str | None:
    """Return the profile in the name of an extended resource, known or not; None if it does not name a slice.

    `nvidia.com/mig-1g.10gb.me` is `1g.10gb+me`; the suffix of time-sliced devices is removed.
    """
    if not resource.startswith(RESOURCE_PREFIX):
        return None
    text = resource.removeprefix(RESOURCE_PREFIX).removesuffix(SHARED_SUFFIX)
    match = _WITH_ATTRIBUTE.fullmatch(text)
    return f"{match[1]}+{match[2]}" if match else text


def resource_of(profile: str) -> str:
    """Return the extended resource of a slice: `1g.10gb+me` is `nvidia.com/mig-1g.10gb.me`."""
    return RESOURCE_PREFIX + profile.replace("+", ".")


_SIGNS: Final = re.compile(r"[^a-z0-9]")
# Longer than any spelling of a profile; a resource name may have any length before it is validated.
_LONGEST_SPELLING: Final = 64
_SPELLED: Final = re.compile(r"(?:mig)?(\d+)g(\d+)(?:g|gb|gi|gib)?(|me|meall|gfx)")


def near_miss(profile: str) -> str | None:
    """Return the known profile for a misspelt one: `1g10gb` and `MIG-1g.10GB` give `1g.10gb`."""
    if len(profile) > _LONGEST_SPELLING:
        return None
    return next((name for name in _BY_PARTS.get(_parts(profile), ()) if name != profile), None)


def _parts(profile: str) -> tuple[str, ...] | None:
    match = _SPELLED.fullmatch(_SIGNS.sub("", profile.lower()))
    return match.groups() if match else None


def _by_parts() -> Mapping[tuple[str, ...] | None, tuple[str, ...]]:
    names: dict[tuple[str, ...] | None, tuple[str, ...]] = {}
    for name in dict.fromkeys(name for gpu in MIG_GPUS for name in gpu.profiles):
        parts = _parts(name)
        if parts:
            names[parts] = (*names.get(parts, ()), name)
    return names


# A table, because an object may name thousands of profiles.
_BY_PARTS: Final = _by_parts()
