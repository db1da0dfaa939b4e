"""What patches of an object make of it, by their media type; of applying, only the merging."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

# `patchMergeKey` in k8s.io/api, v0.36.
_KEYS = {"webhooks": "name", "ownerReferences": "uid"}


def merged(target: Json, patch: Json) -> Json:
    """A JSON merge patch (RFC 7386)."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key) or {}, value) if isinstance(value, dict) else value
    return result


def merged_by_key(target: Json, patch: Json) -> Json:
    """A strategic merge patch: items of some lists are merged too."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged_by_key(result.get(key) or {}, value)
        elif key in _KEYS:
            items = {item[_KEYS[key]]: item for item in result.get(key) or ()}
            for item in value:
                name = item[_KEYS[key]]
                items[name] = merged_by_key(items.get(name) or {}, item)
            result[key] = list(items.values())
        else:
            result[key] = value
    return result


MERGES = {
    "application/merge-patch+json": merged,
    "application/strategic-merge-patch+json": merged_by_key,
    "application/apply-patch+yaml": merged_by_key,
}
