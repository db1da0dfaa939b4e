"""`gpugate simulate` on what servers with a shadow policy file have evaluated."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from cluster.fake_api_server import Answer, FakeApiServer, status

from gpugate.webhook.admission.shadow_table import (
    CountedOwner,
    CountedPair,
    CountedRequests,
    DecisionName,
    RequesterName,
    Sample,
    Shadowed,
)
from gpugate.webhook.report.located import ObjectName
from gpugate.webhook.simulate.model import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., Any]

TIME = dt.datetime(2026, 11, 20, 10, tzinfo=dt.UTC)
POLICY = "pods/hidden-gpu-access"
SLICES = ("discovery.k8s.io", "endpointslices")


def pair(
    current: DecisionName, candidate: DecisionName, requester: RequesterName = "person", policy: str = POLICY
) -> CountedPair:
    sample = Sample("ml", "p", f"{current} {candidate}", "a hint")
    return CountedPair(policy, requester, current, candidate, 3, TIME, TIME + dt.timedelta(hours=2), sample)


def owner(*pairs: CountedPair, name: str = "p", current: DecisionName = "warn") -> CountedOwner:
    requests = (CountedRequests("mutate", 1, 0), CountedRequests("validate", 3, 2))
    obj = ObjectName("v1", "Pod", "ml", name)
    return CountedOwner(obj, current, "deny", ("CREATE",), TIME, TIME + dt.timedelta(hours=2), requests, pairs)


def document(*owners: CountedOwner, **changed: Any) -> Shadowed:
    reviews = {"evaluated": 10, "dropped": 2}
    made = Shadowed("1", "old", "new", "", TIME, TIME + dt.timedelta(days=1), reviews, owners)
    return msgspec.structs.replace(made, **changed)


@pytest.fixture
def simulate(tmp_path: Path, gpugate: Run) -> Callable[..., tuple[int, Simulation]]:
    def run(*documents: Shadowed, flags: tuple[str, ...] = ()) -> tuple[int, Simulation]:
        arguments = []
        for number, each in enumerate(documents):
            file = tmp_path / f"shadow-{number}.json"
            file.write_bytes(msgspec.json.encode(each))
            arguments += ["--from", str(file)]
        ran = gpugate("simulate", *arguments, "-o", "json", *flags)
        assert ran.code in {0, 1}, ran.err
        return ran.code, msgspec.json.decode(ran.out, type=Simulation)

    return run


def test_an_owner_is_reported_with_its_policies_and_requests(simulate: Callable[..., Any]) -> None:
    code, simulation = simulate(
        document(owner(pair("warn", "deny"), pair("warn", "warn", policy="pods/other"))),
        flags=("--max-new-denials", "0"),
    )
    (change,) = simulation.newly_denied
    assert (code, str(change.object), change.source) == (1, "Pod/ml/p", "shadow")
    assert [(p.policy, p.current, p.candidate, p.message) for p in change.policies] == [
        (POLICY, "warn", "deny", "warn deny")
    ]
    # A request that both webhooks received is one request.
    assert (change.requests.people, change.requests.controllers) == (3, 2)
    assert simulation.coverage.evaluated == 10
    assert simulation.coverage.not_evaluated == {"dropped, because the server had other requests": 2}


def test_an_owner_that_is_denied_anyway_is_not_newly_denied(simulate: Callable[..., Any]) -> None:
    denied = owner(pair("warn", "deny"), pair("deny", "deny", policy="pods/other"), current="deny")
    _, simulation = simulate(document(denied))
    assert (len(simulation.changes), simulation.denied_owners) == (1, 0)


def test_a_policy_counts_with_its_worst_decisions(simulate: Callable[..., Any]) -> None:
    """As in a replay: requests of people and of controllers are one owner's."""
    _, simulation = simulate(document(owner(pair("deny", "deny", "controller"), pair("warn", "deny"), current="deny")))
    assert simulation.changes == ()


def test_documents_of_several_servers_are_added_up(simulate: Callable[..., Any]) -> None:
    first, second = document(owner(pair("warn", "deny"))), document(owner(pair("warn", "deny")), owner(name="q"))
    other = document(owner(pair("warn", "deny"), name="z"), candidate="older", since=TIME - dt.timedelta(1))
    _, simulation = simulate(first, second, other)
    (change,) = simulation.changes
    assert (change.requests.people, simulation.coverage.requests) == (6, 24)
    assert any("1 server left out" in remark for remark in simulation.remarks)


