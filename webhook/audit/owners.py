"""Resolve the top-level owner of an object."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk.field import Field
from gpugate.webhook.audit.model import NotEvaluated
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.report.located import ObjectName
from gpugate.webhook.report.ownership import controller

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk.objects import GroupVersionKind, Kind
    from gpugate.webhook.audit.source import Source
    from gpugate.webhook.report.ownership import Reference

# Longer than real chains (KServe -> Knative -> Deployment -> ReplicaSet -> Pod); owner references may form a cycle.
_LONGEST: Final = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """An object that may own others, and its own controller; its labels where they are to be selected by."""

    name: ObjectName
    uid: str
    reference: Reference | None
    labels: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Top:
    """Where a chain of owners ends.

    Attributes:
        entry: the last object in the chain that is known.
        missing: the controller that this names and that is not known; None at a true end.
    """

    entry: Entry
    missing: Reference | None = None


def entry(kind: GroupVersionKind, obj: Mapping[str, Any], *, labels: bool = False) -> Entry:
    """Return what is to be known of an object in order to find its top; with `labels`, those too."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = ObjectName(
        kind.api_version, kind.kind, str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    )
    own_labels = Field(metadata)["labels"].labels if labels else None
    return Entry(name, str(metadata.get("uid") or ""), controller(obj), own_labels)


class Owners:
    """Every object that may own another, by its uid; one without, as in dumps that were cleaned, by its name."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Entry] = {}
        self._by_name: dict[tuple[str, str, str], Entry] = {}

    def add(self, added: Entry) -> None:
        """Take in an object."""
        if added.uid:
            self._by_uid[added.uid] = added
        else:
            self._by_name[added.name.kind, added.name.namespace, added.name.name] = added

    def of(self, reference: Reference, namespace: str) -> Entry | None:
        """Return the object that a reference from a namespace means; None where it is not known.

        A name alone is not enough where the uid is known: it may be another object of the same name.
        """
        if reference.uid and reference.uid in self._by_uid:
            return self._by_uid[reference.uid]
        names = ((reference.kind, namespace, reference.name), (reference.kind, "", reference.name))
        return next((self._by_name[name] for name in names if name in self._by_name), None)

    def top(self, start: Entry) -> Top:
        """Follow the controllers of an object to the end."""
        last = start
        for owner in self._chain(start):
            last = owner
        missing = last.reference if last.reference and self.of(last.reference, start.name.namespace) is None else None
        return Top(last, missing)

    def _chain(self, start: Entry) -> Iterator[Entry]:
        visited, last = {id(start)}, start
        for _ in range(_LONGEST):
            owner = self.of(last.reference, start.name.namespace) if last.reference else None
            if owner is None or id(owner) in visited:
                return
            visited.add(id(owner))
            last = owner
            yield owner


# Owners that were created after their kind was read are read one by one, up to this limit.
_LOOKUPS: Final = 200
OWNERS: Final = "owners of kind"
_GONE: Final = "owner does not exist"


class Lineage:
    """Owners that were read, and a source for those that were not; `labels` are kept if they are to be selected by."""

    def __init__(self, source: Source, *, labels: bool) -> None:
        self.owners = Owners()
        self._source = source
        self._labels = labels
        self._kinds: dict[tuple[str, str], Kind | None] = {}
        self._reasons: dict[tuple[str, str], str] = {}
        self._sought: set[Reference] = set()
        self._lookups = 0
        self._missing: Counter[tuple[str, str]] = Counter()

    def knows(self, kind: Kind, *, unread: str = "") -> None:
        """Say that a kind was read, and all its objects added; `unread` says why it was not."""
        self._kinds[kind.group, kind.name] = kind
        if unread:
            self._reasons[kind.group, kind.name] = unread

    def top(self, start: Entry) -> Top:
        """Return where the owners of an object lead."""
        top = self.owners.top(start)
        while top.missing is not None and self._seek(top.missing, start.name.namespace):
            top = self.owners.top(start)
        if top.missing is not None:
            pair = _pair(top.missing)
            self._missing[top.missing.kind, self._reasons.get(pair, _GONE)] += 1
        return top

    def missing(self) -> Iterator[NotEvaluated]:
        """Say which owners could not be followed, and of how many objects."""
        for (kind, reason), count in sorted(self._missing.items()):
            yield NotEvaluated(f"{OWNERS} {kind}", reason, count)

    def _seek(self, reference: Reference, namespace: str) -> bool:
        """Look for an owner; tell whether it is known now."""
        if reference in self._sought:
            return False
        self._sought.add(reference)
        if _pair(reference) not in self._kinds:
            self._read(reference)
        if self.owners.of(reference, namespace) is None:
            self._look_up(reference, namespace)
        return self.owners.of(reference, namespace) is not None

    def _read(self, reference: Reference) -> None:
        """Read all objects of a kind that no rule is about."""
        pair = _pair(reference)
        self._kinds[pair] = None
        try:
            kind = self._kinds[pair] = self._source.find(reference.api_version, reference.kind)
            for stored in self._source.read(kind):
                self.owners.add(entry(stored.kind, stored.object, labels=self._labels))
        except NotReadError as error:
            self._reasons[pair] = str(error)

    def _look_up(self, reference: Reference, namespace: str) -> None:
        kind = self._kinds[_pair(reference)]
        if kind is None or _pair(reference) in self._reasons or self._lookups >= _LOOKUPS:
            return
        self._lookups += 1
        try:
            owner = self._source.fetch(kind, namespace, reference.name)
        except NotReadError:
            return
        if owner is not None:
            self.owners.add(entry(owner.kind, owner.object, labels=self._labels))


def _pair(reference: Reference) -> tuple[str, str]:
    return reference.api_version.rpartition("/")[0], reference.kind
