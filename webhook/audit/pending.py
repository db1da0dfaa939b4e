"""Pods with GPUs that are not scheduled because no NodePool can launch a node for them, by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from gpugate.policies.pods.unprovisionable import PENDING_NEEDS, Params, why_pending
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS
from gpugate.policies.sdk.objects import Operation, Request
from gpugate.policies.sdk.pod_requests import demand
from gpugate.policies.sdk.policy import Context
from gpugate.policies.sdk.volumes import required_by_volumes
from gpugate.webhook.audit.model import PendingOwner, PendingPods, PoolFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.pods.unprovisionable import Reason
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.report.located import ObjectName

POLICY: Final = "pods/unprovisionable"
# What is looked up for Pods, beside what policies look up.
POD_NEEDS: Final = (*CLAIM_NEEDS, *PENDING_NEEDS)


def is_waiting(pod: Mapping[str, Any]) -> bool:
    """Tell whether a Pod waits for a node: not while a gate holds it back, other Pods make way for it, or it is deleted."""
    spec, status, metadata = (pod.get(key) or {} for key in ("spec", "status", "metadata"))
    return (
        status.get("phase") == "Pending"
        and not (spec.get("nodeName") or spec.get("schedulingGates") or status.get("nominatedNodeName"))
        and not metadata.get("deletionTimestamp")
    )


class Pending:
    """Collects Pods that wait for a node, and the causes; without the policy `pods/unprovisionable`, none."""

    def __init__(self, ruleset: Ruleset, facts: Facts) -> None:
        self._ruleset = ruleset
        self._facts = facts
        params = (rule.params for rule in ruleset.rules if rule.policy.id == POLICY)
        self._params = next((bound for bound in params if isinstance(bound, Params)), None)
        self._reasons: dict[object, Reason | None] = {}
        self._groups: dict[tuple[str, str], tuple[Reason, dict[ObjectName, PendingOwner]]] = {}

    def add(
        self, kind: GroupVersionKind, pod: Mapping[str, Any], name: ObjectName, owner: ObjectName, mark: bytes
    ) -> None:
        """Add a Pod that waits for a node.

        Args:
            kind: the kind Pod.
            pod: the Pod as it was created.
            name: its name.
            owner: its top-level owner.
            mark: equal for Pods that differ only in which copy they are, and in the names of their claims.
        """
        if self._params is None:
            return
        reason = self._reason(self._params, kind, pod, name, mark)
        if reason:
            _, owners = self._groups.setdefault((reason.text, reason.hint), (reason, {}))
            known = owners.get(owner) or PendingOwner(owner, 0, name.name)
            owners[owner] = replace(known, pods=known.pods + 1)

    def _reason(
        self, params: Params, kind: GroupVersionKind, pod: Mapping[str, Any], name: ObjectName, mark: bytes
    ) -> Reason | None:
        """Compare a Pod with the NodePools, unless an equal one was compared."""
        alike = (name.namespace, mark, ())
        if alike in self._reasons and not _has_claims(pod):
            return self._reasons[alike]
        request = Request(kind, Operation.CREATE, dict(pod), name=name.name, namespace=name.namespace)
        field, config = Field(request.object), self._ruleset.config
        ctx: AnyContext = Context(
            params, field, None, request, self._facts, config.platform, config.target, self._ruleset.tables
        )
        volumes = required_by_volumes(field, ctx)
        key = (name.namespace, mark, tuple(frozenset(term.items()) for term in volumes))
        if key not in self._reasons:
            wanted = replace(demand(field, ctx), volumes=volumes)
            self._reasons[key] = why_pending(wanted, ctx, ignores_claims=params.ignore_dra_requests)
        return self._reasons[key]

    def report(self, reported: Iterable[ObjectName]) -> Iterator[PendingPods]:
        """Yield the Pods by cause, most first, without the owners for which a finding reports the cause."""
        left_out = set(reported)
        groups = []
        for reason, owners in self._groups.values():
            waiting = tuple(owner for owner in owners.values() if owner.object not in left_out)
            if waiting:
                groups.append(_group(reason, waiting))
        yield from sorted(groups, key=lambda group: (-group.pods, group.reason))


def _has_claims(pod: Mapping[str, Any]) -> bool:
    volumes = Field(dict(pod))["spec", "volumes"]
    return any(volume["persistentVolumeClaim"] or volume["ephemeral"] for volume in volumes)


def _group(reason: Reason, owners: tuple[PendingOwner, ...]) -> PendingPods:
    failures = ((result.pool, result.failure) for result in reason.results)
    return PendingPods(
        reason.text,
        reason.hint,
        sum(owner.pods for owner in owners),
        tuple(sorted(owners, key=lambda owner: (-owner.pods, str(owner.object)))),
        tuple(PoolFailure(pool, failure.term, failure.text, failure.change) for pool, failure in failures if failure),
    )
