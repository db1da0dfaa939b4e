"""Connect to an API server: complete responses and streams of lines as raw bytes. Writes are never repeated."""

from __future__ import annotations

import datetime as dt
import re
import threading
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from urllib.parse import urlencode

import orjson

from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster import credentials
from gpugate.webhook.cluster.errors import ApiError, ClusterError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kubernetes.client import ApiClient
    from urllib3 import BaseHTTPResponse

    from gpugate.webhook.cluster.options import ClusterOptions

_TLS_REASONS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "untrusted certificate: check certificate-authority in the kubeconfig",
    "WRONG_VERSION_NUMBER": "the server does not use TLS: check that the port is the HTTPS port of an API server",
}
_TLS_FAILED: Final = "TLS failed: check the client certificate of the kubeconfig"
# The keys are names of urllib3's exceptions.
_REASONS: Final = {
    "NameResolutionError": "the name does not resolve: check the server in the kubeconfig, and DNS",
    "ConnectTimeoutError": "connection timed out: check the network, network policies and firewalls",
    "ProxyError": "the proxy rejected the connection: check HTTPS_PROXY and NO_PROXY",
    "ReadTimeoutError": "the response timed out",
}


@contextmanager
def convert_transport_errors(host: str) -> Iterator[None]:
    """Convert errors of the transport to `UnreachableError`.

    Raises:
        UnreachableError: the transport, or reading the credentials, failed.
    """
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 -- only commands that connect to a cluster import it

    try:
        yield
    except (HTTPError, OSError) as error:
        raise UnreachableError(f"{host}: {_reason(error)}") from None
    except ClusterError as error:
        raise UnreachableError(str(error)) from None


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error  # a MaxRetryError contains the error of its last attempt
    name, text = type(cause).__name__, str(cause)
    if name == "SSLError":
        return next((reason for code, reason in _TLS_REASONS.items() if code in text), _TLS_FAILED)
    if name == "NewConnectionError":
        system = cause.__cause__ if isinstance(cause, BaseException) else None
        detail = system.strerror if isinstance(system, OSError) and system.strerror else "no connection"
        return f"{detail.lower()}: check that the API server is running, and the server in the kubeconfig"
    return _REASONS.get(name, f"the connection failed ({name})")


