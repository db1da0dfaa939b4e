"""AdmissionReviews as kube-apiserver writes them.

The members stand in the order of `k8s.io/api` admission/v1 types.go (v0.36), and those that are empty and optional are
left out; `object` and `oldObject` are always there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api_server import go_json

if TYPE_CHECKING:
    from api_server.attributes import Attributes, Endpoint

Json = dict[str, Any]


def review(attributes: Attributes, uid: str, version: str = "admission.k8s.io/v1") -> Json:
    """Build the review of one call; `uid` is new for every call."""
    requested = attributes.requested or attributes.endpoint
    optional = {
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    request = {
        "uid": uid,
        "kind": _kind(attributes.endpoint),
        "resource": _resource(attributes.endpoint),
        "subResource": "",
        "requestKind": _kind(requested),
        "requestResource": _resource(requested),
        "requestSubResource": "",
        "name": "",
        "namespace": "",
        "operation": attributes.operation,
        "userInfo": attributes.user,
        "object": attributes.object,
        "oldObject": attributes.old_object,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    } | optional
    present = {key: value for key, value in request.items() if key not in optional or value}
    return {"kind": "AdmissionReview", "apiVersion": version, "request": present}


def body(attributes: Attributes, uid: str, version: str = "admission.k8s.io/v1") -> bytes:
    """Write the review of one call."""
    return go_json.encode(review(attributes, uid, version))


def _kind(endpoint: Endpoint) -> Json:
    return {"group": endpoint.version.group, "version": endpoint.version.version, "kind": endpoint.kind}


def _resource(endpoint: Endpoint) -> Json:
    version = endpoint.resource_version or endpoint.version
    return {"group": version.group, "version": version.version, "resource": endpoint.resource}
