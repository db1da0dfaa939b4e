"""Speaks with an API server: whole answers, and streams of lines, as raw bytes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import orjson

from gpugate.webhook.cluster import credentials
from gpugate.webhook.cluster.errors import ApiError
from gpugate.webhook.cluster.stream import Stream
from gpugate.webhook.cluster.unreachable import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubernetes.client import ApiClient
    from urllib3 import BaseHTTPResponse

    from gpugate.webhook.cluster.options import ClusterOptions

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 60


def connect(options: ClusterOptions) -> Connection:
    """Make ready to speak with a cluster; nothing is sent before the first call.

    Raises:
        ClusterError: there is no configuration, or it cannot be used.
    """
    return Connection(lambda: credentials.load(options))


class Connection:
    """An API server and the credentials to speak with it; many threads may use it at once.

    `load` makes the client anew; it is called again when the server no longer accepts the credentials.
    """

    def __init__(self, load: Callable[[], ApiClient]) -> None:
        self._load = load
        self._client = load()
        # Reading a token again may run a credential plugin: once is enough for all threads.
        self._credentials = threading.Lock()

    @property
    def host(self) -> str:
        """The URL of the API server."""
        host: str = self._client.configuration.host
        return host

    def read(self, path: str, parameters: Mapping[str, str]) -> bytes:
        """Return the whole answer to a GET.

        Raises:
            ApiError: the answer is an error.
            UnreachableError: there is no answer, or it broke off.
        """
        # A kept connection may have been closed by the other side; one more try is with a new one.
        response = self._get(path, parameters, READ_SECONDS, retries=1)
        with explained(self.host):
            return response.data

    def stream(self, path: str, parameters: Mapping[str, str], silence: float) -> Stream:
        """Return the answer to a GET as it comes; more than `silence` seconds without a byte end it.

        Raises:
            ApiError: the answer is an error.
            UnreachableError: there is no answer.
        """
        return Stream(self._get(path, parameters, silence, retries=0), self.host)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._client.close()

    def _get(self, path: str, parameters: Mapping[str, str], silence: float, retries: int) -> BaseHTTPResponse:
        from urllib3 import Retry, Timeout  # noqa: PLC0415 -- only what speaks with a cluster pays for it

        client = self._client
        headers = self._headers(client, path)
        with explained(client.configuration.host):
            response: BaseHTTPResponse = client.rest_client.pool_manager.request(
                "GET",
                client.configuration.host + path,
                fields=dict(parameters),
                headers=headers,
                timeout=Timeout(connect=CONNECT_SECONDS, read=silence),
                # To wait as the server says is the matter of whoever calls again.
                retries=Retry(total=retries, connect=0, status=0, respect_retry_after_header=False),
                preload_content=False,
                # The API server never sends one elsewhere; another's redirect must not be followed with our token.
                redirect=False,
            )
            if response.status == 200:
                return response
            body = response.data
        if response.status == 401:
            self._renew(client)
        raise ApiError.of(_parsed(body), response.status, _seconds(response.headers.get("Retry-After")))

    def _headers(self, client: ApiClient, path: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": str(client.user_agent)}
        with self._credentials:
            client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
        return headers

    def _renew(self, refused: ApiClient) -> None:
        with self._credentials:
            if self._client is refused:
                self._client = self._load()


def _parsed(body: bytes) -> object:
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None  # a proxy's page; the HTTP status must do
    return value


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdecimal() else 0.0
