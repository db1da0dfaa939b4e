"""A small GPU platform: workloads with a wildcard toleration on nodes of two NodePools, schedules and autoscalers."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
TOLERATES: Object = {"tolerations": [{"operator": "Exists"}]}


def template(gpus: int) -> Object:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "registry.example.org/main:1", "resources": {"limits": limits}}
    return {"metadata": {"labels": {"app": "main"}}, "spec": {"containers": [container], **TOLERATES}}


def named(api_version: str, kind: str, name: str, spec: Object, namespace: str = "ml", **metadata: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "uid": f"{kind}-{name}", **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def workload(kind: str, name: str, gpus: int, nodes: tuple[str, ...]) -> list[Object]:
    """Return a workload and one Pod of it on each of the nodes."""
    spec = {"selector": {"matchLabels": {"app": "main"}}, "template": template(gpus)}
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}
    return [
        named("apps/v1", kind, name, spec),
        *(pod(f"{name}-{number}", gpus, node, owner) for number, node in enumerate(nodes)),
    ]


def pod(name: str, gpus: int, node: str, owner: Object | None = None) -> Object:
    owners = {"ownerReferences": [owner]} if owner else {}
    spec = {**template(gpus)["spec"], "nodeName": node}
    return {**named("v1", "Pod", name, spec, **owners), "status": {"phase": "Running"}}


def node(name: str, pool: str, instance_type: str, gpus: int) -> Object:
    labels = {"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": instance_type}
    status = {"allocatable": {"cpu": "96", "memory": "1Ti", "pods": "100", "nvidia.com/gpu": str(gpus)}}
    return {**named("v1", "Node", name, {}, "", labels=labels), "status": status}


def pool(name: str, *budgets: Object) -> Object:
    spec = {"template": {"spec": {"requirements": []}}, "disruption": {"budgets": list(budgets)}}
    return named("karpenter.sh/v1", "NodePool", name, spec, "")


def cron_job(name: str, schedule: str, gpus: int = 8, **spec: Any) -> Object:
    of_job = template(gpus)
    of_job["spec"]["restartPolicy"] = "Never"
    job = {"spec": {"parallelism": 2, "template": of_job}}
    return named("batch/v1", "CronJob", name, {"schedule": schedule, "jobTemplate": job, **spec})


def scaled_object(target: str, **spec: Any) -> Object:
    return named("keda.sh/v1alpha1", "ScaledObject", target, {"scaleTargetRef": {"name": target}, **spec})


def ray_cluster(name: str, **worker: Any) -> Object:
    group = {"groupName": "w", "rayStartParams": {}, "template": {"spec": template(8)["spec"]}, **worker}
    head = {"rayStartParams": {}, "template": {"spec": template(0)["spec"]}}
    spec = {"enableInTreeAutoscaling": True, "headGroupSpec": head, "workerGroupSpecs": [group]}
    return named("ray.io/v1", "RayCluster", name, spec)


OBJECTS = [
    *workload("Deployment", "web", 1, ("n1", "n2", "n2")),
    *workload("StatefulSet", "vllm", 4, ("n2", "n3")),
    *workload("DaemonSet", "agent", 0, ("n1",)),
    pod("debug", 1, "n1"),
    node("n1", "large", "p5.48xlarge", 8),
    node("n2", "large", "p5.48xlarge", 8),
    node("n3", "small", "g6.12xlarge", 4),
    pool("large", {"nodes": "0", "schedule": "0 6 * * *", "duration": "16h"}, {"nodes": "1"}),
    pool("small", {"nodes": "0"}),
    cron_job("nightly", "0 3 * * *", timeZone="Europe/Berlin"),
    cron_job("paused", "0 * * * *", suspend=True),
    cron_job("odd", "@every 1h"),
    scaled_object("web", maxReplicaCount=40),
    ray_cluster("ray", maxReplicas=5, numOfHosts=2),
]
