"""EC2NodeClass of a GPU pool whose nodes have a small volume for images and data.

## Why is this bad?
Images of model servers have 5 to 20 GiB, and weights come on top. A node whose volume is full evicts Pods and pulls
images again, while its GPUs wait. Without `blockDeviceMappings` Karpenter's volume has 20 GiB.

A mapping enlarges the volume only if it is for the device that the image family uses for images and Pods: `/dev/xvda` for
Amazon Linux, and `/dev/xvdb` for Bottlerocket, whose `/dev/xvda` contains the operating system. A mapping for another
device also replaces Karpenter's default, and the volume has the size that the image defines.

## Instead
```yaml
blockDeviceMappings:
  - deviceName: /dev/xvda
    ebs: {volumeSize: 200Gi, volumeType: gp3, encrypted: true, deleteOnTermination: true}
```

Or use the NVMe disks of the instance types with `instanceStorePolicy: RAID0`; such a class is not reported. Karpenter
replaces the nodes of a class whose mappings change (drift).

A class is evaluated only if a known NodePool for GPUs uses it. Sizes of snapshots, and of images with
`amiFamily: Custom`, are unknown and not reported. With images that are selected without an alias, the device is not
reported, because your image may have other devices.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/providers/amifamily/resolver.go` (DefaultEBS; mappings replace the defaults of the
family), `al2023.go`, `al2.go`, `bottlerocket.go` (EphemeralBlockDevice), `pkg/providers/instancetype/types.go`
(ephemeralStorage: RAID0, `rootVolume`), issue #6358.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.nodeclasses._gpu_classes import POOL_NEEDS, gpu_pools, pools_doubt
from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import EC2_NODE_CLASS
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Json

_GIB: Final = 2**30
_DEFAULT_GIB: Final = 20
# The device with the images and the files of Pods, by image family.
_DEVICES: Final = {"al2": "/dev/xvda", "al2023": "/dev/xvda", "bottlerocket": "/dev/xvdb"}
_DEFAULT: Final = "Karpenter's default volume has 20 GiB for images, logs and files of Pods, which one image of a model server can fill."
_OTHER_DEVICE: Final = (
    "The mappings replace Karpenter's default, so the volume for images and Pods has the size that the image defines."
)
_FULL: Final = "A node whose volume is full evicts Pods and pulls their images again, while its GPUs wait."


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which size is enough.

    Attributes:
        min_gib: the least size of the volume with images and files of Pods, in GiB.
    """

    min_gib: Annotated[int, msgspec.Meta(ge=1)] = 100


@validates(EC2_NODE_CLASS, params=Params, mode=Stance.WARN, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the volume for images and Pods if it is too small, or if no mapping is for its device."""
    if node_class["spec", "instanceStorePolicy"].text == "RAID0":
        return
    small = list(_violations(node_class, ctx.params.min_gib))
    if not small or gpu_pools(node_class, ctx):
        yield from small
        return
    doubt = pools_doubt(ctx)
    if doubt is not None:
        yield doubt


def _violations(node_class: Field, least: int) -> Iterator[Violation]:
    family, by_alias = _family(node_class)
    device = _DEVICES.get(family)
    if device is None:
        return
    mappings = node_class["spec", "blockDeviceMappings"]
    if not mappings.value:
        if least > _DEFAULT_GIB:
            yield _unmapped(mappings, device, least)
        return
    root = next((mapping for mapping in mappings if mapping["rootVolume"].value is True), None)
    mapping = root or next((mapping for mapping in mappings if mapping["deviceName"].text == device), None)
    if mapping is None:
        if by_alias:
            yield _other_device(mappings, device, least)
        return
    size = mapping["ebs", "volumeSize"]
    # None for a volume from a snapshot, which has no size.
    amount = quantity.parse_or_none(size.value)
    if amount is not None and amount < least * _GIB:
        message = (
            f"the volume {mapping['deviceName'].text} for images and files of Pods has {size.text} (minimum: {least}Gi)"
        )
        fix = Patch("set", size.path, f"{least}Gi", "makes the volume large enough for images of model servers")
        hint = f"write volumeSize: {least}Gi or more, or use local NVMe disks with instanceStorePolicy: RAID0"
        yield Violation(size.path, message, hint=hint, fix=Patches((fix,)), why=_FULL)


def _family(node_class: Field) -> tuple[str, bool]:
    """Return the image family in lower case, and whether an alias selects the images."""
    aliases = (term["alias"].text for term in node_class["spec", "amiSelectorTerms"])
    alias = next((alias for alias in aliases if alias), "")
    family = node_class["spec", "amiFamily"].text or alias.partition("@")[0]
    return family.lower(), bool(alias)


def _unmapped(mappings: Field, device: str, least: int) -> Violation:
    message = f"missing blockDeviceMappings: the volume for images and files of Pods has {_DEFAULT_GIB}Gi (minimum: {least}Gi)"
    fix = Patch(
        "set", mappings.path, [_mapping(device, least)], "makes the volume large enough for images of model servers"
    )
    return Violation(mappings.path, message, hint=_hint(device, least), fix=Patches((fix,)), why=_DEFAULT)


def _other_device(mappings: Field, device: str, least: int) -> Violation:
    names = ", ".join(dict.fromkeys(mapping["deviceName"].text[:20] for mapping in mappings))
    message = f"missing mapping of {device}, the volume for images and files of Pods; mapped: {names}"
    fix = Patch(
        "append", mappings.path, _mapping(device, least), f"maps {device}, which contains images and files of Pods"
    )
    return Violation(mappings.path, message, hint=_hint(device, least), fix=Patches((fix,)), why=_OTHER_DEVICE)


def _hint(device: str, least: int) -> str:
    return f"map {device} with volumeSize: {least}Gi or more, or use local NVMe disks with instanceStorePolicy: RAID0"


def _mapping(device: str, least: int) -> Json:
    volume: Json = {"volumeSize": f"{least}Gi", "volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
    return {"deviceName": device, "ebs": volume}
