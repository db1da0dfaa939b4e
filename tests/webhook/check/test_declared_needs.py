from __future__ import annotations

import datetime as dt
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from example_laws import for_each_example
from library_examples import library_example, ruleset_of

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.objects import Kind, Request

ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(ROOT.glob("*/examples/*/*.yaml"))
TODAY = dt.date(2026, 11, 21)
AS_SHIPPED = PolicyConfig()


@cache
def as_shipped(policy: str) -> Ruleset:
    return bind(CATALOG, AS_SHIPPED, {policy})


class WatchedFacts(RunFacts):
    """Cluster data that records whether a policy read other objects."""

    is_read = False

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        self.is_read = True
        return super().list(kind, namespace)


@for_each_example(FILES)
def test_a_policy_reads_no_more_of_other_objects_than_it_declares(file: Path) -> None:
    example = library_example(file)
    whole = [with_defaults(request) for request in (*example.context, example.request)]

    def verdict(ruleset: Ruleset, facts: RunFacts) -> Verdict:
        return evaluate(ruleset, whole[-1], facts, today=TODAY)

    def facts_of(objects: Iterable[Request]) -> WatchedFacts:
        return WatchedFacts(objects, complete=example.complete)

    for outcome in verdict(ruleset_of(example.config), facts_of(whole)).outcomes:
        # Alone, so that it reads nothing that only another policy declares.
        alone = (
            as_shipped(outcome.policy)
            if example.config == AS_SHIPPED
            else bind(CATALOG, example.config, {outcome.policy})
        )
        facts = facts_of(whole)
        expected = verdict(alone, facts)
        # Without a read of other objects, the verdict is the same with any.
        if facts.is_read:
            projected = [fact for fact in map(Needs(alone.rules).project, whole) if fact]
            assert verdict(alone, facts_of(projected)) == expected, outcome.policy
