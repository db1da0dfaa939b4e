"""Which examples admission fixes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from library.cases import Case


def is_fixed(judged: Case) -> bool:
    """Tell whether the policy of an example patches it, and finds nothing after that."""
    request = with_defaults(judged.example.request)
    facts = RunFacts((*judged.example.context, request), complete=judged.example.complete)
    today = dt.datetime.now(dt.UTC).date()
    verdict = evaluate(bind(CATALOG, judged.example.config), request, facts, today=today, phase=Phase.BOTH)
    patched, found = {policy for policy, _ in verdict.patches}, {finding.policy for finding in verdict.findings}
    return judged.policy in patched - found and verdict.allowed
