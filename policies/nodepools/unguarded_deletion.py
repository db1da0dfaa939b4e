"""Deletion of a NodePool that has GPU nodes.

## Why is this bad?
The NodePool owns its NodeClaims, so Kubernetes deletes these too, and Karpenter drains and terminates all nodes of the
pool. Disruption budgets do not limit this: training runs on these nodes stop at once, unless a PodDisruptionBudget or
`karpenter.sh/do-not-disrupt` delays the eviction of their Pods, at most for the `terminationGracePeriod` of the nodes if they have one.
A GitOps tool deletes a NodePool when its manifest is moved or renamed.

## Instead
Set the limits of the pool to 0, wait until its nodes are empty, and delete it then. Protect pools that must not be deleted
by mistake:

```yaml
metadata:
  annotations:
    gpugate.dev/deletion-protection: "true"
```

The policy evaluates requests to delete a NodePool, and reports the nodes and accelerators in its status. It ships in mode
warn: the deletion is allowed with a warning. In mode enforce, the deletion of a pool with the annotation is denied, and
that of other pools gets a warning. Remove the annotation first to delete a protected pool. A pool without nodes is not
reported.

A value of the annotation other than `"true"` is reported when the pool is created or changed, because it protects nothing.

## Sources
Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go` (the NodePool owns its NodeClaims),
`pkg/controllers/nodepool/counter/controller.go` (`status.resources`), `pkg/controllers/node/termination/controller.go`
(drain), `pkg/apis/v1/nodepool.go` (budgets are for disruption by Karpenter).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import NODE_POOL, Operation
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_PROTECTION: Final = "gpugate.dev/deletion-protection"
_NO_EFFECT: Final = "The pool can be deleted with all of its nodes, although its manifest says that it is protected."


@validates(NODE_POOL, mode=Stance.WARN, operations=frozenset({Operation.DELETE}))
def check_deletion(pool: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the nodes that are deleted with a pool."""
    metadata, resources = pool["metadata"], pool["status", "resources"]
    nodes = _amount(resources["nodes"])
    accelerators = [
        f"{amount} {name}"
        for name, field in resources.items()
        if ctx.platform.is_accelerator(name) and (amount := _amount(field))
    ]
    if not nodes or not accelerators or metadata["deletionTimestamp"]:
        return
    protected = metadata["annotations", _PROTECTION].text == "true"
    message = (
        f"deleting {'this protected' if protected else 'the'} NodePool terminates its {nodes} "
        f"node{'s' if nodes > 1 else ''} with {' and '.join(accelerators)}"
    )
    hint = "set its limits to 0 and delete the pool when its nodes are empty"
    if protected:
        hint = f"remove the annotation {_PROTECTION} first, or keep the pool"
    yield Violation(metadata["name"].path, message, Stance.ENFORCE if protected else Stance.WARN, hint)


@validates(NODE_POOL, mode=Stance.WARN)
def check(pool: Field, _ctx: AnyContext) -> Iterator[Violation]:
    """Report a value of the annotation that protects nothing."""
    protection = pool["metadata", "annotations", _PROTECTION]
    if protection and protection.text not in {"true", "false"}:
        message = f'the annotation {_PROTECTION} is "{protection.text[:20]}" and protects nothing'
        fix = Patch("set", protection.path, "true", "protects the pool from being deleted with its nodes")
        hint = 'write "true", or remove the annotation'
        yield Violation(protection.path, message, Stance.WARN, hint, Patches((fix,), safe=True), why=_NO_EFFECT)


def _amount(field: Field) -> int:
    """Return a whole amount; 0 where it is absent or not a quantity."""
    return int(quantity.parse_or_none(field.value) or 0)
