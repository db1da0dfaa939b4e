"""What a shadow policy file would decide differently: a bounded table by owner, and its document `gpugate.dev/shadow/v1`.

The server counts pairs in it, from the decision of the policy file in force to that of the shadow policy file, and other programs
read the document. It contains names and messages, and no other content of objects. Within a version, fields are only added.
"""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.decisions import ALLOW, DENY, MALFORMED, MUTATE, RECORD, SKIP, WARN
from gpugate.webhook.report.located import ObjectName
from gpugate.webhook.report.ownership import is_controller, owner_of
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.policies.engine.verdict import Outcome, Verdict
    from gpugate.policies.sdk.objects import Request
    from gpugate.policies.sdk.policy import Policy

SCHEMA: Final = "gpugate.dev/shadow/v1"
# For the owners that the shadow policy file treats differently, and again for those whose findings stay the same; about 1 KB each.
MOST_OWNERS: Final = 500
_MOST_PAIRS: Final = 64
_LONGEST_MESSAGE: Final = 512
_LONGEST_NAME: Final = 253

DecisionName: TypeAlias = Literal["deny", "mutate", "warn", "record", "allow"]
RequesterName: TypeAlias = Literal["person", "controller"]
PhaseName: TypeAlias = Literal["mutate", "validate"]
# From the strictest on.
DECISIONS: Final[tuple[DecisionName, ...]] = (DENY, MUTATE, WARN, RECORD, ALLOW)
_RANKS: Final = {decision: rank for rank, decision in enumerate(DECISIONS)}
# A mutating response never denies (`decisions.outcome_decisions`).
_VALIDATING: Final[Mapping[Stance, DecisionName]] = {
    Stance.ENFORCE: DENY,
    Stance.WARN: WARN,
    Stance.AUDIT: RECORD,
    Stance.OFF: RECORD,
}
_MUTATING: Final[Mapping[Stance, DecisionName]] = {**_VALIDATING, Stance.ENFORCE: WARN}


class Pair(NamedTuple):
    """What both policy files decide about a request because of one policy; `message` and `hint` are those of the stricter one."""

    policy: str
    current: DecisionName
    candidate: DecisionName
    message: str = ""
    hint: str = ""

    @property
    def differs(self) -> bool:
        """Whether the decisions differ."""
        return self.current != self.candidate


class Decided(NamedTuple):
    """What one policy decides about a request; `is_evaluated` is false if cluster data was missing."""

    decision: DecisionName = ALLOW
    message: str = ""
    hint: str = ""
    is_evaluated: bool = True


_PASSED: Final = Decided()


def pairs(phase: Phase, current: Verdict, candidate: Verdict, mutating: frozenset[str]) -> Iterator[Pair]:
    """Yield a pair for each policy with a finding or a patch by either policy file.

    A policy that one of them could not evaluate, because cluster data was missing, has no pair.

    Args:
        phase: the webhook that received the review: of a mutating review only patches count, of a validating review only findings.
        current: the verdict of the policy file in force.
        candidate: the verdict of the shadow policy file; for a validating review of its patches and its checks.
        mutating: the policies that only mutate.
    """
    yield from compared(decided_by(phase, current, mutating), decided_by(phase, candidate, mutating))


def compared(before: Mapping[str, Decided], after: Mapping[str, Decided]) -> Iterator[Pair]:
    """Yield a pair for each policy that decides anything but `allow` in one of both; see `pairs`."""
    for policy in {**before, **after}:
        old, new = before.get(policy, _PASSED), after.get(policy, _PASSED)
        if old.is_evaluated and new.is_evaluated:
            decided = new if new.decision != ALLOW else old
            yield Pair(policy, old.decision, new.decision, decided.message, decided.hint)


def only_mutating(catalog: Iterable[Policy]) -> frozenset[str]:
    """Return the policies that have no check."""
    return frozenset(policy.id for policy in catalog if all(handler.mutates for handler in policy.handlers))


