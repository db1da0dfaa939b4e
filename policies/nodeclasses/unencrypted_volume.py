"""EC2NodeClass with a volume that is not encrypted, or that is kept after its node.

## Why is this bad?
Model weights, training data and tokens in container images can be read from the disk and from every snapshot of it. A
volume without `encrypted: true` is encrypted only if the account encrypts EBS volumes by default. In such an account,
`encrypted: false` has no effect. Without any mapping, Karpenter's default volume is encrypted. A volume with
`deleteOnTermination: false` remains after its node is terminated. GPU nodes are launched and terminated by the hour,
and each leaves a disk of hundreds of gigabytes that costs money until it is deleted.

## Instead
```yaml
blockDeviceMappings:
  - deviceName: /dev/xvda
    ebs: {volumeSize: 200Gi, volumeType: gp3, encrypted: true, deleteOnTermination: true}
```

A manifest does not show the account's settings, so a missing `encrypted: true` is a warning. With
`encrypted_by_default: false` it is denied, except for a volume from a snapshot, which is encrypted if the snapshot
is. With `encrypted_by_default: true` a mapping need not set the field. Keep persistent data on a PersistentVolume.

A class is not evaluated if only pools without GPUs use it. If gpugate finds no NodePool that uses a class, its
findings are at most warnings.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`,
`pkg/providers/amifamily/resolver.go` (DefaultEBS is encrypted), `pkg/providers/launchtemplate/launchtemplate.go` (what a
mapping leaves out is left to EC2); Amazon EBS user guide "Enable Amazon EBS encryption by default" (it cannot be disabled for
individual volumes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodeclasses._gpu_classes import POOL_NEEDS, of_gpu_classes
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import EC2_NODE_CLASS
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


_KEPT: Final = "EC2 keeps the volume, and its cost, until it is deleted; each new GPU node adds another one."
_DELETE: Final = "write deleteOnTermination: true; keep persistent data on a PersistentVolume"
_OF_SNAPSHOT: Final = "If the snapshot is not encrypted, model weights and tokens on the disk can be read from it."
_OF_ACCOUNT: Final = "If the account does not encrypt by default, model weights and tokens can be read from the disk."
_OPEN: Final = "Model weights, training data and tokens can be read from the disk and from every snapshot of it."


class Params(PolicyParams, frozen=True, kw_only=True):
    """What the AWS accounts do by default.

    Attributes:
        encrypted_by_default: whether EBS encryption by default is on in every account and region of the platform; null if
            you do not know.
    """

    encrypted_by_default: bool | None = None


@validates(EC2_NODE_CLASS, params=Params, needs=POOL_NEEDS, tables=(INSTANCE_TYPES,))
@of_gpu_classes
def check(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each volume that is not encrypted, and each that is kept after its node."""
    for mapping in node_class["spec", "blockDeviceMappings"]:
        volume = mapping["ebs"]
        if not volume:
            continue
        encrypted, deleted_with_node = volume["encrypted"], volume["deleteOnTermination"]
        if encrypted.value is not True and not ctx.params.encrypted_by_default:
            yield _unencrypted(volume, encrypted, by_account=ctx.params.encrypted_by_default is None)
        if deleted_with_node.value is False:
            message = "deleteOnTermination false keeps the volume after its node is terminated"
            fix = _set_true(deleted_with_node, "deletes the volume with its node")
            yield Violation(deleted_with_node.path, message, hint=_DELETE, fix=fix, why=_KEPT)


def _unencrypted(volume: Field, encrypted: Field, *, by_account: bool) -> Violation:
    message = "encrypted is false" if encrypted else "encrypted: true is missing"
    if volume["snapshotID"].text:
        hint = "write encrypted: true, or use an encrypted snapshot"
        message = f"{message}: the volume is encrypted only if its snapshot is"
        return Violation(encrypted.path, message, Stance.WARN, hint, why=_OF_SNAPSHOT)
    fix = _set_true(encrypted, "encrypts the volume, with the account's default key if none is set", safe=True)
    if by_account:
        message = f"{message}: the volume is encrypted only if the account encrypts EBS volumes by default"
        return Violation(encrypted.path, message, Stance.WARN, "write encrypted: true", fix, why=_OF_ACCOUNT)
    message = f"{message}: the volume is not encrypted"
    return Violation(encrypted.path, message, hint="write encrypted: true", fix=fix, why=_OPEN)


def _set_true(field: Field, reason: str, *, safe: bool = False) -> Patches:
    return Patches((Patch("set", field.path, True, reason),), safe)  # noqa: FBT003 -- the value that is written
