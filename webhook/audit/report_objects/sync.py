"""Which reports there should be, and which should be gone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.audit.lineage import OWNERS
from gpugate.webhook.audit.report_objects.bodies import body, name_of
from gpugate.webhook.audit.report_objects.limits import WRITTEN
from gpugate.webhook.audit.report_objects.stored import Key
from gpugate.webhook.audit.sources.live import ABSENCE
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.audit.report_objects.limits import Limits
    from gpugate.webhook.audit.report_objects.writer import Writer
    from gpugate.webhook.report.audited import Audited, AuditReport, NotEvaluated
    from gpugate.webhook.report.report_kinds import ReportKinds

Json = dict[str, Any]  # Any: the JSON edge

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
                f"{len(left_out)} objects with findings have no report: there are at most {self._limits.reports}"
            )
        nameless = sum(1 for each in self._report.audited if not each.uid and _has_results(each))
        if nameless:
            self._note(f"{nameless} objects with findings have no report, because their uid is not known")

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
            self._note(f"{len(unknown)} reports on objects that were not looked at stay as they are")

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
