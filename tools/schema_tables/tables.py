"""Compiles the definitions and OpenAPI documents in the folders of Go modules into tables.

The API server decodes its own kinds into Go's types, and these decide: a null is an absent field, quantities may be numbers,
and fields that the document requires are often optional. Source: kubernetes v1.36 `api/openapi-spec/README.md`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.schemas.compile import Names, Nodes, names, served
from gpugate.webhook.schemas.table import Node, Release, Served, Table
from gpugate.webhook.schemas.tables import CORE, META, file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from gpugate.tools.schema_tables.releases import Module

    Folder = Callable[[Module], Path]

_REF: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META: Final = f"{_META}ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_FREE: Final = frozenset({"io.k8s.apimachinery.pkg.runtime.RawExtension", f"{_META}FieldsV1"})
_KNOWN: Final = frozenset(
    {"type", "format", "properties", "required", "items", "additionalProperties", "description", "default", "allOf"}
    | {"$ref", "enum", "x-kubernetes-group-version-kind", "x-kubernetes-unions"}
    | {
        f"x-kubernetes-{name}"
        for name in ("list-type", "list-map-keys", "map-type", "patch-strategy", "patch-merge-key")
    }
)


class OpenApi:
    """Adds schemas of one document to a table that is being made."""

    def __init__(self, document: Mapping[str, Any], nodes: Nodes) -> None:
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]
        self._nodes = nodes

    def has(self, name: str) -> bool:
        """Tell whether there is a schema of this name."""
        return name in self._schemas

    def add(self, name: str, *, root: bool = False, spec_only: bool = False) -> int:
        """Add a schema by its name.

        Args:
            name: its name in the document.
            root: it is a whole object, whose metadata is looked at apart.
            spec_only: it is a whole object whose status may hold anything.
        """
        if name == _QUANTITY:
            return self._nodes.add(Node(quantity=True))
        if name == _INT_OR_STRING:
            return self._nodes.add(Node(int_or_string=True))
        if name in _FREE:
            return self._nodes.add(Node(type="object", preserve=True))
        schema = dict(self._schemas[name])
        if root:
            schema["properties"] = {k: v for k, v in schema["properties"].items() if k != "metadata"}
        if spec_only and "status" in schema["properties"]:
            schema["properties"] = {**schema["properties"], "status": {"$ref": _REF + next(iter(_FREE))}}
        return self._add(schema)

    def _add(self, schema: Mapping[str, Any]) -> int:
        strange = schema.keys() - _KNOWN
        if strange:
            raise GpugateError(f"{', '.join(sorted(strange))} is not known in a schema of an API server")
        named = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or ()), "")
        if named:
            return self.add(named.removeprefix(_REF))
        items, free = schema.get("items"), schema.get("additionalProperties")
        return self._nodes.add(
            Node(
                type=schema.get("type", ""),
                format=schema.get("format", ""),
                properties={
                    key: self._add(property_) for key, property_ in sorted((schema.get("properties") or {}).items())
                },
                values=self._add(free) if free else None,
                items=self._add(items) if items else None,
            )
        )


_GROUPS: Final = frozenset({"karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io", "keda.sh"})
_DRA: Final = "resource.k8s.io"
# Kind -> whether its objects live in a namespace.
_DRA_KINDS: Final = {
    "DeviceClass": False,
    "ResourceClaim": True,
    "ResourceClaimTemplate": True,
    "ResourceSlice": False,
}

# File of the OpenAPI document -> package of its types, and the kinds that are checked.
_CORE: Final = {
    "api__v1": ("core.v1", ("Pod", "PodTemplateSpec", "ResourceQuota")),
    "apis__apps__v1": ("apps.v1", ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
    "apis__autoscaling__v1": ("autoscaling.v1", ("HorizontalPodAutoscaler",)),
    "apis__autoscaling__v2": ("autoscaling.v2", ("HorizontalPodAutoscaler",)),
    "apis__batch__v1": ("batch.v1", ("CronJob", "Job")),
    "apis__policy__v1": ("policy.v1", ("PodDisruptionBudget",)),
}


def make_tables(projects: dict[str, tuple[Module, ...]], folder: Folder) -> dict[str, bytes]:
    """Make every table.

    Args:
        projects: the releases of each project, oldest first.
        folder: where the files of a module are.

    Returns:
        the content of each file, by its name.

    Raises:
        GpugateError: a definition holds what is not known; says what, and in which module.
    """
    files: dict[str, bytes] = {}
    for project, releases in projects.items():
        tables = _native(releases, folder) if project == "kubernetes" else _defined(project, releases, folder)
        for name, table in tables:
            files[name] = msgspec.json.encode(table) + b"\n"
    return files


def _defined(project: str, releases: tuple[Module, ...], folder: Folder) -> Iterator[tuple[str, Table]]:
    """Make tables of definitions of custom resources."""
    by_names: dict[Names, list[tuple[Module, dict[str, Any]]]] = {}
    for module in releases:
        for file in sorted(folder(module).glob("*.yaml")):
            for document in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
                if document and names(document).group in _GROUPS:
                    by_names.setdefault(names(document), []).append((module, document))
    for name, definitions in sorted(by_names.items(), key=lambda item: (item[0].group, item[0].kind)):
        nodes = Nodes()
        made_of = tuple(_release(module, definition, nodes) for module, definition in definitions)
        table = Table(name.group, name.kind, project, name.namespaced, made_of, nodes.all())
        yield file_name(name.group, name.kind), table


def _release(module: Module, definition: dict[str, Any], nodes: Nodes) -> Release:
    source = f"{module.path}@{module.version}"
    try:
        return Release(module.minor, source, served(definition, nodes))
    except GpugateError as error:
        raise GpugateError(f"{source}: {names(definition).kind}: {error}") from None


def _native(releases: tuple[Module, ...], folder: Folder) -> Iterator[tuple[str, Table]]:
    """Make tables of the kinds for dynamic resource allocation, of the core kinds together, and of `metadata`."""
    for kind, namespaced in _DRA_KINDS.items():
        nodes = Nodes()
        made_of = tuple(
            Release(module.minor, f"{module.path}@{module.version}", dict(_versions(folder(module), kind, nodes)))
            for module in releases
        )
        yield file_name(_DRA, kind), Table(_DRA, kind, "kubernetes", namespaced, made_of, nodes.all())
    nodes = Nodes()
    made_of = tuple(
        Release(module.minor, f"{module.path}@{module.version}", dict(_core(folder(module), nodes)))
        for module in releases
    )
    yield CORE, Table("core", "", "kubernetes", namespaced=True, releases=made_of, nodes=nodes.all())
    newest = releases[-1]
    nodes = Nodes()
    document = json.loads((folder(newest) / "api__v1_openapi.json").read_text(encoding="utf-8"))
    meta = {"v1": Served(OpenApi(document, nodes).add(OBJECT_META))}
    release = Release(newest.minor, f"{newest.path}@{newest.version}", meta)
    yield (
        META,
        Table("meta.k8s.io", "ObjectMeta", "kubernetes", namespaced=True, releases=(release,), nodes=nodes.all()),
    )


def _core(folder: Path, nodes: Nodes) -> Iterator[tuple[str, Served]]:
    for file, (package, kinds) in _CORE.items():
        document = OpenApi(json.loads((folder / f"{file}_openapi.json").read_text(encoding="utf-8")), nodes)
        group = "" if file == "api__v1" else f"{package.partition('.')[0]}/"
        for kind in kinds:
            root = document.add(f"io.k8s.api.{package}.{kind}", spec_only=True)
            yield f"{group}{package.partition('.')[2]} {kind}", Served(root)


def _versions(folder: Path, kind: str, nodes: Nodes) -> Iterator[tuple[str, Served]]:
    for file in sorted(folder.glob(f"apis__{_DRA}__*_openapi.json")):
        version = file.name.split("__")[2].removesuffix("_openapi.json")
        document = OpenApi(json.loads(file.read_text(encoding="utf-8")), nodes)
        name = f"io.k8s.api.resource.{version}.{kind}"
        if document.has(name):
            yield version, Served(document.add(name, root=True))
