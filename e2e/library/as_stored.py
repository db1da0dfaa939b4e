"""What is to be compared of two objects that the API server stored."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]
# The API server adds the volume of the token before webhooks add theirs.
_UNORDERED = frozenset({"tolerations", "volumeMounts", "volumes"})
_OWN = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
# The volume of a Pod's token has a random name (k8s.io/kubernetes v1.36 plugin/pkg/admission/serviceaccount).
_TOKEN_VOLUME = re.compile(r"^kube-api-access-[a-z0-9]{5}$")


def as_stored(obj: Json) -> Json:
    """Return an object without what is another each time, and with lists that have no order in one."""
    kept: Json = _plain(obj)
    kept.pop("status", None)
    kept["metadata"] = {key: value for key, value in kept["metadata"].items() if key not in _OWN}
    spec = kept.get("spec")
    for owner in (spec, *spec.get("containers", ())) if isinstance(spec, dict) else ():
        for key in _UNORDERED & owner.keys():
            owner[key] = sorted(owner[key], key=repr)
    return kept


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return "kube-api-access" if isinstance(value, str) and _TOKEN_VOLUME.match(value) else value
