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
    pytest.param({"operation": ...}, "operation", id="missing"),
    pytest.param({"operation": "create"}, "operation", id="lower-case"),
    pytest.param({"operation": "PATCH"}, "operation", id="PATCH"),
    pytest.param({"operation": None}, "operation", id="null"),
    pytest.param({"operation": ["CREATE"]}, "operation", id="list"),
    pytest.param({"kind": ...}, "request.kind", id="kind-missing"),
    pytest.param({"kind": None}, "request.kind", id="kind-null"),
    pytest.param({"kind": "Pod"}, "request.kind", id="kind-a-string"),
    pytest.param({"kind": POD_KIND | {"group": None}}, "request.kind.group", id="group-null"),
    pytest.param({"kind": POD_KIND | {"version": 1}}, "request.kind.version", id="version-a-number"),
    pytest.param({"kind": {"group": ""}}, "request.kind", id="kind-without-its-members"),
    pytest.param({"resource": ...}, "request.resource", id="resource-missing"),
    pytest.param({"resource": None}, "request.resource", id="resource-null"),
    pytest.param({"resource": []}, "request.resource", id="resource-a-list"),
    pytest.param({"resource": PODS | {"group": None}}, "request.resource.group", id="resource-group-null"),
    pytest.param({"requestKind": "Pod"}, "request.requestKind", id="requestKind-a-string"),
    pytest.param({"object": POD | {"kind": "Deployment"}}, "request.object", id="kinds-differ"),
    pytest.param({"object": POD | {"apiVersion": "apps/v1"}}, "request.object", id="versions-differ"),
    pytest.param({"namespace": "other"}, "namespace", id="namespaces-differ"),
    pytest.param({"namespace": ["default"]}, "request.namespace", id="namespace-a-list"),
    pytest.param({"name": 5}, "request.name", id="name-a-number"),
    pytest.param({"object": None}, "request.object", id="create-without-object"),
    pytest.param({"object": ...}, "request.object", id="create-with-object-missing"),
    pytest.param({"object": []}, "request.object", id="object-a-list"),
    pytest.param({"object": "Pod"}, "request.object", id="object-a-string"),
    pytest.param({"operation": "UPDATE"}, "request.oldObject", id="update-without-old-object"),
    pytest.param({"operation": "UPDATE", "object": None, "oldObject": POD}, "request.object", id="update-to-null"),
    pytest.param(
        {"operation": "DELETE", "object": None, "oldObject": None}, "request.oldObject", id="deletion-of-nothing"
    ),
    pytest.param({"dryRun": "true"}, "request.dryRun", id="string"),
    pytest.param({"dryRun": 1}, "request.dryRun", id="number"),
    pytest.param({"userInfo": "admin"}, "request.userInfo", id="string"),
    pytest.param({"userInfo": {"groups": "a"}}, "request.userInfo.groups", id="groups-a-string"),
    pytest.param({"userInfo": {"groups": [1]}}, "request.userInfo.groups", id="groups-of-numbers"),
    pytest.param({"userInfo": {"extra": {"a": "b"}}}, "request.userInfo.extra", id="extra-not-lists"),
    pytest.param({"subResource": {}}, "request.subResource", id="subresource-an-object"),
]
ALLOWED = [
    pytest.param({"namespace": "default", "object": POD | {"metadata": {"name": "a"}}}, id="namespace-not-in-object"),
    pytest.param({"name": "", "object": POD | {"metadata": {"generateName": "a-"}}}, id="generateName"),
    pytest.param({"name": ..., "object": POD | {"metadata": {"generateName": "a-"}}}, id="name-missing"),
    pytest.param({"operation": "DELETE", "name": "", "object": None, "oldObject": POD}, id="deletion-of-collection"),
    pytest.param({"dryRun": True}, id="true"),
    pytest.param({"dryRun": None}, id="null"),
    pytest.param({"dryRun": ...}, id="missing"),
    pytest.param({"userInfo": ...}, id="missing"),
    pytest.param({"userInfo": None}, id="null"),
    pytest.param({"userInfo": {"groups": None, "extra": None}}, id="groups-null"),
    pytest.param({"userInfo": {"username": "a" * 10_000, "groups": ["g"] * 10_000}}, id="10000-groups"),
    pytest.param({"userInfo": {"username": "a\nb\x1b[31m\u202e"}}, id="user-with-control-characters"),
    pytest.param({"options": {"kind": "FooOptions", "a": [1]}}, id="options-of-unknown-kind"),
    pytest.param({"options": "x"}, id="options-a-string"),
    pytest.param({"options": ...}, id="options-missing"),
    pytest.param({"subResource": "foo"}, id="subresource-unknown"),
    pytest.param({"subResource": ""}, id="subresource-empty"),
    pytest.param({"futureMember": {"a": 1}, "kind": POD_KIND | {"future": True}}, id="unknown-members"),
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
