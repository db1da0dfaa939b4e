"""The front of one worker: accepts connections within bounds, and ends them in time.

The API server speaks HTTP/1.1 to webhooks and keeps idle connections for 90 s (`k8s.io/apiserver` pkg/util/webhook,
`k8s.io/apimachinery` pkg/util/net, v1.36). It does not send a review again when its connection was closed under it, so
connections are kept longer than that, and a worker that is to end first asks clients to leave.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, TypeAlias

import uvicorn
from uvicorn.server import ServerState

from gpugate.webhook.admission.front.connection import Connection
from gpugate.webhook.admission.front.limits import Connections, FrontEvent
from gpugate.webhook.admission.front.load import Load, Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.admission.asgi import Asgi
    from gpugate.webhook.admission.front.limits import Limits, Place

Context: TypeAlias = "Callable[[], ssl.SSLContext]"

_BACKLOG: Final = 2048
_SWEEP_SECONDS: Final = 0.5
_ACCEPTED_AT_ONCE: Final = 16
# How long to leave connections where they are when there is no descriptor for another.
_PAUSE_SECONDS: Final = 0.5
# The probes of a kubelet and scrapes; they must come through when the rest is full.
_HEALTH_CONNECTIONS: Final = 128


def listen(host: str, port: int) -> socket.socket:
    """Open a socket to accept on; port 0 takes any free one.

    Raises:
        OSError: the address is not ours or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 -- a socket's own signature
    return listener


class Front:
    """Everything between the listeners and the application; must be made in the event loop it works in.

    `client_names` are the names in client certificates that are let in over TLS; None asks for no name.
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
            lifespan="off",
            timeout_keep_alive=limits.keep_alive,
            access_log=False,
            log_config=None,
            proxy_headers=False,
        )
        self.config.load()
        self.places = Connections(limits.connections, limits.per_source)
        self._listeners: list[socket.socket] = []
        self._starting: set[asyncio.Task[None]] = set()

    def accept_from(self, listener: socket.socket, tls: Context | None) -> None:
        """Accept connections; `tls` gives the context for the next one, None is plain HTTP."""
        places = self.places if tls else Connections(_HEALTH_CONNECTIONS, _HEALTH_CONNECTIONS)
        self._listeners.append(listener)
        self.loop.add_reader(listener, self._accept, listener, tls, places)

    def stop_accepting(self) -> None:
        """Leave new connections to others."""
        for listener in self._listeners:
            self.loop.remove_reader(listener)
            listener.close()
        self._listeners.clear()

    async def keep_time(self) -> None:
        """End connections whose deadline has passed, and keep the date; runs until cancelled."""
        while True:
            self.state.default_headers = [(b"date", formatdate(usegmt=True).encode("ascii"))]
            now = self.loop.time()
            for connection in tuple(self.open):
                connection.expire(now)
            await asyncio.sleep(_SWEEP_SECONDS)

    def drain(self) -> None:
        """Ask everybody to leave: the answer to each request says so, also where it is being read or judged now."""
        self.draining = True
        for connection in tuple(self.open):
            connection.leave_after_answer()

    async def leave(self, seconds: float) -> None:
        """Stop accepting, and wait until nobody is connected, at most so long; then cut off who is left."""
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

    def _accept(self, listener: socket.socket, tls: Context | None, places: Connections) -> None:
        # Some at a time: many who come at once must not wait a turn each, and other workers should get their share.
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self.loop.remove_reader(listener)
                self.loop.call_later(_PAUSE_SECONDS, self._accept_again, listener, tls, places)
                return
            self._begin(client, address[0], tls, places)

    def _begin(self, client: socket.socket, source: str, tls: Context | None, places: Connections) -> None:
        place = places.enter(source)
        if isinstance(place, FrontEvent):
            self.count(place)
            client.close()
            return
        self.count(FrontEvent.ACCEPTED)
        client.setblocking(False)  # noqa: FBT003 -- as above
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self.loop.create_task(self._start(client, tls, place))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _accept_again(self, listener: socket.socket, tls: Context | None, places: Connections) -> None:
        if listener in self._listeners:
            self.loop.add_reader(listener, self._accept, listener, tls, places)

    async def _start(self, client: socket.socket, tls: Context | None, place: Place) -> None:
        seconds = self.limits.handshake if tls else None
        try:
            await self.loop.connect_accepted_socket(
                lambda: Connection(self, place),
                client,
                ssl=tls() if tls else None,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except (OSError, ssl.SSLError) as error:
            place.release()
            late = isinstance(error, ConnectionAbortedError)
            self.count(FrontEvent.HANDSHAKE_TIMEOUT if late else FrontEvent.HANDSHAKE_FAILED)
