from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from audit.memory_source import named, pod, workload
from cluster.fake_api_server import Answer, FakeApiServer, status

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.objects import Kind
from gpugate.webhook.audit.live import LiveSource, Throttle
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.cluster.options import ClusterOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.webhook.cluster.connection import Connection

PODS = ("", "pods")


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    server = FakeApiServer()
    server.serve("", ("v1",), "Pod", "pods")
    server.serve("apps", ("v1",), "Deployment", "deployments")
    server.serve("karpenter.sh", ("v1", "v1beta1"), "NodePool", "nodepools", namespaced=False)
    server.serve("example.com", ("v1alpha1",), "ModelServing", "modelservings")
    yield server.start()
    server.stop()


@pytest.fixture
def connection(api: FakeApiServer, tmp_path: Path) -> Iterator[Connection]:
    connection = connect(ClusterOptions(api.kubeconfig(tmp_path / "kubeconfig")))
    yield connection
    connection.close()


def source(connection: Connection, **options: Any) -> LiveSource:
    throttle = Throttle(1e9, 10**9, sleep=lambda _seconds: None)
    return LiveSource(connection, "test", throttle, limit=2, **options)


def names(found: Iterator[Any]) -> list[str]:
    return [stored.object["metadata"]["name"] for stored in found]


def put_pods(api: FakeApiServer, count: int = 5, namespace: str = "team") -> list[str]:
    made = [f"p-{number}" for number in range(count)]
    for name in made:
        api.store.put(PODS, pod(name, namespace=namespace))
    return made


def test_the_objects_of_a_kind_come_page_by_page(api: FakeApiServer, connection: Connection) -> None:
    made = put_pods(api)

    assert names(source(connection).read(objects.POD)) == made
    assert len(api.asked("/api/v1/pods?limit=2")) == 3


def test_objects_have_the_type_that_the_list_was_asked_for(api: FakeApiServer, connection: Connection) -> None:
    api.store.put(("karpenter.sh", "nodepools"), {"metadata": {"name": "gpu"}})

    (pool,) = source(connection).read(objects.NODE_POOL)

    assert str(pool.kind) == "karpenter.sh/v1 NodePool"


def test_a_kind_known_in_any_version_is_read_in_the_one_that_is_preferred(
    api: FakeApiServer, connection: Connection
) -> None:
    api.store.put(("example.com", "modelservings"), named("ModelServing", "a", api_version="example.com/v1alpha1"))

    (found,) = source(connection).read(Kind("example.com", ("*",), "ModelServing", "modelservings"))

    assert found.kind.version == "v1alpha1"


@pytest.mark.parametrize(
    "troubles",
    [
        pytest.param([status("continue=", 410, "Expired")], id="expired-page"),
        pytest.param([status("/pods", 401, "Unauthorized")], id="expired-token"),
        pytest.param([Answer("continue=", 200, b'{"items": [', cut=True)], id="answer-cut-off"),
        pytest.param([status("continue=", 429, "TooManyRequests", Retry_After="1")], id="too-many-requests"),
        pytest.param([status("/pods", 500, "InternalError"), status("continue=", 503, "")], id="faults"),
        pytest.param([status("continue=", 410, "Expired"), status("continue=", 504, "Timeout")], id="several"),
    ],
)
def test_no_trouble_that_passes_loses_or_repeats_an_object(
    api: FakeApiServer, connection: Connection, troubles: list[Answer]
) -> None:
    made = put_pods(api)
    found = source(connection)
    api.answers += troubles

    assert names(found.read(objects.POD)) == made
    assert not api.answers


def test_what_is_forbidden_says_how_to_be_allowed(api: FakeApiServer, connection: Connection) -> None:
    api.forbidden.add("pods")

    with pytest.raises(NotReadError, match="--print-rbac") as raised:
        list(source(connection).read(objects.POD))

    assert not raised.value.absent


def test_where_all_namespaces_are_forbidden_those_that_were_named_are_read(
    api: FakeApiServer, connection: Connection
) -> None:
    put_pods(api, 3, "team")
    put_pods(api, 3, "other")
    api.answers.append(status("/api/v1/pods?", 403, "Forbidden"))
    found: list[Any] = []

    with pytest.raises(NotReadError, match="only in team") as raised:
        found.extend(source(connection, namespaces=("team",)).read(objects.POD))

    assert raised.value.namespaces == ("team",)
    assert "/api/v1/namespaces/team/pods" in api.requests[-1]


def test_a_namespace_that_is_named_twice_is_read_once(api: FakeApiServer, connection: Connection) -> None:
    put_pods(api, 1, "team")
    api.answers.append(status("/api/v1/pods?", 403, "Forbidden"))
    found: list[Any] = []

    with pytest.raises(NotReadError, match="only in team: "):
        found.extend(source(connection, namespaces=("team", "team")).read(objects.POD))

    assert sum("/namespaces/team/pods" in request for request in api.requests) == 1


def test_what_is_not_served_is_absent(connection: Connection) -> None:
    with pytest.raises(NotReadError, match=r"does not serve scaledobjects\.keda\.sh") as raised:
        list(source(connection).read(objects.SCALED_OBJECT))

    assert raised.value.absent


def test_a_list_that_breaks_off_for_good_keeps_what_was_read(api: FakeApiServer, connection: Connection) -> None:
    put_pods(api)
    api.answers += [status("continue=", 500, "InternalError")] * 20
    found: list[Any] = []

    with pytest.raises(NotReadError, match="500"):
        found.extend(source(connection).read(objects.POD))

    assert len(found) == 2


def test_an_owner_of_any_kind_is_found(api: FakeApiServer, connection: Connection) -> None:
    api.store.put(("example.com", "modelservings"), named("ModelServing", "a", api_version="example.com/v1alpha1"))
    found = source(connection)

    kind = found.find("example.com/v1alpha1", "ModelServing")

    assert (kind.plural, kind.namespaced) == ("modelservings", True)
    assert found.fetch(kind, "team", "a")
    assert found.fetch(kind, "team", "b") is None


def test_an_owner_of_a_kind_that_is_not_served_is_not_found(connection: Connection) -> None:
    with pytest.raises(NotReadError, match=r"does not serve Else in example\.com/v9"):
        source(connection).find("example.com/v9", "Else")


def test_the_cluster_says_its_version_and_who_asks(api: FakeApiServer, connection: Connection) -> None:
    user = b'{"status": {"userInfo": {"username": "ada"}}}'
    api.answers += [Answer("/version", body=b'{"gitVersion": "v1.36.3"}'), Answer("selfsubjectreviews", 201, user)]

    assert source(connection).cluster.version == "v1.36.3"
    api.answers += [Answer("/version", body=b"{}"), Answer("selfsubjectreviews", 201, user)]
    assert source(connection).cluster.user == "ada"


def test_a_server_that_is_none_ends_the_audit(api: FakeApiServer, connection: Connection) -> None:
    api.answers.append(Answer("/version", body=b"<html>"))

    with pytest.raises(CallError, match="is not an API server"):
        source(connection)


def test_nothing_is_written(api: FakeApiServer, connection: Connection) -> None:
    api.store.put(("apps", "deployments"), workload("Deployment", "web"))
    found = source(connection)
    list(found.read(objects.DEPLOYMENT))

    assert {request.partition(" ")[0] for request in api.requests if "selfsubjectreviews" not in request} == {"GET"}
