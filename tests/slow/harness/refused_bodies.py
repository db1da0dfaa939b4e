"""Every kind of rejected request, and a client that sends them and checks the responses."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.cases import REVIEWS
from harness.one_connection import UID

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
LARGE = 24 * MIB
PATIENCE_SECONDS = 60
JSON = {"Content-Type": "application/json"}
NAMED = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","x":'


def review(name: str, change: Callable[[Any], None]) -> bytes:
    captured = json.loads((REVIEWS / f"{name}.json").read_text())
    captured["request"]["uid"] = UID
    change(captured["request"]["object"])
    return json.dumps(captured, separators=(",", ":")).encode()


def with_arguments(number: int) -> bytes:
    def change(pod: Any) -> None:
        pod["spec"]["containers"][0]["args"] = ["a"] * number

    return review("pod-create-gpu-tolerated.mutate", change)


def with_host_names(number: int) -> bytes:
    def change(pod: Any) -> None:
        # No policy reads these fields, so they have no limit of their own.
        pod["spec"]["hostAliases"] = [{"ip": "10.0.0.1", "hostnames": ["a"] * number}]

    return review("pod-create-gpu-tolerated.mutate", change)


def with_annotation(size: int) -> bytes:
    def change(node_pool: Any) -> None:
        node_pool["metadata"]["annotations"] = {"example.com/a": "x" * size}

    return review("nodepool-create-unlimited.validate", change)


@dataclass(frozen=True, slots=True)
class Kind:
    """A rejected request.

    Attributes:
        body: the body to send.
        statuses: the allowed HTTP statuses of the response.
        denied: the code of the denial, if the response is a review.
        at_once: the number of concurrent requests.
        sent: the bytes after which the client disconnects; None if it stays connected.
        warming: the number of requests after which the process reaches its largest size. Many small values fill arenas
            of Python's allocator, which objects of the server share; the number of remaining arenas varies.
    """

    body: Callable[[], bytes]
    statuses: tuple[int, ...] = (200,)
    denied: int = 0
    path: str = "/validate?timeout=10s"
    headers: dict[str, str] = field(default_factory=lambda: JSON)
    at_once: int = 1
    sent: int | None = None
    warming: int = 3


KINDS = {
    "malformed JSON": Kind(lambda: b"{" + b" " * LARGE, (400,)),
    "no UTF-8": Kind(lambda: b'{"a":"' + b"\xff" * LARGE, (400,)),
    "not a review": Kind(lambda: b'{"a":"' + b"x" * LARGE + b'"}', (400,)),
    "review without uid": Kind(lambda: NAMED.replace(b'"uid":"u"', b'"uid":""') + b'"' + b"x" * LARGE + b'"}}', (400,)),
    "member of another type": Kind(lambda: NAMED + b'"' + b"x" * LARGE + b'"}}', denied=400),
    "too large": Kind(lambda: NAMED.ljust(33 * MIB), denied=413),
    "wrong media type": Kind(lambda: b"x" * LARGE, (415,), headers={"Content-Type": "text/yaml"}),
    "compressed": Kind(lambda: b"x" * LARGE, (415,), headers={**JSON, "Content-Encoding": "gzip"}),
    "another path": Kind(lambda: b"x" * LARGE, (404,), path="/metrics"),
    "deep nesting": Kind(lambda: NAMED + b"[" * MIB + b"]" * MIB + b"}}", denied=413),
    "too many values": Kind(lambda: with_arguments(700_000), denied=413),
    "denied by a policy": Kind(lambda: with_annotation(2_700 * 1024), denied=403),
    "out of time": Kind(lambda: with_annotation(2_700 * 1024), denied=504, path="/validate?timeout=1ms"),
    "out of time with many values": Kind(
        lambda: with_host_names(200_000), denied=504, path="/validate?timeout=1ms", warming=30
    ),
    "no room": Kind(lambda: b"{" + b" " * LARGE, (400, 429), at_once=6),
    "client gone mid-body": Kind(lambda: b"{" + b" " * LARGE, sent=LARGE // 2),
}


class Client:
    """Sends requests of one kind over a connection, and reconnects when the server closes it."""

    def __init__(self, server: Any, kind: Kind, *, busy: bool) -> None:
        self._address = server.address
        self._busy = busy
        # The server's certificate does not matter here.
        self._trust = ssl.create_default_context()
        self._trust.check_hostname, self._trust.verify_mode = False, ssl.CERT_NONE
        self._kind = kind
        self._body = kind.body()
        self._connection: http.client.HTTPSConnection | None = None

    def send(self) -> None:
        if self._kind.sent is None:
            self._exchange()
        else:
            self._leave(self._kind.sent)

    def _exchange(self) -> None:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                *self._address, context=self._trust, timeout=PATIENCE_SECONDS
            )
        self._connection.request("POST", self._kind.path, self._body, self._kind.headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.getheader("connection") == "close":
            self.close()
        if response.status == 429 and self._busy:
            return
        assert response.status in self._kind.statuses, (response.status, answer[:200])
        # The rules of one that is busy change meanwhile.
        if self._kind.denied and not self._busy:
            told = json.loads(answer)["response"]
            assert (told["allowed"], told["status"]["code"]) == (False, self._kind.denied)

    def _leave(self, sent: int) -> None:
        head = f"POST {self._kind.path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(self._body)}\r\n\r\n"
        with socket.create_connection(self._address, PATIENCE_SECONDS) as plain:
            wrapped = self._trust.wrap_socket(plain, server_hostname="localhost")
            wrapped.sendall(head.encode() + self._body[:sent])
            wrapped.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def sent(server: Any, kind: Kind, number: int, *, busy: bool = False) -> None:
    """Send requests of a kind and check each response; an overloaded server may ask for a retry."""
    with contextlib.ExitStack() as closing, ThreadPoolExecutor(kind.at_once) as pool:
        clients = [
            closing.enter_context(contextlib.closing(Client(server, kind, busy=busy))) for _ in range(kind.at_once)
        ]
        for _ in range(-(-number // kind.at_once)):
            list(pool.map(Client.send, clients))
