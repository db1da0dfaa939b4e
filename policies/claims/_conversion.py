"""Turns an object of an older version of `resource.k8s.io` into one of v1."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.gpu_demand import INLINE_VERSIONS, MEMBERS, claim_spec_of, device_requests, own_members

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.objects import GroupVersionKind

V1: Final = "resource.k8s.io/v1"

# Members of v1alpha3 in Kubernetes 1.31 that no later version has.
_DROPPED: Final = ("controller", "suitableNodes")
# What the API server and kubectl write, not people.
_BOOKKEEPING: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def left_out(obj: Field, kind: str) -> tuple[str, ...]:
    """Return the members that have no place in v1."""
    spec = claim_spec_of(obj, kind)
    return tuple(name for name in _DROPPED if spec[name])


def keeps_shape(obj: Field, kind: GroupVersionKind) -> bool:
    """Tell whether only the version of an object has to change."""
    return not left_out(obj, kind.kind) and (kind.kind == "DeviceClass" or kind.version not in INLINE_VERSIONS)


def as_v1(obj: Field, kind: GroupVersionKind) -> dict[str, Json] | None:
    """Return an object in v1, without its status; None where a request is of no shape that v1 has."""
    old = claim_spec_of(obj, kind.kind)
    spec: dict[str, Json] = {key: value for key, value in old.mapping.items() if key not in _DROPPED}
    if kind.kind != "DeviceClass":
        requests: list[Json] = [_request(request) for request in device_requests(old)]
        if not all(requests):
            return None
        spec["devices"] = {**old["devices"].mapping, "requests": requests}
    if kind.kind == "ResourceClaimTemplate":
        spec = {**obj["spec"].mapping, "spec": spec}
    return {"apiVersion": V1, "kind": kind.kind, "metadata": _metadata(obj["metadata"]), "spec": deepcopy(spec)}


def _request(request: Field) -> dict[str, Json]:
    """Return a request with its members under `exactly`; empty where it has them elsewhere too, or is no object."""
    inline: dict[str, Json] = {key: request[key].value for key in own_members(request)}
    others = {key: value for key, value in request.mapping.items() if key not in MEMBERS}
    if not inline:
        return others
    return {} if others.keys() & {"exactly", "firstAvailable"} else {**others, "exactly": inline}


def _metadata(metadata: Field) -> dict[str, Json]:
    kept = {key: deepcopy(value) for key, value in metadata.mapping.items() if key not in _BOOKKEEPING}
    annotations: dict[str, Json] = {k: v for k, v in metadata["annotations"].labels.items() if k != _LAST_APPLIED}
    if annotations:
        kept["annotations"] = annotations
    else:
        kept.pop("annotations", None)
    return kept