# An API server sends no other code than 299 (`k8s.io/apimachinery` pkg/util/net/http.go NewWarningHeader, v0.36).
_WARNING: Final = re.compile(r'299 [^ ]+ "((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")


def parse_warnings(headers: Iterable[str]) -> Sequence[str]:
    """Return the texts of `Warning` headers; one header can contain several."""
    return [_ESCAPED.sub(r"\1", text) for header in headers for text in _WARNING.findall(header)]


_CHUNK: Final = 64 * 1024


class Stream:
    """The lines of one response; leaving the context closes the connection."""

    def __init__(self, response: BaseHTTPResponse, host: str) -> None:
        self._response = response
        self._host = host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def lines(self) -> Iterator[bytes]:
        """Yield each line as soon as it is complete.

        Raises:
            UnreachableError: the connection failed, timed out, or ended within a line.
        """
        remainder = b""
        while True:
            with convert_transport_errors(self._host):
                chunk = self._response.read1(_CHUNK)
            if not chunk:
                break
            *complete, remainder = (remainder + chunk).split(b"\n")
            yield from (line for line in complete if line)
        if remainder:
            raise UnreachableError(f"{self._host}: the watch ended within an event")

    def shutdown(self) -> None:
        """End the stream while another thread waits in `lines`."""
        with suppress(OSError, ValueError, RuntimeError):  # the response may be closed already
            self._response.shutdown()


# A `Date` header is truncated to whole seconds, so on average it is half a second early.
_HALF_A_SECOND: Final = dt.timedelta(milliseconds=500)
# The time of the header is too uncertain if the response took longer.
_MAX_ELAPSED: Final = dt.timedelta(seconds=5)


def wall_clock() -> dt.datetime:
    """Return the time of this machine, in UTC."""
    return dt.datetime.now(tz=dt.UTC)


class ClockSkew:
    """The clock of the API server minus the local clock, from the last response; None before the first.

    It is accurate to about a second. Each HTTP/1.1 response has a `Date` header (observed with kube-apiserver v1.36.3
    on results, errors and watches).
    """

    def __init__(self, now: Callable[[], dt.datetime]) -> None:
        self.now = now
        self.value: dt.timedelta | None = None

    def measure(self, sent: dt.datetime, header: str | None) -> None:
        """Measure the difference by the `Date` header of a response whose head arrived now.

        Args:
            sent: when the request was sent, by the local clock.
            header: the `Date` header; None if the response has none.
        """
        elapsed = self.now() - sent
        # Negative if the local clock was set back meanwhile.
        if header is None or not dt.timedelta() <= elapsed <= _MAX_ELAPSED:
            return
        try:
            server_time = parsedate_to_datetime(header)
        except ValueError:
            return
        if server_time.tzinfo is not None:
            self.value = server_time + _HALF_A_SECOND - (sent + elapsed / 2)


CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 60
_SUCCESS: Final = {200, 201, 202}


def connect(options: ClusterOptions, read_timeout: float = READ_SECONDS) -> Connection:
    """Create a connection to a cluster; the first call sends the first request.

    Args:
        options: the cluster.
        read_timeout: after how many seconds without a byte a call fails.

    Raises:
        ClusterError: the kubeconfig or ServiceAccount is missing or unusable.
    """
    return Connection(lambda: credentials.load(options), read_timeout)


class _Call(NamedTuple):
    method: str
    path: str
    parameters: Mapping[str, str] = MappingProxyType({})
    body: object = None
    media_type: str = "application/json"
    retries: int = 0


class Connection:
    """An API server and the credentials to call it; several threads may use it at the same time.

    `load` creates the client, and is called again when the server rejects the credentials. A call that receives no byte
    for `read_timeout` seconds fails. `now` is the local clock.
    """

    def __init__(
        self,
        load: Callable[[], ApiClient],
        read_timeout: float = READ_SECONDS,
        now: Callable[[], dt.datetime] = wall_clock,
    ) -> None:
        self._load = load
        self._client = load()
        self._read_timeout = read_timeout
        self._skew = ClockSkew(now)
        # Reading a token can run a credential plugin, which must run only once for all threads.
        self._credentials = threading.Lock()

    @property
    def host(self) -> str:
        """The URL of the API server."""
        host: str = self._client.configuration.host
        return host

    @property
    def clock_skew(self) -> dt.timedelta | None:
        """The API server's clock minus the local clock, accurate to about a second; None before the first response."""
        return self._skew.value

    def read(self, path: str, parameters: Mapping[str, str]) -> bytes:
        """Return the complete response to a GET.

        Raises:
            ApiError: the response is an error.
            UnreachableError: the response is missing or incomplete.
        """
        # The server may have closed a kept connection. The second attempt uses a new one.
        return self._fetch(_Call("GET", path, parameters, retries=1))

    def stream(self, path: str, parameters: Mapping[str, str], read_timeout: float) -> Stream:
        """Return the response to a GET as a stream; it fails after `read_timeout` seconds without a byte.

        Raises:
            ApiError: the response is an error.
            UnreachableError: the response is missing.
        """
        return Stream(self._send(_Call("GET", path, parameters), read_timeout), self.host)

    def create(self, path: str, body: object) -> bytes:
        """Create an object in a collection; return the stored object.

        Raises:
            ApiError: the response is an error; 409 if an object of that name exists.
            UnreachableError: the response is missing or incomplete; the object may have been created.
        """
        return self._fetch(_Call("POST", path, body=body))

    def try_create(self, path: str, body: object) -> Sequence[str]:
        """Create an object as a dry run, without storing it; return the admission warnings.

        Raises:
            ApiError: it would be rejected; the text is the message of the API server or the admission webhook.
            UnreachableError: the response is missing or incomplete.
        """
        response = self._send(_Call("POST", path, {"dryRun": "All"}, body), self._read_timeout)
        with convert_transport_errors(self.host):
            _ = response.data  # only a connection whose response was read can be reused
        return parse_warnings(response.headers.getlist("Warning"))

    def replace(self, path: str, body: object) -> bytes:
        """Replace an object; `body` contains the resource version that was read. Return the stored object.

        Raises:
            ApiError: the response is an error; 409 if the object changed after it was read.
            UnreachableError: the response is missing or incomplete; the object may have been replaced.
        """
        return self._fetch(_Call("PUT", path, body=body))

    def apply(self, path: str, body: object, manager: str) -> bytes:
        """Apply the fields in `body` to an object and take their ownership (server-side apply, forced).

        Raises:
            ApiError: the response is an error; 409 if `body` contains an outdated resource version.
            UnreachableError: the response is missing or incomplete; the fields may have been set.
        """
        parameters = {"fieldManager": manager, "force": "true"}
        return self._fetch(_Call("PATCH", path, parameters, body, "application/apply-patch+yaml"))

    def merge(self, path: str, body: object, manager: str) -> bytes:
        """Patch an object with the fields in `body` (JSON merge patch, RFC 7386).

        Raises:
            ApiError: the response is an error; 409 if `body` contains an outdated resource version.
            UnreachableError: the response is missing or incomplete; the fields may have been changed.
        """
        return self._fetch(_Call("PATCH", path, {"fieldManager": manager}, body, "application/merge-patch+json"))

    def merge_by_key(self, path: str, body: object, manager: str) -> bytes:
        """Patch a built-in object with the fields in `body`, list elements by their keys (strategic merge patch).

        Raises:
            ApiError: the response is an error; 409 if `body` contains an outdated resource version.
            UnreachableError: the response is missing or incomplete; the fields may have been changed.
        """
        media_type = "application/strategic-merge-patch+json"
        return self._fetch(_Call("PATCH", path, {"fieldManager": manager}, body, media_type))

    def delete(self, path: str) -> bytes:
        """Delete an object.

        Raises:
            ApiError: the response is an error; 404 if the object does not exist.
            UnreachableError: the response is missing or incomplete; the object may have been deleted.
        """
        return self._fetch(_Call("DELETE", path))

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    def _fetch(self, call: _Call) -> bytes:
        response = self._send(call, self._read_timeout)
        with convert_transport_errors(self.host):
            return response.data

    def _send(self, call: _Call, read_timeout: float) -> BaseHTTPResponse:
        from urllib3 import Retry, Timeout  # noqa: PLC0415 -- only commands that connect to a cluster import it

        client = self._client
        headers = self._headers(client, call.method, call.path)
        url = client.configuration.host + call.path + (f"?{urlencode(call.parameters)}" if call.parameters else "")
        if call.body is not None:
            headers["Content-Type"] = call.media_type
        sent = self._skew.now()
        with convert_transport_errors(client.configuration.host):
            response: BaseHTTPResponse = client.rest_client.pool_manager.request(
                call.method,
                url,
                body=None if call.body is None else orjson.dumps(call.body),
                headers=headers,
                timeout=Timeout(connect=CONNECT_SECONDS, read=read_timeout),
                # The caller waits as long as `Retry-After` says before it calls again.
                retries=Retry(total=call.retries, connect=0, status=0, respect_retry_after_header=False),
                preload_content=False,
                # The API server sends no redirects. The token must not be sent to the target of another server's.
                redirect=False,
            )
            self._skew.measure(sent, response.headers.get("Date"))
            if response.status in _SUCCESS:
                return response
            content = response.data
        if response.status == 401:
            # If the credentials are unreadable now, the next call tries again.
            with convert_transport_errors(client.configuration.host):
                self._renew(client)
        raise ApiError.of(_parse_json(content), response.status, _parse_seconds(response.headers.get("Retry-After")))

    def _headers(self, client: ApiClient, method: str, path: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": str(client.user_agent)}
        with self._credentials:
            client.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
        return headers

    def _renew(self, rejected: ApiClient) -> None:
        with self._credentials:
            if self._client is rejected:
                self._client = self._load()


def _parse_json(body: bytes) -> object:
    try:
        value: object = read_json(orjson.loads, body)
    except orjson.JSONDecodeError:
        return None  # such as the error page of a proxy; the HTTP status is reported instead
    return value


def _parse_seconds(header: str | None) -> float:
    return float(header) if header and header.isdecimal() else 0.0
