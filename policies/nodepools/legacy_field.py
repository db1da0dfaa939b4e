"""Field of an older Karpenter API in a v1 object.

## Why is this bad?
The API server drops fields that v1 does not have without a word, so the file looks applied and means nothing: a pool
whose `spec.disruption.expireAfter` is dropped replaces its nodes after 720 hours, whatever runs on them. At admission the
fields are gone already; this is found in files.

## Instead
Write the field where v1 has it. `kubectl apply --validate=strict` refuses what the API server would drop.

## Sources
Karpenter's "v1 migration" guide, v1.1; Karpenter v1.14.1 `pkg/apis/crds/karpenter.sh_nodepools.yaml`,
`karpenter.k8s.aws_ec2nodeclasses.yaml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.legacy_fields import NODE_CLASS_FIELDS, NODE_POOL_FIELDS
from gpugate.policies.nodepools.legacy_fields.moves import written
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.objects import EC2_NODE_CLASS, NODE_POOL
from gpugate.policies.sdk.policy import Context, Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.data.legacy_fields import LegacyField
    from gpugate.policies.sdk.field import Field

_OLD_POLICY: Final = "WhenUnderutilized"
_NEW_POLICY: Final = "WhenEmptyOrUnderutilized"


@validates(NODE_POOL)
def check_pool(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:  # noqa: ARG001 -- every check has this shape
    """Report each legacy field, and the consolidation policy that v1 calls by another name."""
    yield from _legacy(pool, NODE_POOL_FIELDS)
    disruption = pool["spec", "disruption"]
    policy = disruption["consolidationPolicy"]
    if policy.text == _OLD_POLICY:
        reason = "names the policy as v1 does"
        patches = [Patch("set", policy.path, _NEW_POLICY, reason)]
        after = disruption["consolidateAfter"]
        if not after:
            # v1beta1 refused it beside this policy, v1 requires it: 0s is what v1beta1 did.
            patches.append(Patch("set", after.path, "0s", "waits no longer than v1beta1 did"))
        yield Violation(
            policy.path,
            f"the API server refuses {_OLD_POLICY}, which v1 calls {_NEW_POLICY}",
            hint=f"write {_NEW_POLICY}, with consolidateAfter",
            fix=Patches(tuple(patches)),
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
            does = "refuses it" if legacy.refused else "drops it without a word"
            instead = f", so {legacy.instead}" if legacy.instead else ""
            yield Violation(
                field.path,
                f"v1 has no {name} here: the API server {does}{instead}",
                hint=f"write {legacy.successor} instead" if legacy.successor else "remove it",
                fix=written(legacy, obj),
            )
