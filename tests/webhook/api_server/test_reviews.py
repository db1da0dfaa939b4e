"""The reviews we build are those that kube-apiserver sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from api_server import reviews
from api_server.attributes import Attributes, Endpoint, GroupVersion, connect, create, delete, subresource, update

CAPTURED = sorted((Path(__file__).parents[2] / "fixtures" / "reviews").glob("*.json"))
POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "team"}, "spec": {}}


def attributes_of(request: dict[str, Any]) -> Attributes:
    """What the API server knew when it wrote a captured request."""

    def endpoint(members: tuple[str, str]) -> Endpoint:
        kind, resource = (request[member] for member in members)
        versions = [GroupVersion(of["group"], of["version"]) for of in (kind, resource)]
        return Endpoint(versions[0], kind["kind"], resource["resource"], versions[1])

    return Attributes(
        operation=request["operation"],
        endpoint=endpoint(("kind", "resource")),
        requested=endpoint(("requestKind", "requestResource")),
        object=request["object"],
        old_object=request["oldObject"],
        name=request.get("name", ""),
        namespace=request.get("namespace", ""),
        subresource=request.get("subResource", ""),
        options=request["options"],
        user=request["userInfo"],
        dry_run=request["dryRun"],
    )


@pytest.mark.parametrize("path", CAPTURED, ids=lambda path: path.stem)
def test_the_members_of_a_captured_review_in_their_order(path: Path) -> None:
    captured = json.loads(path.read_bytes())
    request = captured["request"]
    made = json.loads(reviews.body(attributes_of(request), request["uid"], captured["apiVersion"]))
    assert json.dumps(made) == json.dumps(captured)


def request(attributes: Attributes) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(reviews.body(attributes, "u"))["request"]
    return made


SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": "team"}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "team"}}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param(
            create(POD),
            {"operation": "CREATE", "name": "a", "namespace": "team", "oldObject": None, "dryRun": False},
            id="create",
        ),
        pytest.param(
            create(POD | {"metadata": {"generateName": "g-", "namespace": "team"}}),
            {"operation": "CREATE", "name": None},
            id="generate-name",
        ),
        pytest.param(update(POD, POD), {"operation": "UPDATE", "name": "a"}, id="update"),
        pytest.param(delete(POD), {"operation": "DELETE", "name": "a", "object": None}, id="delete"),
        pytest.param(
            delete(POD, collection=True), {"operation": "DELETE", "name": None, "object": None}, id="collection"
        ),
        pytest.param(
            connect(POD, "exec", "PodExecOptions", command=["sh"]),
            {"operation": "CONNECT", "subResource": "exec", "name": "a", "options": None, "oldObject": None},
            id="connect",
        ),
        pytest.param(
            subresource(DEPLOYMENT, "scale", SCALE, SCALE),
            {
                "operation": "UPDATE",
                "subResource": "scale",
                "requestSubResource": "scale",
                "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            },
            id="scale",
        ),
        pytest.param(
            create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
            {"name": "team", "namespace": "team"},
            id="namespace",
        ),
        pytest.param(create(POD).as_dry_run(), {"dryRun": True}, id="dry-run"),
    ],
)
def test_request(attributes: Attributes, expected: dict[str, Any]) -> None:
    made = request(attributes)
    assert {key: made.get(key) for key in expected} == expected


def test_managed_fields_are_included() -> None:
    entry = request(create(POD))["object"]["metadata"]["managedFields"][0]
    assert (entry["fieldsType"], entry["fieldsV1"]["f:metadata"]["f:name"]) == ("FieldsV1", {})


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Pod", "pods"),
        ("EC2NodeClass", "ec2nodeclasses"),
        ("NetworkPolicy", "networkpolicies"),
        ("NodePool", "nodepools"),
    ],
)
def test_resource_of_a_kind(kind: str, resource: str) -> None:
    assert Endpoint.of({"apiVersion": "v1", "kind": kind}).resource == resource
