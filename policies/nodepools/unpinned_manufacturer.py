"""GPU NodePool that also launches accelerators of a manufacturer for which it has no taint or limit.

## Why is this bad?
Pods without a GPU can run on the nodes of the other manufacturer, if the pool has no taint for it. Pods that request its
accelerators can launch any number of nodes, if the pool has no limit on it. Images and drivers differ too: software for
NVIDIA GPUs does not run on AMD GPUs.

A broad requirement has this effect: the EC2 category `g` includes types with AMD GPUs.

## Instead
Require the manufacturer:

```yaml
requirements:
  - key: karpenter.k8s.aws/instance-gpu-manufacturer
    operator: In
    values: [nvidia]
```

The policy reports manufacturers of which the pool has a few types through a broad requirement, next to others that its
taint or its limit covers. A pool with a taint and a limit for each of its manufacturers is not reported. If a value that
the pool requires is of the other manufacturer only, such as the family `g4ad`, `nodepools/missing-gpu-taint` and
`nodepools/missing-gpu-limit` report the pool.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/v1/labels.go` (instance-gpu-manufacturer), `pkg/providers/instancetype/types.go`
(the resource that a type of each manufacturer offers); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._accelerators import is_minor, makes, taints_for
from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.sdk import node_pools
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scheduling import HARD_EFFECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.nodepools._accelerators import Make
    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.policy import AnyContext

_LABEL: Final = f"{AWS}/instance-gpu-manufacturer"
# Manufacturers whose types have the label; types with Neuron devices and Gaudi have another one.
_OF_GPUS: Final = frozenset({"nvidia", "amd"})
_WITHOUT_TAINT: Final = "Pods that request no GPU can run on these nodes."
_WITHOUT_LIMIT: Final = "Nothing limits how many of these nodes Karpenter launches for Pods that request {resource}."


@validates(NODE_POOL, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report each minor make without a taint or limit, if another make has it."""
    yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, ctx: AnyContext) -> Iterator[Violation]:
    present_makes = tuple(makes(types))
    open_to_all, unlimited = _without_taint(pool, present_makes, ctx), _without_limit(pool, present_makes)
    for make in present_makes:
        missing = ["taint"] * (make in open_to_all) + ["limit"] * (make in unlimited)
        if missing and is_minor(make, types):
            yield _violation(pool, make, present_makes, missing)


def _without_taint(pool: Field, present_makes: tuple[Make, ...], ctx: AnyContext) -> tuple[Make, ...]:
    """Return the makes without a taint; none if no make has one, which another policy reports."""
    taints = pool["spec", "template", "spec", "taints"]
    present = {taint["key"].text for taint in taints if taint["effect"].text in HARD_EFFECTS}
    wanted = {make: {taint.key for taint in taints_for(make, ctx)} for make in present_makes}
    open_to_all = tuple(make for make, keys in wanted.items() if keys and present.isdisjoint(keys))
    return open_to_all if len(open_to_all) < len(present_makes) else ()


def _without_limit(pool: Field, present_makes: tuple[Make, ...]) -> tuple[Make, ...]:
    """Return the makes without a limit; none if no make has one, or all nodes are limited."""
    limits = node_pools.limits(pool)
    if pool["spec", "replicas"] or "nodes" in limits:
        return ()
    offering = tuple(make for make in present_makes if make.offering)
    unlimited = tuple(make for make in offering if limits.keys().isdisjoint(make.resources))
    return unlimited if len(unlimited) < len(offering) else ()


def _violation(pool: Field, make: Make, present_makes: tuple[Make, ...], missing: list[str]) -> Violation:
    count, resource = make.types.bit_count(), make.resources[0]
    why = " ".join(
        (_WITHOUT_TAINT if kind == "taint" else _WITHOUT_LIMIT.format(resource=resource)) for kind in missing
    )
    requirements = pool["spec", "template", "spec", "requirements"]
    main = present_makes[0].manufacturer
    hint, fix = f"require types of one manufacturer, or add a {' and a '.join(missing)} for {resource}", None
    if main in _OF_GPUS:
        hint = f"add the requirement {_LABEL} In [{main}], or add a {' and a '.join(missing)} for {resource}"
        value: Json = {"key": _LABEL, "operator": "In", "values": [main]}
        fix = Patches((Patch("append", requirements.path, value, f"allows only types of {main}"),))
    message = (
        f"{count} of the instance types {'has' if count == 1 else 'have'} {resource}, for which the pool has no "
        f"{' and no '.join(missing)}"
    )
    return Violation(requirements.path, message, hint=hint, fix=fix, why=why)
