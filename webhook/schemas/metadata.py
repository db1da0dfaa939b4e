"""Validate `metadata` as the API server does for every kind.

Source: apimachinery v0.36 `pkg/api/validation/objectmeta.go`, `pkg/util/validation/validation.go`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import formats
from gpugate.webhook.schemas.wording import Fault, SchemaProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Path

_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_LONGEST: Final = 63
_MOST_ANNOTATIONS: Final = 256 * 1024  # bytes
_SUBDOMAIN: Final = "write lower-case letters, digits, - and ., at most 253 in all, and a letter or digit at both ends"
_LABEL: Final = "write lower-case letters, digits and -, at most 63, and a letter or digit at both ends"
_KEY: Final = (
    "write [DOMAIN/]NAME: a DNS name, then at most 63 letters, digits, -, _ and ., with none of these at an end"
)
_VALUE: Final = "write at most 63 letters, digits, -, _ and ., and a letter or digit at both ends"
_OWNER: Final = ("apiVersion", "kind", "name", "uid")


def faults(metadata: Any, path: Path, *, root: bool, namespaced: bool) -> Iterator[Fault]:
    """Yield the faults of the metadata of an object whose fields have the right types.

    Args:
        metadata: the metadata.
        path: its path.
        root: it belongs to the object itself, not to an embedded one.
        namespaced: whether objects of the kind live in a namespace.
    """
    if not isinstance(metadata, dict):
        return
    name = is_segment if not root else formats.is_subdomain
    remedy = _SUBDOMAIN if root else "write a name without / and %"
    yield from _name_faults(metadata, "name", name, path, remedy)
    # A generated name begins with it, so that it may end with a dash.
    yield from _name_faults(metadata, "generateName", lambda prefix: name(_masked(prefix)), path, remedy)
    if root and not metadata.get("name") and not metadata.get("generateName"):
        yield Fault(
            SchemaProblem((*path, "name"), "name or generateName is required", "write a name"), path, blocking=True
        )
    if namespaced:
        yield from _name_faults(metadata, "namespace", formats.is_label, path, _LABEL)
    yield from _labels(metadata.get("labels"), (*path, "labels"))
    yield from _annotations(metadata.get("annotations"), (*path, "annotations"))
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if not is_qualified(finalizer):
            yield _fault((*path, "finalizers", index), f"{finalizer!r} is not a valid finalizer name", _KEY)
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        for key in _OWNER:
            if isinstance(owner, dict) and not owner.get(key):
                yield _fault((*path, "ownerReferences", index, key), f"{key} is empty", f"write {key}")


def is_qualified(key: str) -> bool:
    """Tell whether a string is a valid label key."""
    prefix, slash, name = key.rpartition("/")
    return (formats.is_subdomain(prefix) if slash else True) and len(name) <= _LONGEST and bool(_NAME.fullmatch(name))


def is_segment(name: str) -> bool:
    """Tell whether a name is valid as a segment of a URL path."""
    return name not in {".", ".."} and "/" not in name and "%" not in name


def _masked(prefix: str) -> str:
    return f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _name_faults(
    metadata: dict[str, Any], key: str, fits: Callable[[str], bool], path: Path, remedy: str
) -> Iterator[Fault]:
    value = metadata.get(key)
    if value and not fits(value):
        yield _fault((*path, key), f'"{value[:80]}" is not a valid {key}', remedy)


def _labels(labels: Any, path: Path) -> Iterator[Fault]:
    for key, value in (labels or {}).items():
        if not is_qualified(key):
            yield _fault((*path, key), f'"{key[:80]}" is not a valid label key', _KEY)
        if value and (len(value) > _LONGEST or not _NAME.fullmatch(value)):
            yield _fault((*path, key), f'"{value[:80]}" is not a valid label value', _VALUE)


def _annotations(annotations: Any, path: Path) -> Iterator[Fault]:
    size = 0
    for key, value in (annotations or {}).items():
        size += len(key.encode(errors="replace")) + len((value or "").encode(errors="replace"))
        if not is_qualified(key.lower()):
            yield _fault((*path, key), f'"{key[:80]}" is not a valid annotation key', _KEY)
    if size > _MOST_ANNOTATIONS:
        message = f"annotations of {size:,} bytes, and at most {_MOST_ANNOTATIONS:,} are allowed"
        yield Fault(SchemaProblem(path, message, "keep large data elsewhere"), path, blocking=True)


def _fault(path: Path, message: str, remedy: str) -> Fault:
    return Fault(SchemaProblem(path, message, remedy), path)
