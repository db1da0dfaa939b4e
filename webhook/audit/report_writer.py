"""Synchronise the report objects in a cluster with an audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.audit.live import ABSENCE, Listing, retried
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.owners import OWNERS
from gpugate.webhook.audit.report_bodies import (
    MANAGED_BY,
    SOURCE,
    WRITTEN,
    Limits,
    body,
    in_place_of,
    is_ours,
    name_of,
    same,
)
from gpugate.webhook.audit.words import plural
from gpugate.webhook.cluster.discovery import path_of, resource_name
from gpugate.webhook.cluster.errors import ApiError, CallError, NotServedError
from gpugate.webhook.registration.report_kinds import REPORT_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.live import Throttle
    from gpugate.webhook.audit.model import Audited, AuditReport, NotEvaluated
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.registration.report_kinds import ReportKinds

# The maximum number of reported reasons.
_REASONS: Final = 10


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing report objects.

    Attributes:
        group: the API group of the reports; empty if the cluster serves none.
        created: the number of created reports.
        changed: the number of updated reports.
        unchanged: the number of reports that were up to date.
        deleted: the number of deleted reports, whose objects have no findings.
        failed: the number of reports that could not be written or deleted.
        remarks: notes for the user; the first one is a summary.
    """

    group: str
    created: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    failed: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class Tally:
    """The counters of a run.

    `ending` counts objects without a report because their namespace is being deleted; `refusals` counts reasons of failures,
    `notes` are other remarks.
    """

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    ending: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str, count: int = 1) -> None:
        """Count a failure for one or several reports."""
        self.refusals[reason] += count

    def written(self, group: str) -> Written:
        """Return the result."""
        done = (
            f"reports of {group}: {self.created} created, {self.changed} updated, {self.unchanged} unchanged, "
            f"{self.deleted} deleted"
        )
        failed = self.refusals.total()
        refused = [
            f"{count} report{'' if count == 1 else 's'} could not be written: {reason}"
            for reason, count in self.refusals.most_common(_REASONS)
        ]
        if len(self.refusals) > _REASONS:
            refused.append(f"{len(self.refusals) - _REASONS} more reasons why reports could not be written")
        ending = f"no reports for {plural(self.ending, 'object')} with findings: their namespace is being deleted"
        return Written(
            group,
            self.created,
            self.changed,
            self.unchanged,
            self.deleted,
            failed,
            (done, *refused, *([ending] if self.ending else ()), *self.notes),
        )


Json = dict[str, Any]  # Any: the JSON edge

_PAGE: Final = 500


class Key(NamedTuple):
    """The namespace of the reported object, and the name of the report."""

    namespace: str
    name: str


def stored_reports(connection: Connection, kinds: ReportKinds, throttle: Throttle) -> Iterator[tuple[Key, Json]]:
    """Yield every report of gpugate in an API group, read in pages.

    Raises:
        CallError: not all of them can be listed.
    """

    def get(path: str, parameters: dict[str, str]) -> bytes:
        chosen = {**parameters, "labelSelector": f"{MANAGED_BY}={SOURCE}"}
        return retried(lambda: connection.read(path, chosen), throttle)

    for kind in kinds.both:
        for stored in Listing(get, kinds.collection(kind), _PAGE).objects():
            if is_ours(stored):
                metadata = stored["metadata"]
                yield Key(metadata.get("namespace", ""), metadata["name"]), stored


FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
# Status codes of concurrent modifications.
_CHANGED: Final = {"create": {409}, "update": {404, 409}}


