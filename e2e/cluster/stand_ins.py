"""Definitions that take any fields, for kinds whose own definitions are not at hand."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import yaml

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.objects import GroupVersionKind, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# Our own configuration, which examples carry with them and no API server knows.
_NOT_AN_OBJECT = "gpugate.dev"


# Custom resources of such groups need an approval, which these have (Kubernetes v1.36 apiextensions-apiserver
# pkg/apihelpers, GetAPIApprovalState; any text that begins with "unapproved" is accepted too).
_PROTECTED: Final = ".k8s.io"
_APPROVED: Final = frozenset({"sparkoperator.k8s.io"})
_APPROVAL: Final = {"api-approved.kubernetes.io": "unapproved, a stand-in of a test"}


def stand_ins(defined: Iterable[dict[str, Any]], examples: Path) -> list[dict[str, Any]]:
    """Define every kind that policies or their examples name and that neither Kubernetes nor `defined` has."""
    known = {(one["spec"]["group"], one["spec"]["names"]["kind"]) for one in defined}
    named = [kind for kind in vars(objects).values() if isinstance(kind, Kind)]
    named += _in_examples(examples)
    versions: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    first: dict[tuple[str, str], Kind] = {}
    for kind in named:
        key = kind.group, kind.name
        if key not in known and not _built_in(kind.group):
            first.setdefault(key, kind)
            versions[key].update(dict.fromkeys(kind.versions))
    return [stand_in(Kind(k.group, tuple(versions[key]), k.name, k.plural, k.namespaced)) for key, k in first.items()]


def stand_in(kind: Kind) -> dict[str, Any]:
    """Define a kind whose objects may hold anything; the first version is stored."""
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()}
    stored = kind.versions[0]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": _APPROVAL if kind.group in _APPROVED else {},
        },
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [permissive_version(version, stored=version == stored) for version in kind.versions],
        },
    }


def permissive_version(name: str, *, stored: bool) -> dict[str, Any]:
    """Serve a version in which every field is kept."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"name": name, "served": True, "storage": stored, "schema": schema}


def guessed_plural(kind: str) -> str:
    """Return the plural by the rules of English, which nearly all projects keep to."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def _in_examples(folder: Path) -> Iterator[Kind]:
    for file in sorted(folder.glob("*/examples/*/*.yaml")):
        for document in yaml.compose_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
            found = _type_of(document)
            if found and found.group != _NOT_AN_OBJECT:
                yield Kind(found.group, (found.version,), found.kind, guessed_plural(found.kind))


def _type_of(document: Any) -> GroupVersionKind | None:
    """Read the type from the nodes: examples of bad input cannot all be made into objects."""
    if not isinstance(document, yaml.MappingNode):
        return None
    top = {key.value: value.value for key, value in document.value if isinstance(value, yaml.ScalarNode)}
    if "apiVersion" not in top or "kind" not in top:
        return None
    return GroupVersionKind.of(top["apiVersion"], top["kind"])


def _built_in(group: str) -> bool:
    # Kubernetes' own kinds are in these groups.
    return "." not in group or (group.endswith(_PROTECTED) and group not in _APPROVED)
