"""Evaluate recorded requests by two policy files, and add up what changes for each owner.

Cluster data is that of the dumps, at one point in time: a fact that was different when the request arrived can change a decision.
"""

from __future__ import annotations

import zlib
from collections import Counter, OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.verdicts import pod_as_created
from gpugate.webhook.report.copies import digest
from gpugate.webhook.report.ownership import controller, is_controller, owner_of
from gpugate.webhook.simulate.audit_log import Passed, Recorded
from gpugate.webhook.simulate.model import Change, Coverage, PolicyChange, RecordedKind, Requests, severity

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator, Mapping

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.report.located import ObjectName

# Objects whose last state is kept for their next update, about 1 KB each; and different Pods whose decisions are kept.
_STATES: Final = 20_000
_DECISIONS: Final = 20_000
MOST_OWNERS: Final = 50_000
_ACTIONS: Final = {Stance.ENFORCE: Action.DENY, Stance.WARN: Action.WARN, Stance.AUDIT: Action.RECORD}
_PASSED: Final = (Action.ALLOW, "", "")


# Kind of a workload -> kind of the objects that it creates when it runs or rolls out.
_NOTED: Final = {"CronJob": "Job", "DaemonSet": "Pod", "StatefulSet": "Pod"}
_MOST_MISSING: Final = 10


class Workload(NamedTuple):
    """A workload of which the recorded time may contain a run or a rollout."""

    kind: str
    namespace: str
    name: str


class Side(NamedTuple):
    """One of the two policy files, bound, with the cluster data that its policies read."""

    ruleset: Ruleset
    facts: Facts


class Decision(NamedTuple):
    """What one policy file does with a request: the action of each policy with a finding, and its message and hint."""

    policies: Mapping[str, tuple[Action, str, str]]

    @property
    def action(self) -> Action:
        """The worst of all."""
        return min((action for action, _, _ in self.policies.values()), key=severity, default=Action.ALLOW)


@dataclass(slots=True)
class _Owner:
    name: ObjectName
    people: int = 0
    controllers: int = 0
    operations: set[str] = field(default_factory=set)
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    current: Action = Action.ALLOW
    candidate: Action = Action.ALLOW
    policies: dict[str, PolicyChange] = field(default_factory=dict)


class Replay:
    """Adds up requests, one after the other, in the order of their log."""

    def __init__(self, current: Side, candidate: Side, today: dt.date) -> None:
        self._sides = (current, candidate)
        self._today = today
        self._owners: dict[ObjectName, _Owner] = {}
        self._states: OrderedDict[tuple[str, str, str, str], bytes] = OrderedDict()
        self._decisions: OrderedDict[tuple[object, ...], tuple[Decision, Decision]] = OrderedDict()
        self._ran: set[Workload] = set()
        self._not_evaluated: Counter[str] = Counter()
        self._requests = self._evaluated = 0
        self._first: dt.datetime | None = None
        self._last: dt.datetime | None = None

    def add(self, item: Recorded | Passed) -> None:
        """Evaluate a request by both policy files; count it if it cannot be evaluated."""
        if isinstance(item, Passed):
            if item.counts:
                self._requests += 1
                self._not_evaluated[item.reason] += 1
            return
        self._requests += 1
        request = item.request
        self._note_time(item.time)
        self._note_workload(request)
        if not any(self._is_evaluated(request, side) for side in self._sides):
            return
        before = self._state(request, written=item.written)
        if request.operation is Operation.UPDATE:
            if before is None:
                self._not_evaluated["updates of objects that the log does not contain before"] += 1
                return
            request = replace(request, old_object=before)
        self._evaluated += 1
        self._record(item, request, *self._decide(request))

    def coverage(self, stored: int, workloads: Collection[Workload]) -> Coverage:
        """Return what was evaluated, with the number of stored objects, and the workloads among them that create Pods."""
        return Coverage(
            requests=self._requests,
            evaluated=self._evaluated,
            not_evaluated=dict(sorted(self._not_evaluated.items())),
            stored=stored,
            first=self._first,
            last=self._last,
            workloads=tuple(self._recorded_kinds(workloads)),
        )

    def _recorded_kinds(self, workloads: Collection[Workload]) -> Iterator[RecordedKind]:
        for kind in _NOTED:
            stored = {workload for workload in workloads if workload.kind == kind}
            if stored:
                missing = sorted(f"{workload.namespace}/{workload.name}" for workload in stored - self._ran)
                yield RecordedKind(kind, len(stored), len(stored) - len(missing), tuple(missing[:_MOST_MISSING]))

    def changes(self) -> Iterator[Change]:
        """Yield the owners whose requests the candidate treats differently."""
        for owner in self._owners.values():
            changed = tuple(policy for policy in owner.policies.values() if policy.current is not policy.candidate)
            if not changed:
                continue
            requests = Requests(
                owner.people, owner.controllers, tuple(sorted(owner.operations)), owner.first, owner.last
            )
            yield Change(owner.name, "requests", owner.current, owner.candidate, changed, requests)

    @staticmethod
    def _is_evaluated(request: Request, side: Side) -> bool:
        handlers = side.ruleset.handlers
        return any(handlers(request.stored_kind, request.subresource, mutating=mutating) for mutating in (False, True))

    def _state(self, request: Request, *, written: bool) -> dict[str, Any] | None:
        """Return the last known state of the object, and keep the one that the request writes."""
        if request.subresource or not request.name or request.object is None:
            return None
        key = (request.kind.group, request.kind.kind, request.namespace, request.name)
        packed = self._states.get(key)
        if written:
            self._states[key] = zlib.compress(orjson.dumps(request.object), 1)
            self._states.move_to_end(key)
        if len(self._states) > _STATES:
            self._states.popitem(last=False)
        return orjson.loads(zlib.decompress(packed)) if packed else None

    def _note_time(self, time: dt.datetime | None) -> None:
        if time is not None:
            self._first = min(self._first or time, time)
            self._last = max(self._last or time, time)

    def _note_workload(self, request: Request) -> None:
        owner = controller(request.object or {}) if request.operation is Operation.CREATE else None
        if owner is not None and _NOTED.get(owner.kind) == request.kind.kind:
            self._ran.add(Workload(owner.kind, request.namespace, owner.name))

    def _decide(self, request: Request) -> tuple[Decision, Decision]:
        key = _key(request)
        decisions = self._decisions.get(key) if key else None
        if decisions is None:
            decided = with_defaults(request)
            current, candidate = (_decision(side, decided, self._today) for side in self._sides)
            decisions = (current, candidate)
            if key:
                self._decisions[key] = decisions
                if len(self._decisions) > _DECISIONS:
                    self._decisions.popitem(last=False)
        return decisions

    def _record(self, item: Recorded, request: Request, current: Decision, candidate: Decision) -> None:
        if not current.policies and not candidate.policies:
            return
        name = owner_of(request)
        owner = self._owners.get(name)
        if owner is None:
            if len(self._owners) >= MOST_OWNERS:
                self._not_evaluated[f"requests of more than {MOST_OWNERS:,} owners with findings"] += 1
                return
            owner = self._owners[name] = _Owner(name)
        if is_controller(request.user):
            owner.controllers += 1
        else:
            owner.people += 1
        owner.operations.add(request.operation.value)
        if item.time is not None:
            owner.first = min(owner.first or item.time, item.time)
            owner.last = max(owner.last or item.time, item.time)
        owner.current = min(owner.current, current.action, key=severity)
        owner.candidate = min(owner.candidate, candidate.action, key=severity)
        for change in compare(current, candidate):
            known = owner.policies.get(change.policy)
            owner.policies[change.policy] = _worse(known, change) if known else change


