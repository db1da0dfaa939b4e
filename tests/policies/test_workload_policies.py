"""Policies on workloads and on their Pods: which of them evaluates what, and that their verdicts agree."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from example_laws import for_each_example
from library_examples import library_example, ruleset_of

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.pod_templates import TEMPLATES, pod_templates
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.verdicts import Judging
from gpugate.webhook.cli.main import main
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.registration.entries import entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.engine.verdict import Finding
    from gpugate.policies.sdk.policy import Policy

ROOT = Path(gpugate.policies.__file__).parent
TODAY = dt.date(2026, 11, 21)
OF_WORKLOADS = {
    policy.id: policy
    for policy in CATALOG
    if any((kind.group, kind.name) in TEMPLATES for handler in policy.handlers for kind in handler.kinds)
    and POD not in policy.kinds
}


def folder(policy: str) -> Path:
    family, _, name = policy.partition("/")
    return ROOT / family / "examples" / name.replace("-", "_")


EXAMPLES = sorted(ROOT.glob("*/examples/*/bad-*.yaml"))
DENIED = sorted(file for policy in OF_WORKLOADS for file in folder(policy).glob("bad-*.yaml"))


def pods_of(workload: Request) -> Iterator[Request]:
    """Yield the creation of a Pod of each template of a workload."""
    kind, owner = workload.kind, {"name": workload.name, "uid": "1", "controller": True}
    references = [{"apiVersion": kind.api_version, "kind": kind.kind, **owner}]
    for template in pod_templates(kind.group, kind.kind, Field(workload.object)):
        metadata: dict[str, Any] = {**template["metadata"].mapping, "name": "pod", "ownerReferences": references}
        pod = {**template.mapping, "metadata": metadata}
        gvk = GroupVersionKind("", "v1", "Pod")
        yield Request(gvk, Operation.CREATE, pod, name="pod", namespace=workload.namespace)


@for_each_example(DENIED)
def test_no_policy_on_workloads_is_called_for_their_pods(file: Path) -> None:
    example = library_example(file)
    for request in pods_of(example.request):
        facts = RunFacts((*example.context, example.request), complete=example.complete)
        verdict = evaluate(ruleset_of(example.config), request, facts, today=TODAY, phase=Phase.BOTH)
        assert {outcome.policy for outcome in verdict.outcomes} & OF_WORKLOADS.keys() == set()


def denied_by(findings: Iterable[Finding]) -> set[str]:
    return {finding.policy for finding in findings if finding.stance is Stance.ENFORCE}


def test_a_denial_of_a_template_in_an_audit_is_a_denial_of_its_pods() -> None:
    denied: dict[str, set[str]] = {}
    denied_pods: dict[str, set[str]] = {}
    for file in EXAMPLES:
        example = library_example(file)
        request = with_defaults(example.request)
        if (request.kind.group, request.kind.kind) not in TEMPLATES or request.operation is not Operation.CREATE:
            continue
        ruleset, facts = ruleset_of(example.config), RunFacts((*example.context, request), complete=example.complete)
        audited = (stated.finding for stated in Judging(ruleset, facts, TODAY).judge(request).findings)
        policies = {found.policy for found in audited if found.template_of and found.action is Action.DENY}
        if policies:
            name = f"{file.parent.name}/{file.name}"
            pods = [evaluate(ruleset, with_defaults(pod), facts, today=TODAY) for pod in pods_of(request)]
            denied[name] = policies
            denied_pods[name] = policies & denied_by(finding for verdict in pods for finding in verdict.findings)
    assert denied
    assert denied_pods == denied


@pytest.mark.parametrize("policy", OF_WORKLOADS.values(), ids=OF_WORKLOADS)
def test_no_pod_is_sent_to_the_webhook_for_a_policy_on_workloads(policy: Policy) -> None:
    alone = bind(CATALOG, PolicyConfig(), only={policy.id})
    sent = {resource for entry in entries(alone, "validate") for rule in entry.rules for resource in rule["resources"]}
    assert sent
    assert "pods" not in sent


def test_common_mistakes_are_found_at_their_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["test", str(Path(__file__).with_name("workload_mistakes.yaml")), "--no-config"])

    assert (code, capsys.readouterr().out.splitlines()[-1].split(" in ")[0]) == (0, "1 passed")
