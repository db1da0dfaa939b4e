"""Top-level owners during an audit: their findings, of which each cause is reported once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from gpugate.webhook.audit.model import Action, Audited, worst
from gpugate.webhook.report.located import ObjectName
from gpugate.webhook.report.one_cause import Statement, followers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.audit.model import Finding
    from gpugate.webhook.audit.owners import Top
    from gpugate.webhook.audit.selection import Selection
    from gpugate.webhook.audit.verdicts import Judgement, Stated

Covered: TypeAlias = Mapping[tuple[ObjectName, ObjectName | None], set[str]]
"""(top-level owner, its dependent or None) -> the policies that would deny it once its findings are exempt, because a finding of
another policy replaces theirs."""


@dataclass(slots=True)
class Record:
    """A top-level owner during an audit; `templates` are the digests of its Pod templates."""

    name: ObjectName
    uid: str
    selected: bool
    pods: int = 0
    templates: set[bytes] = field(default_factory=set)
    findings: list[Stated] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    _paths: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, judgement: Judgement, evaluated: ObjectName) -> None:
        """Add the findings of the owner itself, or of an object that it owns.

        A finding of a template is not repeated for the Pods that were created from it.
        """
        dependent = None if evaluated == self.name else evaluated
        for stated in judgement.findings:
            finding = stated.finding
            paths = self._paths.setdefault((finding.policy, finding.message), [])
            if not any(_same_place(finding.path, known) for known in paths):
                paths.append(finding.path)
                finding = msgspec.structs.replace(finding, dependent=dependent) if dependent else finding
                self.findings.append(replace(stated, finding=finding))
        for policy, reason in judgement.skipped.items():
            self.skipped.setdefault(policy, reason)

    @property
    def action(self) -> Action:
        """What the webhook would do with the owner."""
        return worst(stated.finding for stated in self.findings)

    def audited(self, findings: Iterable[Finding]) -> Audited:
        """Return the record for reports, with those of its findings that it is to report."""
        return Audited.of(self.name, tuple(findings), uid=self.uid, pods=self.pods, skipped=self.skipped)


class Records:
    """All top-level owners."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._records: dict[ObjectName, Record] = {}
        self.unselected = 0

    def of(self, top: Top) -> Record:
        """Return the record of a top-level owner, of which only the name may be known."""
        name, uid = top.entry.name, top.entry.uid
        if top.missing is not None:
            name = ObjectName(top.missing.api_version, top.missing.kind, name.namespace, top.missing.name)
            uid = top.missing.uid
        record = self._records.get(name)
        if record is None:
            selected = self._selection.takes(name, top.entry.labels or {})
            record = self._records[name] = Record(name, uid, selected)
        return record

    def selected(self) -> tuple[Record, ...]:
        """Return the selected owners."""
        return tuple(record for record in self._records.values() if record.selected)


def _same_place(path: str, known: str) -> bool:
    """Return whether a path in a Pod is the end of a known path in its template."""
    return path == known or not path or known.endswith(f".{path}")


def each_cause_once(records: Sequence[Record]) -> Iterator[Audited]:
    """Yield the objects without findings whose cause another object's finding reports; that finding names them.

    An object keeps the finding that decides its action. It also keeps findings that would deny it, because an exemption is for
    one object.
    """
    findings = [(number, stated.finding) for number, record in enumerate(records) for stated in record.findings]
    statements = [_statement(record.name, stated) for record in records for stated in record.findings]
    leaders = {
        index: leading
        for index, leading in followers(statements).items()
        if findings[index][1].action is not Action.DENY
    }
    actions = [record.action for record in records]
    decided = {
        number
        for index, (number, finding) in enumerate(findings)
        if index not in leaders and finding.action is actions[number]
    }
    for index, (number, finding) in enumerate(findings):
        if number not in decided and finding.action is actions[number]:
            leaders.pop(index, None)
    related: dict[int, dict[ObjectName, None]] = {}
    for index, leading in leaders.items():
        for leader in leading:
            related.setdefault(leader, {})[records[findings[index][0]].name] = None
    reported_findings: list[list[Finding]] = [[] for _ in records]
    for index, (number, finding) in enumerate(findings):
        if index not in leaders:
            others = tuple(related.get(index, ()))
            reported_findings[number].append(msgspec.structs.replace(finding, related=others) if others else finding)
    for record, reported in zip(records, reported_findings, strict=True):
        yield record.audited(reported)


def _statement(name: ObjectName, stated: Stated) -> Statement:
    finding = stated.finding
    name = finding.dependent or name
    return Statement(
        finding.policy,
        finding.message,
        finding.stance,
        name.kind,
        name.namespace,
        name.name,
        stated.others,
        stated.follows,
    )


def covered_policies(records: Iterable[Record]) -> Covered:
    """Return the policies that findings of denied objects replace."""
    covered: defaultdict[tuple[ObjectName, ObjectName | None], set[str]] = defaultdict(set)
    for record in records:
        for stated in record.findings:
            if stated.covers and stated.finding.action is Action.DENY:
                covered[record.name, stated.finding.dependent].update(stated.covers)
    return dict(covered)
