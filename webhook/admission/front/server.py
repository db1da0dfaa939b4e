"""The front of one worker: accepts connections within limits and closes them at their deadlines.

The API server uses HTTP/1.1 for webhooks and keeps idle connections for 90 s (`k8s.io/apiserver` pkg/util/webhook,
`k8s.io/apimachinery` pkg/util/net, v1.36). It does not retry a review after the server closes the connection. So the
front keeps connections longer than 90 s, and a worker asks clients to close their connections before it exits.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import uvicorn
from uvicorn.server import ServerState

from gpugate.webhook.admission.front.connection import Connection, Scheme
from gpugate.webhook.admission.front.limits import Connections, FrontEvent
from gpugate.webhook.admission.front.load import Load, Turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from gpugate.webhook.admission.front.limits import Limits, Slot

Context: TypeAlias = "Callable[[], ssl.SSLContext]"
# Any: the values of an ASGI scope and of its messages differ by key.
_Message: TypeAlias = "MutableMapping[str, Any]"
Asgi: TypeAlias = (
    "Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]"
)

_BACKLOG: Final = 2048
# The received bytes of a connection that the kernel keeps, and so the most that an iteration of the event loop reads from it. By
# default the kernel keeps up to 6 MiB: eight clients that sent large bodies made a server lose 358 of 601 reviews, and lose none
# with this limit. It allows 6 MB/s if the network takes 10 ms.
_RECEIVED: Final = 64 * 1024
_SWEEP_SECONDS: Final = 0.5
_ACCEPTED_AT_ONCE: Final = 16
# The pause in accepting when the process has no free file descriptor.
_PAUSE_SECONDS: Final = 0.5
# Probes of the kubelet and scrapes have a limit of their own, so that they work when the admission port is full.
_HEALTH_CONNECTIONS: Final = 128


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 selects a free port.

    Raises:
        OSError: the address is not local or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 -- the signature of socket
    # Its connections inherit the size.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
    return listener


class Front:
    """Connects the listeners with the application; create it in the event loop that runs it.

    `client_names` are the allowed names in client certificates; None allows every client.
    """

    def __init__(
        self,
        app: Callable[[Load, Turns], Asgi],
        limits: Limits,
        count: Callable[[FrontEvent], None],
        client_names: frozenset[str] | None = None,
    ) -> None:
        self.limits = limits
        self.client_names = client_names
        self.count = count
        self.loop = asyncio.get_running_loop()
        self.load = Load(limits)
        self.state = ServerState()
        self.open: set[Connection] = set()
        self.draining = False
        self.config = uvicorn.Config(
            app(self.load, Turns(self.loop, self.load)),
            http="httptools",
            ws="none",
            interface="asgi3",
            timeout_keep_alive=limits.keep_alive,
            access_log=False,
            log_config=None,
            proxy_headers=False,
        )
        self.config.load()
        self.slots = Connections(limits.connections, limits.per_source)
        self._listeners: list[socket.socket] = []
        self._starting: set[asyncio.Task[None]] = set()

    def accept_from(self, listener: socket.socket, tls: Context | None) -> None:
        """Accept connections; `tls` returns the context for the next connection, None is plain HTTP.

        A Unix socket without TLS carries reviews that workers received over TLS and handed over.
        """
        slots = self.slots if tls else Connections(_HEALTH_CONNECTIONS, _HEALTH_CONNECTIONS)
        self._listeners.append(listener)
        self.loop.add_reader(listener, self._accept, listener, tls, slots)

    def stop_accepting(self) -> None:
        """Close the listeners, so that other processes get new connections."""
        for listener in self._listeners:
            self.loop.remove_reader(listener)
            listener.close()
        self._listeners.clear()

    async def keep_time(self) -> None:
        """Close connections after their deadline and update the Date header; runs until cancelled."""
        while True:
            self.state.default_headers = [(b"date", formatdate(usegmt=True).encode("ascii"))]
            now = self.loop.time()
            for connection in tuple(self.open):
                connection.expire(now)
            await asyncio.sleep(_SWEEP_SECONDS)

    def drain(self) -> None:
        """Ask clients to close their connections: every response says so, including those to requests in progress."""
        self.draining = True
        for connection in tuple(self.open):
            connection.leave_after_answer()

    async def leave(self, seconds: float) -> None:
        """Stop accepting, and wait at most `seconds` until all connections are closed; then close the rest."""
        self.drain()
        self.stop_accepting()
        for connection in tuple(self.open):
            if connection.is_idle:
                connection.end()
        end = self.loop.time() + seconds
        while (self.open or self._starting) and self.loop.time() < end:  # noqa: ASYNC110 -- there is no event for either
            await asyncio.sleep(0.05)
        for connection in tuple(self.open):
            connection.end()
        await asyncio.sleep(0)

    def _accept(self, listener: socket.socket, tls: Context | None, slots: Connections) -> None:
        # Accept a few at a time: one per iteration would delay a burst, and all would leave none for other workers.
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self.loop.remove_reader(listener)
                self.loop.call_later(_PAUSE_SECONDS, self._accept_again, listener, tls, slots)
                return
            # Clients of a Unix socket have no address.
            self._begin(client, address[0] if address else "", tls, slots)

    def _begin(self, client: socket.socket, source: str, tls: Context | None, slots: Connections) -> None:
        slot = slots.enter(source, lambda: self.count(FrontEvent.REFUSED_TOTAL))
        if isinstance(slot, FrontEvent):
            self.count(slot)
            client.close()
            return
        self.count(FrontEvent.ACCEPTED)
        client.setblocking(False)  # noqa: FBT003 -- as above
        if client.family != socket.AF_UNIX:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self.loop.create_task(self._start(client, tls, slot))
        slot.gives_way = task.cancel
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        # `_start` ends when it is cancelled; one that has not begun did not take the socket.
        task.add_done_callback(lambda ended: client.close() if ended.cancelled() else None)

    def _accept_again(self, listener: socket.socket, tls: Context | None, slots: Connections) -> None:
        if listener in self._listeners:
            self.loop.add_reader(listener, self._accept, listener, tls, slots)

    async def _start(self, client: socket.socket, tls: Context | None, slot: Slot) -> None:
        seconds = self.limits.handshake if tls else None
        scheme: Scheme = "https" if tls or client.family == socket.AF_UNIX else "http"
        connection = Connection(self, slot, scheme)
        try:
            await self.loop.connect_accepted_socket(
                lambda: connection,
                client,
                ssl=tls() if tls else None,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except (OSError, ssl.SSLError) as error:
            connection.abandon()
            late = isinstance(error, ConnectionAbortedError)
            self.count(FrontEvent.HANDSHAKE_TIMEOUT if late else FrontEvent.HANDSHAKE_FAILED)
        except asyncio.CancelledError:
            # The connection gave way to another one.
            connection.abandon()
