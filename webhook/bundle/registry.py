"""Read and write blobs and manifests of an OCI registry, within limits of time and size.

Implements the verbs of the OCI distribution specification v1.1.1 that artifacts need, and the token authentication of
Docker's registry (distribution v3.1, `docs/content/spec/auth`). Everything read is compared with its digest before it is
returned. Requests are not repeated: a Pod or a pipeline repeats the command.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.bundle.reference import digest_of, is_digest, is_loopback
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message
    from pathlib import Path

    from gpugate.webhook.bundle.credentials import Login
    from gpugate.webhook.bundle.reference import Reference

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
# A registry answers with what it has if it is asked for all of these; Docker's own types only tell what it is not.
_DOCKER: Final = "application/vnd.docker.distribution.manifest"
_ACCEPTED: Final = f"{MANIFEST}, {INDEX}, {_DOCKER}.v2+json, {_DOCKER}.list.v2+json"
MOST_MANIFEST: Final = 1 << 20
_MOST_ERROR: Final = 1 << 16
_PART: Final = 1 << 16
_MOST_TEXT: Final = 200
_MOST_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PARAMETER: Final = re.compile(r'([a-z_]{1,32})="([^"]{0,2048})"')


class RegistryError(GpugateError):
    """A registry has no valid answer; the text is without credentials.

    Attributes:
        is_missing: whether the registry says that it does not have what was asked for.
    """

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


class Manifest(NamedTuple):
    """A manifest: its bytes, their digest, and the media type that the registry says."""

    data: bytes
    digest: str
    media_type: str


class _Response(NamedTuple):
    status: int
    headers: Message
    body: bytes


class _Problem(msgspec.Struct):
    code: str = ""
    message: str = ""


class _Problems(msgspec.Struct):
    errors: list[_Problem] = []


class _Token(msgspec.Struct):
    token: str = ""
    access_token: str = ""


class Registry:
    """The repository of a registry.

    Args:
        reference: names registry and repository.
        login: the credentials; None is anonymous.
        timeout: seconds for one request, with its answer.
        ca: a PEM file with the certificate authorities of the registry; None is those of the system. With it, a registry on
            this machine is asked over TLS too.

    Raises:
        RegistryError: the file of certificate authorities is invalid.
    """

    def __init__(self, reference: Reference, login: Login | None, timeout: float, ca: Path | None = None) -> None:
        self._name = reference.name
        self._repository = reference.repository
        self._is_plain = reference.is_local and ca is None
        self._origin = f"{'http' if self._is_plain else 'https'}://{reference.host}"
        self._login = login
        self._secrets = list(login.secrets) if login else []
        self._timeout = timeout
        self._context = None if self._is_plain else _trust(ca)
        self._authorization = ""

    def manifest(self, selector: str) -> Manifest:
        """Return the manifest of a tag or digest.

        Raises:
            RegistryError: there is none, or its content is not that of the digest.
        """
        response = self._request("GET", self._url(f"manifests/{selector}"), {"Accept": _ACCEPTED}, limit=MOST_MANIFEST)
        self._expect(response, {200}, f"manifest {selector}")
        digest = digest_of(response.body)
        said = response.headers.get("Docker-Content-Digest", "")
        wanted = selector if is_digest(selector) else said
        if is_digest(wanted) and wanted != digest:
            raise RegistryError(f"{self._name}: the manifest of {selector} has the digest {digest}, not {wanted}")
        return Manifest(response.body, digest, response.headers.get_content_type())

    def referrers(self, digest: str) -> bytes | None:
        """Return the index of the artifacts that refer to a manifest; None if there are none.

        Registries without this API have the index at a tag, as the specification describes (`spec.md`, Referrers Tag Schema).

        Raises:
            RegistryError: the registry fails.
        """
        response = self._request("GET", self._url(f"referrers/{digest}"), {"Accept": INDEX}, limit=MOST_MANIFEST)
        if response.status == 200 and response.headers.get_content_type() == INDEX:
            return response.body
        try:
            return self.manifest(digest.replace(":", "-")).data
        except RegistryError as error:
            if error.is_missing:
                return None
            raise

    def blob(self, digest: str, size: int, limit: int) -> bytes:
        """Return a blob.

        Raises:
            RegistryError: there is none, it is larger than `limit`, or its content is not that of the digest.
        """
        if size > limit:
            raise RegistryError(f"{self._name}: blob {digest} has {size:,} bytes, more than the limit of {limit:,}")
        response = self._request("GET", self._url(f"blobs/{digest}"), {}, limit=size)
        self._expect(response, {200}, f"blob {digest}")
        if len(response.body) != size or digest_of(response.body) != digest:
            raise RegistryError(f"{self._name}: the content of blob {digest} has another digest or size")
        return response.body

    def push_blob(self, data: bytes) -> str:
        """Write a blob, unless the repository has it, and return its digest.

        Raises:
            RegistryError: the registry refuses it.
        """
        digest = digest_of(data)
        found = self._request("HEAD", self._url(f"blobs/{digest}"), {})
        if found.status == 200:
            return digest
        started = self._request("POST", self._url("blobs/uploads/"), {"Content-Length": "0"})
        self._expect(started, {202}, "the start of an upload")
        location = _joined(self._url("blobs/uploads/"), started.headers.get("Location", ""))
        target = _with_query(location, {"digest": digest})
        written = self._request("PUT", target, {"Content-Type": "application/octet-stream"}, data)
        self._expect(written, {201}, f"blob {digest}")
        return digest

    def push_manifest(self, selector: str, data: bytes) -> None:
        """Write a manifest to a tag or digest.

        Raises:
            RegistryError: the registry refuses it.
        """
        written = self._request("PUT", self._url(f"manifests/{selector}"), {"Content-Type": MANIFEST}, data)
        self._expect(written, {201}, f"manifest {selector}")

    def _url(self, path: str) -> str:
        return f"{self._origin}/v2/{self._repository}/{path}"

    def _expect(self, response: _Response, statuses: set[int], what: str) -> None:
        if response.status in statuses:
            return
        detail = self._detail(response.body)
        advice = _ADVICE.get(response.status, f"HTTP status {response.status}")
        if response.status == 400 and self._is_plain:
            # What servers say to a client that should have begun with TLS.
            advice += ": a registry on this machine is asked without TLS: if it expects TLS, name its certificate authorities with --ca"
        raise RegistryError(f"{self._name}: {what}: {advice}{detail}", is_missing=response.status == 404)

    def _detail(self, body: bytes) -> str:
        """Return what the registry says of an error, without our credentials."""
        try:
            problems = read_json(msgspec.json.Decoder(_Problems).decode, body[:_MOST_ERROR]).errors
        except (msgspec.DecodeError, UnicodeError):
            return ""
        text = "; ".join(f"{problem.code} {problem.message}" for problem in problems[:3])
        for secret in self._secrets:
            text = text.replace(secret, "(hidden)")
        text = plain(" ".join(text.split())[:_MOST_TEXT])
        return f" (the registry says: {text})" if text else ""

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None = None, limit: int = _MOST_ERROR
    ) -> _Response:
        """Send a request, with credentials where the registry asks for them, and follow redirects of what is read."""
        response = self._send(method, url, headers, data, limit)
        if response.status == 401 and self._authenticate(response):
            response = self._send(method, url, headers, data, limit)
        for _ in range(_MOST_REDIRECTS):
            if response.status not in _REDIRECTS or method not in {"GET", "HEAD"}:
                return response
            url = _joined(url, response.headers.get("Location", ""))
            response = self._send(method, url, headers, data, limit)
        if response.status in _REDIRECTS:
            raise RegistryError(f"{self._name}: more than {_MOST_REDIRECTS} redirects")
        return response

    def _send(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None, limit: int) -> _Response:
        own = {"User-Agent": "gpugate", **headers}
        # The storage behind a registry is another host, with credentials in the URL.
        if self._authorization and _origin(url) == _origin(self._origin):
            own["Authorization"] = self._authorization
        return self._exchange(method, url, own, data, limit)

    def _authenticate(self, response: _Response) -> bool:
        """Get credentials for what a registry asks for; False if there is nothing to try.

        Raises:
            RegistryError: the token service refuses the credentials.
        """
        challenge = response.headers.get("WWW-Authenticate", "")
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() == "basic" and self._login and self._login.user:
            authorization = f"Basic {self._login.basic}"
        elif scheme.lower() == "bearer":
            authorization = f"Bearer {self._token(dict(_PARAMETER.findall(rest[:_MOST_ERROR])))}"
        else:
            return False
        is_new = authorization != self._authorization
        self._authorization = authorization
        return is_new

    def _token(self, parameters: Mapping[str, str]) -> str:
        realm = parameters.get("realm", "")
        asked = {key: parameters[key] for key in ("service", "scope") if key in parameters}
        headers = {"User-Agent": "gpugate", "Accept": "application/json"}
        if self._login and self._login.identity_token:
            form = {"grant_type": "refresh_token", "client_id": "gpugate", **asked}
            form["refresh_token"] = self._login.identity_token
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            response = self._exchange("POST", realm, headers, urlencode(form).encode(), _MOST_ERROR)
        else:
            if self._login:
                headers["Authorization"] = f"Basic {self._login.basic}"
            response = self._exchange("GET", _with_query(realm, asked), headers, None, _MOST_ERROR)
        self._expect(response, {200}, "token service")
        try:
            answer = read_json(msgspec.json.Decoder(_Token).decode, response.body)
        except (msgspec.DecodeError, UnicodeError):
            raise RegistryError(f"{self._name}: the answer of the token service is invalid") from None
        token = answer.token or answer.access_token
        if not token or not token.isascii() or not token.isprintable():
            raise RegistryError(f"{self._name}: the token service gives no token")
        self._secrets.append(token)
        return token

    def _exchange(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None, limit: int) -> _Response:
        connection, target = self._connection(url)
        ended = threading.Event()

        def end() -> None:
            ended.set()
            for open_socket in filter(None, (connection.sock, *sockets)):
                with suppress(OSError):
                    open_socket.shutdown(socket.SHUT_RDWR)

        sockets: list[socket.socket] = []
        # A timeout of the socket is for each read, and a server may send one byte a second.
        watchdog = threading.Timer(self._timeout, end)
        watchdog.daemon = True
        watchdog.start()
        try:
            connection.connect()
            sockets.append(connection.sock)
            connection.request(method, target, data, dict(headers))
            with connection.getresponse() as response:
                answer = _Response(response.status, response.headers, self._body(response, limit))
        except (OSError, http.client.HTTPException) as error:
            if ended.is_set() or isinstance(error, TimeoutError):
                raise self._late() from None
            raise RegistryError(f"{self._name}: {_reason(error)}") from None
        finally:
            watchdog.cancel()
            connection.close()
        if ended.is_set():
            raise self._late()
        return answer

    def _late(self) -> RegistryError:
        return RegistryError(f"{self._name}: no complete answer within {self._timeout:g} s: raise --timeout")

    def _body(self, response: http.client.HTTPResponse, limit: int) -> bytes:
        # What is read of an error is cut off; an answer that is used is read as a whole or not at all.
        is_used = response.status == 200
        most = limit if is_used else _MOST_ERROR
        parts, size = [], 0
        while part := response.read1(_PART):
            size += len(part)
            if size > most:
                if not is_used:
                    return b""
                raise RegistryError(f"{self._name}: the answer is larger than {most:,} bytes")
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)

    def _connection(self, url: str) -> tuple[http.client.HTTPConnection, str]:
        """Return a connection, through the proxy of the environment if there is one, and what to request there.

        Raises:
            RegistryError: the registry leads to an address without TLS.
        """
        try:
            address = urlsplit(url)
            host, given_port = address.hostname or "", address.port
        except ValueError:
            raise RegistryError(f"{self._name}: the registry leads to an invalid address") from None
        is_secure = address.scheme == "https"
        if not host or not (is_secure or (address.scheme == "http" and self._is_plain and is_loopback(host))):
            raise RegistryError(f"{self._name}: the registry leads to an address that is not https://")
        if not url.isascii() or not url.isprintable() or " " in url:
            raise RegistryError(f"{self._name}: the registry leads to an invalid address")
        port = given_port or (443 if is_secure else 80)
        target = f"{address.path or '/'}{f'?{address.query}' if address.query else ''}"
        if not is_secure:
            return http.client.HTTPConnection(host, port, timeout=self._timeout), target
        proxied = "" if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get("https", "")
        proxy = urlsplit(proxied if "://" in proxied else f"http://{proxied}")
        # A registry on this machine leads to a token service elsewhere, or is asked over TLS.
        context = self._context or ssl.create_default_context()
        if not proxied or not proxy.hostname:
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context), target
        connection = http.client.HTTPSConnection(
            proxy.hostname, proxy.port or 80, timeout=self._timeout, context=context
        )
        connection.set_tunnel(host, port)
        return connection, target


def _with_query(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"


def _joined(url: str, location: str) -> str:
    """Return the address that a registry leads to; an invalid one is empty, and refused when it is used."""
    try:
        return urljoin(url, location) if location else ""
    except ValueError:
        return ""


def _origin(url: str) -> tuple[str, str, int]:
    try:
        address = urlsplit(url)
        port = address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        return "", "", 0
    return address.scheme, (address.hostname or "").lower(), port


def _trust(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        is_format = isinstance(error, ssl.SSLError)
        reason = "not a PEM file of certificates" if is_format else (error.strerror or "cannot be read").lower()
        raise RegistryError(f"--ca {ca}: {reason}") from None


_ADVICE: Final = {
    401: "401: the credentials are missing or not accepted: log in with `docker login`, or name a pull Secret",
    403: "403: these credentials may not do this: grant them access to the repository",
    404: "404: the registry does not have it: check repository, tag and digest; some registries say so without credentials",
    405: "405: the registry does not support this",
    413: "413: too large for the registry",
    429: "429: too many requests: try again later",
    503: "503: the registry is overloaded or starting: try again later",
}
_REASONS: Final = {
    "gaierror": "the name does not resolve: check the registry and DNS",
    "ConnectionRefusedError": "connection refused: check that the registry is running, and the port",
    "SSLCertVerificationError": "untrusted certificate: give its certificate authority with --ca",
    "SSLError": "TLS failed: check that the port is an HTTPS port",
    "RemoteDisconnected": "the server closed the connection without an answer",
    "BadStatusLine": "the answer is not HTTP: check the port",
    "IncompleteRead": "the connection ended within the answer",
}


def _reason(error: Exception) -> str:
    name = type(error).__name__
    system = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    return _REASONS.get(name) or (system or f"the connection failed ({name})").lower()
