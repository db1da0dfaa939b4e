"""Which clients are allowed, with and without a client certificate."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from client_certificates import client_certificate
from handshakes import trusting

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate
from gpugate.certs.serving import server_context
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.connection import check_client
from gpugate.webhook.admission.front.limits import FrontEvent, Limits
from gpugate.webhook.admission.front.server import Front, listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

NOW = dt.datetime.now(tz=dt.UTC)
DAY = dt.timedelta(days=1)
AUTHORITY = certificate_authority("ca", now=NOW, lifetime=DAY)
PAIR = server_certificate(AUTHORITY, ["localhost"], now=NOW, lifetime=DAY)
CLIENTS = certificate_authority("clients", now=NOW, lifetime=DAY)
KNOWN = client_certificate(CLIENTS, now=NOW)
UNKNOWN_CLIENT = client_certificate(CLIENTS, "curl", now=NOW)
REQUEST = b"POST /validate HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"


def application(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def served(request: pytest.FixtureRequest) -> Callable[..., Counter[FrontEvent]]:
    """Run a client against a front that requires client certificates; return the events that the front counted."""

    def run(client: Callable[[int], Awaitable[None]], names: frozenset[str] = frozenset({"kube-apiserver"})) -> Any:
        counted: Counter[FrontEvent] = Counter()

        async def serve() -> None:
            gate: Any = None
            count = counted.update
            front = Front(
                lambda load, turns: AdmissionAsgi(gate, application, load, turns, lambda e: count([e])),
                Limits(),
                lambda event: count([event]),
                names,
            )
            listener = listen("127.0.0.1", 0)
            port = listener.getsockname()[1]
            context = server_context(PAIR, CLIENTS.certificate)
            front.accept_from(listener, lambda: context)
            await client(port)
            await front.leave(5)

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(serve())
        return counted

    return run


async def send(port: int, shown: KeyPair | None, requests: bytes = REQUEST) -> bytes:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting(AUTHORITY.certificate, shown), server_hostname="localhost"
    )
    try:
        writer.write(requests)
        return await reader.read()
    finally:
        writer.close()


def answered(
    served: Callable[..., Counter[FrontEvent]], shown: KeyPair, path: bytes = b"/healthz", **names: frozenset[str]
) -> tuple[bytes, Counter[FrontEvent]]:
    answers = []

    async def client(port: int) -> None:
        get = b"GET " + path + b" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        answers.append(await send(port, shown, get))

    counted = served(client, **names)
    return answers[0], counted


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        pytest.param(KNOWN, {"kube-apiserver"}, id="common-name"),
        pytest.param(KNOWN, {"a", "kube-apiserver"}, id="one-of-two"),
        pytest.param(client_certificate(CLIENTS, "", ["kube-apiserver"], now=NOW), {"kube-apiserver"}, id="dns-name"),
        pytest.param(client_certificate(CLIENTS, "x", ["y", "z"], now=NOW), {"z"}, id="one-of-its-dns-names"),
    ],
)
def test_allowed_clients(served: Callable[..., Counter[FrontEvent]], shown: KeyPair, names: set[str]) -> None:
    answer, counted = answered(served, shown, names=frozenset(names))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert counted == {FrontEvent.ACCEPTED: 1}


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        pytest.param(UNKNOWN_CLIENT, {"kube-apiserver"}, id="another-name"),
        pytest.param(KNOWN, set(), id="nobody-is-let-in"),
        pytest.param(KNOWN, {"KUBE-APISERVER"}, id="another-case"),
        pytest.param(client_certificate(CLIENTS, "", now=NOW), {""}, id="no-name"),
        pytest.param(client_certificate(CLIENTS, "x", ["*"], now=NOW), {"kube-apiserver"}, id="wildcard"),
    ],
)
def test_rejected_clients(served: Callable[..., Counter[FrontEvent]], shown: KeyPair, names: set[str]) -> None:
    answer, counted = answered(served, shown, names=frozenset(names))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"connection: close" in head
    assert b'"reason":"Forbidden"' in body
    assert counted == {FrontEvent.ACCEPTED: 1, FrontEvent.CLIENT_REFUSED: 1}


def test_an_unknown_client_gets_one_response_to_any_request(served: Callable[..., Counter[FrontEvent]]) -> None:
    answers = []

    async def client(port: int) -> None:
        answers.append(await send(port, UNKNOWN_CLIENT, REQUEST * 20))

    counted = served(client)
    assert (answers[0].count(b"HTTP/1.1"), counted[FrontEvent.CLIENT_REFUSED]) == (1, 1)


@pytest.mark.parametrize(
    ("shown", "alert"),
    [
        pytest.param(None, "CERTIFICATE_REQUIRED", id="none"),
        pytest.param(client_certificate(AUTHORITY, now=NOW), "UNKNOWN_CA", id="another-authority"),
        pytest.param(client_certificate(CLIENTS, now=NOW - 2 * DAY), "CERTIFICATE_EXPIRED", id="expired"),
    ],
)
def test_an_alert_and_nothing_else(
    served: Callable[..., Counter[FrontEvent]], shown: KeyPair | None, alert: str
) -> None:
    reasons = []

    async def client(port: int) -> None:
        try:
            await send(port, shown)
        except ssl.SSLError as error:
            reasons.append(error.reason)

    counted = served(client)
    assert [alert in reason for reason in reasons] == [True]
    assert counted == {FrontEvent.ACCEPTED: 1, FrontEvent.HANDSHAKE_FAILED: 1}


class Plain(asyncio.BaseTransport):
    """A connection without TLS."""


def test_a_connection_without_tls_is_allowed() -> None:
    assert check_client(Plain(), frozenset()) is None
