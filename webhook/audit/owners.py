"""Who made what: leads from a Pod, or any object, to the one at the top that somebody wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk.field import Field
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk.objects import GroupVersionKind

# Nobody's chain of owners is longer (KServe -> Knative -> Deployment -> ReplicaSet -> Pod); owners may form a circle.
_LONGEST: Final = 16
# A node owns its mirror Pods and Leases: it did not write them.
_NOT_OWNERS: Final = frozenset({"Node"})


@dataclass(frozen=True, slots=True)
class Reference:
    """The controller that an object names (`metav1.OwnerReference` with `controller: true`)."""

    api_version: str
    kind: str
    name: str
    uid: str


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


def controller(obj: Mapping[str, Any]) -> Reference | None:
    """Return what an object names as its controller; None where nothing made it."""
    metadata = obj.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for found in references if isinstance(references, list) else ():
        if isinstance(found, dict) and found.get("controller") is True and found.get("kind") not in _NOT_OWNERS:
            texts = (str(found.get(key) or "") for key in ("apiVersion", "kind", "name", "uid"))
            return Reference(*texts)
    return None


def entry(kind: GroupVersionKind, obj: Mapping[str, Any], *, labels: bool = False) -> Entry:
    """Return what is to be known of an object in order to find its top; with `labels`, those too."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = ObjectName(
        kind.api_version, kind.kind, str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    )
    kept = Field(metadata)["labels"].labels if labels else None
    return Entry(name, str(metadata.get("uid") or ""), controller(obj), kept)


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
        seen, last = {id(start)}, start
        for _ in range(_LONGEST):
            owner = self.of(last.reference, start.name.namespace) if last.reference else None
            if owner is None or id(owner) in seen:
                return
            seen.add(id(owner))
            last = owner
            yield owner
