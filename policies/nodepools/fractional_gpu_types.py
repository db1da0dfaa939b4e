"""GPU NodePool that may launch instance types with a part of a GPU.

## Why is this bad?
Types such as g6f.xlarge have a part of a GPU, and Karpenter counts no `nvidia.com/gpu` for them: it never launches one
for a Pod that requests a GPU. A Pod that finds its GPU by labels alone, such as `instance-gpu-name: l4`, gets the
cheapest type of the pool: a g6f.large with 2.8 GiB of GPU memory instead of 22 GiB. These types also need NVIDIA's GRID
driver, which not every image contains.

## Instead
Exclude the families:

```yaml
requirements:
  - key: karpenter.k8s.aws/instance-family
    operator: NotIn
    values: [g6f, gr6f]
```

`karpenter.k8s.aws/instance-gpu-count Gt 0` excludes the types too, as long as Karpenter counts no GPU for them. A pool
that names the types or their families is not reported, because it is meant for them. EKS Auto Mode is not evaluated.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/providers/instancetype/types.go` (nvidiaGPUs adds the count that EC2 gives, which
is 0 for these types), issue #8324; amazon-eks-ami issue #2443 (the GRID driver, in AL2023 images from v20250610 on); EC2
types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import GPU_NAME
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.nodepools._instance_choice import edited, listed_names
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, names_one_of, provider
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes

_FAMILY: Final = f"{AWS}/instance-family"
_COUNT: Final = f"{AWS}/instance-gpu-count"


@validates(NODE_POOL, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the types with a part of a GPU, unless the pool names them."""
    if provider(pool, ctx) == AWS:
        yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, _ctx: AnyContext) -> Iterator[Violation]:
    catalogue = types.catalogue
    fractional = types.known & _fractional(catalogue)
    if not fractional or names_one_of(types, fractional) or fractional == types.accelerated:
        return
    names = listed_names(catalogue.decode(fractional))
    count, whole = fractional.bit_count(), types.accelerated.bit_count()
    message = (
        f"{count} of {whole} instance types with an accelerator {'has' if count == 1 else 'have'} only a part of a GPU "
        f"and no nvidia.com/gpu ({names})"
    )
    families = sorted(family for family, members in catalogue.values[_FAMILY].items() if members & fractional)
    excluded = ", ".join(families)
    requirements = pool["spec", "template", "spec", "requirements"]
    added = Patch(
        "append",
        requirements.path,
        {"key": _FAMILY, "operator": "NotIn", "values": [*families]},
        f"excludes {excluded}, which have only a part of a GPU",
    )
    hint = f"add the requirement {_FAMILY} NotIn [{excluded}]"
    yield Violation(_widest(types, fractional, requirements).path, message, hint=hint, fix=Patches((added,)))


def _fractional(catalogue: InstanceTypes) -> int:
    """Return the types with the name of a GPU, of which EC2 counts none."""
    return catalogue.having(GPU_NAME) & catalogue.of(_COUNT, "0")


def _widest(types: MatchingTypes, fractional: int, requirements: Field) -> Field:
    """Return the values that allow the types: those of the first list with a value of theirs."""
    for entry in types.entries:
        if entry.requirement.operator == "In" and entry.key.startswith(f"{AWS}/instance-"):
            values = (types.catalogue.of(entry.key, value) for value in entry.requirement.values)
            if any(having & fractional for having in values):
                return edited(entry.field)
    return requirements
