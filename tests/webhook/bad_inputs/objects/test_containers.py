"""Pods whose containers are of a wrong type, too many, or in the lists that are easily forgotten."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

C = {"name": "c", "image": "x"}
GPU = C | {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
HIDDEN = C | {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
COSTS = {"team": "search", "cost-center": "cc-1234"}


def pod(spec: Any, labels: Any = None) -> Any:
    metadata = {"name": "a", "namespace": "default", "labels": COSTS | (labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param({"containers": None}, None, id="null"),
        pytest.param({"containers": []}, None, id="empty"),
        pytest.param({"containers": {}}, "spec.containers: must be a list, not an object", id="object"),
        pytest.param({"containers": "c"}, "spec.containers: must be a list, not a string", id="string"),
        pytest.param({"containers": [None]}, r"containers\[0\]: must be an object, not null", id="element-null"),
        pytest.param({"containers": [C, "c"]}, r"containers\[1\]: must be an object", id="element-a-string"),
        pytest.param({"containers": [C | {"resources": []}]}, "resources: must be an object", id="resources-a-list"),
        pytest.param(
            {"containers": [C | {"resources": {"limits": "1"}}]}, "limits: must be an object", id="limits-a-string"
        ),
        pytest.param({"containers": [C | {"name": 5}]}, "name: must be a string, not a number", id="name-a-number"),
        pytest.param({"containers": [C] * 5000}, None, id="5000-containers"),
        pytest.param(
            {"containers": [GPU] * 5000, "tolerations": TOLERATIONS},
            "spec.containers has 5000 entries",
            id="5000-GPUs",
        ),
        pytest.param({"containers": ["c"] * 5000}, "must be an object", id="5000-wrong-elements"),
        pytest.param({"containers": [C], "initContainers": {}}, "initContainers: must be a list", id="init-an-object"),
        pytest.param({"containers": [C], "tolerations": "x"}, "tolerations: must be a list", id="tolerations-a-string"),
    ],
)
def test_wrong_types(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], spec: Any, says: str | None
) -> None:
    answer = assert_verdict(review(pod(spec)), says)
    assert says is None or answer["status"]["code"] in {403, 422}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param({"containers": [HIDDEN]}, "NVIDIA_VISIBLE_DEVICES", id="container"),
        pytest.param({"containers": [C], "initContainers": [HIDDEN]}, "NVIDIA_VISIBLE_DEVICES", id="init"),
        pytest.param({"containers": [C], "initContainers": [HIDDEN | SIDECAR]}, "NVIDIA_VISIBLE_DEVICES", id="sidecar"),
        pytest.param({"containers": [C], "ephemeralContainers": [HIDDEN]}, "NVIDIA_VISIBLE_DEVICES", id="ephemeral"),
    ],
)
def test_every_list_of_containers_counts(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], spec: Any, says: str | None
) -> None:
    assert_verdict(review(pod(spec)), says)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"containers": [GPU]}, id="container"),
        pytest.param({"containers": [C], "initContainers": [GPU]}, id="init"),
        pytest.param({"containers": [C], "initContainers": [GPU | SIDECAR]}, id="sidecar"),
    ],
)
def test_gpus_of_every_list_are_tolerated(ask: Callable[..., Any], review: Callable[..., Any], spec: Any) -> None:
    operations = json.loads(base64.b64decode(ask("/mutate", review(pod(spec)))["patch"]))
    assert [operation["path"].split("/")[:3] for operation in operations] == [["", "spec", "tolerations"]]


def test_debug_container_added_to_a_running_pod(assert_verdict: Callable[..., Any], review: Callable[..., Any]) -> None:
    old, new = pod({"containers": [C]}), pod({"containers": [C], "ephemeralContainers": [HIDDEN]})
    sent = review(new, operation="UPDATE", oldObject=old, subResource="ephemeralcontainers")
    assert_verdict(sent, "NVIDIA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("", id="empty"),
        pytest.param(None, id="null"),
        pytest.param(5, id="number"),
        pytest.param("a" * 10 * 1024, id="10-KB"),
        pytest.param("a/" * 5 * 1024, id="10-KB-of-slashes"),
        pytest.param("a:" * 5 * 1024 + "@", id="10-KB-of-colons"),
        pytest.param("a@sha256:" + "0" * 64, id="digest"),
        pytest.param("REG:5000/x:y@sha256:", id="digest-missing"),
        pytest.param("registry.ex\u0430mple.com/x", id="homoglyph"),
        pytest.param("x:1 ", id="space-at-the-end"),
        pytest.param("x:1\n\x1b[31m", id="control-characters"),
    ],
)
def test_images(assert_verdict: Callable[..., Any], review: Callable[..., Any], image: Any) -> None:
    labels = {"workload": "inference"}
    assert_verdict(review(pod({"containers": [GPU | {"image": image}], "tolerations": TOLERATIONS}, labels)), None)


@pytest.mark.parametrize(
    "member",
    [
        pytest.param({"nodeSelector": None}, id="nodeSelector-null"),
        pytest.param({"tolerations": None}, id="tolerations-null"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, id="toleration-without-key"),
        pytest.param({"affinity": {"nodeAffinity": {"a": ["x" * 1024] * 1024}}}, id="affinity-of-1-MB"),
        pytest.param({"affinity": "x", "topologySpreadConstraints": 5, "volumes": "y"}, id="others-of-wrong-types"),
        pytest.param({"resourceClaims": None, "runtimeClassName": None}, id="claims-null"),
    ],
)
def test_placement(assert_verdict: Callable[..., Any], review: Callable[..., Any], member: Any) -> None:
    assert_verdict(review(pod({"containers": [C]} | member)), None)


def test_toleration_of_everything_is_warned_of(assert_verdict: Callable[..., Any], review: Callable[..., Any]) -> None:
    answer = assert_verdict(review(pod({"containers": [C], "tolerations": [{"operator": "Exists"}]})), None)
    assert "pods/wildcard-toleration" in answer["warnings"][0]