class Writer:
    """Writes reports of an API group; a failed call is counted in `tally`, and the others continue.

    A forbidden verb is not tried again in the same namespace.
    """

    def __init__(
        self, connection: Connection, kinds: ReportKinds, throttle: Throttle, tally: Tally | None = None
    ) -> None:
        self.connection = connection
        self.kinds = kinds
        self.throttle = throttle
        self.tally = Tally() if tally is None else tally
        self._forbidden: dict[tuple[str, str], str] = {}
        self._ending: set[str] = set()

    def put(self, key: Key, make: Callable[[Json | None], Json | None], stored: Json | None) -> None:
        """Write a report; `make` returns it for the stored report, or None to delete it.

        After a concurrent modification, the stored report is read again once.

        Raises:
            CallError: the API server is unreachable, or rejects the credentials.
        """
        try:
            self._put(key, make, stored)
        except _ChangedError:
            try:
                self._put(key, make, self._read(key))
            except _ChangedError as error:
                self.tally.refuse(str(error))

    def delete(self, key: Key) -> None:
        """Delete a report of gpugate.

        Raises:
            CallError: the API server is unreachable, or rejects the credentials.
        """
        path = self._path(key)
        if self._done("delete", key, lambda: self.connection.delete(path)):
            self.tally.deleted += 1

    def _put(self, key: Key, make: Callable[[Json | None], Json | None], stored: Json | None) -> None:
        kind = self.kinds.of(key.namespace)
        if stored is not None and not is_ours(stored):
            self.tally.refuse(
                f"{resource_name(kind)} with these names do not belong to gpugate: missing label app.kubernetes.io/managed-by: gpugate"
            )
            return
        wanted = make(stored)
        if wanted is None:
            if stored is not None:
                self.delete(key)
        elif stored is None:
            collection = self.kinds.collection(kind, key.namespace)
            if self._done("create", key, lambda: self.connection.create(collection, wanted)):
                self.tally.created += 1
        elif same(stored, wanted):
            self.tally.unchanged += 1
        else:
            path, replacing = self._path(key), in_place_of(stored, wanted)
            if self._done("update", key, lambda: self.connection.replace(path, replacing)):
                self.tally.changed += 1

    def _read(self, key: Key) -> Json | None:
        path = self._path(key)
        try:
            stored: Json = read_json(orjson.loads, retried(lambda: self.connection.read(path, {}), self.throttle))
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise _ChangedError(f"modified concurrently, and unreadable: {self._why('get', key, error)}") from None
        return stored

    def _done(self, verb: str, key: Key, call: Callable[[], bytes]) -> bool:
        """Make a call; return whether it succeeded."""
        where = verb, key.namespace
        if verb == "create" and key.namespace in self._ending:
            self.tally.ending += 1
            return False
        if where in self._forbidden:
            self.tally.refuse(self._forbidden[where])
            return False
        try:
            retried(call, self.throttle)
        except ApiError as error:
            if verb == "delete" and error.code == _NOT_FOUND:
                return True
            # All retries failed, and they would fail for every other report too.
            if error.code in {401, 429} or error.code >= 500:
                raise
            # The object of the report is being deleted too.
            if verb == "create" and error.in_ending_namespace:
                self._ending.add(key.namespace)
                self.tally.ending += 1
                return False
            reason = self._why(verb, key, error)
            if error.code in _CHANGED.get(verb, ()):
                raise _ChangedError(f"modified concurrently: {reason}") from None
            if error.code == FORBIDDEN:
                self._forbidden[where] = reason
            self.tally.refuse(reason)
            return False
        return True

    def _why(self, verb: str, key: Key, error: ApiError) -> str:
        resource = resource_name(self.kinds.of(key.namespace))
        within = f" in namespace {key.namespace}" if key.namespace else ""
        if error.code == FORBIDDEN and f"cannot {verb} resource" in error.message:
            return f"gpugate may not {verb} {resource}{within}: see `gpugate audit --print-rbac`"
        # Without the name, so that equal failures are reported once.
        return f"{verb} {resource}{within}: {error}".replace(key.name, "...")

    def _path(self, key: Key) -> str:
        collection = self.kinds.collection(self.kinds.of(key.namespace), key.namespace)
        return f"{collection}/{quote(key.name, safe='')}"


class _ChangedError(Exception):
    """A report was modified concurrently."""


_ORDER: Final = list(Action)


