"""What is in the cluster before gpugate enforces anything: nodes with GPUs, and workloads that people wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import violating
from cluster.namespaces import namespace_object, until_none_is_ending, until_ready
from cluster.nodes import is_ready, simulated_node
from eventually import eventually
from gpu_pods import is_unscheduled

from gpugate.webhook.manifests.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api

Json = dict[str, Any]

MANIFESTS = Path(__file__).parents[2] / "tests" / "fixtures" / "manifests"
# Beside the namespaces of the manifests: of the objects made here.
OWN = "audited"
_GPU_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
# Of Karpenter's NodePools: instance type, the label that the manifests choose by, and whether nodes have the taint.
_NODES = (
    ("p5.48xlarge", "h100", "8", "gpu-training", True),
    ("p4d.24xlarge", "a100", "8", "gpu-inference", True),
    ("g5.xlarge", "a10g", "1", "any", False),
)
# A namespace is gone some seconds after all that was in it.
_PATIENCE_SECONDS = 90


def nodes() -> list[Json]:
    """Return simulated nodes, as Karpenter v1.14 labels them."""
    return [
        simulated_node(
            {
                "node.kubernetes.io/instance-type": instance_type,
                "karpenter.sh/nodepool": node_type,
                "karpenter.sh/capacity-type": "on-demand",
                "karpenter.k8s.aws/instance-gpu-name": name,
                "karpenter.k8s.aws/instance-gpu-count": count,
                "nvidia.com/gpu.present": "true",
                "node-type": node_type,
            },
            [_GPU_TAINT] if tainted else [],
            {"nvidia.com/gpu": count},
        )
        for instance_type, name, count, node_type, tainted in _NODES
    ]


def workloads() -> list[Json]:
    """Return what people wrote: the manifests of the fast tests, and some with a known verdict."""
    written = [
        dict(each.request.object or {}) for each in load([str(f) for f in sorted(MANIFESTS.iterdir())]).manifests
    ]
    blameless = violating.blameless_pod(OWN)["spec"]
    return [
        *written,
        violating.node_class(),
        violating.pod(OWN),
        violating.blameless_pod(OWN),
        violating.deployment(OWN, "denied", violating.pod_spec()),
        violating.deployment(OWN, "patched", blameless, replicas=2),
        violating.deployment(
            OWN, "nothing-to-it", {"containers": [{"name": "main", "image": "registry.example.com/a:1"}]}
        ),
    ]


class Stored:
    """Objects that the API server took; `owned` leads from them to what controllers made of them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made: list[Json] = []
        self.written: dict[str, Json] = {}

    def fill(self) -> None:
        """Store everything, and wait until the scheduler has looked at every Pod."""
        # What other tests left there is audited as well, while it is there.
        until_none_is_ending(self._api)
        for node in nodes():
            self._make(node)
            self._api.eventually(node, is_ready)
        written = workloads()
        for name in sorted({each["metadata"]["namespace"] for each in written if each["metadata"].get("namespace")}):
            # With every policy in force, Pods with GPUs would be denied in a namespace that is not entitled to them.
            entitled = namespace_object(name)
            entitled["metadata"]["labels"] = {"gpugate.dev/gpus": "true"}
            if not self._api.get(entitled):
                self._make(entitled)
            until_ready(self._api, name)
        for each in written:
            # Some are refused by the API server itself, and some have the name of another.
            stored = self._make(each)
            if stored:
                self.written[stored["metadata"]["uid"]] = each
        assert eventually(self._is_settled), "the scheduler has not looked at every Pod"

    def pods(self) -> Iterator[tuple[str, Json]]:
        """Yield the Pods that there are, each with the uid of what people wrote."""
        owners = {each["metadata"]["uid"]: each for each in self._replica_sets()}
        for pod in self._api.list("v1", "Pod"):
            uid = _owner(pod)
            top = _owner(owners[uid]) if uid in owners else uid
            if top in self.written:
                yield top, pod

    def clear(self) -> None:
        """Delete everything, and wait until it is gone, with what controllers made of it."""
        owned = [*(pod for _, pod in self.pods()), *self._replica_sets()]
        for each in (*reversed(self._made), *owned):
            self._api.delete(each, gracePeriodSeconds=0, propagationPolicy="Background")
        for each in (*self._made, *owned):
            self._api.eventually(each, lambda found: not found, _PATIENCE_SECONDS)

    def _is_settled(self) -> bool:
        deployments = self._api.list("apps/v1", "Deployment")
        pods = self._api.list("v1", "Pod")
        return all(
            each.get("status", {}).get("replicas", 0) == each["spec"]["replicas"] for each in deployments
        ) and all(each["status"].get("phase") != "Pending" or is_unscheduled(each) for each in pods)

    def _replica_sets(self) -> list[Json]:
        return [each for each in self._api.list("apps/v1", "ReplicaSet") if _owner(each) in self.written]

    def _make(self, obj: Json) -> Json:
        answer = self._api.create(obj)
        if not answer.ok:
            return {}
        self._made.append({key: answer.body[key] for key in ("apiVersion", "kind", "metadata")})
        return answer.body


def _owner(obj: Json) -> str:
    for reference in obj["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            return str(reference["uid"])
    return ""
