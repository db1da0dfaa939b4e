"""The server in front of the application: uvicorn, embedded, with TLS and HTTP/1.1 only.

The API server speaks HTTP/1.1 to webhooks and keeps idle connections for 90 s (`k8s.io/apiserver` pkg/util/webhook,
`k8s.io/apimachinery` pkg/util/net, v1.36). It does not send a review again when its connection was closed under it, so
connections are kept longer than that.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from typing import TYPE_CHECKING, Final

import uvicorn

from gpugate.webhook.admission.asgi import AdmissionAsgi

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from _typeshed.wsgi import WSGIApplication

    from gpugate.webhook.admission.gate import Gate

KEEP_ALIVE_SECONDS: Final = 120
# Below the 30 s that Kubernetes gives a Pod to end.
_GRACE_SECONDS: Final = 20


def listen(host: str, port: int) -> socket.socket:
    """Open the socket to serve on; port 0 takes any free one.

    Raises:
        OSError: the address is not ours or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)


def run(
    gate: Gate,
    wsgi: WSGIApplication,
    listener: socket.socket,
    tls: ssl.SSLContext,
    on_ready: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT; requests that came are answered first.

    Args:
        gate: answers reviews.
        wsgi: the application that answers everything else.
        listener: the socket from `listen`; closed at the end.
        tls: how to speak TLS on it.
        on_ready: called once when requests are answered.
    """
    config = uvicorn.Config(
        AdmissionAsgi(gate, wsgi),
        http="httptools",
        loop="uvloop",
        ws="none",
        interface="asgi3",
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ssl_context_factory=lambda _config, _default: tls,
    )
    _Server(config, on_ready).run(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop gracefully on a signal and leave it at that; uvicorn would then die of the signal itself."""
        handled = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
