"""Synchronise the report objects in a cluster with an audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from gpugate.webhook.audit.live import ABSENCE, Listing, retried
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
from gpugate.webhook.cluster.discovery import path_of, resource_name
from gpugate.webhook.cluster.errors import ApiError, CallError, NotServedError
from gpugate.webhook.report.audit_words import plural
from gpugate.webhook.report.audited import Action
from gpugate.webhook.report.report_kinds import REPORT_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.live import Throttle
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.report.audited import Audited, AuditReport, NotEvaluated
    from gpugate.webhook.report.report_kinds import ReportKinds

# The most that are told.
_REASONS: Final = 10


@dataclass(frozen=True, slots=True)
class Written:
    """Report objects that were written.

    Attributes:
        group: the API group of the reports, empty where the cluster has none.
        created: how many are new.
        changed: how many say something else than before.
        unchanged: how many said what they should.
        deleted: how many are gone, because nothing is found any more.
        failed: how many could not be written or deleted.
        remarks: sentences for whoever reads the audit, the first of them a summary.
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
    """What has been done so far.

    `ending` counts objects without a report because their namespace is being deleted; `refusals` are reasons, `notes` other
    sentences.
    """

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    ending: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str, count: int = 1) -> None:
        """Remember what could not be done to a report, or to several."""
        self.refusals[reason] += count

    def written(self, group: str) -> Written:
        """Return how it ended."""
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
    """Which report: the namespace of the object that it is on, and its own name."""

    namespace: str
    name: str


def stored_reports(connection: Connection, kinds: ReportKinds, throttle: Throttle) -> Iterator[tuple[Key, Json]]:
    """Yield every report of ours in a group, read in pages.

    Raises:
        CallError: they cannot be listed, or no more of them.
    """

    def get(path: str, parameters: dict[str, str]) -> bytes:
        chosen = {**parameters, "labelSelector": f"{MANAGED_BY}={SOURCE}"}
        return retried(lambda: connection.read(path, chosen), throttle)

    for kind in kinds.both:
        for found in Listing(get, kinds.collection(kind), _PAGE).objects():
            if is_ours(found):
                metadata = found["metadata"]
                yield Key(metadata.get("namespace", ""), metadata["name"]), found


FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
# Answers by which somebody else was faster.
_CHANGED: Final = {"create": {409}, "update": {404, 409}}


class Writer:
    """Writes reports of a group; a call that is refused is counted in `tally`, and others go on.

    Where we may not do something, it is not tried again in that namespace.
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
        """Make a report say what it should; `make` makes it from what is stored, and makes None where none should be.

        Where somebody else wrote meanwhile, what is stored is read and looked at once more.

        Raises:
            CallError: the API server does not answer, or no longer takes us for whom we are.
        """
        try:
            self._put(key, make, stored)
        except _ChangedError:
            try:
                self._put(key, make, self._read(key))
            except _ChangedError as error:
                self.tally.refuse(str(error))

    def delete(self, key: Key) -> None:
        """Delete a report of ours.

        Raises:
            CallError: the API server does not answer, or no longer takes us for whom we are.
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
            found: Json = orjson.loads(retried(lambda: self.connection.read(path, {}), self.throttle))
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise _ChangedError(f"modified concurrently, and unreadable: {self._why('get', key, error)}") from None
        return found

    def _done(self, verb: str, key: Key, call: Callable[[], bytes]) -> bool:
        """Call, and tell whether it was done."""
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
            # Tried often enough; every other report would be as long in coming.
            if error.code in {401, 429} or error.code >= 500:
                raise
            # What the report would be on is about to be gone too.
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
        # Without the name, so that what is wrong with many is said once.
        return f"{verb} {resource}{within}: {error}".replace(key.name, "...")

    def _path(self, key: Key) -> str:
        collection = self.kinds.collection(self.kinds.of(key.namespace), key.namespace)
        return f"{collection}/{quote(key.name, safe='')}"


class _ChangedError(Exception):
    """What was to be written is not as it was read."""


_ORDER: Final = list(Action)


