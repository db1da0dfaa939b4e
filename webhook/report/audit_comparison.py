"""What changed between two audits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt

    from gpugate.webhook.report.audited import Finding
    from gpugate.webhook.report.located import ObjectName


@dataclass(frozen=True, slots=True)
class Changed:
    """A finding that is there in one audit only, with its object."""

    object: ObjectName
    finding: Finding


@dataclass(frozen=True, slots=True)
class Comparison:
    """Findings since an earlier audit: those that are new, those that are fixed, and how many stayed.

    `unknown` counts earlier findings of which nobody can say, because this audit did not look at their object, or their
    policy could not.
    """

    since: dt.datetime
    new: tuple[Changed, ...]
    fixed: tuple[Changed, ...]
    unchanged: int
    unknown: int = 0
