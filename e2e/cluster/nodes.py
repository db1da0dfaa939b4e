"""Nodes that exist as objects only; kwok keeps them Ready and runs what is bound to them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Of p5.48xlarge, roughly: enough that only accelerators and taints decide.
_ROOM = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "2Ti", "pods": "100"}


def simulated_node(
    labels: Mapping[str, str], taints: Sequence[Mapping[str, str]], capacity: Mapping[str, str]
) -> dict[str, Any]:
    """Make a node of a fresh name, whose capacity is added to that of a large instance."""
    name = f"node-{uuid.uuid4().hex[:8]}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}},
        "spec": {"taints": list(taints)},
        "status": {"capacity": _ROOM | dict(capacity)},
    }


def is_ready(node: dict[str, Any]) -> bool:
    """Tell whether the scheduler takes it: Ready, and without the taints that nodes begin with."""
    conditions = node.get("status", {}).get("conditions", ())
    starting = [taint for taint in node["spec"].get("taints", ()) if taint["key"] == "node.kubernetes.io/not-ready"]
    return not starting and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
