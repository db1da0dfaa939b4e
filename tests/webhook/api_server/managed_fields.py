"""`metadata.managedFields`, which every object of a request carries: who set which field."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
# Lists that are merged by a key; all others are owned whole (`k8s.io/api` core/v1 listMapKey markers).
_KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "volumeMounts": "mountPath"}


def with_managed_fields(obj: Json, manager: str = "kubectl-create", operation: str = "Update") -> Json:
    """Return the object with an entry that says that one manager set all of it; the object itself stays."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" in metadata:
        return obj
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": obj.get("apiVersion", ""),
        "time": "2026-11-21T03:08:16Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields({key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}),
    }
    return obj | {"metadata": metadata | {"managedFields": [entry]}}


def without_managed_fields(obj: Json | None) -> Json | None:
    """Return the object without them, to compare it with one that never had any."""
    if obj is None or not isinstance(obj.get("metadata"), dict):
        return obj
    return obj | {"metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _fields(value: Any) -> Json:
    return {f"f:{key}": _owned(key, member) for key, member in value.items()}


def _owned(key: str, value: Any) -> Json:
    if isinstance(value, dict):
        return {".": {}} | _fields(value)
    merge_key = _KEYS.get(key)
    if merge_key and isinstance(value, list) and all(isinstance(item, dict) and merge_key in item for item in value):
        return {f"k:{json.dumps({merge_key: item[merge_key]})}": {".": {}} | _fields(item) for item in value}
    return {}
