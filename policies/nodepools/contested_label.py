"""GPU NodePool that declares a label with another value than GPU Feature Discovery writes.

## Why is this bad?
A Pod that selects the declared value cannot run on the node that Karpenter launches for it, because GPU Feature Discovery
overwrites the label on the node. The Pod stays Pending, and Karpenter launches another node. A Pod that selects the
detected value gets no node, because Karpenter knows only the declared one.

## Instead
Declare the value that GPU Feature Discovery writes:

```yaml
labels:
  nvidia.com/gpu.product: Tesla-T4    # not NVIDIA-T4
```

Or remove the label, and let Pods select `karpenter.k8s.aws/instance-gpu-name`, which Karpenter sets. If the types of the
pool have different GPUs, no value is right for all of them.

The policy compares the labels `nvidia.com/gpu.product`, `nvidia.com/gpu.family`, `nvidia.com/gpu.count` and
`nvidia.com/gpu.memory` of the template, and requirements on them, with the GPUs of the types that the pool allows. It
does not report values of shared GPUs and MIG slices, GPUs whose values are unknown to gpugate, and clusters whose
DaemonSets are all known and do not include GPU Feature Discovery.

## Sources
NVIDIA k8s-device-plugin v0.17 `internal/lm/resource.go` (getArchFamily: family; the product is the name of the device
with hyphens for spaces) and `docs/gpu-feature-discovery/README.md`; Node Feature Discovery v0.17
`pkg/nfd-master/nfd-master.go` (updateNodeObject replaces labels); Karpenter v1.14.1
`pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go` (a custom requirement becomes a label with one of its
values); METR/hawk issue 1486 (NVIDIA-T4
overwritten with Tesla-T4). EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import GPU_NAME
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.nodepools._instance_choice import edited, listed_names
from gpugate.policies.sdk.facts import Known, Need, derived
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES
from gpugate.policies.sdk.objects import DAEMON_SET, NODE_POOL
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.policy import AnyContext

_PRODUCT, _FAMILY = "nvidia.com/gpu.product", "nvidia.com/gpu.family"
_COUNT, _MEMORY = "nvidia.com/gpu.count", "nvidia.com/gpu.memory"
_LABELS: Final = frozenset({_PRODUCT, _FAMILY, _COUNT, _MEMORY})
# The driver's name of the device by Karpenter's name of the GPU and its memory in MiB, without "NVIDIA-", which drivers
# before version 510 did not write.
_PRODUCTS: Final = {
    ("a100", "40960"): "A100-SXM4-40GB",
    ("a100", "81920"): "A100-SXM4-80GB",
    ("a10g", "22888"): "A10G",
    ("b200", "183359"): "B200",
    ("h100", "81920"): "H100-80GB-HBM3",
    ("h200", "144384"): "H200",
    ("l4", "22888"): "L4",
    ("l40s", "45776"): "L40S",
    ("t4", "16384"): "Tesla-T4",
    ("v100", "32768"): "Tesla-V100-SXM2-32GB",
}
_FAMILIES: Final = {
    "a100": "ampere",
    "a10g": "ampere",
    "h100": "hopper",
    "h200": "hopper",
    "l4": "ada-lovelace",
    "l40s": "ada-lovelace",
    "t4": "turing",
    "t4g": "turing",
    "v100": "volta",
}
# The names of these GPUs include the brand instead of the manufacturer.
_BRAND: Final = "Tesla-"
_MAKER: Final = "NVIDIA-"
# The suffixes of the product if a GPU is shared, or has MIG slices with the strategy `single`.
_SHARES: Final = ("-SHARED", "-MIG-")
_MIG_CAPABLE: Final = frozenset({"a100", "h100", "h200", "b200", "b300", "rtx-pro-server-6000"})
_MOST_SLICES: Final = 7
_DISCOVERY: Final = "feature-discovery"
_LONGEST: Final = 63  # characters of a label's value


@validates(
    NODE_POOL,
    mode=Stance.WARN,
    needs=(Need(DAEMON_SET, ("spec.template.spec.containers.image", "spec.template.spec.containers.command")),),
    tables=(INSTANCE_TYPES,),
)
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report each declared value that GPU Feature Discovery does not write on a type of the pool."""
    yield from with_gpu_types(pool, ctx, _violations)


def _violations(_pool: Field, types: MatchingTypes, ctx: AnyContext) -> Iterator[Violation]:
    entries = [entry for entry in types.entries if entry.key in _LABELS and entry.requirement.operator == "In"]
    if not entries or _is_without_discovery(ctx):
        return
    catalogue = types.catalogue
    for entry in entries:
        written = {
            at: value
            for at in catalogue.positions_in(types.accelerated)
            if (value := _written(entry.key, at, catalogue))
        }
        for declared in sorted(entry.requirement.values):
            contested = [at for at in written if not _agrees(entry.key, declared, at, catalogue)]
            if contested:
                detected = written[contested[0]]
                where = listed_names(catalogue.names[at] for at in contested if written[at] == detected)
                message = (
                    f"label {entry.key} is {declared[:_LONGEST]}, but GPU Feature Discovery writes {detected} "
                    f"on {where}"
                )
                hint = "remove the label, and let Pods select a label of Karpenter such as " + GPU_NAME
                if len(set(written.values())) == 1 and len(contested) == len(written):
                    hint = f"write {detected}, or {hint}"
                yield Violation(edited(entry.field).path, message, hint=hint)
                break


def _is_without_discovery(ctx: AnyContext) -> bool:
    """Tell whether all DaemonSets are known, and none of them writes the labels."""
    fact = ctx.facts.list(DAEMON_SET)
    return isinstance(fact, Known) and fact.complete and not derived(fact, _has_discovery, ctx)


def _has_discovery(known: Known, _ctx: AnyContext) -> bool:
    return any(
        _DISCOVERY in agent["metadata", "name"].text
        or any(
            _DISCOVERY in container["image"].text or any(_DISCOVERY in word.text for word in container["command"])
            for container in agent["spec", "template", "spec", "containers"]
        )
        for agent in known.items
    )


def _written(label: str, at: int, catalogue: InstanceTypes) -> str:
    """Return the value that is written on nodes of a type without shares; empty if it is unknown."""
    gpu, memory = catalogue.label(GPU_NAME, at), catalogue.label(f"{AWS}/instance-gpu-memory", at)
    if label == _PRODUCT:
        product = _PRODUCTS.get((gpu, memory), "")
        return product if not product or product.startswith(_BRAND) else _MAKER + product
    if label == _FAMILY:
        return _FAMILIES.get(gpu, "")
    if (gpu, memory) not in _PRODUCTS:
        return ""
    return memory if label == _MEMORY else catalogue.label(f"{AWS}/instance-gpu-count", at)


def _agrees(label: str, declared: str, at: int, catalogue: InstanceTypes) -> bool:
    """Tell whether a declared value may be written on nodes of a type, with or without shares."""
    value = _written(label, at, catalogue)
    has_slices = catalogue.label(GPU_NAME, at) in _MIG_CAPABLE
    if label == _PRODUCT:
        names = (value, value.removeprefix(_MAKER))
        return declared in names or declared.startswith(tuple(name + share for name in names for share in _SHARES))
    if label == _FAMILY:
        return declared == value
    if not (declared.isascii() and declared.isdigit() and len(declared) <= len(value) + 1):
        return False
    number, expected = int(declared), int(value)
    if label == _COUNT:
        return number == expected or (has_slices and expected < number <= _MOST_SLICES * expected)
    # The driver reports slightly more or less memory than EC2.
    return number * 10 <= expected * 11 and (has_slices or number * 10 >= expected * 9)
