"""A finding says the consequence of its own cause, also where its policy reports several."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from library_examples import library_example, ruleset_of

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.report.policy_text import reasons

ROOT = Path(gpugate.policies.__file__).parent
REASONS = reasons(CATALOG)

# An example, and a part of what its finding gives as the reason.
CAUSES = [
    ("claims/invalid-device-class", "bad-class-that-does-not-exist", "its Pod stays Pending"),
    ("claims/invalid-device-class", "bad-upper-case", "The API server refuses"),
    ("nodeclasses/exposed-metadata", "bad-optional-tokens", "plain GET"),
    ("nodeclasses/exposed-metadata", "bad-two-hops", "the node's permissions"),
    ("nodeclasses/invalid-tag", "bad-too-many", "more than 50 tags"),
    ("nodeclasses/invalid-tag", "bad-odd-character", "from launching nodes"),
    ("nodeclasses/missing-cost-tags", "bad-no-team", "The AWS bill is split by tags"),
    ("nodeclasses/missing-cost-tags", "bad-lower-case-key", "does not appear under Team"),
    ("nodeclasses/unencrypted-volume", "bad-false", "If the account does not encrypt by default"),
    ("nodeclasses/unencrypted-volume", "bad-from-snapshot", "If the snapshot is not encrypted"),
    ("nodeclasses/unencrypted-volume", "bad-kept", "until it is deleted"),
    ("nodeclasses/unencrypted-volume", "bad-not-encrypted-by-default", "from every snapshot"),
    ("nodeclasses/unpinned-ami", "bad-amazon-linux-2", "no image for this version"),
    ("nodeclasses/unpinned-ami", "bad-any-value-of-a-tag", "gets the tag"),
    ("nodeclasses/unpinned-ami", "bad-latest", "another driver version"),
    ("nodeclasses/unpinned-ami", "bad-name-with-wildcard", "unrelated build"),
    ("nodepools/forceful-expiry", "bad-short-grace", "When the period ends"),
    ("nodepools/invalid-budget", "bad-number-of-nodes", "refuses the NodePool"),
    ("nodepools/invalid-budget", "bad-range-that-wraps", "it disrupts no node of the pool"),
    ("nodepools/legacy-field", "bad-consolidation-policy", "the old name"),
    ("nodepools/legacy-field", "bad-kubelet", "the kubelet's defaults apply"),
    ("nodepools/legacy-field", "bad-launch-template", "drops launchTemplate."),
    ("nodepools/missing-gpu-limit", "bad-cpu-only", "bound the GPUs only indirectly"),
    ("nodepools/missing-gpu-taint", "bad-startup-taint", "Karpenter removes the taint"),
    ("nodepools/single-instance-type", "bad-one-type", "the one type"),
    ("nodepools/single-instance-type", "bad-upper-case-gpu-name", "launches no node"),
    ("nodepools/single-instance-type", "bad-spot-of-one-family", "Spot capacity runs out"),
    ("nodepools/training-on-spot", "bad-nothing-reserved", "Pods stay Pending"),
    ("nodepools/training-on-spot", "bad-reservations-unused", "paid for and stay unused"),
    ("nodepools/training-on-spot", "bad-says-nothing", "prefers it"),
    ("nodepools/training-on-spot", "bad-spot-only", "two minutes' notice"),
    ("nodepools/training-consolidates", "bad-one-minute", "start slowly"),
    ("pods/missing-cost-labels", "bad-value-of-another-form", "attributed to no team"),
    ("pods/training-on-spot", "bad-pool-for-inference", "consolidates nodes for inference"),
    ("pods/training-on-spot", "bad-selects-spot", "two minutes after its notice"),
    ("pods/unknown-mig-profile", "bad-two-slices", "stay unused"),
    ("pods/unknown-mig-profile", "bad-without-its-point", "stays Pending"),
    ("pods/wildcard-toleration", "bad-every-no-schedule-taint", "without a drain"),
    ("scaling/missing-fallback", "bad-above-the-maximum", "not the 20 of the fallback"),
    ("scaling/wrong-metric", "bad-rate-of-utilization", "rate of a gauge"),
]


@pytest.mark.parametrize(("policy", "name", "reason"), CAUSES, ids=lambda value: str(value).replace("/", "-"))
def test_the_reason_is_that_of_the_cause(policy: str, name: str, reason: str) -> None:
    family, _, own = policy.partition("/")
    example = library_example(ROOT / family / "examples" / own.replace("-", "_") / f"{name}.yaml")
    request = with_defaults(example.request)
    facts = RunFacts((*example.context, request), complete=example.complete)
    verdict = evaluate(ruleset_of(example.config), request, facts, today=dt.date(2026, 11, 22))
    said = {found.why or REASONS[policy] for found in verdict.findings if found.policy == policy}
    assert len(said) == 1
    assert reason in said.pop()
