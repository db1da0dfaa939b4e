"""NodePool whose nodeClassRef names a node class that does not exist.

## Why is this bad?
Karpenter sets the pool to not ready and launches no node from it. Pods that need the pool stay Pending, or get nodes of
another pool.

## Instead
Create the node class before the pool, or correct the name. The kind and the group are part of the name: an
`EC2NodeClass` does not serve a pool of EKS Auto Mode, whose kind is `NodeClass`.

The policy reports a pool only if all node classes of the kind are known: in a cluster, or in files with
`--complete-context`. It knows the classes of Karpenter on EC2 and of EKS Auto Mode. It does not report the class
`default` of Auto Mode, which EKS creates.

## Sources
Karpenter v1.14.1 `pkg/controllers/nodepool/readiness/controller.go` (NodeClassNotFound),
`pkg/controllers/provisioning/provisioner.go` ("ignoring nodepool, not ready"); EKS user guide "Create a Node Class for
Amazon EKS" (the class `default`), as of 2026-11-23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._instance_choice import listed_names
from gpugate.policies.sdk.facts import Need, Unavailable, derived
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.objects import AUTO_MODE_NODE_CLASS, EC2_NODE_CLASS, NODE_POOL
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.facts import Known
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_KINDS: Final = {(kind.group, kind.name): kind for kind in (EC2_NODE_CLASS, AUTO_MODE_NODE_CLASS)}
# The node class that EKS creates with Auto Mode.
_BUILT_IN: Final = (AUTO_MODE_NODE_CLASS, "default")
_LONGEST: Final = 63  # characters of a name in a message


@validates(NODE_POOL, mode=Stance.WARN, needs=(Need(EC2_NODE_CLASS, ()), Need(AUTO_MODE_NODE_CLASS, ())))
def check(pool: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report a node class that does not exist."""
    reference = pool["spec", "template", "spec", "nodeClassRef"]
    kind, name = _KINDS.get((reference["group"].text, reference["kind"].text)), reference["name"]
    if kind is None or not name.text.strip() or (kind, name.text) == _BUILT_IN:
        return
    fact = ctx.facts.list(kind)
    if isinstance(fact, Unavailable):
        yield Skip(fact.reason)
    elif fact.complete and name.text not in fact.by_name:
        present = derived(fact, _names, ctx)
        others = f", or use an existing one: {listed_names(present)}" if present else ""
        message = f"{kind.name} {name.text[:_LONGEST]} does not exist"
        yield Violation(name.path, message, hint=f"create the {kind.name}{others}", coming=True)


def _names(classes: Known, _ctx: AnyContext) -> tuple[str, ...]:
    return tuple(sorted(classes.by_name))
