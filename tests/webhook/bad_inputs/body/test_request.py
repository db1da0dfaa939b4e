"""Requests with a uid whose other members make no sense, and those that only look as if they did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": []}}
POD_KIND = {"group": "", "version": "v1", "kind": "Pod"}
PODS = {"group": "", "version": "v1", "resource": "pods"}
DENIED = [
    pytest.param({"operation": ...}, "operation", id="58-missing"),
    pytest.param({"operation": "create"}, "operation", id="58-lower-case"),
    pytest.param({"operation": "PATCH"}, "operation", id="58-PATCH"),
    pytest.param({"operation": None}, "operation", id="58-null"),
    pytest.param({"operation": ["CREATE"]}, "operation", id="58-list"),
    pytest.param({"kind": ...}, "request.kind", id="59-kind-missing"),
    pytest.param({"kind": None}, "request.kind", id="59-kind-null"),
    pytest.param({"kind": "Pod"}, "request.kind", id="59-kind-a-string"),
    pytest.param({"kind": POD_KIND | {"group": None}}, "request.kind.group", id="59-group-null"),
    pytest.param({"kind": POD_KIND | {"version": 1}}, "request.kind.version", id="59-version-a-number"),
    pytest.param({"kind": {"group": ""}}, "request.kind", id="59-kind-without-its-members"),
    pytest.param({"resource": ...}, "request.resource", id="59-resource-missing"),
    pytest.param({"resource": None}, "request.resource", id="59-resource-null"),
    pytest.param({"resource": []}, "request.resource", id="59-resource-a-list"),
    pytest.param({"resource": PODS | {"group": None}}, "request.resource.group", id="59-resource-group-null"),
    pytest.param({"requestKind": "Pod"}, "request.requestKind", id="59-requestKind-a-string"),
    pytest.param({"object": POD | {"kind": "Deployment"}}, "request.object", id="61-kinds-differ"),
    pytest.param({"object": POD | {"apiVersion": "apps/v1"}}, "request.object", id="61-versions-differ"),
    pytest.param({"namespace": "other"}, "namespace", id="62-namespaces-differ"),
    pytest.param({"namespace": ["default"]}, "request.namespace", id="62-namespace-a-list"),
    pytest.param({"name": 5}, "request.name", id="63-name-a-number"),
    pytest.param({"object": None}, "request.object", id="64-create-without-object"),
    pytest.param({"object": ...}, "request.object", id="64-create-with-object-missing"),
    pytest.param({"object": []}, "request.object", id="64-object-a-list"),
    pytest.param({"object": "Pod"}, "request.object", id="64-object-a-string"),
    pytest.param({"operation": "UPDATE"}, "request.oldObject", id="64-update-without-old-object"),
    pytest.param({"operation": "UPDATE", "object": None, "oldObject": POD}, "request.object", id="64-update-to-null"),
    pytest.param(
        {"operation": "DELETE", "object": None, "oldObject": None}, "request.oldObject", id="65-deletion-of-nothing"
    ),
    pytest.param({"dryRun": "true"}, "request.dryRun", id="67-string"),
    pytest.param({"dryRun": 1}, "request.dryRun", id="67-number"),
    pytest.param({"userInfo": "admin"}, "request.userInfo", id="68-string"),
    pytest.param({"userInfo": {"groups": "a"}}, "request.userInfo.groups", id="68-groups-a-string"),
    pytest.param({"userInfo": {"groups": [1]}}, "request.userInfo.groups", id="68-groups-of-numbers"),
    pytest.param({"userInfo": {"extra": {"a": "b"}}}, "request.userInfo.extra", id="68-extra-not-lists"),
    pytest.param({"subResource": {}}, "request.subResource", id="70-subresource-an-object"),
]
ALLOWED = [
    pytest.param(
        {"namespace": "default", "object": POD | {"metadata": {"name": "a"}}}, id="62-namespace-not-in-object"
    ),
    pytest.param({"name": "", "object": POD | {"metadata": {"generateName": "a-"}}}, id="63-generateName"),
    pytest.param({"name": ..., "object": POD | {"metadata": {"generateName": "a-"}}}, id="63-name-missing"),
    pytest.param({"operation": "DELETE", "name": "", "object": None, "oldObject": POD}, id="63-deletion-of-collection"),
    pytest.param({"dryRun": True}, id="67-true"),
    pytest.param({"dryRun": None}, id="67-null"),
    pytest.param({"dryRun": ...}, id="67-missing"),
    pytest.param({"userInfo": ...}, id="68-missing"),
    pytest.param({"userInfo": None}, id="68-null"),
    pytest.param({"userInfo": {"groups": None, "extra": None}}, id="68-groups-null"),
    pytest.param({"userInfo": {"username": "a" * 10_000, "groups": ["g"] * 10_000}}, id="68-10000-groups"),
    pytest.param({"userInfo": {"username": "a\nb\x1b[31m\u202e"}}, id="68-user-with-control-characters"),
    pytest.param({"options": {"kind": "FooOptions", "a": [1]}}, id="69-options-of-unknown-kind"),
    pytest.param({"options": "x"}, id="69-options-a-string"),
    pytest.param({"options": ...}, id="69-options-missing"),
    pytest.param({"subResource": "foo"}, id="70-subresource-unknown"),
    pytest.param({"subResource": ""}, id="70-subresource-empty"),
    pytest.param({"futureMember": {"a": 1}, "kind": POD_KIND | {"future": True}}, id="71-unknown-members"),
]


@pytest.mark.parametrize(("members", "says"), DENIED)
def test_denied_with_its_uid(
    denied: Callable[..., None], review: Callable[..., Any], members: dict[str, Any], says: str
) -> None:
    denied(review(POD, **members), 400, says)


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize("members", ALLOWED)
def test_allowed(ask: Callable[..., Any], review: Callable[..., Any], path: str, members: dict[str, Any]) -> None:
    answer = ask(path, review(POD, **members))
    assert (answer["allowed"], answer.get("warnings")) == (True, None)