class Sync:
    """Synchronises the stored reports with an audit."""

    def __init__(self, writer: Writer, kinds: ReportKinds, report: AuditReport, limits: Limits) -> None:
        self._writer = writer
        self._kinds = kinds
        self._report = report
        self._limits = limits
        self._seconds = int(report.time.timestamp())
        self._audited = {
            Key(owner.object.namespace, name_of(owner.uid)): owner for owner in report.audited if owner.uid
        }

    def put(self, stored: Mapping[Key, Json]) -> None:
        """Write the reports of objects with findings, and delete those of evaluated objects without.

        Raises:
            CallError: the remaining reports cannot be written.
        """
        chosen, left_out = self._chosen(stored)
        for key in chosen:
            self._writer.put(key, partial(self._body, self._audited[key]), stored.get(key))
        for key in left_out:
            if key in stored:
                self._writer.delete(key)
        if left_out:
            self._note(
                f"{len(left_out)} objects with findings have no report: the limit is {self._limits.reports} reports"
            )
        nameless = sum(1 for owner in self._report.audited if not owner.uid and _has_results(owner))
        if nameless:
            self._note(f"{nameless} objects with findings have no report, because their uid is unknown")

    def delete(self, stored: Mapping[Key, Json], *, whole: bool) -> None:
        """Delete the reports on objects that certainly no longer exist.

        Raises:
            CallError: the remaining reports cannot be deleted.
        """
        unknown = [key for key in stored if key not in self._audited]
        if whole and all(map(_hides_nothing, self._report.not_evaluated)):
            for key in unknown:
                self._writer.delete(key)
        elif unknown:
            self._note(f"{len(unknown)} reports on objects that were not evaluated are unchanged")

    def _chosen(self, stored: Mapping[Key, Json]) -> tuple[Sequence[Key], Sequence[Key]]:
        """Return the objects with results or a report, worst first, and those beyond the limit of reports."""
        # Not by cost, which changes with every Pod.
        ordered = sorted(self._audited, key=lambda key: (_ORDER.index(self._audited[key].action), key))
        keys = [key for key in ordered if _has_results(self._audited[key])]
        fixed = [key for key in ordered if key in stored and not _has_results(self._audited[key])]
        return [*keys[: self._limits.reports], *fixed], keys[self._limits.reports :]

    def _body(self, audited: Audited, stored: Json | None) -> Json | None:
        earlier = (stored.get("results") or ()) if stored else ()
        return body(self._kinds, audited, earlier, self._seconds, self._limits)

    def _note(self, sentence: str) -> None:
        self._writer.tally.notes.append(sentence)


def _hides_nothing(gap: NotEvaluated) -> bool:
    """Return whether a gap hides no objects: unserved kinds have none, and objects of a missing owner were evaluated."""
    return gap.reason == ABSENCE or gap.what.startswith(OWNERS)


def _has_results(audited: Audited) -> bool:
    return any(finding.action in WRITTEN for finding in audited.findings)


_GROUPS: Final = " nor ".join(kinds.namespaced.group for kinds in REPORT_KINDS)
_DEFAULT: Final = Limits()


def write_reports(
    connection: Connection, report: AuditReport, throttle: Throttle, *, whole: bool, limits: Limits = _DEFAULT
) -> Written:
    """Create and update the reports of objects with findings, and delete outdated ones.

    Reports of other tools are never changed. Failures are remarks. After an error, the written reports stay, and the next
    audit continues from there.

    Args:
        connection: the audited cluster.
        report: the audit with all policies.
        throttle: the rate limit of calls.
        whole: whether every object was selected. Only then, and if everything was read, an object that the audit does not
            contain no longer exists.
        limits: the limits of reports, results and texts.
    """
    try:
        served = _served(connection)
    except CallError as error:
        return _ended(Written(""), error)
    if not served:
        missing = f"no reports were written: the cluster serves neither {_GROUPS}; install the CustomResourceDefinitions of one of them"
        return Written("", remarks=(missing,))
    kinds, *others = served
    writer = Writer(connection, kinds, throttle)
    try:
        stored = dict(stored_reports(connection, kinds, throttle))
        sync = Sync(writer, kinds, report, limits)
        sync.put(stored)
        sync.delete(stored, whole=whole)
        for other in others:
            _empty(Writer(connection, other, throttle, writer.tally))
    except CallError as error:
        return _ended(writer.tally.written(kinds.namespaced.group), error)
    return writer.tally.written(kinds.namespaced.group)


def _served(connection: Connection) -> list[ReportKinds]:
    """Return the API groups whose both kinds the cluster serves; the first one is written."""
    return [kinds for kinds in REPORT_KINDS if all(_serves(connection, kind) for kind in kinds.both)]


def _serves(connection: Connection, kind: Kind) -> bool:
    try:
        path_of(connection, kind)
    except NotServedError:
        return False
    return True


def _empty(writer: Writer) -> None:
    """Delete the reports from before the cluster served the preferred API group."""
    try:
        for key, _ in list(stored_reports(writer.connection, writer.kinds, writer.throttle)):
            writer.delete(key)
    except ApiError as error:
        if error.code != FORBIDDEN:
            raise
        writer.tally.notes.append(f"reports of {writer.kinds.namespaced.group} may remain from earlier audits: {error}")


def _ended(written: Written, error: CallError) -> Written:
    if isinstance(error, ApiError) and error.code == FORBIDDEN:
        sentence = f"no reports were written: gpugate may not list them, see `gpugate audit --print-rbac`: {error}"
    else:
        sentence = f"not all reports were written: {error}"
    return replace(written, failed=written.failed + 1, remarks=(*written.remarks, sentence))
