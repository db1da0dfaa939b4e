"""What `gpugate simulate` says of recorded requests and stored objects."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpugate.webhook.simulate.model import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
CURRENT = f"{HEAD}policies:\n  pods/hidden-gpu-access: {{mode: warn}}\n"
CANDIDATE = f"{HEAD}policies:\n  pods/hidden-gpu-access: {{mode: enforce}}\n"
PERSON = "developer"
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
OF_REPLICA_SET = {
    "generateName": "web-7d9f8c-",
    "labels": {"pod-template-hash": "7d9f8c"},
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f8c", "uid": "1", "controller": True}
    ],
}


def pod(value: str = "all", **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i:1", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "ml", **(metadata or {"name": "p"})},
        "spec": {"containers": [container]},
    }


def event(obj: dict[str, Any] | None, verb: str = "create", user: str = PERSON, **others: Any) -> dict[str, Any]:
    name = (obj or {}).get("metadata", {}).get("name", "")
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Request",
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": "/api/v1/namespaces/ml/pods",
        "user": {"username": user, "groups": ["system:authenticated"]},
        "objectRef": {"resource": "pods", "namespace": "ml", "name": name, "apiVersion": "v1"},
        "responseStatus": {"code": 201},
        **({"requestObject": obj} if obj else {}),
        "requestReceivedTimestamp": "2026-11-20T10:00:00.123456Z",
        **others,
    }


def lines(*events: dict[str, Any] | str) -> str:
    return "".join(f"{item if isinstance(item, str) else json.dumps(item)}\n" for item in events)


@pytest.fixture
def simulate(tmp_path: Path, gpugate: Run) -> Callable[..., tuple[int, Simulation]]:
    (tmp_path / "current.yaml").write_text(CURRENT)
    (tmp_path / "candidate.yaml").write_text(CANDIDATE)

    def run(log: str | bytes, *flags: str) -> tuple[int, Simulation]:
        file = tmp_path / "audit.log"
        file.write_bytes(log.encode() if isinstance(log, str) else log)
        files = ("--current", str(tmp_path / "current.yaml"), "--candidate", str(tmp_path / "candidate.yaml"))
        ran = gpugate("simulate", *files, "--from", str(file), "-o", "json", *flags)
        return ran.code, msgspec.json.decode(ran.out, type=Simulation)

    return run


def test_a_request_that_only_the_candidate_denies_names_its_owner_and_policy(
    simulate: Callable[..., tuple[int, Simulation]],
) -> None:
    _, simulation = simulate(lines(event(pod())))
    (change,) = simulation.newly_denied
    assert (str(change.object), change.current, change.candidate) == ("Pod/ml/p", "warn", "deny")
    assert [policy.policy for policy in change.policies] == ["pods/hidden-gpu-access"]
    assert (change.requests.people, change.requests.controllers) == (1, 0)


def test_pods_of_a_deployment_are_one_owner_with_all_their_requests(
    simulate: Callable[..., tuple[int, Simulation]],
) -> None:
    later = {"requestReceivedTimestamp": "2026-11-21T10:00:00Z"}
    events = [event(pod(**OF_REPLICA_SET), user=CONTROLLER), event(pod(**OF_REPLICA_SET), user=CONTROLLER, **later)]
    _, simulation = simulate(lines(*events))
    (change,) = simulation.changes
    assert (change.object.kind, change.object.name) == ("Deployment", "web")
    assert (change.requests.controllers, change.requests.people) == (2, 0)
    assert f"{change.requests.first:%d} {change.requests.last:%d}" == "20 21"


@pytest.mark.parametrize(
    ("item", "requests", "reason"),
    [
        (event(pod("none")), 1, None),
        (event(None), 1, "the log contains no object: log these resources at level Request"),
        (event(pod(name="q"), "update"), 1, "updates of objects that the log does not contain before"),
        (
            event({"spec": {"nodeName": "n"}}, "patch"),
            1,
            "the log contains the patch only: log these resources at level RequestResponse",
        ),
        (event(None, "delete"), 1, "deletions: the log does not contain the deleted object"),
        ("not JSON", 1, "the line is not an Event of the audit log"),
        ('{"kind": "Event", "apiVersion": "v1"}', 1, "the line is not an Event of the audit log"),
        (event(pod(), "get"), 0, None),
        (event(pod(), requestURI="/api/v1/namespaces/ml/pods?dryRun=All"), 0, None),
        (event(pod(), responseStatus={"code": 403, "message": "pods is forbidden"}), 0, None),
        (event(pod(), stage="RequestReceived"), 0, None),
    ],
)
def test_what_is_not_evaluated_is_counted_with_its_reason(
    simulate: Callable[..., tuple[int, Simulation]], item: dict[str, Any] | str, requests: int, reason: str | None
) -> None:
    _, simulation = simulate(lines(event(pod("none")), item))
    assert simulation.coverage.requests == requests + 1
    assert simulation.coverage.not_evaluated == ({reason: 1} if reason else {})
    assert simulation.changes == ()


def test_a_denial_of_a_webhook_is_a_request_that_admission_saw(simulate: Callable[..., tuple[int, Simulation]]) -> None:
    denied = {"code": 403, "message": 'admission webhook "validate.gpugate.dev" denied the request: ...'}
    _, simulation = simulate(lines(event(pod(), responseStatus=denied)))
    assert len(simulation.newly_denied) == 1


def test_an_update_answers_for_what_it_adds(simulate: Callable[..., tuple[int, Simulation]]) -> None:
    unchanged = [event(pod()), event(pod(), "update")]
    _, simulation = simulate(lines(*unchanged))
    (change,) = simulation.changes
    assert change.requests.operations == ("CREATE", "UPDATE")
    _, simulation = simulate(lines(event(pod("none")), event(pod(), "update")))
    (change,) = simulation.newly_denied
    assert change.requests.operations == ("UPDATE",)


def test_a_denied_request_does_not_change_the_object(simulate: Callable[..., tuple[int, Simulation]]) -> None:
    denied = {"code": 403, "message": 'admission webhook "validate.gpugate.dev" denied the request: ...'}
    events = [event(pod("none")), event(pod(), "update", responseStatus=denied), event(pod(), "update")]
    _, simulation = simulate(lines(*events))
    (change,) = simulation.newly_denied
    assert change.requests.total == 2


def test_requests_to_other_subresources_are_not_missed(simulate: Callable[..., tuple[int, Simulation]]) -> None:
    reference = {"resource": "pods", "namespace": "ml", "name": "p", "apiVersion": "v1", "subresource": "status"}
    _, simulation = simulate(lines(event(pod(), "update", objectRef=reference)))
    assert (simulation.coverage.not_evaluated, simulation.changes) == ({}, ())


def test_an_applied_patch_is_evaluated_by_the_object_in_the_response(
    simulate: Callable[..., tuple[int, Simulation]],
) -> None:
    applied = event({"spec": {}}, "patch", level="RequestResponse", responseObject=pod())
    _, simulation = simulate(lines(event(pod("none")), applied))
    assert [change.requests.operations for change in simulation.newly_denied] == [("UPDATE",)]


def test_the_same_policy_file_changes_nothing(tmp_path: Path, simulate: Callable[..., tuple[int, Simulation]]) -> None:
    _, simulation = simulate(
        lines(event(pod()), event(pod(**OF_REPLICA_SET))), "--candidate", str(tmp_path / "current.yaml")
    )
    assert simulation.coverage.evaluated == 2
    assert simulation.changes == ()


@pytest.mark.parametrize(("most", "code"), [("0", 1), ("1", 0)])
def test_more_new_denials_than_allowed_fail(
    simulate: Callable[..., tuple[int, Simulation]], most: str, code: int
) -> None:
    assert simulate(lines(event(pod())), "--max-new-denials", most)[0] == code


def test_logs_of_a_directory_are_read_in_the_order_of_their_requests(
    tmp_path: Path, simulate: Callable[..., tuple[int, Simulation]]
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    later = {"requestReceivedTimestamp": "2026-11-21T10:00:00Z"}
    (logs / "audit-1.log").write_text(lines(event(pod(), "update", **later)))
    (logs / "audit-2.log.gz").write_bytes(gzip.compress(lines(event(pod("none"))).encode()))
    _, simulation = simulate(lines(event(pod("none", name="q"))), "--from", str(logs))
    assert [str(change.object) for change in simulation.newly_denied] == ["Pod/ml/p"]


def test_a_damaged_log_is_read_as_far_as_it_goes(simulate: Callable[..., tuple[int, Simulation]]) -> None:
    packed = gzip.compress(lines(event(pod()), *(event(pod("none", name=f"p{n}")) for n in range(500))).encode())
    _, simulation = simulate(packed[:-20])
    assert simulation.coverage.not_evaluated == {"the compressed file is damaged from here on": 1}
    assert len(simulation.newly_denied) == 1


def test_no_value_of_an_environment_variable_is_reported(
    tmp_path: Path, gpugate: Run, simulate: Callable[..., tuple[int, Simulation]]
) -> None:
    secret = pod()
    secret["spec"]["containers"][0]["env"].append({"name": "TOKEN", "value": "s3cr3t-value"})
    simulate(lines(event(secret)))
    for name in ("text", "markdown", "json"):
        files = ("--current", str(tmp_path / "current.yaml"), "--candidate", str(tmp_path / "candidate.yaml"))
        output = gpugate("simulate", *files, "--from", str(tmp_path / "audit.log"), "-o", name).out
        assert "Pod/ml/p" in output or '"name": "p"' in output
        assert "s3cr3t" not in output


DUMP = [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ml", "uid": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": pod()},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "ml", "uid": "c"},
        "spec": {"schedule": "0 1 * * *", "jobTemplate": {"spec": {"template": pod("none")}}},
    },
]


def of_cron_job(name: str) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": "c", "controller": True}
    metadata = {"name": f"{name}-1", "namespace": "ml", "ownerReferences": [owner]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": pod("none")}}


def test_stored_objects_and_recorded_requests_are_one_report(
    tmp_path: Path, simulate: Callable[..., tuple[int, Simulation]]
) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": DUMP}))
    exemptions = tmp_path / "exemptions.yaml"
    flags = ("--from", str(dump), "--write-exemptions", str(exemptions), "--exemption-owner", "platform")
    _, simulation = simulate(lines(event(pod()), event(of_cron_job("nightly"))), *flags)
    assert {(str(change.object), change.source) for change in simulation.newly_denied} == {
        ("Deployment/ml/web", "stored"),
        ("Pod/ml/p", "requests"),
    }
    assert [(kind.kind, kind.recorded, kind.total) for kind in simulation.coverage.workloads] == [("CronJob", 1, 1)]
    assert (simulation.coverage.stored, simulation.denied_owners) == (2, 2)
    text = exemptions.read_text()
    assert all(name in text for name in ("- web-*", "- p", "owner: platform", "found by gpugate simulate of"))
    assert "candidate.yaml would newly deny" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--candidate", "absent.yaml", "--from", "."], 2, "absent.yaml"),
        (["--candidate", "candidate.yaml", "--from", "absent"], 2, "--from absent: no such file or directory"),
        (["--candidate", "candidate.yaml", "--from", "empty"], 3, "no recorded requests and no stored objects"),
        (
            ["--candidate", "candidate.yaml", "--from", "empty", "--write-exemptions", "e.yaml"],
            2,
            "--write-exemptions needs --exemption-owner NAME",
        ),
        (
            ["--candidate", "candidate.yaml", "--from", "empty", "--base", "HEAD", "--current", "candidate.yaml"],
            2,
            "--base and --current contradict each other: remove one of them",
        ),
        (["--candidate", "candidate.yaml", "--from", "empty", "--base", "HEAD"], 2, "not in a git work tree"),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpugate: Run, arguments: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "candidate.yaml").write_text(CANDIDATE)
    (tmp_path / "empty").mkdir()
    ran = gpugate("simulate", *arguments)
    assert (ran.code, message in ran.err) == (code, True)


CLUSTERS = {
    "of the clusters that deny": (("--cluster-label", "env=prod"), ["Pod/ml/p"]),
    "of other clusters": (("--cluster-label", "env=dev"), []),
}


@pytest.mark.parametrize(("flags", "denied"), CLUSTERS.values(), ids=CLUSTERS)
def test_a_candidate_is_evaluated_as_it_holds_in_the_cluster(
    simulate: Callable[..., tuple[int, Simulation]], tmp_path: Path, flags: tuple[str, str], denied: list[str]
) -> None:
    of_prod = (
        f"{CURRENT}clusters: [{{match: {{env: prod}}, policies: {{pods/hidden-gpu-access: {{mode: enforce}}}}}}]\n"
    )
    (tmp_path / "candidate.yaml").write_text(of_prod)

    _, simulation = simulate(lines(event(pod())), *flags)

    assert [str(change.object) for change in simulation.newly_denied] == denied
