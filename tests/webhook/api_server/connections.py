"""Connections to a webhook as Go's transport keeps them.

Up to 25 idle ones for 90 s, the last used first; one that the other side closed while idle is noticed and left
(`k8s.io/apimachinery` pkg/util/net/http.go, `k8s.io/client-go` transport/cache.go, v1.36; Go's net/http).
"""

from __future__ import annotations

import http.client
import select
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

IDLE_CONNECTIONS = 25
IDLE_SECONDS = 90.0


class TlsConnection(http.client.HTTPConnection):
    """HTTP/1.1 over TLS, to an address that need not be the name in the certificate."""

    def __init__(self, host: str, port: int, server_name: str, trust: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._server_name = server_name
        self._trust = trust

    def connect(self) -> None:
        """Open the socket and shake hands, each within the timeout."""
        plain = socket.create_connection((self.host, self.port), self.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.sock = self._trust.wrap_socket(plain, server_hostname=self._server_name)
        except BaseException:
            plain.close()
            raise

    def give(self, seconds: float) -> None:
        """Let what follows take this long at most."""
        self.timeout = seconds
        if self.sock is not None:
            self.sock.settimeout(seconds)

    def gone(self) -> bool:
        """Tell whether the other side closed it, or said something that nobody asked for."""
        if self.sock is None:
            return True
        waiting = select.poll()
        waiting.register(self.sock, select.POLLIN)
        return bool(waiting.poll(0))


class IdleConnections:
    """The idle connections to one address; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[tuple[float, TlsConnection]] = deque()

    def take(self) -> TlsConnection | None:
        """Return the connection that was used last and still lives; None where there is none."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            if time.monotonic() - since <= IDLE_SECONDS and not connection.gone():
                return connection
            connection.close()

    def put(self, connection: TlsConnection) -> None:
        """Keep a connection for the next call, unless enough are kept."""
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            while self._idle:
                self._idle.pop()[1].close()
