"""`gpugate simulate --cluster --candidate`: the objects of a cluster, read page by page with the rights that there are."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from cluster.fake_api_server import FakeApiServer, status
from simulate.cluster_objects import OBJECTS, named, template, workload

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.rbac import audited_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., Any]

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
KINDS = {
    (resource.kind.group, resource.kind.name): resource.kind
    for resource in audited_resources(bind(CATALOG, PolicyConfig()))
}
PODS = 600


def put(server: FakeApiServer, objects: list[dict[str, Any]]) -> None:
    for obj in objects:
        group = obj["apiVersion"].rpartition("/")[0]
        server.store.put((group, KINDS[group, obj["kind"]].plural), obj)


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    server = FakeApiServer()
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for obj in OBJECTS:
        group, _, version = obj["apiVersion"].rpartition("/")
        versions[group, obj["kind"]].add(version)
    for (group, name), served in versions.items():
        kind = KINDS[group, name]
        server.serve(group, tuple(served), name, kind.plural, namespaced=kind.namespaced)
    put(server, OBJECTS)
    yield server.start()
    server.stop()


@pytest.fixture
def simulate(tmp_path: Path, gpugate: Run, api: FakeApiServer) -> Callable[..., Any]:
    for name, mode in (("current", "warn"), ("candidate", "enforce")):
        (tmp_path / f"{name}.yaml").write_text(f"{HEAD}policies:\n  pods/wildcard-toleration: {{mode: {mode}}}\n")
    files = ("--current", str(tmp_path / "current.yaml"), "--candidate", str(tmp_path / "candidate.yaml"))
    kubeconfig = str(api.kubeconfig(tmp_path / "kubeconfig"))
    return lambda *flags: gpugate("simulate", "--cluster", "--kubeconfig", kubeconfig, *files, *flags)


def test_many_objects_are_read_once_and_page_by_page(simulate: Callable[..., Any], api: FakeApiServer) -> None:
    put(api, workload("Deployment", "many", 0, ("n1",) * PODS))
    ran = simulate("-o", "json")
    assert ran.code == 0, ran.err
    simulation = json.loads(ran.out)
    many = next(change for change in simulation["changes"] if change["object"]["name"] == "many")
    assert (many["pods"], many["candidate"]) == (PODS, "deny")
    # Two pages of Pods, which both policy files evaluate.
    assert len(api.asked("/api/v1/pods?limit=500")) == 2
    assert {request.partition(" ")[0] for request in api.requests} <= {"GET", "POST"}
    assert all("selfsubjectreviews" in request for request in api.requests if request.startswith("POST"))
    assert simulation["gaps"] == []
    assert {risk["node"] for risk in simulation["nodes"]} == {"n1", "n2", "n3"}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/apis/batch/v1/cronjobs", "cronjobs.batch"),
        ("/apis/karpenter.sh/v1/nodepools", "nodepools.karpenter.sh"),
        ("/api/v1/nodes", "nodes"),
    ],
)
def test_a_kind_that_may_not_be_listed_is_named_and_the_others_are_reported(
    tmp_path: Path, simulate: Callable[..., Any], api: FakeApiServer, path: str, kind: str
) -> None:
    api.answers.append(status(path, 403, "Forbidden"))
    ran = simulate("-o", "json", "-o", f"text={tmp_path / 'report'}")
    assert ran.code == 0, ran.err
    simulation = json.loads(ran.out)
    (gap,) = simulation["gaps"]
    assert gap["what"] == kind
    assert f"these credentials may not list {kind}" in gap["reason"]
    assert {change["object"]["name"] for change in simulation["changes"]} >= {"web", "vllm"}
    assert simulation["confidence"]["level"] == "medium"
    assert kind in (tmp_path / "report").read_text().partition("NOT EVALUATED")[2]


def test_a_cluster_and_a_dump_contradict_each_other(tmp_path: Path, simulate: Callable[..., Any]) -> None:
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    ran = simulate("--from", str(tmp_path / "dump.json"))
    assert (ran.code, "--cluster and a dump are two states of a cluster: remove one of them" in ran.err) == (2, True)


def test_an_audit_log_is_evaluated_with_the_objects_of_the_cluster(
    tmp_path: Path, simulate: Callable[..., Any]
) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "nightly-1",
            "namespace": "ml",
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "1", "controller": True}
            ],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}}},
    }
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": "create",
        "user": {"username": "system:serviceaccount:kube-system:cronjob-controller"},
        "objectRef": {"apiGroup": "batch", "resource": "jobs", "namespace": "ml", "name": "nightly-1"},
        "responseStatus": {"code": 201},
        "requestObject": job,
        "requestReceivedTimestamp": "2026-11-20T10:00:00Z",
    }
    (tmp_path / "audit.log").write_text(f"{json.dumps(event)}\n")
    ran = simulate("--from", str(tmp_path / "audit.log"), "-o", "json")
    assert ran.code == 0, ran.err
    coverage = json.loads(ran.out)["coverage"]
    assert coverage["requests"] == 1
    # The suspended CronJob does not run.
    assert [(kind["kind"], kind["recorded"], kind["total"], kind["missing"]) for kind in coverage["workloads"]] == [
        ("CronJob", 1, 2, ["ml/odd"]),
        ("DaemonSet", 0, 1, ["ml/agent"]),
        ("StatefulSet", 0, 1, ["ml/vllm"]),
    ]


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        ({}, True),
        ({"active": 1}, True),
        ({"conditions": [{"type": "Complete", "status": "False"}]}, True),
        ({"conditions": [{"type": "FailureTarget", "status": "True"}]}, True),
        ({"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]}, False),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, False),
    ],
    ids=["new", "running", "not complete", "failing", "complete", "failed"],
)  # fmt: skip
def test_a_job_counts_until_it_has_finished(
    simulate: Callable[..., Any], api: FakeApiServer, status: dict[str, Any], *, counts: bool
) -> None:
    """Nothing creates a finished Job or its Pods again."""
    spec = {"template": {"spec": {**template(1)["spec"], "restartPolicy": "Never"}}}
    job = KINDS["batch", "Job"]
    api.serve("batch", ("v1",), "Job", job.plural, namespaced=job.namespaced)
    put(api, [{**named("batch/v1", "Job", "once", spec), "status": status}])
    ran = simulate("-o", "json")
    assert ran.code == 0, ran.err
    changed = [change["object"]["name"] for change in json.loads(ran.out)["changes"]]

    assert ("once" in changed) is counts
    assert "web" in changed
