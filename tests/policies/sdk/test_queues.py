from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.sdk.field import Field, Json
from gpugate.policies.sdk.queues import admission
from gpugate.policies.sdk.scheduling import alternatives

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import AnyContext

API = "kueue.x-k8s.io/v1beta2"
LABELS = {"kueue.x-k8s.io/queue-name": "a"}
GPU = {"key": "nvidia.com/gpu", "operator": "Exists"}
TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
MANY = 9
EIGHT = [f"f{number}" for number in range(8)]


def kueue(kind: str, name: str, spec: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def flavor(name: str, **spec: Json) -> dict[str, Any]:
    return kueue("ResourceFlavor", name, spec)


def group(resource: str, *flavors: str) -> dict[str, Any]:
    return {"coveredResources": [resource], "flavors": [{"name": each} for each in flavors]}


def queue(*groups: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        kueue("LocalQueue", "a", {"clusterQueue": "all"}, "research"),
        kueue("ClusterQueue", "all", {"resourceGroups": list(groups)}),
    ]


def pod(**spec: Json) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": LABELS},
        "spec": {"containers": [container], **spec},
    }


def workload(api_version: str, kind: str, spec: dict[str, Any], **metadata: Json) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", **metadata}, "spec": spec}


TEMPLATE = {"spec": pod()["spec"]}
JOB = workload("batch/v1", "Job", {"template": TEMPLATE}, labels=LABELS)
CRON_JOB = workload(
    "batch/v1", "CronJob", {"jobTemplate": {"metadata": {"labels": LABELS}, "spec": {"template": TEMPLATE}}}
)
WRAPPED = {**JOB, "metadata": {"name": "w"}}
APP_WRAPPER = workload(
    "workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": WRAPPED}]}, labels=LABELS
)
PLAIN = flavor("plain")
TOLERATING = flavor("tolerating", tolerations=[GPU])
LABELLED = flavor("labelled", nodeLabels={"pool": "a"})
TAINTED = flavor("tainted", nodeTaints=[TAINT])


@pytest.mark.parametrize(
    ("obj", "others", "expected"),
    [
        pytest.param({**pod(), "metadata": {"name": "p"}}, [], [""], id="in no queue"),
        pytest.param(pod(), [*queue(group("nvidia.com/gpu", "plain")), PLAIN], ["plain"], id="a Pod"),
        pytest.param(JOB, [*queue(group("nvidia.com/gpu", "plain")), PLAIN], ["plain"], id="the label of a Job"),
        pytest.param(CRON_JOB, [*queue(group("nvidia.com/gpu", "plain")), PLAIN], ["plain"], id="Jobs of a CronJob"),
        pytest.param(APP_WRAPPER, [*queue(group("nvidia.com/gpu", "plain")), PLAIN], ["plain"], id="an AppWrapper"),
        pytest.param(
            pod(),
            [*queue(group("cpu", "plain"), group("nvidia.com/gpu", "labelled")), PLAIN, LABELLED],
            ["labelled"],
            id="the group that covers its GPU",
        ),
        pytest.param(
            pod(nodeSelector={"pool": "b"}),
            [*queue(group("nvidia.com/gpu", "labelled", "plain")), PLAIN, LABELLED],
            ["plain"],
            id="not a flavor of other nodes",
        ),
        pytest.param(
            pod(),
            [*queue(group("nvidia.com/gpu", "tainted", "tolerating")), TAINTED, TOLERATING],
            ["tolerating"],
            id="not a flavor that it does not tolerate",
        ),
        pytest.param(
            pod(), [*queue(group("nvidia.com/gpu", "tainted")), TAINTED], ["tainted"], id="unless no other is"
        ),
        pytest.param(
            pod(),
            [*queue(group("nvidia.com/gpu", *EIGHT)), *(flavor(name) for name in EIGHT)],
            EIGHT,
            id="as many as are evaluated",
        ),
    ],
)
def test_flavors_that_kueue_may_assign(
    obj: dict[str, Any], others: list[dict[str, Any]], expected: list[str], context: Callable[..., AnyContext]
) -> None:
    ctx = context(obj, yaml.safe_dump_all(others), subject=0 if obj["kind"] == "Pod" else 1)
    found = admission(ctx)

    assert [placement.flavor for placement in found.placements] == expected
    assert found.doubt is None


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        pytest.param([PLAIN], "LocalQueue a was not found, but may exist", id="local queue"),
        pytest.param(queue()[:1], "ClusterQueue all was not found, but may exist", id="cluster queue"),
        pytest.param(queue(group("nvidia.com/gpu", "x")), "ResourceFlavor x was not found, but may exist", id="flavor"),
        pytest.param(queue(), "ClusterQueue all names 0 flavors for it", id="no flavor"),
        pytest.param(
            queue(group("nvidia.com/gpu", *map(str, range(MANY)))),
            f"ClusterQueue all names {MANY} flavors for it",
            id="too many",
        ),
        pytest.param(
            [*queue(group("nvidia.com/gpu", "labelled")), LABELLED],
            "no flavor of queue a fits the node selector",
            id="none fits",
        ),
    ],
)
def test_what_is_not_known_is_no_placement(
    others: list[dict[str, Any]], reason: str, context: Callable[..., AnyContext]
) -> None:
    found = admission(context(pod(nodeSelector={"pool": "b"}), yaml.safe_dump_all(others)))

    assert found.doubt is not None
    assert found.doubt.reason == reason
    assert [placement.flavor for placement in found.placements] == [""]


def test_a_flavor_adds_tolerations_and_labels_that_the_pod_has_not(context: Callable[..., AnyContext]) -> None:
    given = flavor("f", tolerations=[GPU], nodeLabels={"pool": "a", "zone": "z"})
    ctx = context(
        pod(nodeSelector={"pool": "a"}, tolerations=[{"key": "own"}]),
        yaml.safe_dump_all([*queue(group("nvidia.com/gpu", "f")), given]),
    )
    (placement,) = admission(ctx).placements
    spec = placement.pod["spec"]

    assert spec["nodeSelector"].labels == {"pool": "a", "zone": "z"}
    assert [each["key"].text for each in spec["tolerations"]] == ["own", "nvidia.com/gpu"]
    assert placement.added == {"zone"}
    assert [
        {key: set(each.values) for key, each in required.items()} for required in placement.ctx.derived(alternatives)
    ] == [{"pool": {"a"}, "zone": {"z"}}]
    assert {each.path for each in spec["tolerations"]} == {("spec", "tolerations", 0), ("spec", "tolerations")}
    assert admission(placement.ctx).placements == (placement,)
    assert isinstance(ctx.subject, Field)
