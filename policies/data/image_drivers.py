"""The accelerators for which the published images for EKS have drivers.

Sources, read on 2026-11-23:

- aws/karpenter-provider-aws v1.14.1 `pkg/providers/amifamily/al2023.go`, `al2.go`, `bottlerocket.go`, `windows.go`,
  `types.go`: the images of an alias. Each type with the label `instance-gpu-count` gets the NVIDIA variant, and each type
  with `instance-accelerator-count` the Neuron variant.
- Amazon EKS user guide, "Create nodes with optimized Amazon Linux AMIs" and "Create nodes with optimized Bottlerocket
  AMIs": names and SSM parameters of the images.
- awslabs/amazon-eks-ami issue #2768 (images work on G7 from v20260917 on); bottlerocket-os/bottlerocket issue #4889
  (v1.62.1 does not start on G7).
"""

from __future__ import annotations

import re
from typing import Final

import msgspec


class Image(msgspec.Struct, frozen=True):
    """A published image: the architectures of its nodes, and the manufacturers for whose accelerators it has drivers.

    Manufacturers and architectures are values of the labels `instance-gpu-manufacturer` (or that of other accelerators)
    and `kubernetes.io/arch`.
    """

    architectures: frozenset[str]
    drivers: frozenset[str]


_X86, _ARM, _NOTHING = frozenset({"amd64"}), frozenset({"arm64"}), frozenset[str]()
_NVIDIA, _NEURON = frozenset({"nvidia"}), frozenset({"aws"})
_WITH_VARIANTS: Final = (Image(_X86 | _ARM, _NVIDIA), Image(_X86, _NEURON))
# The images of an alias, by its family.
ALIASES: Final = {
    "al2": (Image(_X86, _NVIDIA | _NEURON),),
    "al2023": _WITH_VARIANTS,
    "bottlerocket": _WITH_VARIANTS,
    "windows2019": (Image(_X86, _NOTHING),),
    "windows2022": (Image(_X86, _NOTHING),),
    "windows2025": (Image(_X86, _NOTHING),),
}

_ARCHITECTURES: Final = {"x86_64": _X86, "arm64": _ARM, "aarch64": _ARM}
# Drivers by image family and variant; without a variant, for the standard one.
_DRIVERS: Final = {
    ("al2", ""): _NOTHING,
    ("al2", "gpu"): _NVIDIA | _NEURON,
    ("al2023", "standard"): _NOTHING,
    ("al2023", "nvidia"): _NVIDIA,
    ("al2023", "neuron"): _NEURON,
    ("bottlerocket", ""): _NEURON,
    ("bottlerocket", "nvidia"): _NVIDIA,
}
_PATTERNS: Final = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        ("al2023", r"amazon-eks-node-al2023-(?P<arch>x86_64|arm64)-(?P<variant>standard|nvidia|neuron)-.*"),
        ("al2", r"amazon-eks-(?:(?P<variant>gpu)-|(?P<arch>arm64)-)?node-1\..*"),
        ("bottlerocket", r"bottlerocket-aws-k8s-[0-9.]+-(?:(?P<variant>nvidia)-)?(?P<arch>x86_64|aarch64)-.*"),
        (
            "al2023",
            r"/aws/service/eks/optimized-ami/[0-9.]+/amazon-linux-2023/(?P<arch>x86_64|arm64)/(?P<variant>standard|nvidia|neuron)/.*",
        ),
        ("al2", r"/aws/service/eks/optimized-ami/[0-9.]+/amazon-linux-2(?:-(?:(?P<variant>gpu)|(?P<arch>arm64)))?/.*"),
        (
            "bottlerocket",
            r"/aws/service/bottlerocket/aws-k8s-[0-9.]+(?:-(?P<variant>nvidia))?/(?P<arch>x86_64|arm64)/.*",
        ),
    )
)
_LONGEST: Final = 256  # characters of a name that is compared with the patterns


def published(text: str) -> Image | None:
    """Return the published image with a name or an SSM parameter; None for other images.

    A name may end with a wildcard after the variant.
    """
    if len(text) > _LONGEST:
        return None
    for family, pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            arch, variant = match["arch"] or "x86_64", match["variant"] or ""
            return Image(_ARCHITECTURES[arch], _DRIVERS[family, variant])
    return None


# The first version of a family whose driver supports an instance family, or the last one that is known not to support
# it.
_FIRST: Final = {("al2023", "g7"): "v20260917"}
_LAST_WITHOUT: Final = {("bottlerocket", "g7"): (1, 62, 1)}
_DATE: Final = re.compile(r"v[0-9]{8}")
_NUMBERS: Final = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})")


class Unsupported(msgspec.Struct, frozen=True):
    """An instance family that a version of an image does not support; `since` is the first that does, if one is known."""

    instance_family: str
    since: str


def unsupported(alias: str) -> tuple[Unsupported, ...]:
    """Return the instance families that the driver of an alias does not support, as far as its version is known."""
    family, _, version = alias.partition("@")
    numbers = _NUMBERS.fullmatch(version)
    older = [
        Unsupported(of, since)
        for (image, of), since in _FIRST.items()
        if image == family and _DATE.fullmatch(version) and version < since
    ]
    known = [
        Unsupported(of, "")
        for (image, of), last in _LAST_WITHOUT.items()
        if image == family and numbers and tuple(map(int, numbers.groups())) <= last
    ]
    return (*older, *known)
