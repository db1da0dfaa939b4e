"""What people and Karpenter ask of a cluster in which the chart is installed, or no longer is."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cluster.api import Api
from cluster.connections import Connections
from library.cases import case
from violating import blameless_pod, pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chart.installed.stage import Stage

Json = dict[str, Any]
T = TypeVar("T")
KARPENTER = "system:serviceaccount:kube-system:karpenter"
SINGLE_TYPE, HIDDEN_ACCESS = "nodepools/single-instance-type", "pods/hidden-gpu-access"
_PATIENCE_SECONDS = 90.0
_HEARD_SECONDS = 90.0
_PAUSE_SECONDS = 0.1


def node_pool() -> Json:
    """A NodePool with one instance type, which `nodepools/single-instance-type` denies."""
    return case("nodepools/examples/single_instance_type/bad-one-type.yaml").judged


def seeing_pod(namespace: str) -> Json:
    """A Pod that is handed every GPU of its node, which `pods/hidden-gpu-access` denies."""
    return pod(namespace)


def gpu_pod(namespace: str) -> Json:
    """A Pod that asks for a GPU, and is given a toleration where policies are in force."""
    return blameless_pod(namespace)


def plain_pod(namespace: str) -> Json:
    """A Pod that has nothing to do with GPUs."""
    containers = [{"name": "main", "image": "registry.example.com/web:1"}]
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


@contextmanager
def acting_as(stage: Stage, user: str) -> Iterator[Api]:
    """Ask as somebody else who may do anything."""
    plane = stage.control_plane
    headers = {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
    with closing(Connections(plane.url, plane.ca_file, plane.admin, headers)) as connections:
        yield Api(connections)


def pass_by(stage: Stage, tenant: str) -> None:
    """Create and delete a GPU Pod and a plain one: nothing stands in their way, and nobody has a word to say about them.

    But for as long as the API server needs to hear, by its own watch, that a configuration is gone or another one.
    """
    for made in (gpu_pod(tenant), seeing_pod(tenant), plain_pod(tenant)):
        eventually(lambda pod=made: _obstacle(stage, pod), lambda found: found is None, seconds=_HEARD_SECONDS)


def refusal(stage: Stage, obj: Json) -> str:
    """Return why an object cannot be created; nothing if it can."""
    return stage.api.create(obj, dry_run=True).message


def _obstacle(stage: Stage, pod: Json) -> str | list[str] | None:
    """Create a Pod, and return what was said against it."""
    answer = stage.api.create(pod)
    if not answer.ok:
        return answer.message
    stage.api.delete(pod, gracePeriodSeconds=0)
    return answer.warnings or None


def eventually(
    ask: Callable[[], T], satisfied: Callable[[T], object] = bool, *, seconds: float = _PATIENCE_SECONDS
) -> T:
    """Ask until the answer satisfies, and return it.

    Raises:
        AssertionError: it does not in time.
    """
    deadline = time.monotonic() + seconds
    while not satisfied(answer := ask()):
        assert time.monotonic() < deadline, f"still so after {seconds:.0f} s: {answer}"
        time.sleep(_PAUSE_SECONDS)
    return answer
