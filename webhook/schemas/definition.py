"""Reads a CustomResourceDefinition.

Source: apiextensions-apiserver v0.36 `pkg/apis/apiextensions/v1/types.go`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpugate.policies.sdk import dns_names
from gpugate.webhook.schemas.compile import Compiler, DefinitionError
from gpugate.webhook.schemas.table import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpugate.webhook.schemas.nodes import Nodes


@dataclass(frozen=True, slots=True)
class Names:
    """What a definition defines."""

    group: str
    kind: str
    namespaced: bool


def is_definition(value: object) -> bool:
    """Tell whether a document is a CustomResourceDefinition, of whatever version."""
    return isinstance(value, dict) and value.get("kind") == "CustomResourceDefinition"


def names(definition: Mapping[str, Any]) -> Names:
    """Read what a definition defines.

    Raises:
        DefinitionError: it does not say, or is of a version before v1.
    """
    if definition.get("apiVersion") != "apiextensions.k8s.io/v1":
        raise DefinitionError(f"apiVersion is {definition.get('apiVersion')}: write apiextensions.k8s.io/v1")
    try:
        spec = definition["spec"]
        found = Names(str(spec["group"]), str(spec["names"]["kind"]), spec.get("scope") == "Namespaced")
    except (KeyError, TypeError):
        raise DefinitionError("spec.group or spec.names.kind is missing: is the file whole?") from None
    # Files are called by these.
    if not dns_names.is_subdomain(found.group) or not (found.kind.isascii() and found.kind.isalnum()):
        raise DefinitionError("spec.group is no DNS name, or spec.names.kind has other signs than letters and digits")
    return found


def served(
    definition: Mapping[str, Any], nodes: Nodes, unchecked: Callable[[str, str, str], None] | None = None
) -> dict[str, Served]:
    """Add the schemas of the versions that are served; return them by their names.

    Raises:
        DefinitionError: a version has no schema, or one that cannot be read; or unknown fields are kept everywhere.
        CelSyntaxError, CelUnsupportedError, PatternError: what cannot be judged is found, and `unchecked` is not given.
    """
    if definition["spec"].get("preserveUnknownFields"):
        raise DefinitionError(
            "spec.preserveUnknownFields: API servers keep every field, so that there is nothing to check"
        )
    compiler = Compiler(nodes, unchecked)
    found = {}
    for version in definition["spec"].get("versions") or ():
        if not isinstance(version, dict):
            raise DefinitionError("spec.versions: holds what is no object")
        name = str(version.get("name", ""))
        if not version.get("served"):
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not isinstance(schema, dict):
            raise DefinitionError(f"spec.versions: {name} has no schema.openAPIV3Schema")
        parts = version.get("subresources") or {}
        scale = (parts.get("scale") or {}).get("specReplicasPath", "")
        found[name] = Served(
            root=compiler.add(schema),
            status="status" in parts,
            scale=tuple(part for part in scale.split(".") if part),
        )
    if not found:
        raise DefinitionError("spec.versions: none is served")
    return found
