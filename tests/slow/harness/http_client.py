"""HTTP/1.1 over TLS with the behaviour of the API server towards webhooks.

It keeps at most 25 idle connections, each for at most 90 s, and reuses the last used one first; active connections are
unlimited (Go's net/http Transport in the setup of `k8s.io/client-go` transport/cache.go, v0.36). It replaces a connection
that is closed before a write. A connection that closes later loses its request, because a POST is not repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
import select
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

IDLE_CONNECTIONS = 25
IDLE_SECONDS = 90


class LostError(Exception):
    """A request without a response; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._used = time.monotonic()
        self._readable = select.poll()
        self._readable.register(writer.get_extra_info("socket").fileno(), select.POLLIN)
        served = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        self.certificate = hashlib.sha256(served).hexdigest()

    @property
    def usable(self) -> bool:
        """Whether it can carry another request: an idle connection with something to read has been closed."""
        closed = self._writer.is_closing() or self._reader.at_eof() or self._readable.poll(0)
        return not closed and time.monotonic() - self._used < IDLE_SECONDS

    async def exchange(self, request: bytes) -> Response:
        try:
            self._writer.write(request)
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in head[1:-2])}
            body = await self._reader.readexactly(int(headers["content-length"]))
        except asyncio.IncompleteReadError as error:
            raise LostError(f"closed after {len(error.partial)} bytes of the answer") from None
        except OSError as error:
            raise LostError(f"{type(error).__name__} before the answer") from None
        self._used = time.monotonic()
        return Response(int(head[0].split()[1]), headers, body)

    def close(self) -> None:
        self._writer.close()


class Trusting(Protocol):
    """The authorities that a client trusts for a new connection, and the server name that it verifies."""

    name: str

    @property
    def context(self) -> ssl.SSLContext: ...


class Trust:
    """The authorities that a client trusts, and its certificate, read from a file (PEM, with its key) each time."""

    name = "localhost"

    def __init__(self, ca_file: Path, client: Path | None = None) -> None:
        self._ca_file, self._client = ca_file, client
        self._seen = 0
        self._context = ssl.create_default_context(cafile=ca_file)

    @property
    def context(self) -> ssl.SSLContext:
        if self._client and self._client.stat().st_mtime_ns != self._seen:
            self._seen = self._client.stat().st_mtime_ns
            self._context = ssl.create_default_context(cafile=self._ca_file)
            self._context.load_cert_chain(self._client)
        return self._context


class Pool:
    def __init__(self, address: tuple[str, int], trust: Trusting) -> None:
        self._address = address
        self._trust = trust
        self._idle: list[Connection] = []

    def idle(self) -> Connection | None:
        """Return the last used idle connection, if there is one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return None

    async def connect(self) -> Connection:
        try:
            reader, writer = await asyncio.open_connection(
                *self._address, ssl=self._trust.context, server_hostname=self._trust.name, ssl_shutdown_timeout=1
            )
        except OSError as error:
            why = getattr(error, "verify_message", "")
            raise LostError(f"{type(error).__name__} while connecting {why}".rstrip()) from None
        return Connection(reader, writer)

    def put_back(self, connection: Connection) -> None:
        if len(self._idle) < IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