def decided_by(phase: Phase, verdict: Verdict, mutating: frozenset[str]) -> dict[str, Decided]:
    """Return what each policy with a finding, a patch or missing cluster data decides; see `pairs` for the arguments."""
    validating = phase is not Phase.MUTATE
    decided: dict[str, Decided] = {}
    for outcome in verdict.outcomes:
        if validating and outcome.policy in mutating:
            continue
        decisions = list(_decisions(outcome, validating=validating))
        if decisions:
            decided[outcome.policy] = min(decisions, key=_rank)
        elif outcome.skipped:
            decided[outcome.policy] = Decided(is_evaluated=False)
    for wrong in verdict.malformed if validating else ():
        known = decided.get(MALFORMED, _PASSED)
        decided[MALFORMED] = min(known, Decided(_VALIDATING[wrong.at_most], wrong.message, wrong.hint), key=_rank)
    return decided


def decision_words(decided: Mapping[str, Decided]) -> dict[str, str]:
    """Return the decision of each policy as one word, which is `skip` for one that could not be evaluated."""
    return {policy: decision.decision if decision.is_evaluated else SKIP for policy, decision in decided.items()}


def _decisions(outcome: Outcome, *, validating: bool) -> Iterator[Decided]:
    words = _VALIDATING if validating else _MUTATING
    for finding in outcome.findings:
        # Templates are not mutated at admission, and what happens to the object itself counts in its mutating review.
        if not finding.would_patch or not (validating or finding.template_of):
            yield Decided(words[finding.stance], finding.message, finding.hint)
    if outcome.patches and not validating:
        yield Decided(MUTATE, outcome.patches[0].reason)
    if outcome.error:
        yield Decided(words[outcome.stance], f"failed: {outcome.error}")


def _rank(decided: Decided) -> int:
    return _RANKS[decided.decision]


def strictest(*decisions: DecisionName) -> DecisionName:
    """Return the strictest decision; `allow` without one."""
    return min(decisions, key=_RANKS.__getitem__, default=ALLOW)


class Sample(msgspec.Struct, frozen=True):
    """One of the requests that a pair counts: the object, and the finding."""

    namespace: str
    name: str
    message: str
    hint: str = ""


class CountedPair(msgspec.Struct, frozen=True):
    """Requests of one owner that one policy decides in the same way."""

    policy: Annotated[str, Meta(description="id of the policy; `malformed` for a field of the wrong type")]
    requester: Annotated[
        RequesterName, Meta(description="`controller` for ServiceAccounts, nodes and Kubernetes itself")
    ]
    current: Annotated[DecisionName, Meta(description="the decision of the policy file in force")]
    candidate: Annotated[DecisionName, Meta(description="the decision of the shadow policy file")]
    requests: int
    first: dt.datetime
    last: dt.datetime
    sample: Sample


class CountedRequests(msgspec.Struct, frozen=True):
    """The reviews with a finding that one of both webhooks received."""

    phase: PhaseName
    people: int = 0
    controllers: int = 0


class CountedOwner(msgspec.Struct, frozen=True):
    """A workload with its Pods, or an object without an owner, with a finding by either policy file."""

    object: ObjectName
    current: Annotated[DecisionName, Meta(description="the strictest decision of the policy file in force")]
    candidate: Annotated[DecisionName, Meta(description="the strictest decision of the shadow policy file")]
    operations: tuple[str, ...]
    first: dt.datetime
    last: dt.datetime
    requests: Annotated[
        tuple[CountedRequests, ...],
        Meta(description="by webhook; a request can count in both, so the larger number is right"),
    ]
    pairs: tuple[CountedPair, ...]

    @property
    def differs(self) -> bool:
        """Whether the decisions of any policy differ."""
        return any(pair.current != pair.candidate for pair in self.pairs)