def test_exemptions_name_their_source(tmp_path: Path, simulate: Callable[..., Any]) -> None:
    file = tmp_path / "exemptions.yaml"
    flags = ("--write-exemptions", str(file), "--exemption-owner", "platform")
    simulate(document(owner(pair("warn", "deny"))), flags=flags)
    text = file.read_text()
    assert "found by gpugate simulate of" in text
    assert "gpugate audit" not in text
    assert "the shadow policy file (new) would newly deny" in text
    assert POLICY in text


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    server = FakeApiServer()
    server.serve("discovery.k8s.io", ("v1",), "EndpointSlice", "endpointslices")
    server.serve("", ("v1",), "Pod", "pods")
    server.start()
    yield server
    server.stop()


def replica(api: FakeApiServer, name: str, answer: Answer | Shadowed, port: int = 9000) -> None:
    ports = [{"name": "reviews", "containerPort": 8443}, {"name": "health", "containerPort": port}]
    metadata = {"name": name, "namespace": "gpugate"}
    api.store.put(("", "pods"), {"metadata": metadata, "spec": {"containers": [{"name": "c", "ports": ports}]}})
    path = f"/pods/{name}:{port}/proxy/shadow"
    api.answers.append(answer if isinstance(answer, Answer) else Answer(path, 200, msgspec.json.encode(answer)))


def slices(api: FakeApiServer, *pods: str) -> None:
    endpoints = [{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": pod}} for pod in pods]
    metadata = {"name": "gpugate-x", "namespace": "gpugate", "labels": {"kubernetes.io/service-name": "gpugate"}}
    api.store.put(SLICES, {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints})


def test_the_servers_of_a_cluster_are_asked_through_the_api_server(
    tmp_path: Path, gpugate: Run, api: FakeApiServer
) -> None:
    slices(api, "a", "b")
    for name in ("a", "b"):
        replica(api, name, document(owner(pair("warn", "deny"))))
    kubeconfig = str(api.kubeconfig(tmp_path / "kubeconfig"))
    ran = gpugate("simulate", "--cluster", "--kubeconfig", kubeconfig, "-o", "json")
    assert ran.code == 0, ran.err
    simulation = json.loads(ran.out)
    assert simulation["changes"][0]["requests"]["people"] == 6
    assert simulation["candidate"] == "the shadow policy file (new)"
    assert {request.partition(" ")[0] for request in api.requests} == {"GET"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (status("/proxy/shadow", 403, "Forbidden"), "may not `get` pods/proxy"),
        (
            Answer("/proxy/shadow", 404, b'{"kind": "Status", "code": 404, "message": "no shadow policy file: start"}'),
            "set policy.shadow in the chart",
        ),
        (Answer("/proxy/shadow", 200, b"not JSON"), "not a document gpugate.dev/shadow/v1"),
        (Answer("/proxy/shadow", 503, b""), "port-forward"),
    ],
    ids=["no right", "no shadow", "damaged", "unreachable"],
)
def test_a_server_that_does_not_answer_is_an_error(
    tmp_path: Path, gpugate: Run, api: FakeApiServer, answer: Answer, message: str
) -> None:
    slices(api, "a")
    replica(api, "a", answer)
    ran = gpugate("simulate", "--cluster", "--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig")))
    assert (ran.code, "Pod gpugate/a" in ran.err, message in ran.err) == (4, True, True), ran.err


def test_a_service_without_pods_is_an_error(tmp_path: Path, gpugate: Run, api: FakeApiServer) -> None:
    slices(api)
    ran = gpugate("simulate", "--cluster", "--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig")))
    assert (ran.code, "Service gpugate/gpugate: has no Pods" in ran.err) == (4, True)


@pytest.mark.parametrize(
    ("changed", "flags", "code", "message"),
    [
        ({}, ("--candidate", "c.yaml"), 2, "leave out --candidate, --current, logs and dumps"),
        ({}, ("--from", "audit.log"), 2, "leave out --candidate, --current, logs and dumps"),
        ({"candidate": "", "error": "c.yaml:3: bad"}, (), 4, "no valid shadow policy file: c.yaml:3: bad"),
        ({"reviews": {}}, (), 3, "the servers have evaluated no request"),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    tmp_path: Path, gpugate: Run, changed: dict[str, Any], flags: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "audit.log").write_text('{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n')
    (tmp_path / "shadow.json").write_bytes(msgspec.json.encode(document(**changed)))
    flags = tuple(str(tmp_path / flag) if flag.endswith((".yaml", ".log")) else flag for flag in flags)
    ran = gpugate("simulate", "--from", str(tmp_path / "shadow.json"), *flags)
    assert (ran.code, message in ran.err) == (code, True), ran.err


def test_a_damaged_document_is_an_error(tmp_path: Path, gpugate: Run) -> None:
    file = tmp_path / "shadow.json"
    file.write_bytes(msgspec.json.encode(document())[:-20])
    ran = gpugate("simulate", "--from", str(file))
    assert (ran.code, "not a document gpugate.dev/shadow/v1" in ran.err) == (4, True)
