"""Every example gets the same verdict from `check` and through the API server."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import jsonpatch
from api_server.library import FILES, as_it_says, example
from api_server.managed_fields import without_managed_fields
from example_laws import for_each_example
from library_examples import ruleset_of

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from api_server.outcomes import Outcome

    from gpugate.policies.engine.verdict import Verdict

WORDS = {Stance.ENFORCE: "deny", Stance.WARN: "warn", Stance.AUDIT: "record"}
DENIED = 'admission webhook "validate.gpugate.dev" denied the request: ['

examples = for_each_example(FILES)


def by_check(name: str) -> Verdict:
    found = example(name)
    request = with_defaults(found.request)
    facts = RunFacts((*found.context, found.request), complete=found.complete)
    day = dt.date(2026, 11, 21)
    return evaluate(ruleset_of(found.config), request, facts, today=day, phase=Phase.BOTH)


def annotated(verdict: Verdict) -> dict[str, set[str]]:
    """Return the expected audit annotations: findings in a template are at most warnings at admission."""
    summary: dict[str, set[str]] = {}
    for finding in verdict.findings:
        mode = min(finding.stance, Stance.WARN) if finding.template_of else finding.stance
        summary.setdefault(WORDS[mode], set()).add(finding.policy)
    for policy, _ in verdict.patches:
        summary.setdefault("mutate", set()).add(policy)
    return summary


def outputs(outcome: Outcome) -> dict[str, set[str]]:
    """Return the audit annotations of both webhooks, without policies that were not evaluated."""
    summary: dict[str, set[str]] = {}
    for key, policies in outcome.audit_annotations.items():
        word = key.partition("/")[2]
        if word not in {"skip", "generation"}:
            summary.setdefault(word, set()).update(policies.split(","))
    return summary


@examples
def test_check_and_webhook_agree(name: str, library: Any) -> None:
    expected, outcome = by_check(name), library.outcome(name)
    unpatched = with_defaults(example(name).request).object

    assert without_managed_fields(outcome.mutated) == (expected.object or unpatched)
    assert outputs(outcome) == annotated(expected)
    assert outcome.calls[0].response.allowed is True
    assert outcome.admitted is not bool(annotated(expected).get("deny"))
    assert outcome.dropped_annotations == ()


@examples
def test_a_denial_names_the_webhook(name: str, library: Any) -> None:
    outcome = library.outcome(name)
    assert outcome.admitted or outcome.message.startswith(DENIED)


@examples
def test_two_libraries_apply_its_patch_alike(name: str, library: Any) -> None:
    outcome = library.outcome(name)
    patch = json.loads(outcome.calls[0].response.patch or b"[]")
    assert jsonpatch.apply_patch(as_it_says(name).object, patch) == outcome.mutated
