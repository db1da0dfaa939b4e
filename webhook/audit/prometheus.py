"""Send instant queries to a server with Prometheus' HTTP API, within limits of time and size.

Each query is one GET of `/api/v1/query` on a connection of its own. Redirects are not followed, because their target would get
the credentials. Sources: Prometheus v3.7.3 (`web/api/v1/api.go`, status codes and answer), Thanos v0.40 (`dedup`, warnings of
partial answers), Mimir 3.0 (`X-Scope-OrgID`, 422 for limits).
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.manifests.bounded_file import read_named
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

MAX_BYTES: Final = 32 << 20
"""10,000 GPUs are about 6 MiB."""
_PART: Final = 1 << 16
_MAX_SECRET: Final = 1 << 16
_MAX_TEXT: Final = 200
_PATH: Final = "/api/v1/query"


class Series(msgspec.Struct, frozen=True):
    """One element of an instant vector: its labels, and its time and value."""

    metric: dict[str, str]
    value: tuple[float, str]


class QueryError(Exception):
    """A query has no answer; the message is one line without credentials.

    Attributes:
        heavy: the server refused the query for its size, so that a part of it may succeed.
        fatal: other queries would fail in the same way.
    """

    def __init__(self, message: str, *, heavy: bool = False, fatal: bool = False) -> None:
        super().__init__(message)
        self.heavy = heavy
        self.fatal = fatal


@dataclass(frozen=True, slots=True)
class Login:
    """What a server requires of its clients, as flags give it.

    Attributes:
        token_file: a file with a bearer token; it is read for each audit, because tokens of ServiceAccounts expire.
        user: the user for basic authentication; empty: none.
        password_file: the file with the password of this user.
        ca: a PEM file with the certificate authorities of the server; None: those of the system.
        tenant: the tenant of Mimir, Cortex or Thanos; empty: none.
    """

    token_file: Path | None = None
    user: str = ""
    password_file: Path | None = None
    ca: Path | None = None
    tenant: str = ""


class _Data(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType", default="")
    result: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: list[str] = []


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server and the means to query it.

    Attributes:
        url: its address, as users may read it.
        timeout: seconds after which a query is given up.
        warnings: the server's remarks on incomplete answers, each once.
    """

    url: str
    timeout: float
    warnings: list[str] = field(default_factory=list)
    _headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    _secrets: tuple[str, ...] = field(default=(), repr=False)
    _context: ssl.SSLContext | None = None
    _proxy: str = field(default="", repr=False)

    def query(self, text: str) -> Sequence[Series]:
        """Return the instant vector of a query at the present time.

        Raises:
            QueryError: the server is unreachable, does not answer in time, or refuses the query.
        """
        parameters = {"query": text, "timeout": f"{self.timeout:g}s", "dedup": "true"}
        status, kind, body = self._get(f"{_PATH}?{urlencode(parameters)}")
        try:
            answer = read_json(msgspec.json.Decoder(_Answer).decode, body)
        except (msgspec.DecodeError, UnicodeError):
            raise self._refused(status, "", "", f" ({plain(kind[:40])})" if kind else "") from None
        if status != http.client.OK or answer.status != "success" or answer.data is None:
            raise self._refused(status, answer.error_type, answer.error)
        if answer.data.result_type != "vector":
            raise QueryError(f"{self.url}: the answer is not an instant vector")
        try:
            series = read_json(msgspec.json.Decoder(list[Series]).decode, memoryview(answer.data.result))
        except (msgspec.DecodeError, UnicodeError):
            raise QueryError(f"{self.url}: the answer is not an instant vector") from None
        for warning in map(self._clean, answer.warnings):
            if warning not in self.warnings:
                self.warnings.append(warning)
        return series

    def _refused(self, status: int, error_type: str, error: str, kind: str = "") -> QueryError:
        text = self._clean(error)
        detail = f": {text}" if text else ""
        if "org id" in error.lower() or "tenant" in error.lower():
            return QueryError(f"{self.url}: the server requires a tenant{detail}: set --prometheus-tenant", fatal=True)
        if status == 422 or error_type == "timeout":
            return QueryError(f"{self.url}: the query is too expensive for the server{detail}", heavy=True)
        if status in _ADVICE:
            return QueryError(f"{self.url}: {_ADVICE[status]}{detail}", fatal=True)
        if 300 <= status < 400:
            return QueryError(
                f"{self.url}: {status}: the address redirects, for example to a login page: give the address of the API",
                fatal=True,
            )
        if status == http.client.OK:
            return QueryError(
                f"{self.url}: the answer is not from Prometheus' API{kind}: check the address, it may be that of a login page",
                fatal=True,
            )
        return QueryError(f"{self.url}: HTTP status {status}{detail}", fatal=status >= 500)

    def _clean(self, text: str) -> str:
        """Return the beginning of a text of the server, on one line and without our credentials."""
        for secret in self._secrets:
            text = text.replace(secret, "(hidden)")
        return plain(" ".join(text.split())[:_MAX_TEXT])

    def _get(self, target: str) -> tuple[int, str, bytes]:
        connection, target = self._connection(target)
        ended = threading.Event()
        sockets: list[socket.socket] = []

        def end() -> None:
            ended.set()
            # During a TLS handshake only the connection has the socket, afterwards perhaps only the response.
            for open_socket in sockets or filter(None, [connection.sock]):
                with suppress(OSError):
                    open_socket.shutdown(socket.SHUT_RDWR)

        # A timeout of the socket is for each read, and a server may send one byte a second.
        watchdog = threading.Timer(self.timeout, end)
        watchdog.daemon = True
        watchdog.start()
        try:
            connection.connect()
            sockets.append(connection.sock)
            connection.request("GET", target, headers=dict(self._headers))
            # Of an HTTP/1.0 answer, the response and not the connection closes the socket.
            with connection.getresponse() as response:
                answer = response.status, response.headers.get_content_type(), self._body(response)
        except (OSError, http.client.HTTPException) as error:
            if ended.is_set() or isinstance(error, TimeoutError):
                raise self._late() from None
            raise QueryError(f"{self.url}: {_reason(error)}", fatal=True) from None
        finally:
            watchdog.cancel()
            connection.close()
        if ended.is_set():
            raise self._late()
        return answer

    def _late(self) -> QueryError:
        return QueryError(
            f"{self.url}: no complete answer within {self.timeout:g} s: raise --prometheus-timeout, or shorten "
            "--prometheus-window",
            heavy=True,
        )

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        parts, size = [], 0
        while part := response.read1(_PART):
            size += len(part)
            if size > MAX_BYTES:
                raise QueryError(f"{self.url}: the answer is larger than {MAX_BYTES >> 20} MiB", heavy=True)
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)

    def _connection(self, target: str) -> tuple[http.client.HTTPConnection, str]:
        """Return a connection, through the proxy of the environment if there is one, and what to request there."""
        address = urlsplit(self.url)
        secure = address.scheme == "https"
        host, port = address.hostname or "", address.port or (443 if secure else 80)
        path = address.path + target
        proxy = urlsplit(self._proxy)
        first = (proxy.hostname or "", proxy.port or 80) if self._proxy else (host, port)
        connection = (
            http.client.HTTPSConnection(*first, timeout=self.timeout, context=self._context)
            if secure
            else http.client.HTTPConnection(*first, timeout=self.timeout)
        )
        if self._proxy and secure:
            connection.set_tunnel(host, port)
        elif self._proxy:
            path = f"{self.url}{target}"
        return connection, path


