"""What a candidate policy file would change for stored objects.

Stored objects are evaluated as `gpugate audit` evaluates them: as if their controllers created them again now. That includes the
Pods of templates that exist only as a template today: the next run of a CronJob, a rollout, a scale-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import JOB
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.source import NotReadError, Packed
from gpugate.webhook.report.located import ObjectName
from gpugate.webhook.simulate.model import Change
from gpugate.webhook.simulate.replay import Decision, compare

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.model import AllocatedGpus, Audited, AuditReport, Cluster, NotEvaluated
    from gpugate.webhook.audit.source import Source, Stored

_FINAL: Final = frozenset({"Complete", "Failed"})


class Kept:
    """A source whose objects are read once from the cluster, so that two audits see the same ones."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._objects: dict[Kind, tuple[Packed, NotReadError | None]] = {}
        self._kinds: dict[tuple[str, str], Kind | NotReadError] = {}
        self._fetched: dict[tuple[Kind, str, str], Stored | NotReadError | None] = {}

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self._source.cluster

    @property
    def absence(self) -> str:
        """Why an absent kind has no objects."""
        return self._source.absence

    def read(self, kind: Kind) -> Iterator[Stored]:
        """Yield the objects of a kind.

        Raises:
            NotReadError: not all of them could be read.
        """
        if kind not in self._objects:
            packed, error = Packed(), None
            try:
                for stored in self._source.read(kind):
                    packed.add(stored)
            except NotReadError as missed:
                error = missed
            self._objects[kind] = packed, error
        packed, error = self._objects[kind]
        yield from packed
        if error is not None:
            raise error

    def find(self, api_version: str, name: str) -> Kind:
        """Return the kind of an owner reference.

        Raises:
            NotReadError: the kind is unknown.
        """
        key = api_version, name
        if key not in self._kinds:
            try:
                self._kinds[key] = self._source.find(api_version, name)
            except NotReadError as error:
                self._kinds[key] = error
        return _known(self._kinds[key])

    def fetch(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        """Return the state that an object had when it was first asked for; None if it did not exist.

        Raises:
            NotReadError: it could not be read.
        """
        key = kind, namespace, name
        if key not in self._fetched:
            try:
                self._fetched[key] = self._source.fetch(kind, namespace, name)
            except NotReadError as error:
                self._fetched[key] = error
        return _known(self._fetched[key])

    def trouble(self) -> Sequence[NotEvaluated]:
        """Return unreadable parts that are not whole kinds."""
        return self._source.trouble()


_Value = TypeVar("_Value")


def _known(value: _Value | NotReadError) -> _Value:
    if isinstance(value, NotReadError):
        raise value
    return value


class _Cost(NamedTuple):
    gpus: float
    usd_per_hour: float | None


def finished_jobs(source: Source) -> frozenset[ObjectName]:
    """Return the Jobs that create no more Pods; empty if Jobs cannot be read.

    A Job has finished when it has the condition Complete or Failed (k8s.io/api batch/v1 types.go, JobConditionType, v0.36).
    """
    names: set[ObjectName] = set()
    try:
        for stored in source.read(JOB):
            job = Field(stored.object)
            if any(_is_final(condition) for condition in job["status", "conditions"]):
                metadata = job["metadata"]
                names.add(ObjectName(stored.kind.api_version, "Job", metadata["namespace"].text, metadata["name"].text))
    except NotReadError:
        pass
    return frozenset(names)


def _is_final(condition: Field) -> bool:
    return condition["type"].text in _FINAL and condition["status"].text == "True"


def stored_changes(
    current: AuditReport,
    candidate: AuditReport,
    allocated: Mapping[ObjectName, Sequence[AllocatedGpus]],
    finished: Collection[ObjectName] = (),
) -> Iterator[Change]:
    """Yield the owners that two audits of the same objects decide differently, with the GPUs that are allocated to them.

    Owners in `finished` are left out, because nothing creates them or their Pods again.
    """
    before = {audited.object: audited for audited in current.audited}
    after = {audited.object: audited for audited in candidate.audited}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        changed = tuple(
            change for change in compare(_decision(old), _decision(new)) if change.current is not change.candidate
        )
        known = new or old
        if changed and known is not None and name not in finished:
            cost = _cost(allocated.get(name, ()))
            yield Change(
                name,
                "stored",
                old.action if old else Action.ALLOW,
                new.action if new else Action.ALLOW,
                changed,
                pods=known.pods,
                gpus=cost.gpus,
                usd_per_hour=cost.usd_per_hour,
            )


def _decision(audited: Audited | None) -> Decision:
    policies: dict[str, tuple[Action, str, str]] = {}
    for finding in audited.findings if audited else ():
        known = policies.get(finding.policy)
        if known is None or list(Action).index(finding.action) < list(Action).index(known[0]):
            policies[finding.policy] = (finding.action, finding.message, finding.hint)
    return Decision(policies)


def _cost(allocated: Sequence[AllocatedGpus]) -> _Cost:
    prices = [gpus.usd_per_hour for gpus in allocated]
    known = [price for price in prices if price is not None]
    return _Cost(sum(gpus.gpus for gpus in allocated), sum(known) if known and len(known) == len(prices) else None)
