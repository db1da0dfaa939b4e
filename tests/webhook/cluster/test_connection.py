from __future__ import annotations

import datetime as dt
import ssl
from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, FakeApiServer, status
from cluster.reflected import connected

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.certs.serving import server_context
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.errors import ApiError, UnreachableError
from gpugate.webhook.cluster.options import ClusterOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpugate.webhook.cluster.connection import Connection

NOW = dt.datetime.now(tz=dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture
def tls_api(tmp_path: Path) -> Iterator[FakeApiServer]:
    authority = certificate_authority("kubernetes", now=NOW, lifetime=DAY)
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    (tmp_path / "other.crt").write_bytes(certificate_authority("other", now=NOW, lifetime=DAY).certificate)
    server = FakeApiServer(server_context(server_certificate(authority, ["127.0.0.1"], now=NOW, lifetime=DAY))).start()
    server.serve("", ("v1",), "Namespace", "namespaces", namespaced=False)
    yield server
    server.stop()


def test_a_trusted_api_server_is_read(tls_api: FakeApiServer, tmp_path: Path) -> None:
    file = tls_api.kubeconfig(tmp_path / "kubeconfig", **{"certificate-authority": str(tmp_path / "ca.crt")})
    connection = connect(ClusterOptions(file))

    assert b"NamespaceList" in connection.read("/api/v1/namespaces", {})
    connection.close()


@pytest.mark.parametrize("trusted", ["other.crt", None], ids=["another CA", "public CAs"])
def test_an_untrusted_certificate_is_rejected(tls_api: FakeApiServer, tmp_path: Path, trusted: str | None) -> None:
    cluster = {"certificate-authority": str(tmp_path / trusted)} if trusted else {}
    connection = connect(ClusterOptions(tls_api.kubeconfig(tmp_path / "kubeconfig", **cluster)))

    with pytest.raises(UnreachableError, match="untrusted certificate: check certificate-authority in the kube"):
        connection.read("/api/v1/namespaces", {})


def test_a_port_without_tls(api: FakeApiServer, tmp_path: Path) -> None:
    api.url = api.url.replace("http:", "https:")

    with pytest.raises(
        UnreachableError, match="does not use TLS: check that the port is the HTTPS port of an API server"
    ):
        connected(api, tmp_path).read("/api/v1/namespaces", {})


def test_a_closed_port(closed_api: FakeApiServer, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="connection refused: check that the API server is running"):
        connected(closed_api, tmp_path).read("/api/v1/namespaces", {})


def test_an_unknown_host_name(api: FakeApiServer, tmp_path: Path) -> None:
    api.url = "http://api.invalid:6443"

    with pytest.raises(UnreachableError, match="the name does not resolve"):
        connected(api, tmp_path).read("/api/v1/namespaces", {})


def test_an_incomplete_response(api: FakeApiServer, tmp_path: Path) -> None:
    api.answers.append(Answer("namespaces", body=b"{", cut=True))

    with pytest.raises(UnreachableError, match="the connection failed"):
        connected(api, tmp_path).read("/api/v1/namespaces", {})


ERRORS = {
    "a Status": (status("namespaces", 403, "Forbidden"), 403, "Forbidden", 0.0),
    "Retry-After in seconds": (
        status("namespaces", 429, "TooManyRequests", Retry_After="7"),
        429,
        "TooManyRequests",
        7.0,
    ),
    "Retry-After as a date": (
        status("namespaces", 503, "", Retry_After="Sat, 21 Nov 2026 10:00:00 GMT"),
        503,
        "",
        0.0,
    ),
    "retryAfterSeconds in the Status": (
        Answer("namespaces", 504, b'{"reason": "Timeout", "details": {"retryAfterSeconds": 3}}'),
        504,
        "Timeout",
        3.0,
    ),
    "an error page of a proxy": (Answer("namespaces", 502, b"<html>"), 502, "", 0.0),
    "a redirect is not followed": (Answer("namespaces", 307, headers={"Location": "/api/v1/pods"}), 307, "", 0.0),
}


@pytest.mark.parametrize(("answer", "code", "reason", "wait"), ERRORS.values(), ids=ERRORS)
def test_errors_of_the_api_server(
    api: FakeApiServer, tmp_path: Path, answer: Answer, code: int, reason: str, wait: float
) -> None:
    api.answers.append(answer)
    connection = connected(api, tmp_path)

    with pytest.raises(ApiError) as error:
        connection.read("/api/v1/namespaces", {})
    connection.close()

    assert (error.value.code, error.value.reason, error.value.retry_after) == (code, reason, wait)
    assert len(api.requests) == 1


def test_a_new_token_is_read_after_the_old_one_is_rejected(api: FakeApiServer, tmp_path: Path) -> None:
    api.token = "first"  # noqa: S105 -- no secret
    connection = connected(api, tmp_path)
    api.token = "second"  # noqa: S105 -- no secret
    api.kubeconfig(tmp_path / "kubeconfig")

    with pytest.raises(ApiError, match="401"):
        connection.read("/api/v1/namespaces", {})

    assert b"NamespaceList" in connection.read("/api/v1/namespaces", {})
    connection.close()


def test_unreadable_credentials_fail_only_one_call(api: FakeApiServer, tmp_path: Path) -> None:
    api.token = "first"  # noqa: S105 -- no secret
    connection = connected(api, tmp_path)
    api.token = "second"  # noqa: S105 -- no secret
    (tmp_path / "kubeconfig").unlink()

    with pytest.raises(UnreachableError, match="no kubeconfig at"):
        connection.read("/api/v1/namespaces", {})

    api.kubeconfig(tmp_path / "kubeconfig")
    with pytest.raises(ApiError, match="401"):
        connection.read("/api/v1/namespaces", {})
    assert b"NamespaceList" in connection.read("/api/v1/namespaces", {})
    connection.close()


def test_a_closed_connection_is_replaced(api: FakeApiServer, tmp_path: Path) -> None:
    connection = connected(api, tmp_path)
    connection.read("/api/v1/namespaces", {})
    api._server.hang_up()

    assert b"NamespaceList" in connection.read("/api/v1/namespaces", {})
    connection.close()


WRITES: dict[str, Callable[[Connection, str], object]] = {
    "create": lambda connection, path: connection.create(path, {}),
    "try_create": lambda connection, path: connection.try_create(path, {}),
    "replace": lambda connection, path: connection.replace(path, {}),
    "apply": lambda connection, path: connection.apply(path, {}, "manager"),
    "merge": lambda connection, path: connection.merge(path, {}, "manager"),
    "merge_by_key": lambda connection, path: connection.merge_by_key(path, {}, "manager"),
    "delete": lambda connection, path: connection.delete(path),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_without_a_response_is_not_repeated(
    api: FakeApiServer, tmp_path: Path, write: Callable[[Connection, str], object]
) -> None:
    api.answers += [Answer("namespaces", drop=True)] * 3
    connection = connected(api, tmp_path)

    with pytest.raises(UnreachableError, match="the connection failed"):
        write(connection, "/api/v1/namespaces/team")
    connection.close()

    assert len(api.asked("namespaces/team")) == 1


def test_a_read_without_a_response_is_repeated_once(api: FakeApiServer, tmp_path: Path) -> None:
    api.answers.append(Answer("namespaces", drop=True))
    connection = connected(api, tmp_path)

    assert b"NamespaceList" in connection.read("/api/v1/namespaces", {})
    connection.close()

    assert len(api.asked("namespaces")) == 2


def test_the_clock_skew_of_the_api_server_is_measured(api: FakeApiServer, tmp_path: Path) -> None:
    connection = connected(api, tmp_path)
    before = connection.clock_skew
    skews = []
    for api.ahead_seconds in (7200, -7200):
        connection.read("/api/v1/namespaces", {})
        skews.append(connection.clock_skew)
    connection.close()

    assert before is None
    assert [round(skew.total_seconds() / 60) for skew in skews if skew] == [120, -120]


def test_a_response_times_out(api: FakeApiServer, tmp_path: Path) -> None:
    api.answers.append(Answer("namespaces", hang=True))
    connection = connect(ClusterOptions(api.kubeconfig(tmp_path / "kubeconfig")), read_timeout=0.05)

    with pytest.raises(UnreachableError, match="the response timed out"):
        connection.read("/api/v1/namespaces", {})
    connection.close()


def test_certificates_are_verified_by_default(tls_api: FakeApiServer, tmp_path: Path) -> None:
    connection = connect(ClusterOptions(tls_api.kubeconfig(tmp_path / "kubeconfig")))

    assert connection._client.rest_client.pool_manager.connection_pool_kw["cert_reqs"] == ssl.CERT_REQUIRED
