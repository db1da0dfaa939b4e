"""Calls a webhook as kube-apiserver does: one client for each URL and authority.

Sources: `k8s.io/apiserver` pkg/util/webhook/client.go, `k8s.io/client-go` rest/request.go and rest/with_retry.go, v1.36;
what is said of retries, closed connections and headers was seen of kube-apiserver 1.36.3.
"""

from __future__ import annotations

import http.client
import math
import ssl
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from api_server.connections import IdleConnections, TlsConnection
from api_server.errors import TransportError
from api_server.responses import HttpAnswer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADERS = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}
# A webhook under load asks for them (`e2e/api_server_answers/test_retries.py`).
MOST_RETRIES = 10


class Client:
    """Posts bodies to one URL; safe to use from several threads.

    Attributes:
        opened: how many connections were opened so far.
    """

    def __init__(self, url: str, ca_file: Path, *, server_name: str | None = None) -> None:
        """Make a client that has no connection yet.

        Args:
            url: of the webhook, `https://HOST:PORT/PATH`.
            ca_file: the authority to trust, PEM.
            server_name: the name to ask for and to verify, such as `gpugate.gpugate.svc`; by default the URL's host.
        """
        self.url = url
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 443
        self._path = address.path or "/"
        self._server_name = server_name or self._host
        self._trust = ssl.create_default_context(cafile=ca_file)
        self._trust.set_alpn_protocols(["http/1.1"])
        self._idle = IdleConnections()
        self._counting = threading.Lock()
        self.opened = 0

    def post(self, body: bytes, timeout_seconds: float) -> HttpAnswer:
        """Send a body, again where the webhook asks for that, and return the last answer, whatever its status.

        Raises:
            TransportError: no answer came, or not in time.
        """
        deadline = time.monotonic() + timeout_seconds
        target = f"{self._path}?timeout={math.ceil(timeout_seconds)}s"
        return retried(lambda: self._post(target, body, deadline), deadline)

    def _post(self, target: str, body: bytes, deadline: float) -> HttpAnswer:
        connection: TlsConnection | None = None
        try:
            connection = self._connection(deadline)
            connection.give(_left(deadline))
            connection.request("POST", target, body, HEADERS)
            connection.give(_left(deadline))
            response = connection.getresponse()
            content = response.read()
            _left(deadline)
        except TimeoutError:
            self._drop(connection)
            raise self._failed(target, "context deadline exceeded") from None
        except (OSError, http.client.HTTPException) as error:
            self._drop(connection)
            raise self._failed(target, _told(error)) from None
        except BaseException:
            self._drop(connection)
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.put(connection)
        headers = {name.lower(): value for name, value in response.getheaders()}
        return HttpAnswer(response.status, headers, content)

    def close(self) -> None:
        """Close the connections that are idle."""
        self._idle.close()

    def _connection(self, deadline: float) -> TlsConnection:
        connection = self._idle.take()
        if connection is None:
            connection = TlsConnection(self._host, self._port, self._server_name, self._trust, _left(deadline))
            try:
                connection.connect()
            except BaseException:
                connection.close()
                raise
            with self._counting:
                self.opened += 1
        return connection

    def _failed(self, target: str, reason: str) -> TransportError:
        origin = self.url.removesuffix(self._path) if self._path != "/" else self.url
        return TransportError(f'failed to call webhook: Post "{origin}{target}": {reason}')

    @staticmethod
    def _drop(connection: TlsConnection | None) -> None:
        if connection is not None:
            connection.close()


def retried(call: Callable[[], HttpAnswer], deadline: float) -> HttpAnswer:
    """Repeat a call that is answered with 429 or 5xx and a number of seconds to wait; return the last answer.

    Args:
        call: sends the request; raises after the deadline.
        deadline: the time on the monotonic clock at which no call waits any longer.
    """
    answer = call()
    for _ in range(MOST_RETRIES):
        seconds = answer.headers.get("retry-after", "")
        if not (answer.status == http.client.TOO_MANY_REQUESTS or answer.status >= 500) or not seconds.isdecimal():
            break
        time.sleep(max(0.0, min(int(seconds), deadline - time.monotonic())))
        answer = call()
    return answer


def _left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _told(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {error.verify_message}"
    if isinstance(error, http.client.RemoteDisconnected | http.client.IncompleteRead | ssl.SSLEOFError):
        return "unexpected EOF" if isinstance(error, http.client.IncompleteRead) else "EOF"
    return str(error) or type(error).__name__
