"""After a SIGTERM the server answers requests in flight; after a second signal it exits."""

from __future__ import annotations

import json
import signal
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from harness.cases import usual
from harness.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UID = "0b5a41e0-33a1-4be7-bc1c-2c06f4a8a8ba"


@pytest.fixture
def half_sent(closing: Any) -> Iterator[Callable[[Any], tuple[ssl.SSLSocket, bytes]]]:
    """Send half of a review; yield the connection and the other half."""

    def send(server: Any) -> tuple[ssl.SSLSocket, bytes]:
        body = usual()[0].body(UID)
        trust = ssl.create_default_context(cafile=server.ca_file)
        connection = trust.wrap_socket(socket.create_connection(server.address, 60), server_hostname="localhost")
        closing.callback(connection.close)
        head = "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
        connection.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body[:1000])
        return connection, body[1000:]

    return send


def received(connection: ssl.SSLSocket) -> bytes:
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_request_in_flight_is_answered_before_the_server_exits(
    serve: Callable[..., Any], half_sent: Callable[..., Any], number: signal.Signals
) -> None:
    server = serve("--drain", "1")
    connection, rest = half_sent(server)
    server.signal(number)
    wait_until(lambda: not server.ready(), "the server says that it leaves")
    connection.sendall(rest)
    head, _, body = received(connection).partition(b"\r\n\r\n")
    answer = json.loads(body)["response"]
    assert (answer["uid"], b"connection: close" in head.lower(), server.wait()) == (UID, True, 0)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_second_signal_ends_at_once(
    serve: Callable[..., Any], half_sent: Callable[..., Any], second: signal.Signals
) -> None:
    # Longer than the test waits.
    server = serve("--drain", "600")
    half_sent(server)
    workers = server.workers()
    server.signal(signal.SIGTERM)
    wait_until(lambda: not server.ready(), "the server says that it leaves")
    server.signal(second)
    # Two workers, and the process for expensive reviews.
    assert (server.wait(), len(workers)) == (1, 3)
    wait_until(lambda: not server.workers(), "its workers have ended")


def test_ready_is_taken_back_while_reviews_are_still_answered(
    serve: Callable[..., Any], load: Callable[..., Any]
) -> None:
    server = serve("--drain", "600")
    server.signal(signal.SIGTERM)
    wait_until(lambda: server.get("/readyz")[0] == 503, "the server says that it leaves")
    running = load(server)
    running.pass_calls(100)
    report = running.finish()
    server.signal(signal.SIGTERM)
    assert (report.faults(), report.told_to_close) == ([], report.sent)