def compare(current: Decision, candidate: Decision) -> Iterator[PolicyChange]:
    """Yield each policy with a finding in either decision."""
    for policy in {**current.policies, **candidate.policies}:
        before = current.policies.get(policy, _PASSED)
        after = candidate.policies.get(policy, _PASSED)
        _, message, hint = before if after is _PASSED else after
        yield PolicyChange(policy, before[0], after[0], message, hint)


def _worse(known: PolicyChange, change: PolicyChange) -> PolicyChange:
    current = min(known.current, change.current, key=severity)
    candidate = min(known.candidate, change.candidate, key=severity)
    strictest = min(known, change, key=lambda policy: severity(policy.candidate))
    return PolicyChange(known.policy, current, candidate, strictest.message, strictest.hint)


def _decision(side: Side, request: Request, today: dt.date) -> Decision:
    if request.namespace in side.ruleset.config.excluded_namespaces:
        return Decision({})
    verdict = evaluate(side.ruleset, request, side.facts, today=today, phase=Phase.BOTH, template_ceiling=Stance.WARN)
    return Decision(dict(_policies(verdict)))


def _policies(verdict: Verdict) -> Iterator[tuple[str, tuple[Action, str, str]]]:
    for wrong in verdict.malformed:
        yield "", (_ACTIONS.get(wrong.at_most, Action.RECORD), wrong.message, wrong.hint)
    for outcome in verdict.outcomes:
        decisions = [
            (_ACTIONS[finding.stance], finding.message, finding.hint)
            for finding in outcome.findings
            # The webhook mutates Pods when they are created, and says nothing of it about their template.
            if not (finding.would_patch and finding.template_of)
        ]
        if outcome.patches:
            decisions.append((Action.MUTATE, outcome.patches[0].reason, ""))
        if outcome.error:
            decisions.append((_ACTIONS.get(outcome.stance, Action.RECORD), f"failed: {outcome.error}", ""))
        if decisions:
            yield outcome.policy, min(decisions, key=lambda decided: severity(decided[0]))


def _key(request: Request) -> tuple[object, ...] | None:
    """Return what decides about a Pod that a controller creates; None for other requests."""
    obj = request.object
    owner = controller(obj) if obj is not None and request.kind.kind == "Pod" else None
    if obj is None or owner is None or request.operation is not Operation.CREATE or request.subresource:
        return None
    name = request.generate_name or request.name
    return request.namespace, request.user, request.groups, name, digest(pod_as_created(obj, owner.kind))
