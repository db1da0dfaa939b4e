"""What the API server knows of one request before it asks a webhook: `admission.Attributes` of `k8s.io/apiserver`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from api_server.managed_fields import with_managed_fields

Json = dict[str, Any]
ADMIN: Json = {
    "username": "admin",
    "groups": ["system:masters", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/credential-id": ["X509SHA256=8bb5833cb913ed1d"]},
}


class GroupVersion(NamedTuple):
    """`apps/v1`; the core group is empty."""

    group: str
    version: str

    @classmethod
    def of(cls, api_version: str) -> GroupVersion:
        """Read an apiVersion."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A kind and the resource it is served as; `resource_version` is that of the resource where the kind has another."""

    version: GroupVersion
    kind: str
    resource: str
    resource_version: GroupVersion | None = None

    @classmethod
    def of(cls, obj: Json) -> Endpoint:
        """Guess the resource from the kind, as apimachinery's `UnsafeGuessKindToResource` does."""
        singular = obj["kind"].lower()
        ending = {"s": "es", "y": "ies"}.get(singular[-1], "s")
        plural = singular[:-1] + ending if ending == "ies" else singular + ending
        return cls(GroupVersion.of(obj["apiVersion"]), obj["kind"], plural)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """One request.

    Attributes:
        operation: CREATE, UPDATE, DELETE or CONNECT.
        endpoint: the kind of the objects, and the resource.
        requested: what the user sent, where it was converted to `endpoint`.
        object: None on DELETE.
        old_object: the stored object of UPDATE and DELETE.
        name: empty where the API server makes one from generateName, and for each object of a deleted collection.
        namespace: empty for cluster-scoped objects; a Namespace's is its own name.
        subresource: such as `status`.
        options: CreateOptions, UpdateOptions or DeleteOptions; None on CONNECT.
        user: authentication/v1 UserInfo.
        dry_run: whether nothing will be stored.
    """

    operation: str
    endpoint: Endpoint
    requested: Endpoint | None = None
    object: Json | None = None
    old_object: Json | None = None
    name: str = ""
    namespace: str = ""
    subresource: str = ""
    options: Json | None = None
    user: Json = field(default_factory=lambda: ADMIN)
    dry_run: bool = False

    def as_dry_run(self) -> Attributes:
        """The same with nothing stored."""
        return replace(self, dry_run=True, options={**(self.options or {}), "dryRun": ["All"]})


def create(obj: Json, **members: Any) -> Attributes:
    """A CREATE; the name is empty where the object has only a generateName."""
    options = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-create"}
    return _of(obj, operation="CREATE", object=with_managed_fields(obj), options=options, **members)


def update(old: Json, new: Json, **members: Any) -> Attributes:
    """An UPDATE, which every patch, apply and write of a status is too."""
    options = {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-patch"}
    objects = {"object": with_managed_fields(new), "old_object": with_managed_fields(old)}
    return _of(new, operation="UPDATE", options=options, **objects, **members)


def delete(stored: Json, *, collection: bool = False, **members: Any) -> Attributes:
    """A DELETE of one object, or of one among a collection, which comes without a name."""
    options = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"}
    unnamed = {"name": ""} if collection else {}
    old = with_managed_fields(stored)
    return _of(stored, operation="DELETE", old_object=old, options=options, **unnamed, **members)


def connect(pod: Json, subresource: str, options_kind: str, **fields: Any) -> Attributes:
    """A CONNECT to a Pod, such as `exec` with PodExecOptions: an object without metadata, and no options."""
    obj = {"kind": options_kind, "apiVersion": "v1", **fields}
    endpoint = Endpoint(GroupVersion("", "v1"), options_kind, "pods")
    return _of(pod, operation="CONNECT", endpoint=endpoint, subresource=subresource, object=obj)


def subresource(parent: Json, name: str, obj: Json, old: Json | None = None) -> Attributes:
    """A request to a subresource whose objects may be of another kind: a Scale of a Deployment, a Binding of a Pod."""
    of_resource = Endpoint.of(parent)
    endpoint = replace(Endpoint.of(obj), resource=of_resource.resource, resource_version=of_resource.version)
    made = create(obj) if old is None else update(old, obj)
    of_parent = _of(parent, operation=made.operation)
    return replace(made, endpoint=endpoint, subresource=name, name=of_parent.name, namespace=of_parent.namespace)


def _of(obj: Json, **members: Any) -> Attributes:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    of_object = {
        "endpoint": Endpoint.of(obj),
        "name": metadata.get("name", ""),
        "namespace": metadata.get("name" if obj["kind"] == "Namespace" else "namespace", ""),
    }
    return Attributes(**(of_object | members))
