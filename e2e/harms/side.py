"""One side of a harm: a namespace and pools of its own, and what became of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

from cluster.karpenter import NODE_CLASS
from cluster.namespaces import make_namespace
from cluster.simulated_types import GPU

from harms import manifests
from harms.watched import TooLateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cluster.answer import Answer
    from cluster.api import Api

    from harms.prometheus import Prometheus
    from harms.watched import Watched

Object = dict[str, Any]
T = TypeVar("T")

WITHOUT = "without-"
WITH = "with-"
_CLUSTER_SCOPED = {"DeviceClass", "NodePool", "PriorityClass", "ResourceSlice"}
# What a controller does at once, on a machine that does much else.
SOON_SECONDS = 60.0
_LAST_LENGTH = 300


class Side:
    """The same namespace and pools twice: `guarded`, where the API server asks gpugate, and where it does not.

    `name` is that of the namespace and of the first NodePool; those of further pools begin with it.
    """

    def __init__(self, api: Api, watched: Watched, prometheus: Prometheus, name: str) -> None:
        self.name = name
        self.guarded = name.startswith(WITH)
        self.prometheus = prometheus
        self.api = api
        self._watched = watched

    def open(self) -> None:
        """Make the namespace."""
        make_namespace(self.api, self.name)

    def pool(self, types: Sequence[str] = (), *, suffix: str = "", **others: Any) -> Object:
        """Write a NodePool; arguments are those of `manifests.node_pool`."""
        return manifests.node_pool(f"{self.name}{suffix}", types, **others)

    def pod(self, name: str, gpus: int = 1, *, pool: str = "", **others: Any) -> Object:
        """Write a Pod for the nodes of this side's pool; arguments are those of `manifests.pod`."""
        return self._here(manifests.pod(name, pool or self.name, gpus, **others))

    def deployment(self, name: str, replicas: int = 1, gpus: int = 1, *, pool: str = "", **others: Any) -> Object:
        """Write a Deployment of such Pods."""
        return self._here(manifests.deployment(name, pool or self.name, replicas, gpus, **others))

    def create(self, *objects: Object, node_class: str = NODE_CLASS["name"]) -> Object:
        """Create objects, which have to be admitted; returns the last one as it is stored.

        A NodePool is judged as it is written, for EC2, and created with a node class of simulated nodes. There is one,
        `default`; another `node_class` does not exist. What follows a NodePool is created once Karpenter has validated the
        pool: for a Pod that comes earlier it says that no pool fits, and nothing more about that Pod for five minutes
        (Karpenter v1.14.1, `PodFailedToScheduleEvent`).
        """
        stored: Object = {}
        for each in map(self._here, objects):
            if each["kind"] == "NodePool" and self.guarded:
                self._made(each, dry_run=True)
            stored = self._made(_simulated(each, node_class))
            if each["kind"] == "NodePool":
                uid = stored["metadata"]["uid"]
                self.until(lambda uid=uid: self._is_validated(uid), "Karpenter has validated the NodePool")
        return stored

    def asked(self, obj: Object) -> Answer:
        """Return what the API server would say to an object as it is written."""
        return self.api.create(self._here(obj), dry_run=True)

    def delete(self, *objects: Object) -> None:
        """Delete objects."""
        for each in map(self._here, objects):
            answer = self.api.delete(each)
            assert answer.ok, answer.message

    def scale(self, deployment: Object, replicas: int) -> None:
        """Change how many Pods a Deployment has."""
        self._patch(deployment, {"replicas": replicas})

    def roll_out(self, deployment: Object) -> None:
        """Change the Pods of a Deployment, so that new ones replace those that run."""
        self._patch(deployment, {"template": {"metadata": {"annotations": {"example.com/version": "2"}}}})

    def until(self, condition: Callable[[], T], what: str, seconds: float = SOON_SECONDS) -> T:
        """Wait until a condition on what is watched gives something true; return that.

        Raises:
            TooLateError: it never did; says what controllers said of this side.
        """
        try:
            return self._watched.until(condition, f"{self.name}: {what}", seconds)
        except TooLateError as error:
            raise TooLateError(f"{error}; last events:{self._last_events()}") from None

    def until_running(self, app: str, number: int = 1) -> list[Object]:
        """Wait until so many Pods of an app run; return them."""
        return self.until(lambda: enough(self.running(app), number), f"{number} Pods of {app} run", 2 * SOON_SECONDS)

    def pods(self, app: str = "") -> list[Object]:
        """Return the Pods that are there and not about to go."""
        return [pod for pod in self.all("Pod") if "deletionTimestamp" not in pod["metadata"] and _of(pod, app)]

    def running(self, app: str = "") -> list[Object]:
        """Return the Pods that run."""
        return [pod for pod in self.pods(app) if pod.get("status", {}).get("phase") == "Running"]

    def unscheduled(self, app: str = "") -> list[Object]:
        """Return the Pods for which the scheduler found no node."""
        return [pod for pod in self.pods(app) if _not_scheduled(pod)]

    def ended(self, app: str = "") -> list[Object]:
        """Return the Pods that were deleted or evicted, also when they are still about to go."""
        leaving = [pod for pod in self.all("Pod") if "deletionTimestamp" in pod["metadata"]]
        gone = [pod for pod in self._watched.gone("Pod") if pod["metadata"]["namespace"] == self.name]
        return [pod for pod in (*gone, *leaving) if _of(pod, app)]

    def nodes(self) -> list[Object]:
        """Return the nodes of this side's pools."""
        return [node for node in self._watched.of("Node") if self._is_own(node)]

    def pools(self) -> list[Object]:
        """Return this side's pools."""
        return [pool for pool in self._watched.of("NodePool") if self._is_own_name(pool["metadata"]["name"])]

    def node_claims(self) -> list[Object]:
        """Return the NodeClaims of this side's pools."""
        return [claim for claim in self._watched.of("NodeClaim") if self._is_own(claim)]

    def gone_nodes(self) -> list[Object]:
        """Return the nodes of this side's pools that were there, as they were last."""
        return [node for node in self._watched.gone("Node") if self._is_own(node)]

    def all(self, kind: str) -> list[Object]:
        """Return the objects of a kind in this side's namespace."""
        return [each for each in self._watched.of(kind) if each["metadata"].get("namespace") == self.name]

    def said(self, reason: str, text: str = "") -> list[str]:
        """Return the messages of events of a reason about this side's Pods, nodes, NodeClaims, pools and others."""
        return [e["message"] for e in self._events() if e["reason"] == reason and text in e["message"]]

    def _last_events(self) -> str:
        # The numbers in them change all the time.
        said = {event["reason"]: event["message"][:_LAST_LENGTH] for event in self._events()}
        now = {f"Pod {pod['metadata']['name']}": str(pod.get("status"))[:_LAST_LENGTH] for pod in self.pods()}
        return "".join(f"\n  {reason}: {message}" for reason, message in (said | now).items())

    def _is_validated(self, uid: str) -> bool:
        pools = [pool for pool in self._watched.of("NodePool") if pool["metadata"]["uid"] == uid]
        conditions = [each for pool in pools for each in pool.get("status", {}).get("conditions", ())]
        return any(each["type"] == "Ready" and each["status"] != "Unknown" for each in conditions)

    def _events(self) -> list[Object]:
        return [event for event in self._watched.of("Event") if self._is_about(event)]

    def _is_about(self, event: Object) -> bool:
        about = event["involvedObject"]
        if about.get("namespace"):
            return bool(about["namespace"] == self.name)
        own = (*self.nodes(), *self.gone_nodes())
        names = {node["metadata"]["name"] for node in own}
        name = about.get("name", "")
        return name in names or name.startswith(self.name)

    def _is_own(self, node: Object) -> bool:
        return self._is_own_name(node["metadata"].get("labels", {}).get("karpenter.sh/nodepool", ""))

    def _is_own_name(self, pool: str) -> bool:
        return pool == self.name or pool.startswith(f"{self.name}-")

    def _here(self, obj: Object) -> Object:
        """Put an object into the namespace, if it is of a kind that has one."""
        if obj["kind"] in _CLUSTER_SCOPED:
            return obj
        return {**obj, "metadata": {**obj["metadata"], "namespace": self.name}}

    def _patch(self, obj: Object, spec: Object) -> None:
        answer = self.api.patch(self._here(obj), {"spec": spec})
        assert answer.ok, answer.message

    def _made(self, obj: Object, *, dry_run: bool = False) -> Object:
        answer = self.api.create(obj, dry_run=dry_run)
        assert answer.ok, answer.message
        return answer.body


def enough(found: list[Object], number: int) -> list[Object]:
    """Return what was found, if there is so much of it; else nothing."""
    return found if len(found) >= number else []


def gpus(node: Object) -> int:
    """Return how many GPUs a node has."""
    return int(node["status"].get("allocatable", {}).get(GPU, "0"))


def _simulated(obj: Object, node_class: str) -> Object:
    if obj["kind"] != "NodePool":
        return obj
    pool = copy.deepcopy(obj)
    pool["spec"]["template"]["spec"]["nodeClassRef"] = {**NODE_CLASS, "name": node_class}
    return pool


def _of(pod: Object, app: str) -> bool:
    return not app or pod["metadata"].get("labels", {}).get("app") == app


def _not_scheduled(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)
