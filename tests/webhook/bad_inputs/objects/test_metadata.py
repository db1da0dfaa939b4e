"""Labels, annotations, names and owners that are odd, hostile or forged."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN = {"name": "c", "image": "x", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
HOSTILE = "a\r\nb\x1b[31m\u202e\u2028\x00c"


def pod(metadata: Any, container: Any = None) -> Any:
    spec = {"containers": [container or {"name": "c", "image": "x"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default"} | metadata,
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        pytest.param({"labels": None}, None, id="null"),
        pytest.param({"labels": {"a": None}}, None, id="value-null"),
        pytest.param({"labels": {"a": 5}}, "must be a string, not a number: put it in quotes", id="value-a-number"),
        pytest.param({"labels": {"a": ["b"]}}, "must be a string, not a list", id="value-a-list"),
        pytest.param({"labels": ["a"]}, "labels: must be an object of strings", id="list"),
        pytest.param({"labels": {"k" * 400: "v"}}, None, id="key-of-400-characters"),
        pytest.param({"labels": {"": "v"}}, None, id="empty-key"),
        pytest.param(
            {"labels": {"constructor": "v", "__proto__": "v", "__class__": "v"}}, None, id="words-of-languages"
        ),
        pytest.param({"labels": {"__class__": 5}}, "must be a string", id="word-of-a-language-and-a-number"),
        pytest.param({"labels": {HOSTILE: HOSTILE}}, None, id="control-characters"),
        pytest.param({"labels": {HOSTILE: 5}}, "must be a string", id="control-characters-in-a-message"),
        pytest.param({"labels": {"a~1b/c~0": 5}}, "must be a string", id="characters-of-JSON-pointers"),
        pytest.param({"annotations": {"a": "x" * 256 * 1024}}, None, id="256-KiB"),
        pytest.param({"annotations": {"a": HOSTILE}}, None, id="control-characters"),
        pytest.param({"annotations": {"karpenter.sh/do-not-disrupt": HOSTILE}}, None, id="in-a-warning"),
        pytest.param(
            {"annotations": {"karpenter.sh/do-not-disrupt": "x" * 256 * 1024}}, None, id="256-KiB-in-a-warning"
        ),
        pytest.param({"annotations": {"karpenter.sh/do-not-disrupt": True}}, "put it in quotes", id="boolean"),
    ],
)
def test_labels_and_annotations(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], metadata: Any, says: str | None
) -> None:
    assert_verdict(review(pod(metadata)), says)


NAMES = [
    pytest.param("Upper", id="upper-case"),
    pytest.param("\u00e4\U0001f600", id="not-ASCII"),
    pytest.param("a" * 300, id="300-characters"),
    pytest.param("a" * 300_000, id="300-KB"),
    pytest.param(HOSTILE, id="control-characters"),
    pytest.param('","decision":"allow"}', id="JSON"),
    pytest.param("%s%n{0}${jndi:ldap://x}", id="format"),
    pytest.param("../../etc/passwd", id="path"),
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_what_is_deleted(assert_verdict: Callable[..., Any], review: Callable[..., Any], name: str) -> None:
    assert_verdict(
        review(pod({"name": name}), operation="DELETE", name="", object=None, oldObject=pod({"name": name})), None
    )


@pytest.mark.parametrize("member", ["name", "generateName", "namespace"])
@pytest.mark.parametrize("name", NAMES)
def test_names_in_the_log(
    ask: Callable[..., Any], review: Callable[..., Any], log: Any, name: str, member: str
) -> None:
    uid = f"81-{zlib.crc32(f'{member}={name}'.encode())}"
    obj = pod({"name": ..., member: name} if member != "namespace" else {member: name}, HIDDEN)
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if value is not ...}
    assert ask("/validate", review(obj, uid=uid), uid=uid)["allowed"] is False
    line = log.line_about(uid)
    assert (type(json.loads(line)), line.isprintable(), len(line) < 4096) == (dict, True, True)


@pytest.mark.parametrize("user", ["admin", "system:serviceaccount:default:mine", HOSTILE])
@pytest.mark.parametrize(
    "owner",
    [
        pytest.param({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gpu-operator"}, id="daemon-set"),
        pytest.param({"apiVersion": "v1", "kind": "Node", "name": "node-1"}, id="static-pod"),
        pytest.param({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy"}, id="operator"),
    ],
)
def test_forged_owners_exempt_from_nothing(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], owner: Any, user: str
) -> None:
    metadata = {"ownerReferences": [owner | {"uid": "u", "controller": True, "blockOwnerDeletion": True}]}
    assert_verdict(review(pod(metadata, HIDDEN), userInfo={"username": user}), "NVIDIA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": {"gpugate.dev/ignore": "true"}}, id="label"),
        pytest.param({"annotations": {"gpugate.dev/mode": "audit", "gpugate.dev/ignore": "*"}}, id="annotations"),
        pytest.param({"labels": {"app.kubernetes.io/name": "gpugate", "k8s-app": "kube-proxy"}}, id="system-labels"),
    ],
)
def test_labels_and_annotations_exempt_from_nothing(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], metadata: Any
) -> None:
    assert_verdict(review(pod(metadata, HIDDEN)), "NVIDIA_VISIBLE_DEVICES")
