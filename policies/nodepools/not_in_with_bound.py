"""GPU NodePool with a bound and a NotIn on one label, which also allow types without the label.

## Why is this bad?
Karpenter combines both requirements into a `NotIn`, which a type without the label meets: `instance-gpu-count Gt 0`
together with `NotIn [8]` allows 1,280 types without any GPU, which the bound alone excludes. Pods without a GPU that
tolerate the taint of the pool then get nodes from it.

## Instead
Name the values:

```yaml
requirements:
  - key: karpenter.k8s.aws/instance-gpu-count
    operator: In
    values: ["1", "2", "4"]
```

Or use two bounds, such as `Gt 0` and `Lt 8`. For counts and memory of GPUs, `karpenter.k8s.aws/instance-gpu-name Exists`
excludes the types without a GPU too. A label that all types have, such as `instance-cpu`, is not reported.

## Sources
Karpenter v1.14.1 `pkg/scheduling/requirement.go` (Intersection keeps both, Operator returns NotIn), `requirements.go`
(Intersects: NotIn is met by a label that is not defined); EC2 types as of 2026-07-20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._gpu_pools import with_gpu_types
from gpugate.policies.nodepools._instance_choice import edited
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, provider
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import Entry, MatchingTypes

# The labels of all types with a GPU, or with another accelerator.
_NAMES: Final = {
    f"{AWS}/instance-gpu-": f"{AWS}/instance-gpu-name",
    f"{AWS}/instance-accelerator-": f"{AWS}/instance-accelerator-name",
}
_MOST_VALUES: Final = 8  # in a hint


@validates(NODE_POOL, mode=Stance.WARN, tables=(INSTANCE_TYPES,))
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report each label with a bound and a NotIn where types without the label match."""
    if provider(pool, ctx) == AWS:
        yield from with_gpu_types(pool, ctx, _violations)


def _violations(pool: Field, types: MatchingTypes, _ctx: AnyContext) -> Iterator[Violation]:
    reported: set[str] = set()
    for entry in types.entries:
        key = entry.key
        combined = types.requirements[key]
        bounded = combined.gte is not None or combined.lte is not None
        excludes = entry.requirement.operator == "NotIn" and entry.requirement.values & combined.values
        if key in reported or not bounded or not excludes:
            continue
        without = types.known & ~types.catalogue.having(key)
        if without:
            reported.add(key)
            yield _loose(pool, entry, without, types)


def _loose(pool: Field, entry: Entry, without: int, types: MatchingTypes) -> Violation:
    short = entry.key.rpartition("/")[2]
    message = (
        f"a bound and a NotIn on {short} together allow {without.bit_count()} instance types without this label, of "
        f"{types.known.bit_count()} in all"
    )
    name = next((name for prefix, name in _NAMES.items() if entry.key.startswith(prefix)), None)
    if name is not None:
        requirements = pool["spec", "template", "spec", "requirements"]
        added = Patch(
            "append", requirements.path, {"key": name, "operator": "Exists"}, f"excludes types without {short}"
        )
        hint = f"add the requirement {name} Exists{_listed(entry, types)}"
        return Violation(edited(entry.field).path, message, hint=hint, fix=Patches((added,)))
    hint = f"write two bounds and no NotIn{_listed(entry, types)}"
    return Violation(edited(entry.field).path, message, hint=hint)


def _listed(entry: Entry, types: MatchingTypes) -> str:
    """Return the alternative to name all values, if there are few."""
    allowed = [v for v in types.catalogue.values.get(entry.key, {}) if types.requirements[entry.key].allows(v)]
    return (
        f", or require In [{', '.join(sorted(allowed, key=int))}] instead of both"
        if len(allowed) <= _MOST_VALUES
        else ""
    )
