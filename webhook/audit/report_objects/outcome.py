"""What became of writing reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from gpugate.webhook.report.audit_words import plural

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
            f"reports of {group}: {self.created} created, {self.changed} changed, {self.unchanged} unchanged, "
            f"{self.deleted} deleted"
        )
        failed = self.refusals.total()
        refused = [
            f"{count} report{'' if count == 1 else 's'} could not be written: {reason}"
            for reason, count in self.refusals.most_common(_REASONS)
        ]
        if len(self.refusals) > _REASONS:
            refused.append(f"{len(self.refusals) - _REASONS} more reasons why reports could not be written")
        ending = f"no report on {plural(self.ending, 'object')} with findings: being deleted with the namespace"
        return Written(
            group,
            self.created,
            self.changed,
            self.unchanged,
            self.deleted,
            failed,
            (done, *refused, *([ending] if self.ending else ()), *self.notes),
        )
