"""Whether a patched object can still be read into its Go type: the members that patches of ours come near.

Built-in kinds are decoded into structs, so that a wrong type is an error before any validation; of custom resources
only the metadata is (`k8s.io/apiserver` pkg/admission/plugin/webhook/mutating/dispatcher.go, v1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from api_server.errors import CallError

if TYPE_CHECKING:
    from api_server.attributes import Endpoint

# A type, a list or a map of a shape, or the shapes of members.
Shape: TypeAlias = "type | list[Shape] | dict[str, Shape]"
_MAP = "*"
_STRINGS: Shape = {_MAP: str}
_METADATA: Shape = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "labels": _STRINGS,
    "annotations": _STRINGS,
    "finalizers": [str],
}
_TOLERATION: Shape = {"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}
_CONTAINER: Shape = {"name": str, "image": str, "args": [str], "command": [str], "env": [{"name": str, "value": str}]}
_POD_SPEC: Shape = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "nodeSelector": _STRINGS,
    "tolerations": [_TOLERATION],
    "terminationGracePeriodSeconds": int,
    "activeDeadlineSeconds": int,
    "priorityClassName": str,
    "runtimeClassName": str,
    "hostNetwork": bool,
    "schedulerName": str,
}


def check(obj: Any, endpoint: Endpoint) -> None:
    """Refuse an object that cannot be read into the type of an endpoint.

    Raises:
        CallError: says which member has the wrong type.
    """
    if not isinstance(obj, dict):
        raise CallError("couldn't get version/kind; json parse error")
    if (obj.get("apiVersion"), obj.get("kind")) != ("/".join(filter(None, endpoint.version)), endpoint.kind):
        raise CallError(f'no kind "{obj.get("kind")}" is registered for version "{obj.get("apiVersion")}"')
    shape: Shape = {"metadata": _METADATA}
    if endpoint.kind == "Pod":
        shape = {"metadata": _METADATA, "spec": _POD_SPEC}
    wrong = _mismatch(obj, shape, endpoint.kind)
    if wrong:
        raise CallError(f"json: cannot unmarshal into Go struct field {wrong}")


def _mismatch(value: Any, shape: Shape, place: str) -> str:
    if value is None:
        return ""
    if isinstance(shape, type):
        return "" if type(value) is shape else place
    if isinstance(shape, list):
        if not isinstance(value, list):
            return place
        found = [_mismatch(item, shape[0], f"{place}[{number}]") for number, item in enumerate(value)]
    else:
        if not isinstance(value, dict):
            return place
        found = [
            _mismatch(member, shape.get(key) or shape[_MAP], f"{place}.{key}")
            for key, member in value.items()
            if key in shape or _MAP in shape
        ]
    return next(filter(None, found), "")
