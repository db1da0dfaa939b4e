"""Whose object it is: the controller that it names, the owner that people know, and whether a person sent the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.objects import Request

# A Node owns its mirror Pods and Leases, but does not create them.
# Not a set: the kind of a hostile reference may be a list.
_NOT_OWNERS: Final = ("Node",)
_CONTROLLERS: Final = ("system:serviceaccount:", "system:node:", "system:kube-", "system:apiserver")
_HASH: Final = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Reference:
    """The controller that an object names (`metav1.OwnerReference` with `controller: true`)."""

    api_version: str
    kind: str
    name: str
    uid: str


def controller(obj: Mapping[str, Any]) -> Reference | None:
    """Return what an object names as its controller; None where nothing made it."""
    metadata = obj.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for reference in references if isinstance(references, list) else ():
        if (
            isinstance(reference, dict)
            and reference.get("controller") is True
            and reference.get("kind") not in _NOT_OWNERS
        ):
            texts = (str(reference.get(key) or "") for key in ("apiVersion", "kind", "name", "uid"))
            return Reference(*texts)
    return None


def owner_of(request: Request) -> ObjectName:
    """Return the owner that people know: of a Pod of a ReplicaSet its Deployment, as its labels show it, or the controller."""
    obj = request.object or request.old_object or {}
    owner = controller(obj)
    if owner is None:
        kind = request.stored_kind
        return ObjectName(kind.api_version, kind.kind, request.namespace, request.shown_name)
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    mark = labels.get(_HASH) if isinstance(labels, dict) else None
    if owner.kind == "ReplicaSet" and isinstance(mark, str) and owner.name.endswith(f"-{mark}"):
        return ObjectName(owner.api_version, "Deployment", request.namespace, owner.name.removesuffix(f"-{mark}"))
    return ObjectName(owner.api_version, owner.kind, request.namespace, owner.name)


def is_controller(user: str) -> bool:
    """Tell whether a user is a ServiceAccount, a node or a component of Kubernetes, and no person."""
    return user.startswith(_CONTROLLERS)
