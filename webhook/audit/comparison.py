"""The difference between two audits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt

    from gpugate.webhook.audit.model import Finding
    from gpugate.webhook.report.located import ObjectName


@dataclass(frozen=True, slots=True)
class Changed:
    """A finding that only one of the audits has, with its object."""

    object: ObjectName
    finding: Finding


@dataclass(frozen=True, slots=True)
class Comparison:
    """The new and the fixed findings since an earlier audit, and the number of unchanged ones.

    `unknown` counts earlier findings whose object or policy this audit did not evaluate.
    """

    since: dt.datetime
    new: tuple[Changed, ...]
    fixed: tuple[Changed, ...]
    unchanged: int
    unknown: int = 0
