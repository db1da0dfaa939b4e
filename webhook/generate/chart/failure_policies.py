"""Whether anything waits for the webhook."""

from __future__ import annotations

from typing import Final

from gpugate.webhook.generate.chart.terms import Node, Value, either, same
from gpugate.webhook.generate.entries import RiskGroup

_WAITING: Final = [f"webhooks.{group.value}" for group in RiskGroup if group.may_wait]
_MUTATED: Final = [f"webhooks.{group.value}" for group in (RiskGroup.POOLS, RiskGroup.PODS, RiskGroup.SCALING)]
# Whether some requests are refused while nobody answers.
FAILS: Final[Node] = either(
    *(same(Value(f"{group}.failurePolicy"), "Fail") for group in _WAITING),
    *(same(Value(f"{group}.mutatingFailurePolicy"), "Fail") for group in _MUTATED),
)
