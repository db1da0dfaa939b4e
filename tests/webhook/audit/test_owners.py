"""Which object at the top is what made a Pod, and what is said when that cannot be told."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from audit.memory_source import MemorySource, audited, found, named, pod, workload

from gpugate.webhook.audit.source import NotReadError


@pytest.mark.parametrize(
    "chain",
    [
        pytest.param([("CronJob", "batch/v1"), ("Job", "batch/v1")], id="cron-job"),
        pytest.param([("RayJob", "ray.io/v1"), ("RayCluster", "ray.io/v1")], id="ray"),
        pytest.param([("JobSet", "jobset.x-k8s.io/v1alpha2"), ("Job", "batch/v1")], id="job-set"),
        pytest.param([("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"), ("StatefulSet", "apps/v1")], id="leader-worker-set"),
        pytest.param([("ModelServing", "example.com/v1")], id="a-kind-nobody-knows"),
        pytest.param([("ModelServing", "example.com/v1"), ("Deployment", "apps/v1"), ("ReplicaSet", "apps/v1")], id="several"),
    ],
)  # fmt: skip
def test_owners_are_followed_to_the_top(chain: list[tuple[str, str]]) -> None:
    objects: list[dict[str, Any]] = []
    for kind, api_version in chain:
        objects.append(named(kind, kind.lower(), api_version=api_version, owner=objects[-1] if objects else None))

    report = audited(*objects, pod("a", owner=objects[-1])).report

    top = f"{chain[0][0]}/team/{chain[0][0].lower()}"
    assert [(str(each.object), each.pods) for each in report.audited] == [(top, 1)]
    assert report.not_evaluated == ()


def test_an_owner_that_is_gone_is_stated() -> None:
    gone = workload("ReplicaSet", "web-1", owner=workload("Deployment", "web"))

    report = audited(pod("a", owner=gone)).report

    assert [str(each.object) for each in report.audited] == ["ReplicaSet/team/web-1"]
    assert [(each.what, each.objects) for each in report.not_evaluated] == [("owners of kind ReplicaSet", 1)]


def test_an_object_of_the_owners_name_is_not_the_owner() -> None:
    owner = workload("StatefulSet", "web")
    other = copy.deepcopy(owner)
    other["metadata"]["uid"] = "another"

    report = audited(other, pod("a", owner=owner)).report

    assert [each.what for each in report.not_evaluated] == ["owners of kind StatefulSet"]


def test_an_owner_made_after_its_kind_was_read_is_looked_up() -> None:
    job = workload("Job", "late")

    scan = audited(source=MemorySource([pod("a", owner=job)], late=[job]))

    assert scan.report.not_evaluated == ()
    assert found(scan)["Job/team/late"].uid == "Job-team-late"


def test_owners_in_a_circle_come_to_an_end() -> None:
    first, second = named("A", "a", api_version="example.com/v1"), named("B", "b", api_version="example.com/v1")
    first = named("A", "a", api_version="example.com/v1", owner=second)
    second = named("B", "b", api_version="example.com/v1", owner=first)

    assert len(audited(first, second, pod("p", owner=first)).report.audited) == 1


def test_a_mirror_pod_is_its_own_top_and_left_alone() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "uid": "n"}}
    mirror = pod("static", owner=node)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}

    (report,) = found(audited(node, mirror)).values()

    assert (str(report.object), report.findings) == ("Pod/team/static", ())


def test_a_kind_of_owners_that_may_not_be_listed_is_stated() -> None:
    serving = named("ModelServing", "a", api_version="example.com/v1")
    source = MemorySource(
        [pod("a", owner=serving), pod("b", owner=serving)], {"ModelServing": NotReadError("forbidden")}
    )

    report = audited(source=source).report

    assert [(str(each.object), each.pods) for each in report.audited] == [("ModelServing/team/a", 2)]
    assert [(each.what, each.reason, each.objects) for each in report.not_evaluated] == [
        ("owners of kind ModelServing", "forbidden", 2)
    ]


def test_an_owner_without_a_uid_is_found_by_its_name() -> None:
    deployment = workload("Deployment", "web")
    child = pod("a", owner=deployment)
    del deployment["metadata"]["uid"]

    assert set(found(audited(deployment, child))) == {"Deployment/team/web"}
