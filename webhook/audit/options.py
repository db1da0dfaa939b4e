"""How an audit judges, beside the rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpugate.webhook.audit.selection import Selection

if TYPE_CHECKING:
    import datetime as dt


@dataclass(frozen=True, slots=True)
class Options:
    """How an audit judges.

    Attributes:
        time: now, with its zone; its day, in UTC, is the one that exemptions are held against.
        generation: which policy file is used, as the webhook's metric and log name it.
        selection: which objects are reported on; all are facts.
        remarks: sentences about the run that are known beforehand.
    """

    time: dt.datetime
    generation: str = ""
    selection: Selection = field(default_factory=Selection)
    remarks: tuple[str, ...] = ()
