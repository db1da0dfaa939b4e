from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.gate import Gate, Rules

CAPTURED = Path(__file__).parents[2] / "fixtures/reviews/pod-ephemeralcontainers-update.validate.json"
VISIBLE = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
PRIVILEGED = {"securityContext": {"privileged": True}}
GATE = Gate(Rules(bind(CATALOG, PolicyConfig()), "g"), NoFacts(), lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC))


def answer(added: dict[str, Any], *, gpu: bool, tolerant: bool = True, **request: str) -> dict[str, Any]:
    """Answer the captured review of a `kubectl debug` whose container has something more."""
    review = json.loads(CAPTURED.read_text())
    review["request"] |= request
    for name in ("object", "oldObject"):
        spec = review["request"][name]["spec"]
        if not gpu:
            spec["containers"][0]["resources"] = {}
        if not tolerant:
            spec["tolerations"] = []
    review["request"]["object"]["spec"]["ephemeralContainers"][0] |= added
    response: dict[str, Any] = json.loads(GATE.validate(json.dumps(review).encode()).body)["response"]
    return response


def test_a_debug_container_that_takes_gpus_is_refused() -> None:
    response = answer(VISIBLE, gpu=False)
    assert not response["allowed"]
    assert "spec.ephemeralContainers[0].env[0].value" in response["status"]["message"]


def test_in_a_pod_with_a_gpu_it_is_a_warning() -> None:
    response = answer(VISIBLE, gpu=True)
    assert response["allowed"]
    assert [warning for warning in response["warnings"] if "pods/hidden-gpu-access" in warning]


def test_a_privileged_one_on_a_gpu_node_is_refused() -> None:
    assert not answer(PRIVILEGED, gpu=False)["allowed"]


@pytest.mark.parametrize(
    ("added", "options"),
    [({}, {"gpu": True}), ({}, {"gpu": False}), (PRIVILEGED, {"gpu": False, "tolerant": False})],
    ids=["shell in a GPU Pod", "shell", "privileged where there are no GPUs"],
)
def test_others_are_let_through_in_silence(added: dict[str, Any], options: dict[str, bool]) -> None:
    response = answer(added, **options)
    assert response["allowed"]
    assert not response.get("warnings")


def test_of_other_subresources_nothing_is_judged() -> None:
    response = answer(VISIBLE, gpu=False, subResource="status", requestSubResource="status")
    assert response["allowed"]
    assert not response.get("warnings")
