"""Pods that train carry `karpenter.sh/do-not-disrupt` as they are stored, whoever made them; Pods that serve do not."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import workload_controllers as controllers
from cluster.custom_resources import install
from cluster.stand_ins import guessed_plural, stand_in
from gpu_pods import create, pod_spec, protection, until
from workloads import job, replicas, workload

from gpugate.policies.sdk.objects import GroupVersionKind, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

    Object = dict[str, Any]

GPUS = {"nvidia.com/gpu": "8"}
TRAINS = {"spec": pod_spec(GPUS)}
HELPS = {"spec": pod_spec()}
JOBS = 40
SERVES = {"spec": {"containers": [pod_spec(GPUS)["containers"][0] | {"ports": [{"containerPort": 8000}]}]}}


@dataclass(frozen=True)
class Made:
    """A workload, and what its controllers make of it, one after the other, down to a Pod or to what Kubernetes knows."""

    workload: Object
    by: tuple[Callable[[Object], Object], ...]


TRAINING = {
    "PyTorchJob": Made(
        workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas(Master=TRAINS, Worker=TRAINS)}),
        (lambda stored: controllers.kubeflow_pod(stored, "pytorchReplicaSpecs", "Master"),),
    ),
    "TFJob": Made(
        workload("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": replicas(Worker=TRAINS)}),
        (lambda stored: controllers.kubeflow_pod(stored, "tfReplicaSpecs", "Worker"),),
    ),
    "XGBoostJob": Made(
        workload("kubeflow.org/v1", "XGBoostJob", {"xgbReplicaSpecs": replicas(Master=TRAINS)}),
        (lambda stored: controllers.kubeflow_pod(stored, "xgbReplicaSpecs", "Master"),),
    ),
    "PaddleJob": Made(
        workload("kubeflow.org/v1", "PaddleJob", {"paddleReplicaSpecs": replicas(Worker=TRAINS)}),
        (lambda stored: controllers.kubeflow_pod(stored, "paddleReplicaSpecs", "Worker"),),
    ),
    "JAXJob": Made(
        workload("kubeflow.org/v1", "JAXJob", {"jaxReplicaSpecs": replicas(Worker=TRAINS)}),
        (lambda stored: controllers.kubeflow_pod(stored, "jaxReplicaSpecs", "Worker"),),
    ),
    "worker of an MPIJob": Made(
        workload("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas(Launcher=HELPS, Worker=TRAINS)}),
        (controllers.mpi_worker,),
    ),
    "JobSet": Made(
        workload(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job(TRAINS)}}]},
        ),
        (controllers.job_of_set,),
    ),
    "Volcano Job": Made(
        workload(
            "batch.volcano.sh/v1alpha1",
            "Job",
            {
                "queue": "default",
                "schedulerName": "volcano",
                "tasks": [{"name": "worker", "replicas": 1, "template": TRAINS}],
            },
        ),
        (controllers.volcano_pod,),
    ),
    "RayJob": Made(
        workload(
            "ray.io/v1", "RayJob", {"rayClusterSpec": {"workerGroupSpecs": [{"groupName": "a", "template": TRAINS}]}}
        ),
        (lambda stored: controllers.ray_cluster_of(stored, "rayClusterSpec"), controllers.ray_worker),
    ),
    "indexed Job": Made(workload("batch/v1", "Job", job(TRAINS, completions=2, completionMode="Indexed")), ()),
}
OTHERS = {
    "launcher of an MPIJob": Made(
        workload("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas(Launcher=HELPS, Worker=TRAINS)}),
        (controllers.mpi_launcher,),
    ),
    "JobSet without GPUs": Made(
        workload(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {"replicatedJobs": [{"name": "dataset-initializer", "replicas": 1, "template": {"spec": job(HELPS)}}]},
        ),
        (controllers.job_of_set,),
    ),
    "RayService": Made(
        workload(
            "ray.io/v1",
            "RayService",
            {"rayClusterConfig": {"workerGroupSpecs": [{"groupName": "a", "template": SERVES}]}},
        ),
        (lambda stored: controllers.ray_cluster_of(stored, "rayClusterConfig"), controllers.ray_worker),
    ),
    "LeaderWorkerSet": Made(
        workload(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": SERVES}},
        ),
        (controllers.leaders_of,),
    ),
    "inference Deployment": Made(
        workload(
            "apps/v1",
            "Deployment",
            {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "serve"}},
                "template": {"metadata": {"labels": {"app": "serve"}}, **SERVES},
            },
        ),
        (),
    ),
    "Job of one Pod": Made(workload("batch/v1", "Job", job(TRAINS)), ()),
}


@pytest.fixture(scope="module", autouse=True)
def frameworks(api: Api, webhook: ServedWebhook) -> Iterator[None]:  # noqa: ARG001 -- every test needs it
    """Let the API server know the kinds of all frameworks."""
    kinds = {
        GroupVersionKind.of(w["apiVersion"], w["kind"]) for w in (m.workload for m in (TRAINING | OTHERS).values())
    }
    definitions = [
        stand_in(Kind(kind.group, (kind.version,), kind.kind, guessed_plural(kind.kind)))
        for kind in kinds
        if kind.group not in {"apps", "batch"}
    ]
    missing = [definition for definition in definitions if not api.get(definition)]
    install(api, missing)
    yield
    for definition in missing:
        api.delete(definition)


@pytest.mark.parametrize("made", TRAINING.values(), ids=TRAINING)
def test_is_protected(made: Made, api: Api, namespace: str) -> None:
    assert {protection(pod) for pod in pods_of(made, api, namespace)} == {"true"}


@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS)
def test_is_not_protected(made: Made, api: Api, namespace: str) -> None:
    assert {protection(pod) for pod in pods_of(made, api, namespace)} == {None}


def test_is_protected_although_its_job_was_made_the_moment_before(api: Api, namespace: str, figures: list[str]) -> None:
    spec = job(TRAINS, completions=2, parallelism=2)
    for number in range(JOBS):
        made = workload("batch/v1", "Job", spec)
        made["metadata"]["name"] = f"train-{number}"
        create(api, in_namespace(made, namespace))
    pods = until(lambda: pods_in(api, namespace), lambda found: len(found) == 2 * JOBS)
    protected = [protection(pod) for pod in pods]
    figures.append(f"{protected.count('true')} of {len(pods)} Pods of Jobs made the moment before are protected")
    assert set(protected) == {"true"}


def pods_of(made: Made, api: Api, namespace: str) -> list[Object]:
    stored = create(api, in_namespace(made.workload, namespace)).body
    for make in made.by:
        following = make(stored)
        stored = create(api, following).body
    return [stored] if stored["kind"] == "Pod" else pods_in(api, namespace)


def in_namespace(obj: Object, namespace: str) -> Object:
    copy = deepcopy(obj)
    copy["metadata"]["namespace"] = namespace
    return copy


def pods_in(api: Api, namespace: str) -> list[Object]:
    """Return the Pods that Kubernetes' own controllers made."""
    return until(lambda: api.list("v1", "Pod", namespace), bool)
