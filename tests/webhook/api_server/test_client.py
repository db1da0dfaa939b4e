"""The client behaves on the wire as kube-apiserver does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from api_server.client import Client
from api_server.connections import IDLE_CONNECTIONS
from api_server.errors import ConductError, TransportError
from api_server.stub_webhook import StubServer, allowing, raw

if TYPE_CHECKING:
    from api_server.responses import HttpAnswer

BODY = b'{"request":{"uid":"u"}}'


def first_then_allow(stub: StubServer, *answers: HttpAnswer | None) -> None:
    """Answer so, and then as a good webhook does."""
    left = list(answers)
    stub.behaviour = lambda request: left.pop(0) if left else allowing(request)


def test_P_001_what_is_sent(stub: StubServer, client: Client) -> None:  # noqa: N802 -- the contract's number
    client.post(BODY, 10)
    line, headers, body = stub.seen[0]
    expected = {
        "User-Agent": "kube-apiserver-admission",
        "Accept": "application/json, */*",
        "Content-Type": "application/json",
        "Accept-Encoding": "gzip",
        "Content-Length": str(len(BODY)),
    }
    assert line == "POST /hook?timeout=10s HTTP/1.1"
    assert body == BODY
    assert expected.items() <= headers.items()


@pytest.mark.parametrize(("seconds", "query"), [(10, "10s"), (9.2, "10s"), (0.5, "1s")])
def test_P_002_timeout_is_rounded_up(stub: StubServer, client: Client, seconds: float, query: str) -> None:  # noqa: N802 -- the contract's number
    client.post(BODY, seconds)
    assert f"timeout={query} " in stub.seen[0][0]


def test_P_004_server_name(stub: StubServer) -> None:  # noqa: N802 -- the contract's number
    client = Client(stub.url, stub.ca_file, server_name="gpugate.gpugate-system.svc")
    assert client.post(BODY, 10).status == 200
    client.close()


def test_P_004_a_name_that_is_not_in_the_certificate(stub: StubServer) -> None:  # noqa: N802 -- the contract's number
    client = Client(stub.url, stub.ca_file, server_name="other.gpugate-system.svc")
    with pytest.raises(TransportError, match="x509: Hostname mismatch"):
        client.post(BODY, 10)


def test_P_008_connections_are_kept(stub: StubServer, client: Client) -> None:  # noqa: N802 -- the contract's number
    for _ in range(5):
        client.post(BODY, 10)
    assert (client.opened, len(stub.seen)) == (1, 5)


def test_P_008_no_more_than_25_idle_ones(stub: StubServer, client: Client) -> None:  # noqa: N802 -- the contract's number
    with ThreadPoolExecutor(40) as threads:
        list(threads.map(lambda _: client.post(BODY, 30), range(200)))
    assert len(client._idle._idle) <= IDLE_CONNECTIONS
    assert len(stub.seen) == 200


def test_a_connection_that_was_closed_while_idle_is_not_used(stub: StubServer, client: Client) -> None:
    first_then_allow(stub, raw(b"{}", connection="close"))
    assert [client.post(BODY, 10).status for _ in range(2)] == [200, 200]
    assert client.opened == 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_P_014_sent_again_after_retry_after(  # noqa: N802 -- the contract's number
    stub: StubServer, client: Client, waits: list[float], status: int
) -> None:
    first_then_allow(stub, raw(b"", status, retry_after="1"), raw(b"", status, retry_after="0"))
    answer = client.post(BODY, 10)
    assert (answer.status, answer.attempts, waits) == (200, 3, [1, 0])
    assert {body for _, _, body in stub.seen} == {BODY}


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        pytest.param(503, {}, id="no-retry-after"),
        pytest.param(503, {"retry_after": "1.5"}, id="not-an-integer"),
        pytest.param(503, {"retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"}, id="a-date"),
        pytest.param(400, {"retry_after": "1"}, id="400"),
        pytest.param(200, {"retry_after": "1"}, id="200"),
    ],
)
def test_P_014_not_sent_again(stub: StubServer, client: Client, status: int, headers: dict[str, Any]) -> None:  # noqa: N802 -- the contract's number
    first_then_allow(stub, raw(b"{}", status, **headers))
    assert (client.post(BODY, 10).status, len(stub.seen)) == (status, 1)


def test_P_014_at_most_ten_times(stub: StubServer, client: Client) -> None:  # noqa: N802 -- the contract's number
    stub.behaviour = lambda _: raw(b"", 429, retry_after="0")
    assert (client.post(BODY, 10).attempts, len(stub.seen)) == (11, 11)


def test_P_014_not_beyond_the_timeout(stub: StubServer, client: Client, waits: list[float]) -> None:  # noqa: N802 -- the contract's number
    stub.behaviour = lambda _: raw(b"", 429, retry_after="11")
    with pytest.raises(TransportError, match="context deadline exceeded"):
        client.post(BODY, 10)
    assert waits == []


def test_a_closed_connection_is_not_tried_again(stub: StubServer, client: Client) -> None:
    stub.behaviour = lambda _: None
    with pytest.raises(TransportError, match="EOF"):
        client.post(BODY, 10)
    assert len(stub.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
def test_P_013_a_redirect_fails_the_test(stub: StubServer, client: Client, status: int) -> None:  # noqa: N802 -- the contract's number
    stub.behaviour = lambda _: raw(b"", status, location="/elsewhere")
    with pytest.raises(ConductError, match="redirect"):
        client.post(BODY, 10)


def test_a_refused_connection(stub: StubServer) -> None:
    client = Client("https://127.0.0.1:1/hook", stub.ca_file)
    with pytest.raises(TransportError, match=r'Post "https://127\.0\.0\.1:1/hook\?timeout=10s": .*refused'):
        client.post(BODY, 10)
