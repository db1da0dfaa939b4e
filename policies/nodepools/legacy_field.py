"""Field of an older Karpenter API in a v1 object.

## Why is this bad?
The file cannot be applied: kubectl requests strict validation by default, which refuses fields that v1 does not have.
Helm, Argo CD and Flux may apply without it. Then the API server drops these fields without an error: a pool whose
`spec.disruption.expireAfter` is dropped replaces its nodes after 720 hours, also while training runs on them. The
webhook does not see dropped fields; `gpugate check` reports them in files.

## Instead
Write the field at its path in v1.

## Sources
Karpenter's "v1 migration" guide, v1.1; Karpenter v1.14.1 `pkg/apis/crds/karpenter.sh_nodepools.yaml`,
`karpenter.k8s.aws_ec2nodeclasses.yaml`; Kubernetes documentation "Server Side Field Validation" (`kubectl --validate=true` is
strict from 1.27 on).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.legacy_fields import NODE_CLASS_FIELDS, NODE_POOL_FIELDS
from gpugate.policies.nodepools._conversion import node_class_ref, selector_terms
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.objects import EC2_NODE_CLASS, NODE_POOL
from gpugate.policies.sdk.policy import Context, Params, validates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.data.legacy_fields import LegacyField
    from gpugate.policies.sdk.field import Field, Json

# The CRD's defaults, which are set before admission and count as missing (Karpenter v1.14.1
# `karpenter.sh_nodepools.yaml`).
_FILLED_IN: Final[dict[str, Json]] = {"spec.template.spec.expireAfter": "720h"}
_DISRUPTION: Final[dict[str, Json]] = {
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "consolidateAfter": "0s",
    "budgets": [{"nodes": "10%"}],
}
_REASON: Final = "moves {} to its path in v1"


def written(legacy: LegacyField, obj: Field) -> Patches | None:
    """Return the change; None if the user has to decide, because v1 has no field for the value.

    If v1's own field exists too, the change removes the other one, which has no effect.
    """
    removed = Patch("remove", _path(legacy.path), None, f"removes {legacy.path}, which v1 does not have")
    special = _SPECIAL.get(legacy.path)
    if special:
        return special(obj, removed)
    if not legacy.successor:
        return Patches((removed,), safe=True)
    new = obj[_path(legacy.successor)]
    if new.value not in (None, _FILLED_IN.get(legacy.successor)):
        both_count = isinstance(new.value, dict | list) and not _closed(legacy)
        return None if both_count else Patches((removed,), safe=True)
    old = obj[_path(legacy.path)]
    convert = _CONVERSIONS.get(legacy.path)
    value = old.value if legacy.moved else convert(old) if convert else None
    return Patches((removed, Patch("set", new.path, value, _REASON.format(legacy.path)))) if value is not None else None


def _closed(legacy: LegacyField) -> bool:
    """Tell whether v1's field is complete; labels, for example, may be in both fields."""
    return legacy.path == "spec.providerRef" or legacy.path.endswith("Selector")


def _after_empty(obj: Field, removed: Patch) -> Patches:
    seconds = obj["spec", "ttlSecondsAfterEmpty"].integer
    disruption = obj["spec", "disruption"]
    if seconds is None or disruption.value not in (None, _DISRUPTION):
        return Patches((removed,), safe=True)
    reason = _REASON.format("spec.ttlSecondsAfterEmpty")
    return Patches(
        (
            removed,
            Patch("set", disruption["consolidationPolicy"].path, "WhenEmpty", reason),
            Patch("set", disruption["consolidateAfter"].path, f"{seconds}s", reason),
        ),
    )


def _limits(obj: Field, removed: Patch) -> Patches:
    limits = obj["spec", "limits"]
    reason = _REASON.format("spec.limits.resources")
    moved = (
        Patch("set", limits[name].path, field.value, reason)
        for name, field in limits["resources"].items()
        if not limits[name]
    )
    return Patches((removed, *moved))


def _seconds(field: Field) -> Json:
    return None if field.integer is None else f"{field.integer}s"


def _group(field: Field) -> Json:
    return field.text.rpartition("/")[0] or None


def _terms(field: Field) -> Json:
    terms: list[Json] = selector_terms(field)
    return terms or None


_CONVERSIONS: Final[dict[str, Callable[[Field], Json]]] = {
    "spec.ttlSecondsUntilExpired": _seconds,
    "spec.providerRef": node_class_ref,
    "spec.template.spec.nodeClassRef.apiVersion": _group,
    "spec.subnetSelector": _terms,
    "spec.securityGroupSelector": _terms,
    "spec.amiSelector": _terms,
}


_SPECIAL: Final[dict[str, Callable[[Field, Patch], Patches]]] = {
    "spec.ttlSecondsAfterEmpty": _after_empty,
    "spec.limits.resources": _limits,
}


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(dotted.split("."))


_REFUSED: Final = "The API server refuses the object, because v1 expects another type at this path."
_RENAMED: Final = "The API server refuses the NodePool, because v1 does not know the old name."
_DROPPED: Final = "kubectl refuses the file (strict validation); with other clients the API server {}."
_OLD_POLICY: Final = "WhenUnderutilized"
_NEW_POLICY: Final = "WhenEmptyOrUnderutilized"


@validates(NODE_POOL)
def check_pool(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:  # noqa: ARG001 -- the signature of checks
    """Report each legacy field, and the consolidation policy that v1 renamed."""
    yield from _legacy(pool, NODE_POOL_FIELDS)
    disruption = pool["spec", "disruption"]
    policy = disruption["consolidationPolicy"]
    if policy.text == _OLD_POLICY:
        reason = "writes the name of the policy in v1"
        patches = [Patch("set", policy.path, _NEW_POLICY, reason)]
        after = disruption["consolidateAfter"]
        if not after:
            # v1beta1 rejected it with this policy, and v1 requires it: 0s is the behavior of v1beta1.
            patches.append(Patch("set", after.path, "0s", "keeps the wait of v1beta1"))
        yield Violation(
            policy.path,
            f"consolidationPolicy {_OLD_POLICY} is now named {_NEW_POLICY}",
            hint=f"write {_NEW_POLICY} and a consolidateAfter",
            fix=Patches(tuple(patches)),
            why=_RENAMED,
        )


@validates(EC2_NODE_CLASS)
def check_node_class(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:  # noqa: ARG001 -- the same
    """Report each legacy field."""
    yield from _legacy(node_class, NODE_CLASS_FIELDS)


def _legacy(obj: Field, fields: tuple[LegacyField, ...]) -> Iterator[Violation]:
    for legacy in fields:
        field = obj[tuple(legacy.path.split("."))]
        if field:
            name = legacy.path.rpartition(".")[2]
            hint = f"write {legacy.successor} instead" if legacy.successor else f"remove {name}"
            dropped = _DROPPED.format(f"drops {name}, and {legacy.instead}" if legacy.instead else f"drops {name}")
            yield Violation(
                field.path,
                f"v1 has no field {name} at this path",
                hint=hint,
                fix=written(legacy, obj),
                why=_REFUSED if legacy.refused else dropped,
            )
