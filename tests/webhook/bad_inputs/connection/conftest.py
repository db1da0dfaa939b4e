"""Raw bytes over TLS: `wire.refused(code, says, *pieces)`, `wire.asked(*pieces)` and what they are made of."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader

PATIENCE_SECONDS = 90


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def response(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["response"]
        return found


class Wire:
    def __init__(self, webhook: Any, good: bytes) -> None:
        address = urlsplit(webhook.url)
        self.address = (address.hostname, address.port)
        self.trust = ssl.create_default_context(cafile=webhook.ca_file)
        self.good = good

    @contextmanager
    def tcp(self) -> Iterator[socket.socket]:
        with socket.create_connection(self.address, PATIENCE_SECONDS) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield sock

    @contextmanager
    def tls(self) -> Iterator[ssl.SSLSocket]:
        with self.tcp() as sock, self.trust.wrap_socket(sock, server_hostname="127.0.0.1") as wrapped:
            yield wrapped

    def post(self, *headers: bytes, path: bytes = b"/validate", body: bytes | None = None) -> bytes:
        """Write a request; its Content-Length is left out when one of the headers says how long the body is."""
        body = self.good if body is None else body
        framed = any(re.match(rb"content-length|transfer-encoding", header, re.IGNORECASE) for header in headers)
        length = () if framed else (b"Content-Length: %d" % len(body),)
        return b"\r\n".join([b"POST %s HTTP/1.1" % path, b"Host: gpugate", *headers, *length, b"", body])

    @staticmethod
    def read(stream: BufferedReader, *, head: bool = False) -> Answer | None:
        """Read one answer; None when the connection was closed before."""
        try:
            line = stream.readline()
        except ConnectionResetError:
            return None
        if not line:
            return None
        status = int(line.split()[1])
        headers = http.client.parse_headers(stream)
        length = 0 if head or status < 200 else int(headers["Content-Length"])
        body = stream.read(length)
        assert len(body) == length, "the answer was cut"
        return Answer(status, headers, body)

    def asked(self, *pieces: bytes, answers: int = 1) -> list[Answer]:
        """Send pieces, and read so many answers."""
        with self.tls() as sock:
            for piece in pieces:
                sock.sendall(piece)
            with sock.makefile("rb") as stream:
                return [found for _ in range(answers) if (found := self.read(stream))]

    def to_the_end(self, *pieces: bytes, head: bool = False, half_close: bool = False) -> list[Answer]:
        """Send pieces, and read answers until the server closes the connection."""
        with self.tls() as sock:
            # A server that has read enough may close while more is sent.
            with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                for piece in pieces:
                    sock.sendall(piece)
            if half_close:
                # SSLSocket.shutdown would forget the session, so that no answer could be read.
                socket.socket.shutdown(sock, socket.SHUT_WR)
            with sock.makefile("rb") as stream:
                return list(iter(lambda: self.read(stream, head=head), None))

    def refused(self, codes: int | set[int], says: str, *pieces: bytes, **how: bool) -> Answer:
        """Send pieces; the one answer is a Status, and the connection is closed."""
        found = self.to_the_end(*pieces, **how)
        assert len(found) == 1, found
        check_refusal(found[0], {codes} if isinstance(codes, int) else codes, says)
        return found[0]

    def refused_early(self, code: int, says: str, *pieces: bytes) -> None:
        """Send the beginning of a request; the Status does not wait for the rest, and the close may."""
        (answer,) = self.asked(*pieces)
        check_refusal(answer, {code}, says)

    def allowed(self, *pieces: bytes) -> Answer:
        """Send pieces that make a good review; it is allowed."""
        (answer,) = self.asked(*pieces)
        assert answer.status == 200, answer.body
        assert answer.response["allowed"] is True
        return answer


def check_refusal(answer: Answer, codes: set[int], says: str) -> None:
    assert (answer.status in codes, answer.headers["Connection"]) == (True, "close"), answer
    assert answer.headers["Content-Type"] == "application/json"
    status = json.loads(answer.body)
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert status["code"] == answer.status
    assert re.search(says, status["message"], re.IGNORECASE) is not None, status["message"]


@pytest.fixture(scope="session")
def wire(webhook: Any, captured: Callable[[str], bytes]) -> Wire:
    return Wire(webhook, captured("pod-delete.validate"))
