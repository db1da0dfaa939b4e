"""GPU pool without cost labels on its nodes.

## Why is this bad?
Kubecost and OpenCost split the cost of a node by its labels, so the idle cost of these nodes appears under no team.
An empty label, or one with the value `tbd`, counts as missing.

## Instead
Write `team` and `cost-center` under `spec.template.metadata.labels`. A new pool can get them from its own labels
(`from_labels`) or from `defaults`. An existing pool is never changed, because a label of the template replaces all
its nodes (drift). A label of the template is also a requirement, so the pool then fits Pods that select by `team`.

## Sources
Karpenter v1.14.1 `pkg/apis/v1/nodepool.go` (template labels are part of the drift hash), `labels.go` (domains it keeps for
itself); OpenCost and Kubecost documentation, "Allocation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.nodepools._gpu_pools import accelerator
from gpugate.policies.sdk.cost_labels import fault, lookalike
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, is_for_accelerators
from gpugate.policies.sdk.objects import NODE_POOL, Operation
from gpugate.policies.sdk.policy import PARAMETERS_KEY, Context, mutates, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_NO_VALUE: Final = "Cost reports show this value, so the cost is attributed to no team."
_OTHER_KEY: Final = "Cost reports read exact keys, so the cost of these nodes does not appear under the required label."
_PLACEHOLDER: Final = ("nodeclasses/unexpanded-placeholder",)
_RESERVED: Final = ("kubernetes.io", "karpenter.sh", "karpenter.k8s.aws")


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which labels are required, and their forms.

    Attributes:
        required: the labels that the nodes of every GPU pool have.
        formats: the valid forms of values, by label: `#` is a digit, `*` any characters. A label without an entry may have
            any value.
        placeholders: values that count as missing, in any case.
        defaults: the value that a new pool gets if a label is missing, by label; empty: none.
        from_labels: the label of the new pool itself that contains the value, by label, such as `team: team`. It precedes
            `defaults`; empty: none.
    """

    required: tuple[str, ...] = ("team", "cost-center")
    formats: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    placeholders: tuple[str, ...] = ("TBD", "none", "unknown", "changeme", "-", "todo", "n/a")
    defaults: dict[str, str] = msgspec.field(default_factory=dict)
    from_labels: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject labels with a meaning for Kubernetes or Karpenter, which would change the launched nodes."""
        for label in (*self.defaults, *self.from_labels):
            domain = label.rpartition("/")[0]
            if any(f".{domain}".endswith(f".{reserved}") for reserved in _RESERVED):
                raise ValueError(
                    f"{label} is a label of Kubernetes or Karpenter, which selects nodes: write your own label"
                )


@mutates(
    NODE_POOL,
    params=Params,
    mode=Stance.WARN,
    operations=frozenset({Operation.CREATE}),
    tables=(INSTANCE_TYPES,),
    convention=PARAMETERS_KEY,
)
def mutate(pool: Field, ctx: Context[Params]) -> Iterator[Patch]:
    """Add the labels that have a value; a label in another spelling is only reported."""
    params = ctx.params
    wanted = sorted({*params.defaults, *params.from_labels})
    if not wanted or not is_for_accelerators(pool, ctx):
        return
    labels = pool["spec", "template", "metadata", "labels"]
    own = pool["metadata", "labels"].labels
    for key in wanted:
        if labels[key] or lookalike(key, labels.mapping):
            continue
        source = params.from_labels.get(key, "")
        if source in own and not fault(own[source], params.placeholders, params.formats.get(key, ())):
            yield Patch("set", labels[key].path, own[source], f"adds the label {key} from the pool's label {source}")
        elif key in params.defaults:
            value = params.defaults[key]
            yield Patch("set", labels[key].path, value, f"adds the label {key} from the platform's defaults")


@validates(NODE_POOL, params=Params, mode=Stance.WARN, tables=(INSTANCE_TYPES,), convention=PARAMETERS_KEY)
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report labels that are missing, spelled differently, or have an invalid value."""
    if not is_for_accelerators(pool, ctx):
        return
    params = ctx.params
    labels = pool["spec", "template", "metadata", "labels"]
    missing = []
    for key in params.required:
        label = labels[key]
        if label:
            wrong = fault(label.text, params.placeholders, params.formats.get(key, ()))
            if wrong:
                yield Violation(
                    label.path,
                    f"label {key} {wrong}",
                    hint="write the real value, such as the name of the team",
                    same_as=_PLACEHOLDER,
                    why=_NO_VALUE,
                    convention=True,
                )
            continue
        near = lookalike(key, labels.mapping)
        if near:
            yield _misspelled(labels, near, key)
        else:
            missing.append(key)
    if missing:
        message = f"missing node labels {', '.join(missing)}: {ctx.derived(accelerator)} cost cannot be attributed"
        hint = f"add {', '.join(missing)} under spec.template.metadata.labels"
        yield Violation(labels.path, message, hint=hint, convention=True)


def _misspelled(labels: Field, near: str, key: str) -> Violation:
    reason = f"spells the label {key} as cost reports read it"
    renamed = (
        Patch("remove", labels[near].path, None, reason),
        Patch("set", labels[key].path, labels[near].value, reason),
    )
    message = f"label {near} is not {key}: cost reports read exact keys"
    fix = Patches(renamed)
    return Violation(
        labels[near].path, message, hint=f"rename the label to {key}", fix=fix, why=_OTHER_KEY, convention=True
    )
