"""A log in memory, and metrics read from a scrape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.admission.metrics import Metrics

if TYPE_CHECKING:
    from gpugate.webhook.admission.log import Level, Value


@dataclass
class FakeLog:
    """A log in memory; `lines` are level, message and fields of each event."""

    lines: list[tuple[Level, str, dict[str, Value]]] = field(default_factory=list)

    def event(self, level: Level, message: str, **fields: Value) -> None:
        self.lines.append((level, message, fields))

    def reasons(self) -> list[str]:
        """Return the reasons in the lines that have one."""
        return [str(fields["reason"]) for level, _, fields in self.lines if level != "info"]


class Scraped(Metrics):
    def __init__(self) -> None:
        super().__init__(CATALOG)

    def value(self, name: str, **labels: str) -> float | None:
        """Return the exposed value of a metric; None if it is not exposed."""
        return next((value for found, value in self.series(name) if found == labels), None)

    def series(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and the value of each exposed series of a metric."""
        families = text_string_to_metric_families(self.exposition("")[1].decode())
        return [(s.labels, s.value) for family in families for s in family.samples if s.name == name]
