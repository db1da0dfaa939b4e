"""Presentation options of an audit, and its findings as located results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.words import Amounts
from gpugate.webhook.report.located import Located, Location, Severity, Sort
from gpugate.webhook.report.plain import Paint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.audit.comparison import Comparison
    from gpugate.webhook.audit.model import Audited, Finding
    from gpugate.webhook.audit.trend import Trend

NOWHERE: Final = Location("")
_SEVERITIES: Final = {Action.DENY: Severity.ERROR, Action.WARN: Severity.WARNING}


def located(audited: Audited, finding: Finding) -> Located:
    """Return a finding with its object; mutations and recorded findings are notes."""
    sort = Sort.PATCH if finding.patches else Sort.VIOLATION if finding.policy else Sort.MALFORMED
    return Located(
        sort,
        _SEVERITIES.get(finding.action, Severity.NOTE),
        finding.message,
        NOWHERE,
        policy=finding.policy,
        object=finding.dependent or audited.object,
        path=finding.path,
        stance=finding.stance,
        why=finding.why,
        hint=finding.hint,
        note=finding.note,
        fix=finding.fix,
        patches=finding.patches,
        template_of=finding.template_of,
        related=tuple(
            Located(sort, Severity.NOTE, finding.message, NOWHERE, policy=finding.policy, object=name)
            for name in finding.related
        ),
    )


GroupBy = Literal["namespace", "policy", "kind", "owner", "pool"]
GROUPS: Final[tuple[GroupBy, ...]] = ("namespace", "policy", "kind", "owner", "pool")
HOURS_PER_MONTH: Final = 730.0


@dataclass(frozen=True, slots=True)
class Presentation:
    """How an audit is shown.

    Attributes:
        policies: the evaluated policies, for their titles and documentation.
        paint: the colours of a terminal.
        group_by: the grouping to show; None for those that a format shows by default.
        top: the maximum number of rows in a table; 0 for all.
        include_passed: whether objects without findings are listed.
        amount: formats amounts of money.
        hours_per_month: the hours in a month, for monthly costs.
        comparison: the difference to an earlier audit.
        trend: how the figures moved over earlier audits.
        idle_budget: what idle and parked GPUs may cost in USD per hour; None without a budget.
        rbac: the RBAC objects that the audit needs, as YAML.
        seconds: the duration of the run.
        docs: the address of the documentation site; empty if unknown.
    """

    policies: Sequence[Policy] = ()
    paint: Paint = field(default_factory=Paint)
    group_by: GroupBy | None = None
    top: int = 10
    include_passed: bool = False
    amount: Amounts = field(default_factory=Amounts)
    hours_per_month: float = HOURS_PER_MONTH
    comparison: Comparison | None = None
    trend: Trend | None = None
    idle_budget: float | None = None
    rbac: str = ""
    seconds: float | None = None
    docs: str = ""
