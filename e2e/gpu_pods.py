"""Pods as the tests of a running cluster write them, and what to wait for until something has become of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cluster.answer import Answer
    from cluster.api import Api

T = TypeVar("T")

IN_EVERY_WORKER = 5
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# What the DefaultTolerationSeconds plugin of the API server gives every Pod.
_GIVEN_TO_ALL = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
_PATIENCE_SECONDS = 90
_PAUSE_SECONDS = 0.1


def pod_spec(resources: Mapping[str, str] | None = None, **others: Any) -> dict[str, Any]:
    """Write the spec of a Pod with one container, which asks for these resources."""
    container: dict[str, Any] = {
        "name": "main",
        "image": "registry.example.com/main:1",
        "args": ["--checkpoints=s3://checkpoints/run-1"],
    }
    if resources:
        container |= {"resources": {"limits": dict(resources)}}
    return {"containers": [container], "terminationGracePeriodSeconds": 0, **others}


def pod(name: str, namespace: str, resources: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """Write a Pod; `metadata` are `labels`, `annotations` or `ownerReferences`."""
    labels = {"team": "search", "cost-center": "cc-1234", **metadata.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, **metadata},
        "spec": pod_spec(resources),
    }


def claims(name: str, namespace: str, **source: str) -> dict[str, Any]:
    """Write a Pod whose container uses one claim; `source` is a `resourceClaimName` or `resourceClaimTemplateName`."""
    using = pod(name, namespace)
    using["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
    using["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return using


def added_tolerations(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tolerations of a stored Pod that not every Pod has."""
    return [t for t in stored["spec"].get("tolerations", ()) if t.get("key") not in _GIVEN_TO_ALL]


def protection(stored: dict[str, Any]) -> str | None:
    """Return what a stored Pod says to Karpenter."""
    said: str | None = stored["metadata"].get("annotations", {}).get(DO_NOT_DISRUPT)
    return said


def is_running(stored: dict[str, Any]) -> bool:
    """Tell whether a Pod runs."""
    return bool(stored["status"].get("phase") == "Running")


def unscheduled_because(stored: dict[str, Any]) -> str:
    """Return why the scheduler found no node for a Pod; empty where it has not said so."""
    conditions = stored["status"].get("conditions", ())
    said = (c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False")
    return next(said, "")


def is_unscheduled(stored: dict[str, Any]) -> bool:
    """Tell whether the scheduler has tried and found no node."""
    return bool(unscheduled_because(stored))


def until_unscheduled(api: Api, stored: dict[str, Any], because: str) -> None:
    """Wait until the scheduler says this of a Pod.

    Its first words may be about a cluster without nodes, of which it hears apart from Pods.
    """
    api.eventually(stored, lambda found: because in unscheduled_because(found))


def create(api: Api, obj: dict[str, Any]) -> Answer:
    """Create an object that has to be accepted; the answer holds it as it is stored, and the warnings."""
    answer = api.create(obj)
    assert answer.ok, answer.message
    return answer


def until(ask: Callable[[], T], satisfied: Callable[[T], bool], in_a_row: int = 1) -> T:
    """Ask again until answers satisfy, so many in a row, or patience is over; return the last one.

    For what `Api.eventually` cannot wait for: lists, and dry runs, whose answers change when what the webhook watches has
    reached it. Each of its workers hears for itself, a little earlier or later: `IN_EVERY_WORKER` in a row leave time.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    found = 0
    while True:
        answer = ask()
        found = found + 1 if satisfied(answer) else 0
        if found == in_a_row or time.monotonic() > deadline:
            return answer
        time.sleep(_PAUSE_SECONDS)
