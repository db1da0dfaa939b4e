"""Workloads, claims, scalers and pools with odd parts. Templates get warnings, because their Pods are evaluated later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN = {"name": "c", "image": "x", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
TEMPLATE = {"metadata": {}, "spec": {"containers": [HIDDEN]}}
JOB = {"template": TEMPLATE}


def obj(api_version: str, kind: str, spec: Any, **metadata: Any) -> Any:
    metadata = {"name": "a", "namespace": "default"} | metadata
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(obj("apps/v1", "Deployment", JOB), id="Deployment"),
        pytest.param(obj("batch/v1", "CronJob", {"jobTemplate": {"spec": JOB}}), id="CronJob"),
        pytest.param(
            obj("ray.io/v1", "RayJob", {"rayClusterSpec": {"workerGroupSpecs": [JOB, JOB, None, 5]}}), id="RayJob"
        ),
        pytest.param(
            obj("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"template": {"spec": JOB}}, {}]}),
            id="JobSet",
        ),
        pytest.param(
            obj(
                "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}}
            ),
            id="LeaderWorkerSet",
        ),
        pytest.param(
            obj("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Master": JOB, "Worker": None, "": JOB}}),
            id="PyTorchJob",
        ),
    ],
)
def test_templates_are_warned_of(assert_verdict: Callable[..., Any], review: Callable[..., Any], workload: Any) -> None:
    answer = assert_verdict(review(workload), None)
    assert "pods/hidden-gpu-access" in answer["warnings"][0]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_workloads_of_unknown_kinds_are_untouched(
    ask: Callable[..., Any], review: Callable[..., Any], path: str
) -> None:
    answer = ask(path, review(obj("example.com/v1", "Deployment", JOB)))
    assert (answer["allowed"], "patch" in answer, "warnings" in answer) == (True, False, False)


EXACTLY = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
FLAT = {"name": "gpu", "deviceClassName": "gpu.nvidia.com"}
ADMIN = {"adminAccess": True}


def claim(version: str, request: Any) -> Any:
    return obj(f"resource.k8s.io/{version}", "ResourceClaim", {"devices": {"requests": [request]}})


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        pytest.param(claim("v1", EXACTLY), None, id="v1"),
        pytest.param(claim("v1beta2", EXACTLY), None, id="v1beta2"),
        pytest.param(claim("v1beta1", FLAT), None, id="v1beta1"),
        pytest.param(claim("v1", {"name": "gpu", "exactly": EXACTLY["exactly"] | ADMIN}), "admin", id="v1-admin"),
        pytest.param(claim("v1beta1", FLAT | ADMIN), "admin", id="v1beta1-admin"),
        pytest.param(claim("v1alpha3", FLAT | ADMIN), "admin", id="v1alpha3-admin"),
        pytest.param(claim("v9", EXACTLY | ADMIN), None, id="unknown-version"),
        pytest.param(claim("v1", EXACTLY | {"exactly": "x"}), "exactly|requests", id="exactly-a-string"),
    ],
)
def test_claims(assert_verdict: Callable[..., Any], review: Callable[..., Any], sent: Any, says: str | None) -> None:
    assert_verdict(review(sent), says)


def test_long_expression_of_a_device_class(assert_verdict: Callable[..., Any], review: Callable[..., Any]) -> None:
    expression = "device.driver == 'gpu.nvidia.com' && " * 3000
    spec = {"selectors": [{"cel": {"expression": expression + "true"}}, {"cel": None}, None]}
    assert_verdict(review(obj("resource.k8s.io/v1", "DeviceClass", spec, name="a.example.com")), None)


TARGET = {"scaleTargetRef": {"name": "a"}}
NODE_CLASS = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"}}
GPUS = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p5", "g6"]}


def cron(start: str) -> Any:
    metadata = {"timezone": "UTC", "start": start, "end": "0 20 * * *", "desiredReplicas": "2"}
    return TARGET | {"maxReplicaCount": 5, "triggers": [{"type": "cron", "metadata": metadata}]}


def node_pool(limits: Any) -> Any:
    template = {"spec": NODE_CLASS | {"requirements": [GPUS]}}
    spec = {"template": template} | ({} if limits is ... else {"limits": limits})
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(TARGET | {"minReplicaCount": 9, "maxReplicaCount": 5, "triggers": []}, id="minimum-above-maximum"),
        pytest.param(TARGET | {"minReplicaCount": "9", "maxReplicaCount": 5e300}, id="numbers-of-wrong-types"),
        pytest.param(cron("* * * * *" * 10_000), id="cron-of-90-KB"),
        pytest.param(cron("*/0 99 -1 a? L#W"), id="cron-of-nonsense"),
        pytest.param(cron("0-99999999999/1 * * * *"), id="cron-of-a-long-range"),
        pytest.param(cron("\n\x00"), id="cron-of-control-characters"),
        pytest.param(TARGET | {"triggers": [None, 5, {"type": None, "metadata": []}]}, id="triggers-of-wrong-types"),
        pytest.param(
            TARGET | {"triggers": [{"type": "prometheus", "metadata": {"query": "((((" * 5000}}]},
            id="query-of-brackets",
        ),
        pytest.param(
            TARGET | {"triggers": [{"type": "prometheus", "metadata": {"query": "avg(" * 5000 + ")" * 5000}}]},
            id="query-of-5000-levels",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_scalers(ask: Callable[..., Any], review: Callable[..., Any], path: str, spec: Any) -> None:
    ask(path, review(obj("keda.sh/v1alpha1", "ScaledObject", spec)))


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        pytest.param(..., "nothing limits", id="limits-missing"),
        pytest.param(None, "nothing limits", id="limits-null"),
        pytest.param({}, "nothing limits", id="limits-empty"),
        pytest.param({"nvidia.com/gpu": "\u221e"}, "is not a quantity", id="limit-of-infinity"),
        pytest.param({"nvidia.com/gpu": "9" * 60}, "nodepools/", id="limit-of-60-digits"),
        pytest.param({"nvidia.com/gpu": ["8"]}, "a list is not a quantity", id="limit-a-list"),
    ],
)
def test_limits_of_pools(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], limits: Any, says: str
) -> None:
    assert_verdict(review(node_pool(limits)), says)