class Sync:
    """An audit, and who writes it down."""

    def __init__(self, writer: Writer, kinds: ReportKinds, report: AuditReport, limits: Limits) -> None:
        self._writer = writer
        self._kinds = kinds
        self._report = report
        self._limits = limits
        self._seconds = int(report.time.timestamp())
        self._audited = {Key(each.object.namespace, name_of(each.uid)): each for each in report.audited if each.uid}

    def put(self, stored: Mapping[Key, Json]) -> None:
        """Write what is found in objects, and take away what is found no more.

        Raises:
            CallError: no more can be written.
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
        nameless = sum(1 for each in self._report.audited if not each.uid and _has_results(each))
        if nameless:
            self._note(f"{nameless} objects with findings have no report, because their uid is unknown")

    def delete(self, stored: Mapping[Key, Json], *, whole: bool) -> None:
        """Take away the reports on objects that are gone, where it is certain that they are.

        Raises:
            CallError: no more can be deleted.
        """
        unknown = [key for key in stored if key not in self._audited]
        if whole and all(map(_hides_nothing, self._report.not_evaluated)):
            for key in unknown:
                self._writer.delete(key)
        elif unknown:
            self._note(f"{len(unknown)} reports on objects that were not evaluated are unchanged")

    def _chosen(self, stored: Mapping[Key, Json]) -> tuple[Sequence[Key], Sequence[Key]]:
        """Return the objects that have results or a report, worst first, and those with results that are too many."""
        # Not by cost, which changes whenever a Pod comes or goes.
        ordered = sorted(self._audited, key=lambda key: (_ORDER.index(self._audited[key].action), key))
        found = [key for key in ordered if _has_results(self._audited[key])]
        mended = [key for key in ordered if key in stored and not _has_results(self._audited[key])]
        return [*found[: self._limits.reports], *mended], found[self._limits.reports :]

    def _body(self, audited: Audited, held: Json | None) -> Json | None:
        earlier = (held.get("results") or ()) if held else ()
        return body(self._kinds, audited, earlier, self._seconds, self._limits)

    def _note(self, sentence: str) -> None:
        self._writer.tally.notes.append(sentence)


def _hides_nothing(gap: NotEvaluated) -> bool:
    """Of what is not served there are no objects; and what an owner made that was not found was looked at under its name."""
    return gap.reason == ABSENCE or gap.what.startswith(OWNERS)


def _has_results(audited: Audited) -> bool:
    return any(finding.action in WRITTEN for finding in audited.findings)


_GROUPS: Final = " nor ".join(kinds.namespaced.group for kinds in REPORT_KINDS)
_DEFAULT: Final = Limits()


def write_reports(
    connection: Connection, report: AuditReport, throttle: Throttle, *, whole: bool, limits: Limits = _DEFAULT
) -> Written:
    """Write a report for each object with findings, where it says something else than before; delete those of no more.

    Reports of others are never touched. What is wrong with single reports is told in the remarks, and so is what ends it
    all: whatever was written stays, and the next audit goes on from there.

    Args:
        connection: the cluster that was audited.
        report: the audit, by all rules in force.
        throttle: what each call waits for.
        whole: whether every object was to be audited. Only then, and when everything could be read, is an object that
            the audit does not know one that is gone.
        limits: of reports, results and texts.
    """
    try:
        found = _served(connection)
    except CallError as error:
        return _ended(Written(""), error)
    if not found:
        missing = f"no reports were written: the cluster serves neither {_GROUPS}; install the CustomResourceDefinitions of one of them"
        return Written("", remarks=(missing,))
    kinds, *others = found
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
    """Return the groups of which a cluster has both kinds, the one to be written first."""
    return [kinds for kinds in REPORT_KINDS if all(_serves(connection, kind) for kind in kinds.both)]


def _serves(connection: Connection, kind: Kind) -> bool:
    try:
        path_of(connection, kind)
    except NotServedError:
        return False
    return True


def _empty(writer: Writer) -> None:
    """Delete what was written when the cluster did not yet have the group that comes before this one."""
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
