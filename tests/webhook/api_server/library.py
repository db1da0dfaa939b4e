"""Every example of the library as a request to the API server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api_server.attributes import Attributes, create, delete, update
from library_examples import Example, library_example

import gpugate.policies
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("*/examples/*/*.yaml"))


def example(name: str) -> Example:
    """Read an example by its path below the policies."""
    return library_example(ROOT / name)


def defaulted(obj: Json) -> Json:
    """Fill in what the API server and the CRDs fill in."""
    kind = GroupVersionKind.of(str(obj.get("apiVersion")), str(obj.get("kind")))
    return with_defaults(Request(kind, Operation.CREATE, obj)).object or obj


def as_it_says(name: str) -> Attributes:
    """The request of an example: a CREATE, or an UPDATE where it has an old object."""
    request = example(name).request
    obj, old = dict(request.object or {}), request.old_object
    members = {"namespace": request.namespace, "user": {"username": request.user}}
    if request.operation is Operation.UPDATE and old is not None:
        return update(defaulted(old), defaulted(obj), **members)
    return create(defaulted(obj), **members)


def with_object(name: str, obj: Json) -> Attributes:
    """The request of an example with another object in it."""
    return replace(as_it_says(name), object=obj)


def with_generated_name(name: str) -> Attributes:
    """The request of an example whose name the API server makes; what exists already has its name beside the prefix."""
    given = as_it_says(name)
    obj = dict(given.object or {})
    metadata = dict(obj["metadata"])
    obj["metadata"] = metadata
    metadata["generateName"] = metadata.get("name", "")
    if given.operation == "CREATE":
        metadata.pop("name", None)
        return replace(given, object=obj, name="")
    return replace(given, object=obj)


def unchanged(name: str) -> Attributes:
    """An UPDATE that changes nothing of the object of an example."""
    obj = _object(name)
    return update(obj, obj, namespace=example(name).request.namespace)


def deletion(name: str) -> Attributes:
    """The DELETE of the object of an example."""
    return delete(_object(name), namespace=example(name).request.namespace)


def known_by_name(name: str) -> bool:
    """Tell whether others refer to the object of an example by its name, so that it needs just this one."""
    request = example(name).request
    names = {reference.get("name") for other in example(name).context for reference in _references(other.object)}
    # An autoscaler is KEDA's by the name that KEDA gives it.
    names |= {f"keda-hpa-{other.name}" for other in example(name).context if other.kind.kind == "ScaledObject"}
    return request.kind.kind == "Namespace" or request.name in names


def _references(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from (member for key, member in value.items() if key.endswith("Ref") and isinstance(member, dict))
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(member)


def _object(name: str) -> Json:
    return defaulted(dict(example(name).request.object or {}))
