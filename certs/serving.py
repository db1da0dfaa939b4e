"""Create TLS server contexts from a certificate and its key, and test the pair before it is used."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from gpugate.certs.checks import validate_pair
from gpugate.certs.pki import CertificateError, parse_certificates, parse_general_name, split

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from gpugate.certs.pki import KeyPair


@contextlib.contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Provide content as a file for the duration of the context, because the ssl module reads only files.

    The file is in memory on Linux, else in a temporary folder with access for the current user only.
    """
    try:
        descriptor = os.memfd_create("gpugate-tls", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        descriptor = -1
    if descriptor >= 0:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            path = f"/proc/self/fd/{descriptor}"
            if os.access(path, os.R_OK):
                yield path
                return
    # TemporaryDirectory creates a folder with mode 0700 and removes it at the end.
    with tempfile.TemporaryDirectory(prefix="gpugate-") as folder:
        on_disk = Path(folder, "tls.pem")
        on_disk.touch(mode=0o600)
        on_disk.write_bytes(content)
        yield str(on_disk)


__all__ = ["CertificateError", "SmallRecordsError", "self_test", "server_context"]

# X509_V_FLAG_NO_CHECK_TIME in OpenSSL's x509_vfy.h. The ssl module has no constant for it.
_NO_CHECK_TIME: Final = 0x200000
# A handshake needs only a few messages in each direction.
_MAX_ROUNDS: Final = 10


# A record with less content is small. A connection may receive so many small records, the handshake included, and one more for each
# so many bytes of content. An API server sends three before its first request, and at most one at the end of a request.
_SMALL: Final = 64
_SMALL_RECORDS: Final = 64
_CONTENT_PER_SMALL_RECORD: Final = 1024
# Type, version and length of a record (RFC 8446, 5.1).
_HEADER: Final = 5


class SmallRecordsError(ssl.SSLError):
    """A client sends too many TLS records with little or no content."""


class _Connection(ssl.SSLObject):
    """A TLS connection of a server that sends its alert after a failed handshake, and limits small records.

    A key update is a record without content that takes 16 us of CPU, and OpenSSL processes all records that it can read until one
    has content. Eight clients that sent nothing else stopped a server, as did records of one byte. So OpenSSL gets one record after
    the other, and they are counted.

    Event loops close a connection after a failed handshake without sending the alert (asyncio of CPython 3.11, uvloop
    0.23), and an API server then reports only `EOF`. They send pending bytes when the handshake wants to read. Therefore
    the first failure is reported as `SSLWantReadError`, and the failure itself when the client closes or sends more.
    """

    _failure: ssl.SSLError | None = None
    # The received bytes, and those for OpenSSL.
    _received: ssl.MemoryBIO
    _passed_on: ssl.MemoryBIO
    # The bytes that are missing of the current record, the number of small records, and the bytes of content.
    _missing = 0
    _small = 0
    _content = 0

    def read_from(self, received: ssl.MemoryBIO, passed_on: ssl.MemoryBIO) -> None:
        """Pass received bytes on to OpenSSL, which reads `passed_on`."""
        self._received, self._passed_on = received, passed_on

    # The parameters are those of SSLObject; the result is the content or, with a buffer, its size.
    def read(self, len: int = 1024, buffer: Any = None) -> Any:  # noqa: A002
        """Read content.

        Raises:
            SSLWantReadError: no further content is complete.
            SmallRecordsError: the client sends too many records with little or no content.
            SSLError: the client violates TLS.
        """
        content = self._with_each_record(partial(super().read, len, buffer))
        size = content if buffer is not None else content.__len__()
        self._content += size
        if size >= _SMALL:
            self._small -= 1
        return content

    def unwrap(self) -> None:
        """Close the connection.

        Raises:
            SSLWantReadError: the client has not closed it.
            SmallRecordsError: the client sends too many other records instead.
            SSLError: the client violates TLS.
        """
        self._with_each_record(super().unwrap)

    def do_handshake(self) -> None:
        """Perform the TLS handshake.

        Raises:
            SSLWantReadError: the handshake needs bytes of the client, or the alert must be sent first.
            SSLError: the handshake failed.
        """
        # A failure that is kept refers to no frame, and one that is raised is not kept: either would be a reference cycle
        # with this connection, whose 44 KiB would stay in memory until the garbage collector runs.
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None
        try:
            self._with_each_record(super().do_handshake)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self._failure = error.with_traceback(None)
            raise ssl.SSLWantReadError from None

    def _with_each_record(self, step: Callable[[], Any]) -> Any:
        """Repeat a step of OpenSSL with one received record after the other until it has a result."""
        self._pass_on()
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                if not self._pass_on():
                    raise

    def _pass_on(self) -> bool:
        """Pass on the next record, or what was received of it; return False if nothing was."""
        if not self._missing:
            if self._received.pending < _HEADER:
                return False
            self._small += 1
            if self._small > _SMALL_RECORDS + self._content // _CONTENT_PER_SMALL_RECORD:
                raise SmallRecordsError("too many TLS records with little or no content")
            header = self._received.read(_HEADER)
            self._passed_on.write(header)
            self._missing = int.from_bytes(header[-2:])
        part = self._received.read(self._missing)
        self._passed_on.write(part)
        self._missing -= len(part)
        return bool(part) or not self._missing


class _Context(ssl.SSLContext):
    """A context whose connections limit the records that they receive."""

    sslobject_class = _Connection

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *others: Any, **named: Any) -> _Connection:
        """Create a connection with the parameters of SSLContext."""
        passed_on = ssl.MemoryBIO()
        connection = super().wrap_bio(passed_on, outgoing, *others, **named)
        assert isinstance(connection, _Connection)  # noqa: S101 -- for the type checker: this is `sslobject_class`
        connection.read_from(incoming, passed_on)
        return connection


