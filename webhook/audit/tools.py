"""What the parts of an audit share while it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.audit.coverage import Coverage
    from gpugate.webhook.audit.facts import AuditFacts
    from gpugate.webhook.audit.lineage import Lineage
    from gpugate.webhook.audit.records import Records
    from gpugate.webhook.audit.stock import Stock
    from gpugate.webhook.audit.verdicts import Judging


@dataclass(slots=True)
class Tools:
    """What objects are judged with, and where the results go.

    Attributes:
        labels: whether objects are selected by labels, so that these must be kept.
        resources: group and kind -> the resource, as RBAC names it.
        exemptions: those that lowered a finding, by their places in the configuration.
    """

    ruleset: Ruleset
    facts: AuditFacts
    lineage: Lineage
    records: Records
    judging: Judging
    stock: Stock
    coverage: Coverage
    labels: bool
    resources: Mapping[tuple[str, str], str]
    exemptions: set[int] = field(default_factory=set)
