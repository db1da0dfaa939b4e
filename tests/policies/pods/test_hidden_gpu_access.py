from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import Known, NoFacts
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.gate import Gate, Rules

if TYPE_CHECKING:
    from gpugate.policies.sdk.facts import Fact, Facts
    from gpugate.policies.sdk.objects import Kind

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


MIG, WHOLE = {"limits": {"nvidia.com/mig-1g.10gb": "1"}}, {"limits": {"nvidia.com/gpu": "1"}}
CLAIM = {"claims": [{"name": "g"}]}
SEEN = Known((), complete=True)
ALL = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
ONE_SLICE = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "MIG-1,0:1"}
OF_CONFIG_MAP = {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
HABANA = {"name": "HABANA_VISIBLE_DEVICES", "value": "all"}
CDI = {"cdi.k8s.io/a": "nvidia.com/gpu=all"}


class Claims(NoFacts):
    """Facts of a cluster of which all claims are known: there are none."""

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:  # noqa: ARG002 -- the protocol's signature
        """Return no objects of any kind, all of which are known."""
        return SEEN


def costs(
    resources: dict[str, Any], facts: Facts, annotations: dict[str, str] | None = None, **container: Any
) -> dict[str, str]:
    """What the policy's findings in a Pod on GPU nodes cost, by their message's first word; a skip costs "-"."""
    obj = {
        "metadata": {"name": "p", "namespace": "a", "annotations": annotations or {}},
        "spec": {
            "containers": [{"name": "c", "resources": resources, **container}],
            "resourceClaims": [{"name": "g", "resourceClaimName": "g"}] if "claims" in resources else [],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
    request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, obj, name="p", namespace="a", user="alice")
    verdict = evaluate(bind(CATALOG, PolicyConfig()), request, facts, today=dt.date(2026, 11, 21))
    mine = [outcome for outcome in verdict.outcomes if outcome.policy == "pods/hidden-gpu-access"]
    assert not [outcome.error for outcome in mine if outcome.error]
    return {f.message.split()[0]: f.stance.word for outcome in mine for f in outcome.findings}


@pytest.mark.parametrize(
    ("container", "annotations", "none", "unknown", "share", "whole"),
    [
        ({"env": [ALL]}, {}, "enforce", "enforce", "enforce", "warn"),
        ({"env": [ONE_SLICE]}, {}, "enforce", "enforce", "warn", "warn"),
        ({"env": [OF_CONFIG_MAP]}, {}, "warn", "warn", "warn", "warn"),
        ({"env": [HABANA]}, {}, "enforce", "enforce", None, None),
        ({}, CDI, "enforce", "enforce", "enforce", "warn"),
        (PRIVILEGED, {}, "enforce", "warn", "enforce", None),
        ({}, {}, None, None, None, None),
    ],
    ids=["all", "a slice", "not known", "another vendor", "CDI", "privileged", "nothing"],
)
def test_what_a_sign_costs_beside_what_the_pod_asks_for(
    container: dict[str, Any],
    annotations: dict[str, str],
    none: str | None,
    unknown: str | None,
    share: str | None,
    whole: str | None,
) -> None:
    columns = [
        ("nothing", {}, NoFacts(), none),
        ("a claim that does not exist", CLAIM, Claims(), none),
        ("a claim that nothing is known of", CLAIM, NoFacts(), unknown),
        ("a slice", MIG, NoFacts(), share),
        ("a GPU", WHOLE, NoFacts(), whole),
    ]
    found = {name: list(costs(asked, facts, annotations, **container).values()) for name, asked, facts, _ in columns}
    assert found == {name: [] if expected is None else [expected] for name, _, _, expected in columns}
