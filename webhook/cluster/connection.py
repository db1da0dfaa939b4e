"""Speaks with an API server: whole answers, and streams of lines, as raw bytes; what is written goes out once."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from gpugate.webhook.cluster import credentials, warning_headers
from gpugate.webhook.cluster.clock_skew import ClockSkew, wall_clock
from gpugate.webhook.cluster.errors import ApiError
from gpugate.webhook.cluster.stream import Stream
from gpugate.webhook.cluster.unreachable import explained

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Mapping, Sequence

    from kubernetes.client import ApiClient
    from urllib3 import BaseHTTPResponse

    from gpugate.webhook.cluster.options import ClusterOptions

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 60
_GOOD: Final = {200, 201, 202}


def connect(options: ClusterOptions, silence: float = READ_SECONDS) -> Connection:
    """Make ready to speak with a cluster; nothing is sent before the first call. `silence` is as `Connection` has it.

    Raises:
        ClusterError: there is no configuration, or it cannot be used.
    """
    return Connection(lambda: credentials.load(options), silence)


class _Call(NamedTuple):
    method: str
    path: str
    parameters: Mapping[str, str] = MappingProxyType({})
    body: object = None
    media_type: str = "application/json"
    retries: int = 0


class Connection:
    """An API server and the credentials to speak with it; many threads may use it at once.

    `load` makes the client anew; it is called again when the server no longer accepts the credentials. A whole answer
    of which nothing is heard for `silence` seconds is given up; `now` is the clock of this machine.
    """

    def __init__(
        self,
        load: Callable[[], ApiClient],
        silence: float = READ_SECONDS,
        now: Callable[[], dt.datetime] = wall_clock,
    ) -> None:
        self._load = load
        self._client = load()
        self._silence = silence
        self._skew = ClockSkew(now)
        # Reading a token again may run a credential plugin: once is enough for all threads.
        self._credentials = threading.Lock()

    @property
    def host(self) -> str:
        """The URL of the API server."""
        host: str = self._client.configuration.host
        return host

    @property
    def clock_skew(self) -> dt.timedelta | None:
        """The API server's clock minus ours, as the last answer showed it, to about a second; None before one."""
        return self._skew.value

    def read(self, path: str, parameters: Mapping[str, str]) -> bytes:
        """Return the whole answer to a GET.

        Raises:
            ApiError: the answer is an error.
            UnreachableError: there is no answer, or it broke off.
        """
        # A kept connection may have been closed by the other side; one more try is with a new one.
        return self._whole(_Call("GET", path, parameters, retries=1))

    def stream(self, path: str, parameters: Mapping[str, str], silence: float) -> Stream:
        """Return the answer to a GET as it comes; more than `silence` seconds without a byte end it.

        Raises:
            ApiError: the answer is an error.
            UnreachableError: there is no answer.
        """
        return Stream(self._send(_Call("GET", path, parameters), silence), self.host)

    def create(self, path: str, body: object) -> bytes:
        """Create an object in a collection; returns it as it was stored.

        Raises:
            ApiError: the answer is an error; 409 when an object of that name is there.
            UnreachableError: there is no answer, or it broke off; the object may have been created.
        """
        return self._whole(_Call("POST", path, body=body))

    def try_create(self, path: str, body: object) -> Sequence[str]:
        """Have an object admitted as if it were created, without storing it; returns the warnings that this earned.

        Raises:
            ApiError: it would not be created; the text is what whoever refused it said.
            UnreachableError: there is no answer, or it broke off.
        """
        response = self._send(_Call("POST", path, {"dryRun": "All"}, body), self._silence)
        with explained(self.host):
            _ = response.data  # so that the connection can be used again
        return warning_headers.texts(response.headers.getlist("Warning"))

    def replace(self, path: str, body: object) -> bytes:
        """Replace an object by one that carries the resource version it was read with; returns it as it was stored.

        Raises:
            ApiError: the answer is an error; 409 when the object was changed since.
            UnreachableError: there is no answer, or it broke off; the object may have been replaced.
        """
        return self._whole(_Call("PUT", path, body=body))

    def apply(self, path: str, body: object, manager: str) -> bytes:
        """Set the fields of an object that `body` holds and become their owner (server-side apply, forced).

        Raises:
            ApiError: the answer is an error; 409 when `body` has a resource version that is not the newest.
            UnreachableError: there is no answer, or it broke off; the fields may have been set.
        """
        parameters = {"fieldManager": manager, "force": "true"}
        return self._whole(_Call("PATCH", path, parameters, body, "application/apply-patch+yaml"))

    def merge(self, path: str, body: object, manager: str) -> bytes:
        """Change the fields of an object that `body` holds (JSON merge patch, RFC 7386).

        Raises:
            ApiError: the answer is an error; 409 when `body` has a resource version that is not the newest.
            UnreachableError: there is no answer, or it broke off; the fields may have been changed.
        """
        return self._whole(_Call("PATCH", path, {"fieldManager": manager}, body, "application/merge-patch+json"))

    def merge_by_key(self, path: str, body: object, manager: str) -> bytes:
        """Change the fields of a built-in object that `body` holds, those of lists by their keys (strategic merge).

        Raises:
            ApiError: the answer is an error; 409 when `body` has a resource version that is not the newest.
            UnreachableError: there is no answer, or it broke off; the fields may have been changed.
        """
        media_type = "application/strategic-merge-patch+json"
        return self._whole(_Call("PATCH", path, {"fieldManager": manager}, body, media_type))

    def delete(self, path: str) -> bytes:
        """Delete an object.

        Raises:
            ApiError: the answer is an error; 404 when there is none.
            UnreachableError: there is no answer, or it broke off; the object may have been deleted.
        """
        return self._whole(_Call("DELETE", path))

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._client.close()

    def _whole(self, call: _Call) -> bytes:
        response = self._send(call, self._silence)
        with explained(self.host):
            return response.data

    def _send(self, call: _Call, silence: float) -> BaseHTTPResponse:
        from urllib3 import Retry, Timeout  # noqa: PLC0415 -- only what speaks with a cluster pays for it

        client = self._client
        headers = self._headers(client, call.method, call.path)
        url = client.configuration.host + call.path + (f"?{urlencode(call.parameters)}" if call.parameters else "")
        if call.body is not None:
            headers["Content-Type"] = call.media_type
        sent = self._skew.now()
        with explained(client.configuration.host):
            response: BaseHTTPResponse = client.rest_client.pool_manager.request(
                call.method,
                url,
                body=None if call.body is None else orjson.dumps(call.body),
                headers=headers,
                timeout=Timeout(connect=CONNECT_SECONDS, read=silence),
                # To wait as the server says is the matter of whoever calls again.
                retries=Retry(total=call.retries, connect=0, status=0, respect_retry_after_header=False),
                preload_content=False,
                # The API server never sends one elsewhere; another's redirect must not be followed with our token.
                redirect=False,
            )
            self._skew.measure(sent, response.headers.get("Date"))
            if response.status in _GOOD:
                return response
            answer = response.data
        if response.status == 401:
            # Credentials that cannot be read now may be there again at the next call.
            with explained(client.configuration.host):
                self._renew(client)
        raise ApiError.of(_parsed(answer), response.status, _seconds(response.headers.get("Retry-After")))

    def _headers(self, client: ApiClient, method: str, path: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": str(client.user_agent)}
        with self._credentials:
            client.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
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
