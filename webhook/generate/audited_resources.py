"""Which resources of the API server an audit reads, and what for: to judge them, as facts, to find owners and GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.objects import TEMPLATES, Kind
from gpugate.webhook.generate.judged_resources import workload_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset

NODE: Final = Kind("", ("v1",), "Node", "nodes", namespaced=False)
# What offers GPUs, what asks for them, and what may scale a workload.
_PRICED: Final = (
    NODE,
    objects.NODE_POOL,
    objects.RESOURCE_CLAIM,
    objects.RESOURCE_CLAIM_TEMPLATE,
    objects.SCALED_OBJECT,
    objects.SCALED_JOB,
    objects.HORIZONTAL_POD_AUTOSCALER,
)


@dataclass(frozen=True, slots=True)
class AuditedResource:
    """A resource to list.

    Attributes:
        kind: what it is, with every version in which it is of use; `*` for any.
        judged: whether rules judge its objects, or Pod templates in them.
        needed: whether rules look its objects up.
    """

    kind: Kind
    judged: bool = False
    needed: bool = False


def audited_resources(ruleset: Ruleset) -> Sequence[AuditedResource]:
    """Return every resource that an audit with some rules reads, each once.

    Those that make others come before these, so that whoever reads them in this order knows an owner before what it
    owns; Pods come last.
    """
    found: dict[tuple[str, str], AuditedResource] = {}

    def add(kind: Kind, *, judged: bool = False, needed: bool = False) -> None:
        known = found.get((kind.group, kind.plural)) or AuditedResource(replace(kind, versions=(), subresource=""))
        versions = tuple(dict.fromkeys((*known.kind.versions, *kind.versions)))
        found[kind.group, kind.plural] = AuditedResource(
            replace(known.kind, versions=("*",) if "*" in versions else versions),
            judged=known.judged or judged,
            needed=known.needed or needed,
        )

    for rule in ruleset.rules:
        for handler in rule.policy.handlers:
            for kind in handler.kinds:
                if not kind.subresource:
                    add(kind, judged=True)
    pods = ("", "pods") in found
    for group, name in TEMPLATES if pods else ():
        add(workload_kind(group, name), judged=True)
    for kind in Needs(ruleset.rules).kinds:
        add(kind, needed=True)
    # Pods lead to what holds GPUs, whether rules judge them or not.
    for kind in (*_PRICED, objects.REPLICA_SET, objects.JOB, objects.POD):
        add(kind)
    return sorted(found.values(), key=lambda resource: _place(resource.kind))


# Each is made by something that stands before it, here or among all others.
_MADE_BY_OTHERS: Final = ("raycluster", "deployment", "cronjob", "statefulset", "job", "replicaset", "pod")


def _place(kind: Kind) -> tuple[int, str, str]:
    order = {name: place for place, name in enumerate(_MADE_BY_OTHERS, 1)}
    builtin = kind.group in {"", "apps", "batch", "ray.io"}
    return order.get(kind.name.lower(), 0) if builtin else 0, kind.group, kind.plural
