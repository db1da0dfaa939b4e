"""A cause that several objects of a run have a part in is one finding, with the other objects as further locations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: ml}
spec:
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec:
      containers:
        - {name: llm, image: llm:1, resources: {limits: {nvidia.com/gpu: "1"}}}
"""
LABELLED = DEPLOYMENT.replace("labels: {app: llm}}", "labels: {app: llm, team: a, cost-center: b}}")
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n"
SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llm, namespace: ml}
spec:
  scaleTargetRef: {name: llm}
  maxReplicaCount: 4
  triggers: [{type: cron, metadata: {timezone: UTC, start: 0 6 * * *, end: 0 20 * * *, desiredReplicas: "2"}}]
"""
AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm-hpa, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 4
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: llm-1
  namespace: ml
  labels: {app: llm}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: llm, uid: "1", controller: true}]
spec:
  containers:
    - {name: llm, image: llm:1, resources: {limits: {nvidia.com/gpu: "1"}}}
"""
IGNORE = "  scaleTargetRef: {name: llm}  # gpugate: ignore[scaling/hpa-conflict] they never run together"

CASES = {
    "scaling/hpa-conflict": (
        {"a.yaml": AUTOSCALER, "b.yaml": SCALED_OBJECT, "c.yaml": LABELLED},
        ("error", "b.yaml", ["a.yaml"]),
    ),
    "pods/missing-cost-labels": ({"a.yaml": DEPLOYMENT, "b.yaml": NAMESPACE}, ("note", "b.yaml", ["a.yaml"])),
    "pods/missing-gpu-toleration": ({"a.yaml": POD, "b.yaml": LABELLED}, ("note", "b.yaml", ["a.yaml"])),
}


@pytest.mark.parametrize("policy", CASES)
def test_it_is_reported_once(policy: str, gpugate: Run, tree: Callable[..., Path]) -> None:
    files, expected = CASES[policy]
    tree(files)
    report = json.loads(gpugate("check", ".", "-o", "json").out)
    found = [f for f in report["findings"] if f["policy"] == policy]
    assert [
        (f["severity"], f["file"].removeprefix("./"), [r["file"].removeprefix("./") for r in f["related"]])
        for f in found
    ] == [expected]
    sarif = json.loads(gpugate("check", ".", "-o", "sarif").out)
    (result,) = (each for each in sarif["runs"][0]["results"] if each["ruleId"] == policy)
    related = [each["physicalLocation"]["artifactLocation"]["uri"] for each in result["relatedLocations"]]
    assert [uri.removeprefix("./") for uri in related] == expected[2]
    assert f"= and: ./{expected[2][0]}:" in gpugate("check", ".").out


def test_what_suppresses_it_suppresses_it_at_every_object(gpugate: Run, tree: Callable[..., Path]) -> None:
    suppressing = SCALED_OBJECT.replace("  scaleTargetRef: {name: llm}", IGNORE)
    tree({"a.yaml": AUTOSCALER, "b.yaml": suppressing, "c.yaml": LABELLED})
    report = json.loads(gpugate("check", ".", "-o", "json").out)
    assert [f["policy"] for f in report["findings"] if f["policy"] == "scaling/hpa-conflict"] == []
    assert [(each["object"]["kind"], each["reason"]) for each in report["suppressed"]] == [
        ("HorizontalPodAutoscaler", "they never run together"),
        ("ScaledObject", "they never run together"),
    ]


@pytest.mark.parametrize(
    ("policy", "files", "expected"),
    [
        ("pods/missing-cost-labels", {"a.yaml": DEPLOYMENT, "b.yaml": NAMESPACE}, [("Namespace", ["Deployment"])]),
        # What would be blocked is blocked for its own finding.
        (
            "scaling/hpa-conflict",
            {"a.yaml": AUTOSCALER, "b.yaml": SCALED_OBJECT, "c.yaml": LABELLED},
            [("HorizontalPodAutoscaler", []), ("ScaledObject", [])],
        ),
    ],
)
def test_an_audit_reports_it_once_unless_it_blocks(
    policy: str, files: dict[str, str], expected: list[object], gpugate: Run, tree: Callable[..., Path]
) -> None:
    tree(files)
    report = json.loads(gpugate("audit", "--from", ".", "-o", "json").out)
    found = [
        (each["object"]["kind"], [related["kind"] for related in finding["related"]])
        for each in report["objects"]
        for finding in each["findings"]
        if finding["policy"] == policy
    ]
    assert sorted(found) == expected