_ADVICE: Final = {
    400: "400: the server does not accept the query",
    401: "401: the credentials are missing or not accepted: check --prometheus-token-file or --prometheus-user",
    403: "403: these credentials may not query: grant them access to the query API",
    404: "404: no query API at this address: add the path prefix, such as /prometheus for Mimir",
    429: "429: too many queries: try again later",
    503: "503: the server is overloaded or starting: try again later",
}
_REASONS: Final = {
    "gaierror": "the name does not resolve: check the address and DNS",
    "ConnectionRefusedError": "connection refused: check that the server is running, and the port",
    "SSLCertVerificationError": "untrusted certificate: give its certificate authority with --prometheus-ca",
    "SSLError": "TLS failed: check that the port is an HTTPS port",
    "RemoteDisconnected": "the server closed the connection without an answer",
    "BadStatusLine": "the answer is not HTTP: check the port, and whether it needs https://",
    "IncompleteRead": "the connection ended within the answer",
}


def _reason(error: Exception) -> str:
    name = type(error).__name__
    system = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    return _REASONS.get(name) or (system or f"the connection failed ({name})").lower()


def connect(url: str, login: Login, timeout: float) -> Prometheus:
    """Return a server; the first query sends the first request.

    Raises:
        GpugateError: the address is invalid, or a file is unreadable.
    """
    address = _checked(url)
    if login.token_file and login.user:
        raise GpugateError("--prometheus-token-file and --prometheus-user contradict each other: remove one of them")
    if bool(login.user) != bool(login.password_file):
        raise GpugateError("--prometheus-user and --prometheus-password-file need each other: set both")
    headers = {"Accept": "application/json", "User-Agent": "gpugate-audit"}
    secrets: list[str] = []
    if login.token_file:
        secrets.append(_secret("--prometheus-token-file", login.token_file))
        headers["Authorization"] = f"Bearer {secrets[0]}"
    elif login.password_file:
        password = _secret("--prometheus-password-file", login.password_file)
        encoded = base64.b64encode(f"{login.user}:{password}".encode()).decode()
        secrets += [encoded, password]
        headers["Authorization"] = f"Basic {encoded}"
    if login.tenant:
        if not login.tenant.isascii() or not login.tenant.isprintable():
            raise GpugateError("--prometheus-tenant: write printable ASCII characters")
        headers |= {"X-Scope-OrgID": login.tenant, "THANOS-TENANT": login.tenant}
    proxy = (
        "" if urllib.request.proxy_bypass(address.hostname or "") else urllib.request.getproxies().get(address.scheme)
    )
    return Prometheus(
        url.rstrip("/"),
        timeout,
        _headers=headers,
        _secrets=tuple(filter(None, secrets)),
        _context=_trust(login.ca) if address.scheme == "https" else None,
        _proxy=proxy or "",
    )


