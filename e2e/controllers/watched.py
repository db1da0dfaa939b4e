"""What controllers did in a namespace: their events, and the Pods they made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.api import Api

Json = dict[str, Any]


def failures(api: Api, namespace: str) -> list[str]:
    """Return the messages of events which say that a Pod could not be made."""
    return [event["message"] for event in api.list("v1", "Event", namespace) if event["reason"] == "FailedCreate"]


def running(api: Api, namespace: str) -> list[Json]:
    """Return the Pods that run and are not about to go."""
    return [
        pod
        for pod in api.list("v1", "Pod", namespace)
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def has_status(obj: Json, **numbers: int) -> bool:
    """Tell whether a controller has seen the object as it is now, and its status has these numbers."""
    status = obj.get("status", {})
    seen = status.get("observedGeneration", obj["metadata"].get("generation")) == obj["metadata"].get("generation")
    return seen and all(status.get(name, 0) == number for name, number in numbers.items())
