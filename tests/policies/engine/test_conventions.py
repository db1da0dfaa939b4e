"""Findings about names that each platform chooses, before and after the configuration sets them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, parse_config
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import check
from gpugate.webhook.manifests.inputs import expand
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.report.located import Severity

Json = dict[str, Any]

NODE_CLASS: Json = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "gpu"},
    "spec": {
        "role": "KarpenterNodeRole-prod",
        "amiSelectorTerms": [{"alias": "al2023@v20261015"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    },
}
NODE_POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpu"},
    "spec": {
        "limits": {"nvidia.com/gpu": 8},
        "template": {
            "metadata": {"labels": {"team": "search", "cost-center": "cc-1"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
                "requirements": [
                    {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g5", "g6"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                ],
            },
        },
    },
}
NAMESPACE: Json = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "ml", "labels": {"team": "search", "cost-center": "cc-1"}},
}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "ml"},
    "spec": {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [{"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
    },
}
TAGS, LABELS, CLASSES = "nodeclasses/missing-cost-tags", "pods/missing-cost-labels", "nodepools/shared-by-classes"
PARAMS: Json = {"policies": {TAGS: {"params": {"required": ["owner"]}}, LABELS: {"params": {"required": ["team"]}}}}


def request(obj: Json) -> Request:
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    metadata = obj["metadata"]
    return Request(kind, Operation.CREATE, obj, name=metadata["name"], namespace=metadata.get("namespace", ""))


def outcome(obj: Json, config: Json, policy: str) -> tuple[list[tuple[Stance, bool]], int]:
    """Mode and convention of each finding of a policy, and how many patches it makes."""
    ruleset = bind(CATALOG, parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **config}))
    facts = RunFacts((request(NAMESPACE), request(NODE_POOL), request(obj)))
    verdict = evaluate(ruleset, request(obj), facts, today=dt.date(2026, 11, 22), phase=Phase.BOTH)
    findings = [(f.stance, f.convention) for f in verdict.findings if f.policy == policy]
    return findings, sum(made == policy for made, _ in verdict.patches)


@pytest.mark.parametrize(
    ("obj", "config", "policy", "findings", "patches"),
    [
        pytest.param(NODE_CLASS, {}, TAGS, [(Stance.WARN, True)], 0, id="tags: not configured"),
        pytest.param(NODE_CLASS, PARAMS, TAGS, [(Stance.ENFORCE, False)], 0, id="tags: parameters"),
        pytest.param(
            NODE_CLASS, {"policies": {TAGS: {"mode": "enforce"}}}, TAGS, [(Stance.ENFORCE, False)], 0, id="tags: a mode"
        ),
        pytest.param(
            NODE_CLASS,
            {"policies": {"nodeclasses/*": {"mode": "audit"}}},
            TAGS,
            [(Stance.AUDIT, False)],
            0,
            id="tags: the mode of a pattern",
        ),
        pytest.param(NODE_CLASS, {"mode": "enforce"}, TAGS, [(Stance.WARN, True)], 0, id="tags: only a ceiling"),
        pytest.param(NODE_CLASS, {"mode": "audit"}, TAGS, [(Stance.AUDIT, True)], 0, id="tags: a ceiling below"),
        pytest.param(POD, {}, LABELS, [(Stance.WARN, True)], 0, id="labels: not configured, none are added"),
        pytest.param(POD, PARAMS, LABELS, [], 1, id="labels: parameters"),
        pytest.param(NODE_POOL, {}, CLASSES, [(Stance.WARN, True)], 0, id="classes: not configured"),
        pytest.param(
            NODE_POOL,
            {"platform": {"workload_classes": {"labels": {"tier": {"train": "training"}}}}},
            CLASSES,
            [(Stance.WARN, False)],
            0,
            id="classes: the platform's own",
        ),
    ],
)
def test_a_finding_about_names_of_a_platform(
    obj: Json, config: Json, policy: str, findings: list[tuple[Stance, bool]], patches: int
) -> None:
    assert outcome(obj, config, policy) == (findings, patches)


def test_check_reports_a_convention_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        node_class = {**NODE_CLASS, "metadata": {"name": name}}
        (tmp_path / f"{name}.json").write_text(json.dumps(node_class))
    monkeypatch.chdir(tmp_path)
    options = Options(dt.date(2026, 11, 22), known=frozenset({TAGS}))

    result = check(list(expand(["."])), bind(CATALOG, PolicyConfig(), only=(TAGS,)), options)

    (finding,) = result.report.findings
    places = [Path(each.location.file).name for each in (finding, *finding.related)]
    assert (finding.severity, places, result.report.exit_code) == (Severity.NOTE, ["a.json", "b.json", "c.json"], 0)


def test_other_findings_of_the_same_policy_do_not_rest_on_the_convention() -> None:
    """A requirement that makes a pool one for two classes is evidence, whatever the names are."""
    pool = {
        **NODE_POOL,
        "spec": {
            **NODE_POOL["spec"],
            "template": {
                **NODE_POOL["spec"]["template"],
                "spec": {
                    **NODE_POOL["spec"]["template"]["spec"],
                    "requirements": [
                        *NODE_POOL["spec"]["template"]["spec"]["requirements"],
                        {"key": "workload", "operator": "In", "values": ["training", "inference"]},
                    ],
                },
            },
        },
    }

    assert outcome(pool, {}, CLASSES) == ([(Stance.WARN, False)], 0)
