"""EC2NodeClass with a volume that is not encrypted, or that outlives its node.

## Why is this bad?
Model weights, training data and tokens in container images lie readable on the disk and in every snapshot of it. A mapping
that does not say `encrypted: true` is not encrypted, unless the account encrypts by default; without any mapping Karpenter's
own default is. A volume with `deleteOnTermination: false` stays when its node goes: GPU nodes come and go by the hour,
and each leaves a disk of hundreds of gigabytes that is paid for until somebody finds it.

## Instead
```yaml
blockDeviceMappings:
  - deviceName: /dev/xvda
    ebs: {volumeSize: 200Gi, volumeType: gp3, encrypted: true, deleteOnTermination: true}
```

A volume from a snapshot is encrypted when the snapshot is, so it is a warning there. With `encrypted_by_default` a mapping
need not say anything. Data that must last belongs on a PersistentVolume.

A class that only pools without GPUs refer to is not evaluated. While no known NodePool refers to a class, its findings are
warnings at most.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`,
`pkg/providers/amifamily/resolver.go` (DefaultEBS is encrypted), `pkg/providers/launchtemplate/launchtemplate.go` (what a
mapping leaves out is left to EC2); Amazon EBS user guide "Amazon EBS encryption".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodeclasses._gpu_classes import POOL_NEEDS, of_gpu_classes
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import EC2_NODE_CLASS
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


class Params(PolicyParams, frozen=True, kw_only=True):
    """What the AWS accounts do by themselves.

    Attributes:
        encrypted_by_default: whether EBS encryption by default is on in every account and region of the platform.
    """

    encrypted_by_default: bool = False


@validates(EC2_NODE_CLASS, params=Params, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each volume that is not encrypted, and each that is kept."""
    for mapping in node_class["spec", "blockDeviceMappings"]:
        volume = mapping["ebs"]
        if not volume:
            continue
        encrypted, kept = volume["encrypted"], volume["deleteOnTermination"]
        if encrypted.value is not True and (encrypted or not ctx.params.encrypted_by_default):
            yield _unencrypted(volume, encrypted)
        if kept.value is False:
            message = "deleteOnTermination false leaves the volume behind, and paid for, when its node goes"
            fix = _set_true(kept, "lets the volume go with its node")
            yield Violation(
                kept.path, message, hint="write true; put data that must last on a PersistentVolume", fix=fix
            )


def _unencrypted(volume: Field, encrypted: Field) -> Violation:
    message = "encrypted is false" if encrypted else "the volume does not say encrypted: true"
    if volume["snapshotID"].text:
        hint = "write encrypted: true, or make sure that the snapshot is encrypted"
        return Violation(encrypted.path, f"{message}, so it is as its snapshot is", Stance.WARN, hint)
    fix = _set_true(encrypted, "encrypts the volume, with the account's default key where none is named", safe=True)
    return Violation(encrypted.path, f"{message}, so its data is readable", hint="write encrypted: true", fix=fix)


def _set_true(field: Field, reason: str, *, safe: bool = False) -> Patches:
    return Patches((Patch("set", field.path, True, reason),), safe)  # noqa: FBT003 -- the value that is written