def server_context(
    pair: KeyPair, client_authorities: bytes = b"", where: tuple[str, str] = ("certificate", "key")
) -> ssl.SSLContext:
    """Create a context for a TLS 1.2 and 1.3 server with HTTP/1.1.

    Create a new context for each pair: loading a pair that does not match into a context in use breaks all later
    handshakes. Session tickets are disabled, because the certificate of a client that resumes a session is not verified
    again. API servers never resume sessions (observed with v1.36.3).

    Args:
        pair: the serving certificate, followed by its intermediate certificates, and its key.
        client_authorities: the CAs of client certificates (PEM). If given, a client certificate is required and TLS 1.3
            is the only version, because TLS 1.2 also resumes sessions by id. OpenSSL distinguishes two CAs of the same
            name only for client certificates with an authority key identifier.
        where: the names of certificate and key in messages.

    Raises:
        CertificateError: one of the two is not PEM, the key is encrypted, they do not match, or OpenSSL rejects them.
    """
    checked = validate_pair(pair, where)
    context = _Context(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    if client_authorities:
        authorities = parse_certificates(client_authorities, "client authorities")
        context.load_verify_locations(cadata="".join(map(_encode_pem, authorities)))
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    with as_file(checked.key + checked.certificate) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            reason = (error.reason or "no reason given").lower().replace("_", " ")
            raise CertificateError(f"{where[0]}, {where[1]}: OpenSSL rejects them: {reason}") from None
    return context


def self_test(pair: KeyPair, bundle: bytes, name: str, now: dt.datetime) -> None:
    """Test a serving certificate as a client with this CA bundle would: chain, name and dates, and a handshake.

    Args:
        pair: the serving certificate and its key.
        bundle: the CAs that the client trusts (PEM).
        name: the DNS name or IP address that the client connects to.
        now: the time at which the certificate must be valid, with a time zone.

    Raises:
        CertificateError: the client would reject it; says why.
    """
    authorities = split(bundle)
    if not authorities:
        raise CertificateError("the bundle contains no certificate")
    leaf, *intermediates = parse_certificates(pair.certificate, "certificate")
    subject = parse_general_name(name)
    if not isinstance(subject, x509.DNSName | x509.IPAddress):
        raise CertificateError(f"{name!r} is not the name of a server")
    store = Store([x509.load_pem_x509_certificate(pem) for pem in authorities])
    try:
        PolicyBuilder().store(store).time(now).build_server_verifier(subject).verify(leaf, intermediates)
    except VerificationError as error:
        raise CertificateError(f"a client that trusts the bundle rejects the certificate: {error}") from None
    _perform_handshake(server_context(pair), b"".join(authorities), name)


def _perform_handshake(serving: ssl.SSLContext, bundle: bytes, name: str) -> None:
    trust = ssl.create_default_context(cadata=bundle.decode("ascii"))
    trust.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        trust.wrap_bio(to_client, to_server, server_hostname=name),
        serving.wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        for _ in range(_MAX_ROUNDS):
            ends = [end for end in ends if not _has_finished(end)]
            if not ends:
                return
    except ssl.SSLError as error:
        raise CertificateError(
            f"the handshake failed: {getattr(error, 'verify_message', '') or error.reason}"
        ) from None
    raise CertificateError("the handshake did not finish")


def _has_finished(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _encode_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")
