"""Finds the top owner of anything, and reads what it has to on the way: kinds that no rule knows, and late comers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit.owners import Owners, Reference, Top, entry
from gpugate.webhook.audit.sources.source import NotReadError
from gpugate.webhook.report.audited import NotEvaluated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.owners import Entry
    from gpugate.webhook.audit.sources.source import Source

# Owners that were not there when their kind was read are asked for one by one, but not for ever.
_LOOKUPS: Final = 200
OWNERS: Final = "owners of kind"
_GONE: Final = "is named as owner and is not there"


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
        found = self.owners.top(start)
        while found.missing is not None and self._seek(found.missing, start.name.namespace):
            found = self.owners.top(start)
        if found.missing is not None:
            pair = _pair(found.missing)
            self._missing[found.missing.kind, self._reasons.get(pair, _GONE)] += 1
        return found

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
            found = self._source.one(kind, namespace, reference.name)
        except NotReadError:
            return
        if found is not None:
            self.owners.add(entry(found.kind, found.object, labels=self._labels))


def _pair(reference: Reference) -> tuple[str, str]:
    return reference.api_version.rpartition("/")[0], reference.kind