def _checked(url: str) -> SplitResult:
    address = urlsplit(url)
    try:
        valid = address.scheme in {"http", "https"} and address.hostname and address.port != 0
    except ValueError:
        valid = False
    if not valid or any(not character.isprintable() or character == " " for character in url):
        raise GpugateError("--prometheus: invalid address: write one such as http://prometheus.monitoring:9090")
    if address.username is not None or address.password is not None:
        raise GpugateError(
            "--prometheus: remove user and password from the address: other users see the arguments of a program; set "
            "--prometheus-user and --prometheus-password-file"
        )
    if address.query or address.fragment:
        raise GpugateError("--prometheus: remove the part after ? or # from the address")
    return address


def _secret(flag: str, path: Path) -> str:
    try:
        text = read_named(path, _MAX_SECRET).decode("ascii").strip()
    except OSError as error:
        raise GpugateError(f"{flag} {path}: {(error.strerror or 'cannot be read').lower()}") from None
    except UnicodeError:
        raise GpugateError(f"{flag} {path}: contains other characters than ASCII") from None
    if not text or not text.isprintable():
        raise GpugateError(f"{flag} {path}: {'empty' if not text else 'contains more than one line'}")
    return text


def _trust(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        is_format = isinstance(error, ssl.SSLError)
        reason = "not a PEM file of certificates" if is_format else (error.strerror or "cannot be read").lower()
        raise GpugateError(f"--prometheus-ca {ca}: {reason}") from None


_HEX: Final = "0123456789abcdef"
_LAST: Final = (*(f'=~".*{digit}"' for digit in _HEX), '!~".*[0-9a-f]"')


class Budget:
    """Sends queries until the time for all of them is over, or the server is of no use.

    A query that is too expensive is sent in 17 parts, by the last character of a label: these are a partition of any series,
    also of those without the label. Later queries are then sent in parts at once.
    """

    def __init__(self, server: Prometheus, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._end = clock() + seconds
        self._parts: tuple[str, ...] = ()
        self.sent = 0
        self.stopped = ""

    def ask(self, text: Callable[[str], str], label: str) -> Sequence[Series]:
        """Return the vector of a query.

        Args:
            text: label matcher (empty: none) -> the query for the series that match.
            label: the label to part by.

        Raises:
            QueryError: the server has no answer, or the time is over.
        """
        if not self._parts:
            try:
                return self._send(text(""))
            except QueryError as error:
                if not error.heavy:
                    raise
                self._parts = _LAST
        return [series for part in self._parts for series in self._send(text(f"{label}{part}"))]

    def _send(self, text: str) -> Sequence[Series]:
        if self.stopped:
            raise QueryError(self.stopped, fatal=True)
        if self._clock() > self._end:
            self.stopped = f"{self._server.url}: the time for all queries is over: raise --prometheus-timeout"
            raise QueryError(self.stopped, fatal=True)
        self.sent += 1
        try:
            return self._server.query(text)
        except QueryError as error:
            if error.fatal:
                self.stopped = str(error)
            raise
