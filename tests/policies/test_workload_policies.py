"""A policy on workloads evaluates the workload once, and costs a review of each of its Pods nothing."""

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
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.pod_templates import TEMPLATES, pod_templates
from gpugate.webhook.cli.main import main
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.registration.entries import entries

if TYPE_CHECKING:
    from gpugate.policies.sdk.policy import Policy

ROOT = Path(gpugate.policies.__file__).parent
OF_WORKLOADS = {
    policy.id: policy
    for policy in CATALOG
    if any((kind.group, kind.name) in TEMPLATES for handler in policy.handlers for kind in handler.kinds)
    and POD not in policy.kinds
}


def folder(policy: str) -> Path:
    family, _, name = policy.partition("/")
    return ROOT / family / "examples" / name.replace("-", "_")


DENIED = sorted(file for policy in OF_WORKLOADS for file in folder(policy).glob("bad-*.yaml"))


@for_each_example(DENIED)
def test_no_policy_on_workloads_is_called_for_their_pods(file: Path) -> None:
    example = library_example(file)
    kind, workload = example.request.kind, Field(example.request.object)
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": "owner", "uid": "1", "controller": True}
    for template in pod_templates(kind.group, kind.kind, workload):
        metadata: dict[str, Any] = dict(template["metadata"].mapping)
        pod = {**template.mapping, "metadata": {**metadata, "name": "pod", "ownerReferences": [owner]}}
        request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod, name="pod", namespace="default")
        facts = RunFacts((*example.context, example.request), complete=example.complete)
        verdict = evaluate(ruleset_of(example.config), request, facts, today=dt.date(2026, 11, 21), phase=Phase.BOTH)
        assert {outcome.policy for outcome in verdict.outcomes} & OF_WORKLOADS.keys() == set()


@pytest.mark.parametrize("policy", OF_WORKLOADS.values(), ids=OF_WORKLOADS)
def test_no_pod_is_sent_to_the_webhook_for_a_policy_on_workloads(policy: Policy) -> None:
    alone = bind(CATALOG, PolicyConfig(), only={policy.id})
    sent = {resource for entry in entries(alone, "validate") for rule in entry.rules for resource in rule["resources"]}
    assert sent
    assert "pods" not in sent


def test_common_mistakes_are_found_at_their_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["test", str(Path(__file__).with_name("workload_mistakes.yaml")), "--no-config"])

    assert (code, capsys.readouterr().out.splitlines()[-1].split(" in ")[0]) == (0, "1 passed")
