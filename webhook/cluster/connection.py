"""A connection to an API server: whole responses and streams of lines, as raw bytes; writes are sent once."""

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

from gpugate.webhook.cluster import credentials
from gpugate.webhook.cluster.errors import ApiError, ClusterError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kubernetes.client import ApiClient
    from urllib3 import BaseHTTPResponse

    from gpugate.webhook.cluster.options import ClusterOptions

_TLS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not trusted: "
    "the certificate-authority of the kubeconfig must be the one that signed it",
    "WRONG_VERSION_NUMBER": "that is no TLS: is this the HTTPS port of an API server?",
}
_TLS_FAILED: Final = "TLS failed: check the client certificate of the kubeconfig"
# By the names of urllib3's exceptions.
_WORDS: Final = {
    "NameResolutionError": "the name does not resolve: check the server of the kubeconfig, and DNS",
    "ConnectTimeoutError": "no connection: check the network, network policies and firewalls on the way",
    "ProxyError": "the proxy does not let us through: check HTTPS_PROXY and NO_PROXY",
    "ReadTimeoutError": "it fell silent",
}


@contextmanager
def explained(host: str) -> Iterator[None]:
    """Turn what the transport raises into `UnreachableError`.

    Raises:
        UnreachableError: the transport, or reading the credentials, failed.
    """
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 -- only what speaks with a cluster pays for it

    try:
        yield
    except (HTTPError, OSError) as error:
        raise UnreachableError(f"{host}: {_reason(error)}") from None
    except ClusterError as error:
        raise UnreachableError(str(error)) from None


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error  # a MaxRetryError says what its last try met
    name, text = type(cause).__name__, str(cause)
    if name == "SSLError":
        return next((words for sign, words in _TLS.items() if sign in text), _TLS_FAILED)
    if name == "NewConnectionError":
        system = cause.__cause__ if isinstance(cause, BaseException) else None
        detail = system.strerror if isinstance(system, OSError) and system.strerror else "no connection"
        return f"{detail.lower()}: is the API server running, and the server of the kubeconfig right?"
    return _WORDS.get(name, f"the connection broke ({name})")


# 299 is the only code that an API server sends (`k8s.io/apimachinery` pkg/util/net/http.go NewWarningHeader, v0.36).
_WARNING: Final = re.compile(r'299 [^ ]+ "((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")


def texts(headers: Iterable[str]) -> Sequence[str]:
    """Return what warnings say; one header may hold several."""
    return [_ESCAPED.sub(r"\1", text) for header in headers for text in _WARNING.findall(header)]


_CHUNK: Final = 64 * 1024


class Stream:
    """The lines of one answer; leaving its context closes the connection."""

    def __init__(self, response: BaseHTTPResponse, host: str) -> None:
        self._response = response
        self._host = host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def lines(self) -> Iterator[bytes]:
        """Yield each line as soon as it is whole.

        Raises:
            UnreachableError: the connection broke, fell silent, or ended within a line.
        """
        rest = b""
        while True:
            with explained(self._host):
                chunk = self._response.read1(_CHUNK)
            if not chunk:
                break
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line for line in whole if line)
        if rest:
            raise UnreachableError(f"{self._host}: the watch ended within an event")

    def shutdown(self) -> None:
        """End the stream from another thread, which may be waiting in `lines`."""
        with suppress(OSError, ValueError, RuntimeError):  # it may be closed or at its end already
            self._response.shutdown()


# A header gives whole seconds, cut off.
_HALF_A_SECOND: Final = dt.timedelta(milliseconds=500)
# Of an answer that took longer nobody knows when its header was written.
_LONGEST: Final = dt.timedelta(seconds=5)


def wall_clock() -> dt.datetime:
    """Return what time this machine believes it is."""
    return dt.datetime.now(tz=dt.UTC)


class ClockSkew:
    """The difference that the last answer showed; `value` is server minus ours, to about a second, None before one.

    Each answer to HTTP/1.1 carries a `Date` (seen of kube-apiserver v1.36.3 on answers, errors and watches).
    """

    def __init__(self, now: Callable[[], dt.datetime]) -> None:
        self.now = now
        self.value: dt.timedelta | None = None

    def measure(self, sent: dt.datetime, header: str | None) -> None:
        """Take the `Date` of an answer whose head has just been read to a request that was sent then."""
        took = self.now() - sent
        # Less than nothing when our clock was put back meanwhile.
        if header is None or not dt.timedelta() <= took <= _LONGEST:
            return
        try:
            said = parsedate_to_datetime(header)
        except ValueError:
            return
        if said.tzinfo is not None:
            self.value = said + _HALF_A_SECOND - (sent + took / 2)


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
        return texts(response.headers.getlist("Warning"))

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