class Shadowed(msgspec.Struct, frozen=True, tag=SCHEMA, tag_field="schema"):
    """What a server's shadow policy file would decide differently."""

    gpugate: str
    current: Annotated[str, Meta(description="generation of the policy file in force")]
    candidate: Annotated[str, Meta(description="generation of the shadow policy file; empty if none could be loaded")]
    error: Annotated[
        str, Meta(description="why the last version of the shadow policy file is invalid; empty if it is valid")
    ]
    since: Annotated[dt.datetime, Meta(description="when both generations came into use")]
    until: Annotated[dt.datetime, Meta(description="the time of the document")]
    reviews: Annotated[
        dict[str, int], Meta(description="reviews by result: `evaluated`, `dropped` under load, `late` or `failed`")
    ]
    owners: tuple[CountedOwner, ...]
    left_out: Annotated[int, Meta(description="reviews of further owners, which did not fit into the table")] = 0


@dataclass(slots=True)
class _Count:
    sample: Sample
    first: dt.datetime
    last: dt.datetime
    requests: int = 0


_PairKey: TypeAlias = "tuple[str, RequesterName, DecisionName, DecisionName]"


@dataclass(slots=True)
class _Owner:
    first: dt.datetime
    last: dt.datetime
    current: DecisionName = ALLOW
    candidate: DecisionName = ALLOW
    operations: set[str] = field(default_factory=set)
    requests: dict[tuple[PhaseName, RequesterName], int] = field(default_factory=dict)
    pairs: dict[_PairKey, _Count] = field(default_factory=dict)

    def observe(self, first: dt.datetime, last: dt.datetime, current: DecisionName, candidate: DecisionName) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)
        self.current, self.candidate = strictest(self.current, current), strictest(self.candidate, candidate)

    def count(self, phase: PhaseName, requester: RequesterName, requests: int = 1) -> None:
        self.requests[phase, requester] = self.requests.get((phase, requester), 0) + requests

    def count_pair(self, key: _PairKey, new: _Count) -> bool:
        """Add requests to a pair; tell whether it is a new one."""
        known = self.pairs.get(key)
        if known is not None:
            known.requests += new.requests
            known.first, known.last = min(known.first, new.first), max(known.last, new.last)
            return False
        if len(self.pairs) < _MOST_PAIRS:
            self.pairs[key] = new
            return True
        return False


class ShadowTable:
    """Counts pairs by owner; its size is bounded for any requests.

    Owners whose findings stay the same are kept as long as there is room, because one that is denied anyway is not newly denied.
    """

    def __init__(self, most_owners: int = MOST_OWNERS) -> None:
        """Create a table for so many owners that are treated differently, and as many others."""
        self._most_owners = most_owners
        self._differing: dict[ObjectName, _Owner] = {}
        self._same: OrderedDict[ObjectName, _Owner] = OrderedDict()
        self.left_out = 0

    def add(
        self, phase: Phase, request: Request, pairs: Iterable[Pair], time: dt.datetime, reviews: int = 1
    ) -> Iterator[Pair]:
        """Count the pairs of reviews that are alike; yield those with different decisions that its owner did not have before."""
        pairs = tuple(pairs)
        if not pairs:
            return
        owner = self._owner(_short(owner_of(request)), time, differs=any(pair.differs for pair in pairs))
        if owner is None:
            self.left_out += reviews
            return
        current, candidate = [pair.current for pair in pairs], [pair.candidate for pair in pairs]
        owner.observe(time, time, strictest(*current), strictest(*candidate))
        owner.operations.add(request.operation.value)
        requester: RequesterName = "controller" if is_controller(request.user) else "person"
        owner.count(_phase(phase), requester, reviews)
        for pair in pairs:
            sample = Sample(
                _brief(request.namespace, _LONGEST_NAME),
                _brief(request.shown_name, _LONGEST_NAME),
                _brief(pair.message, _LONGEST_MESSAGE),
                _brief(pair.hint, _LONGEST_MESSAGE),
            )
            key = (pair.policy, requester, pair.current, pair.candidate)
            if owner.count_pair(key, _Count(sample, time, time, reviews)) and pair.differs:
                yield pair

    def include(self, other: Shadowed) -> None:
        """Add the table of another process, or of this one before it was restarted."""
        self.left_out += other.left_out
        for counted in other.owners:
            owner = self._owner(counted.object, counted.first, differs=counted.differs)
            if owner is None:
                self.left_out += sum(requests.people + requests.controllers for requests in counted.requests)
                continue
            owner.observe(counted.first, counted.last, counted.current, counted.candidate)
            owner.operations.update(counted.operations)
            for requests in counted.requests:
                owner.count(requests.phase, "person", requests.people)
                owner.count(requests.phase, "controller", requests.controllers)
            for pair in counted.pairs:
                key = (pair.policy, pair.requester, pair.current, pair.candidate)
                owner.count_pair(key, _Count(pair.sample, pair.first, pair.last, pair.requests))

    def owners(self) -> tuple[CountedOwner, ...]:
        """Return all owners: those that are treated differently first, each group sorted by name."""
        return tuple(
            _counted(name, owner)
            for group in (self._differing, self._same)
            for name, owner in sorted(group.items(), key=lambda entry: str(entry[0]))
        )

    def _owner(self, name: ObjectName, time: dt.datetime, *, differs: bool) -> _Owner | None:
        """Return the entry of an owner, None if there is no room for it."""
        owner = self._differing.get(name)
        if owner is not None:
            return owner
        if differs and len(self._differing) >= self._most_owners:
            return None
        owner = self._same.pop(name, None) or _Owner(time, time)
        if differs:
            self._differing[name] = owner
            return owner
        self._same[name] = owner
        if len(self._same) > self._most_owners:
            self._same.popitem(last=False)
        return owner


