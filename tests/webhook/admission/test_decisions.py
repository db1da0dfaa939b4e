"""The decision on a review, and that of each policy, by what it found."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.findings import Patch, Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.decisions import (
    OUTCOME_DECISIONS,
    REVIEW_DECISIONS,
    Observation,
    decision,
    denies,
    evaluated_kinds,
    kind_of,
    outcome_decisions,
)
from gpugate.webhook.admission.review import Review

POD = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, {})
PATCHES = (Patch("set", ("spec",), "a", "r"),)
OPERATIONS = ({"op": "add", "path": "/spec", "value": "a"},)


def outcome(*stances: Stance, stance: Stance = Stance.ENFORCE, **parts: Any) -> Outcome:
    return Outcome("pods/x", stance, tuple(Finding("pods/x", (), "m", each) for each in stances), **parts)


PASSES = outcome()
DENIES, WARNS, RECORDS = outcome(Stance.WARN, Stance.ENFORCE), outcome(Stance.WARN), outcome(Stance.AUDIT)
BREAKS, BREAKS_BUT_WARNS = outcome(error="KeyError"), outcome(error="KeyError", stance=Stance.WARN)
SKIPS, PATCHED = outcome(skipped=("no data",)), outcome(patches=PATCHES)


def observed(phase: Phase, *outcomes: Outcome, **parts: Any) -> Observation:
    return Observation(phase, 0.1, "3f2a", Review("u", "v1", POD), Verdict(POD, outcomes, **parts))


@pytest.mark.parametrize(
    ("outcomes", "validating", "mutating"),
    [
        ((), "allow", "allow"),
        ((PASSES, WARNS, RECORDS, SKIPS), "allow", "allow"),
        # A mutating response never denies.
        ((WARNS, DENIES), "deny", "allow"),
        ((BREAKS,), "deny", "error"),
        ((BREAKS_BUT_WARNS, WARNS), "error", "error"),
        ((BREAKS_BUT_WARNS, DENIES), "deny", "error"),
    ],
)
def test_the_decision_on_a_review(outcomes: tuple[Outcome, ...], validating: str, mutating: str) -> None:
    found = [decision(observed(phase, *outcomes)) for phase in (Phase.VALIDATE, Phase.MUTATE)]
    assert found == [validating, mutating]
    assert set(found) <= set(REVIEW_DECISIONS)


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (Observation(Phase.VALIDATE, 0.1, "3f2a"), "failed"),
        (observed(Phase.VALIDATE, malformed=(Violation((), "m"),)), "malformed"),
        (observed(Phase.MUTATE, PATCHED, operations=OPERATIONS), "mutate"),
        (observed(Phase.MUTATE, PATCHED, BREAKS_BUT_WARNS, operations=OPERATIONS), "mutate"),
    ],
    ids=["not evaluated", "malformed", "patched", "patched, with an error"],
)
def test_the_decision_on_another_review(observation: Observation, expected: str) -> None:
    assert decision(observation) == expected


@pytest.mark.parametrize(
    ("found", "is_denial"),
    [(PASSES, False), (WARNS, False), (DENIES, True), (BREAKS, True), (BREAKS_BUT_WARNS, False), (SKIPS, False)],
)
def test_an_outcome_denies_by_an_enforced_finding_or_error(found: Outcome, *, is_denial: bool) -> None:
    assert denies(found) is is_denial


@pytest.mark.parametrize(
    ("found", "validating", "mutating"),
    [
        (PASSES, set(), set()),
        (DENIES, {"warn", "deny"}, {"warn"}),
        (RECORDS, {"record"}, {"record"}),
        (BREAKS, {"error"}, {"error"}),
        (SKIPS, {"skip"}, {"skip"}),
        (PATCHED, {"mutate"}, {"mutate"}),
    ],
)
def test_the_decisions_of_a_policy(found: Outcome, validating: set[str], mutating: set[str]) -> None:
    assert [outcome_decisions(found, phase) for phase in (Phase.VALIDATE, Phase.MUTATE)] == [validating, mutating]
    assert validating | mutating <= set(OUTCOME_DECISIONS)


def test_the_kind_of_a_review_is_one_of_a_closed_set() -> None:
    kinds = evaluated_kinds(())
    # Workloads are evaluated because of the Pods in them.
    assert kinds[("apps", "Deployment")] == "Deployment"
    assert kind_of(observed(Phase.VALIDATE), {("", "Pod"): "Pod"}) == "Pod"
    assert kind_of(observed(Phase.VALIDATE), {}) == "other"
    assert kind_of(Observation(Phase.VALIDATE, 0.1, "3f2a"), {}) == "unread"
