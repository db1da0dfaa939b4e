"""Keep stalled connections of one kind open, and reopen those that the server closes.

They come from 127.0.0.2 to 127.0.0.9, so that the limit on the connections of one source does not affect clients at
127.0.0.1.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from harness.stall_kinds import Kind

SOURCES = tuple(f"127.0.0.{number}" for number in range(2, 10))
# The number of concurrent handshakes; more would only wait for each other.
_OPENING_AT_ONCE = 64
# In bytes; small, so that the kernel's buffers do not hide that the client does not read.
_SMALL_BUFFER, _SMALL_SEGMENT = 2304, 536


@dataclass(slots=True)
class Counts:
    """Connections: opened so far (with the handshake, where there is one), open now, closed by the server, refused."""

    opened: int = 0
    held: int = 0
    closed: int = 0
    refused: int = 0


class Stalls:
    def __init__(
        self,
        address: tuple[str, int],
        kind: Kind,
        number: int,
        sources: tuple[str, ...],
        again: bool,  # noqa: FBT001 -- given by position, through a pipe
    ) -> None:
        self._address = address
        self.kind = kind
        self._number = number
        self._sources = itertools.cycle(sources)
        self._again = again
        self._at_once = asyncio.Semaphore(_OPENING_AT_ONCE)
        self._tls = ssl.create_default_context()
        # The server's certificate does not matter here, and verifying it takes time.
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE
        self._tasks: set[asyncio.Task[None]] = set()
        self.counts = Counts()

    async def start(self) -> None:
        """Try to open every connection once."""
        await asyncio.gather(*(self._open() for _ in range(self._number)))

    async def stop(self) -> None:
        """Stop reopening connections; open ones end with the process."""
        self._again = False

    async def counted(self) -> Counts:
        return self.counts

    def ended(self) -> None:
        self.counts.held -= 1
        self.counts.closed += 1
        if self._again:
            task = asyncio.ensure_future(self._open())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        async with self._at_once:
            connection = socket.socket()
            try:
                connection.setblocking(False)  # noqa: FBT003 -- takes no keyword
                if not self.kind.reads:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SMALL_SEGMENT)
                connection.bind((next(self._sources), 0))
                await loop.sock_connect(connection, self._address)
                tls = self._tls if self.kind.tls else None
                name = "localhost" if tls else None
                await loop.create_connection(lambda: _Stall(self), sock=connection, ssl=tls, server_hostname=name)
            except OSError:
                self.counts.refused += 1
                connection.close()


class _Stall(asyncio.Protocol):
    def __init__(self, stalls: Stalls) -> None:
        self._stalls = stalls
        self._drops = stalls.kind.drops()
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)
        kind, counts = self._stalls.kind, self._stalls.counts
        counts.opened += 1
        counts.held += 1
        self._transport.write(kind.first)
        if not kind.reads:
            self._transport.pause_reading()
        if kind.drip:
            self._drip()

    def _drip(self) -> None:
        if not self._closed:
            self._transport.write(next(self._drops))
            asyncio.get_running_loop().call_later(1, self._drip)

    def connection_lost(self, _: Exception | None) -> None:
        self._closed = True
        self._stalls.ended()
