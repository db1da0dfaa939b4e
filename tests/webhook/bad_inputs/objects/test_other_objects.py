"""Objects that stand for others, objects of subresources, and Secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

META = {"name": "a", "namespace": "default"}
CANARY = b"c4n4ry-d0-n0t-l0g"
HIDDEN = {"name": "c", "image": "x", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": META, "spec": {"containers": [HIDDEN]}}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"apiVersion": "v1", "kind": "List", "items": [POD]}, id="List"),
        pytest.param({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [POD, None]}, id="PodList"),
        pytest.param(
            {"apiVersion": "meta.k8s.io/v1", "kind": "Table", "rows": [{"cells": [1], "object": POD}]}, id="Table"
        ),
        pytest.param(
            {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": META},
            id="PartialObjectMetadata",
        ),
    ],
)
def test_objects_that_stand_for_others(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], obj: Any
) -> None:
    assert_verdict(review(obj), None)


@pytest.mark.parametrize(
    ("obj", "subresource"),
    [
        pytest.param(
            {"apiVersion": "v1", "kind": "Binding", "metadata": META, "target": {"name": "n"}},
            "binding",
            id="Binding",
        ),
        pytest.param({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": META}, "eviction", id="Eviction"),
        pytest.param(
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": META, "spec": {"replicas": 1000}},
            "scale",
            id="Scale",
        ),
        pytest.param(
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "metadata": META,
                "spec": {"audiences": None},
            },
            "token",
            id="TokenRequest",
        ),
        pytest.param(POD, "status", id="Pod-status"),
        pytest.param(POD, "resize", id="Pod-resize"),
    ],
)
def test_objects_of_subresources(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], obj: Any, subresource: str
) -> None:
    assert_verdict(review(obj, subResource=subresource, requestSubResource=subresource), None)


def _secret(canary: str) -> Any:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": META, "stringData": {"password": canary}, "data": canary}


def _environment(canary: str) -> Any:
    container = HIDDEN | {"env": [*HIDDEN["env"], {"name": "PASSWORD", "value": canary}], "args": [canary]}
    return POD | {"spec": {"containers": [container]}, "status": {"message": canary}}


@pytest.mark.parametrize("make", [_secret, _environment], ids=["secret", "environment"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda body: body, id="whole"),
        pytest.param(lambda body: body[:-2], id="truncated"),
        pytest.param(lambda body: body.replace(b'"CREATE"', b'"PATCH"'), id="of-an-unknown-operation"),
        pytest.param(lambda body: body.replace(b'"uid"', b'"UID"'), id="without-a-uid"),
        pytest.param(
            lambda body: body.replace(b'"spec": {', b'"spec": {"initContainers": "%s", ' % CANARY), id="of-a-wrong-type"
        ),
    ],
)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_content_is_in_no_answer_and_in_no_log(  # the log is read after every test
    webhook: Any,
    review: Callable[..., Any],
    log: Any,
    canary: str,
    *,
    path: str,
    make: Callable[[str], Any],
    change: Callable[[bytes], bytes],
) -> None:
    body = change(json.dumps(review(make(canary), uid="93")).encode())
    _, headers, answer = webhook.request("POST", path, body)
    assert canary.encode() not in answer + bytes(headers)
    last = review(POD, uid="93-behind-it")
    webhook.validate(last)
    log.line_about("93-behind-it")
