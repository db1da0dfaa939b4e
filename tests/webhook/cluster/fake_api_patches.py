"""Apply patches by media type; server-side apply is reduced to a merge."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

# `patchMergeKey` in k8s.io/api, v0.36.
_KEYS = {"webhooks": "name", "ownerReferences": "uid"}


def merge(target: Json, patch: Json) -> Json:
    """Apply a JSON merge patch (RFC 7386)."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key) or {}, value) if isinstance(value, dict) else value
    return result


def merge_by_key(target: Json, patch: Json) -> Json:
    """Apply a strategic merge patch, which also merges items of some lists."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge_by_key(result.get(key) or {}, value)
        elif key in _KEYS:
            items = {item[_KEYS[key]]: item for item in result.get(key) or ()}
            for item in value:
                name = item[_KEYS[key]]
                items[name] = merge_by_key(items.get(name) or {}, item)
            result[key] = list(items.values())
        else:
            result[key] = value
    return result


MERGES = {
    "application/merge-patch+json": merge,
    "application/strategic-merge-patch+json": merge_by_key,
    "application/apply-patch+yaml": merge_by_key,
}
