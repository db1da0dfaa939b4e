"""Completes what examples say that exists: they leave out what the API server asks for and no policy looks at."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]
_REPLICATED = frozenset({"Deployment", "StatefulSet", "DaemonSet"})


def storable(obj: Json) -> Json:
    """Return a copy that the API server takes; what is written stays."""
    completed = copy.deepcopy(obj)
    if obj["kind"] in _REPLICATED:
        _select_its_pods(completed["spec"])
    if obj["kind"] in _REPLICATED | {"Job"}:
        pod = completed["spec"].setdefault("template", {}).setdefault("spec", {})
        for container in pod.setdefault("containers", [{"name": "main"}]):
            container.setdefault("image", "example.com/image")
        if obj["kind"] == "Job":
            pod.setdefault("restartPolicy", "Never")
    return completed


def _select_its_pods(spec: Json) -> None:
    if "selector" not in spec:
        metadata = spec.setdefault("template", {}).setdefault("metadata", {})
        spec["selector"] = {"matchLabels": metadata.setdefault("labels", {"selected": "true"})}
