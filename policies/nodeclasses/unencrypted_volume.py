"""EC2NodeClass with a volume that is not encrypted, or that outlives its node.

## Why is this bad?
Without encryption, model weights, training data and tokens in container images can be read from the disk and from every
snapshot of it. A mapping that does not say `encrypted: true` is encrypted only where the account encrypts EBS volumes by
default; then `encrypted: false` has no effect either. Without any mapping, Karpenter's own default is encrypted. A volume with `deleteOnTermination: false` stays when its node goes: GPU nodes come and go by the hour,
and each leaves a disk of hundreds of gigabytes that is paid for until somebody finds it.

## Instead
```yaml
blockDeviceMappings:
  - deviceName: /dev/xvda
    ebs: {volumeSize: 200Gi, volumeType: gp3, encrypted: true, deleteOnTermination: true}
```

A manifest does not show what the account does, so a missing `encrypted: true` is a warning. With `encrypted_by_default: false` it
is a denial, except for a volume from a snapshot, which is encrypted when the snapshot is. With `encrypted_by_default: true` a
mapping need not say anything. Data that must last belongs on a PersistentVolume.

A class that only pools without GPUs refer to is not evaluated. While no known NodePool refers to a class, its findings are
warnings at most.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`,
`pkg/providers/amifamily/resolver.go` (DefaultEBS is encrypted), `pkg/providers/launchtemplate/launchtemplate.go` (what a
mapping leaves out is left to EC2); Amazon EBS user guide "Enable Amazon EBS encryption by default" (it cannot be disabled for
individual volumes).
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
        encrypted_by_default: whether EBS encryption by default is on in every account and region of the platform; null where
            that is not known.
    """

    encrypted_by_default: bool | None = None


@validates(EC2_NODE_CLASS, params=Params, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each volume that is not encrypted, and each that is kept."""
    for mapping in node_class["spec", "blockDeviceMappings"]:
        volume = mapping["ebs"]
        if not volume:
            continue
        encrypted, kept = volume["encrypted"], volume["deleteOnTermination"]
        if encrypted.value is not True and not ctx.params.encrypted_by_default:
            yield _unencrypted(volume, encrypted, by_account=ctx.params.encrypted_by_default is None)
        if kept.value is False:
            message = "deleteOnTermination false leaves the volume behind, and paid for, when its node goes"
            fix = _set_true(kept, "lets the volume go with its node")
            yield Violation(
                kept.path, message, hint="write true; put data that must last on a PersistentVolume", fix=fix
            )


def _unencrypted(volume: Field, encrypted: Field, *, by_account: bool) -> Violation:
    message = "encrypted is false" if encrypted else "the volume does not say encrypted: true"
    if volume["snapshotID"].text:
        hint = "write encrypted: true, or make sure that the snapshot is encrypted"
        return Violation(encrypted.path, f"{message}, so it is as its snapshot is", Stance.WARN, hint)
    fix = _set_true(encrypted, "encrypts the volume, with the account's default key where none is named", safe=True)
    if by_account:
        message = f"{message}: it is encrypted only where the account encrypts by default"
        return Violation(encrypted.path, message, Stance.WARN, "write encrypted: true", fix)
    return Violation(encrypted.path, f"{message}, so it is not encrypted", hint="write encrypted: true", fix=fix)


def _set_true(field: Field, reason: str, *, safe: bool = False) -> Patches:
    return Patches((Patch("set", field.path, True, reason),), safe)  # noqa: FBT003 -- the value that is written
