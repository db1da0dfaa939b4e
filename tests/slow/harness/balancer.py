"""A TCP balancer like a Service: each new connection goes to one of the endpoints and stays there.

A backend is an endpoint from the first 200 of its `/readyz` until `lag` seconds after the last one. The lag is the time
until kube-proxy and others see the change.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TypeAlias, cast

Address: TypeAlias = tuple[str, int]
PROBE_SECONDS = 0.1


class Balancer:
    def __init__(self, lag: float) -> None:
        self._lag = lag
        self._endpoints: list[Address] = []
        self._turn = itertools.count()
        self._probes: dict[Address, asyncio.Task[None]] = {}

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Side(self), "127.0.0.1", 0)

    async def stop(self) -> None:
        """Stop accepting connections."""
        self._server.close()

    async def address(self) -> Address:
        address: Address = self._server.sockets[0].getsockname()
        return address

    async def endpoints(self) -> list[Address]:
        return list(self._endpoints)

    async def watch(self, backend: Address, health: Address) -> None:
        """Add and remove a backend by its readiness."""
        self._probes[backend] = asyncio.get_running_loop().create_task(self._follow(backend, health))

    async def _follow(self, backend: Address, health: Address) -> None:
        while True:
            ready, listed = await _ready(health), backend in self._endpoints
            if ready and not listed:
                self._endpoints.append(backend)
            elif listed and not ready:
                break
            await asyncio.sleep(PROBE_SECONDS)
        await asyncio.sleep(self._lag)
        self._endpoints.remove(backend)

    def pick(self) -> Address | None:
        return self._endpoints[next(self._turn) % len(self._endpoints)] if self._endpoints else None


async def _ready(health: Address) -> bool:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection(*health)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    return False


class _Side(asyncio.Protocol):
    """One side of a connection; the client side opens the backend side."""

    def __init__(self, balancer: Balancer | None = None, other: _Side | None = None) -> None:
        self._balancer = balancer
        self._other = other
        self._waiting: list[bytes] = []
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)
        if self._balancer is not None:
            self._opening = asyncio.get_running_loop().create_task(self._open(self._balancer.pick()))

    async def _open(self, backend: Address | None) -> None:
        try:
            if backend is None:
                raise ConnectionRefusedError
            _, other = await asyncio.get_running_loop().create_connection(lambda: _Side(other=self), *backend)
        except OSError:
            self._transport.abort()
            return
        for data in self._waiting:
            other._transport.write(data)
        self._other = other
        if self._closed:
            other._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._waiting.append(data)
        else:
            self._other._transport.write(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._closed = True
        if self._other is not None:
            self._other._transport.close()
