"""What a MIG slice is of its GPU: its share of the GPU's compute slices, of which most GPUs have 7.

A GPU is never more than whole that way: 3g.40gb and 4g.40gb are one H100. By memory the rounded names of profiles would
make more than one (two of 3g.71gb in 141 GB), and by how many of one profile fit, so would two different ones.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from gpugate.policies.data.mig_profiles import MigGpu, gpus_with, near_miss

_COMPUTE: Final = re.compile(r"(\d+)g\.")
# The slice named in what GFD says of a GPU that is cut up alike, `NVIDIA-H100-80GB-HBM3-MIG-1g.10gb`, and in the name of a
# DRA device or class, `gpu-0-mig-1g10gb-19-0`, `mig-1g.10gb.nvidia.com`.
_NAMED: Final = re.compile(r"mig-(\d+g\.?\d+gb)(?![0-9a-z])", re.IGNORECASE)
MOST_SLICES: Final = 7
LEAST: Final = Fraction(1, MOST_SLICES)


def share(profile: str, instance_type: str = "") -> Fraction:
    """Return a slice's share of its GPU.

    Args:
        profile: such as `1g.10gb` or `1g.10gb+me`.
        instance_type: where the GPU is; without it, the GPU with the most compute slices among those that can be cut so.

    One that no GPU has is the smallest slice there is.
    """
    family = instance_type.partition(".")[0]
    gpus = gpus_with(profile)
    fitting = [gpu for gpu in gpus if family in gpu.families] or list(gpus)
    if not fitting:
        return LEAST
    return Fraction(_compute(profile), max(map(_slices, fitting)))


def named_profile(text: str) -> str | None:
    """Return the profile in the name of a product, a DRA device or a device class; None where it tells none."""
    found = _NAMED.search(text)
    if not found:
        return None
    profile = found[1].lower()
    return profile if "." in profile else near_miss(profile) or profile


def _slices(gpu: MigGpu) -> int:
    return max(map(_compute, gpu.profiles))


def _compute(profile: str) -> int:
    found = _COMPUTE.match(profile)
    return int(found[1]) if found else 1
