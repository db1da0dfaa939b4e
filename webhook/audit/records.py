"""What was found, by top owner."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpugate.webhook.report.audited import Audited
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.audit.owners import Top
    from gpugate.webhook.audit.selection import Selection
    from gpugate.webhook.audit.verdicts import Judgement
    from gpugate.webhook.report.audited import Finding


@dataclass(slots=True)
class Record:
    """One top owner while an audit goes on; `templates` are the contents of its Pod templates."""

    name: ObjectName
    uid: str
    selected: bool
    pods: int = 0
    templates: set[bytes] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    _paths: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, judgement: Judgement, judged: ObjectName) -> None:
        """Take in what was found in the object itself, or in something that it made.

        What was found in the template already is not told again of what was made from it.
        """
        made = None if judged == self.name else judged
        for found in judgement.findings:
            paths = self._paths.setdefault((found.policy, found.message), [])
            if not any(_same_place(found.path, known) for known in paths):
                paths.append(found.path)
                self.findings.append(replace(found, made=made) if made else found)
        for policy, reason in judgement.skipped.items():
            self.skipped.setdefault(policy, reason)

    @property
    def audited(self) -> Audited:
        """The record as reports have it."""
        return Audited(self.name, self.uid, self.pods, (), tuple(self.findings), self.skipped)


class Records:
    """Every top owner that was met, once."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._records: dict[ObjectName, Record] = {}
        self.unselected = 0

    def of(self, top: Top) -> Record:
        """Return the record of a top owner, which may be known by its name alone."""
        name, uid = top.entry.name, top.entry.uid
        if top.missing is not None:
            name = ObjectName(top.missing.api_version, top.missing.kind, name.namespace, top.missing.name)
            uid = top.missing.uid
        record = self._records.get(name)
        if record is None:
            selected = self._selection.takes(name, top.entry.labels or {})
            record = self._records[name] = Record(name, uid, selected)
        return record

    def audited(self) -> Iterator[Audited]:
        """Yield what was selected."""
        return (record.audited for record in self._records.values() if record.selected)


def _same_place(path: str, known: str) -> bool:
    """Tell whether a place in a Pod is one in the template that it was made from: the end of that place's path."""
    return path == known or not path or known.endswith(f".{path}")