def _counted(name: ObjectName, owner: _Owner) -> CountedOwner:
    phases: tuple[PhaseName, ...] = ("mutate", "validate")
    counts = (
        CountedRequests(phase, owner.requests.get((phase, "person"), 0), owner.requests.get((phase, "controller"), 0))
        for phase in phases
    )
    return CountedOwner(
        name,
        owner.current,
        owner.candidate,
        tuple(sorted(owner.operations)),
        owner.first,
        owner.last,
        tuple(requests for requests in counts if requests.people or requests.controllers),
        tuple(
            CountedPair(policy, requester, current, candidate, count.requests, count.first, count.last, count.sample)
            for (policy, requester, current, candidate), count in sorted(owner.pairs.items())
        ),
    )


def _short(name: ObjectName) -> ObjectName:
    """Bound the texts of a name, of which a sender chooses those of owner references."""
    return ObjectName(
        *(_brief(text, _LONGEST_NAME) for text in (name.api_version, name.kind, name.namespace, name.name))
    )


def _brief(text: str, length: int) -> str:
    return plain(text[:length])[:length]


def _phase(phase: Phase) -> PhaseName:
    return "mutate" if phase is Phase.MUTATE else "validate"


def merged(tables: Iterable[Shadowed]) -> Shadowed | None:
    """Add up the tables of processes or replicas; those of other generations than the first are left out. None without any."""
    included = list(tables)
    if not included:
        return None
    first = included[0]
    included = [
        table_of_worker
        for table_of_worker in included
        if (table_of_worker.current, table_of_worker.candidate) == (first.current, first.candidate)
    ]
    table = ShadowTable()
    reviews: dict[str, int] = {}
    for table_of_worker in included:
        table.include(table_of_worker)
        for result, count in table_of_worker.reviews.items():
            reviews[result] = reviews.get(result, 0) + count
    return Shadowed(
        first.gpugate,
        first.current,
        first.candidate,
        next((table_of_worker.error for table_of_worker in included if table_of_worker.error), ""),
        min(table_of_worker.since for table_of_worker in included),
        max(table_of_worker.until for table_of_worker in included),
        reviews,
        table.owners(),
        table.left_out,
    )


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Shadowed),
    }
