from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Verdict
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.response import encode
from gpugate.webhook.admission.review import Review
from gpugate.webhook.registration.probe import question

NONCE = "0123456789abcdef"


def probe_request(obj: dict[str, Any] | None = None) -> Request:
    return Request(
        kind=GroupVersionKind("", "v1", "ConfigMap"),
        operation=Operation.CREATE,
        object=question("gpugate", NONCE) if obj is None else obj,
        namespace="gpugate",
        dry_run=True,
    )


def answered(request: Request, phase: Phase) -> dict[str, Any]:
    review = Review("uid", "admission.k8s.io/v1", request)
    response: dict[str, Any] = json.loads(encode(review, Verdict(request, ()), phase, "g"))["response"]
    return response


@pytest.mark.parametrize("phase", [Phase.MUTATE, Phase.VALIDATE])
def test_a_probe_is_answered_by_a_warning_and_nothing_else(phase: Phase) -> None:
    assert answered(probe_request(), phase) == {
        "uid": "uid",
        "allowed": True,
        "warnings": [f"gpugate answered {NONCE} at {phase.value}"],
        "auditAnnotations": {"generation": "g"},
    }


def with_annotation(value: object) -> dict[str, Any]:
    return {"metadata": {"annotations": {"gpugate.dev/probe": value}}}


NO_PROBES = {
    "not a dry run": replace(probe_request(), dry_run=False),
    "a Pod": replace(probe_request(), kind=GroupVersionKind("", "v1", "Pod")),
    "deleted": replace(probe_request(), operation=Operation.DELETE, object=None),
    "no annotation": probe_request({"metadata": {"name": "plain"}}),
    "no metadata": probe_request({}),
    "annotations of another type": probe_request({"metadata": {"annotations": []}}),
    "no text": probe_request(with_annotation(7)),
    "too short": probe_request(with_annotation("abc")),
    "too long": probe_request(with_annotation("a" * 65)),
    "other characters": probe_request(with_annotation("0123456789\nWarning: forged")),
    "another annotation": probe_request({"metadata": {"annotations": {"gpugate.dev/exempt": NONCE}}}),
}


@pytest.mark.parametrize("request_", NO_PROBES.values(), ids=NO_PROBES)
def test_other_requests_are_not_answered_as_probes(request_: Request) -> None:
    assert "warnings" not in answered(request_, Phase.VALIDATE)
