"""Load a certificate and its key as a TLS server needs them, and validate the pair before it is used."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from gpugate.certs.checks import checked_pair
from gpugate.certs.pki import CertificateError, alternative, certificates, split

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from gpugate.certs.pki import KeyPair


@contextlib.contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Give content a path while it is needed, because the ssl module reads from files only.

    It is in memory where the platform has files there (Linux), else in a folder that nobody else can look into.
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
    # A folder that is ours alone, and gone at once.
    with tempfile.TemporaryDirectory(prefix="gpugate-") as folder:
        on_disk = Path(folder, "tls.pem")
        on_disk.touch(mode=0o600)
        on_disk.write_bytes(content)
        yield str(on_disk)


__all__ = ["CertificateError", "self_test", "server_context"]

# X509_V_FLAG_NO_CHECK_TIME of OpenSSL's x509_vfy.h, which the ssl module does not name.
_NO_CHECK_TIME: Final = 0x200000
# A handshake is over after a few messages each way.
_MOST_TURNS: Final = 10


class _Alerting(ssl.SSLObject):
    """The end of a connection that tells its client why a handshake fails.

    Event loops close a connection whose handshake failed without sending the alert that says so (asyncio of CPython
    3.11, uvloop 0.23), and an API server then reports no more than `EOF`. They send what there is when they are to
    wait; so they are, once, and hear of the failure when the client has left or says more.
    """

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """Shake hands.

        Raises:
            SSLWantReadError: the client has to say something first, or to hear why this fails.
            SSLError: it failed.
        """
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self._failure = error
            raise ssl.SSLWantReadError from None


def server_context(
    pair: KeyPair, client_authorities: bytes = b"", where: tuple[str, str] = ("certificate", "key")
) -> ssl.SSLContext:
    """Make a context for a TLS 1.2 and 1.3 server that speaks HTTP/1.1.

    A new pair needs a new context: loading one into a context in use that turns out not to match breaks every later
    handshake. No tickets are given out: who resumes a session is not verified again, and API servers never do (seen
    with v1.36.3).

    Args:
        pair: the certificate, with those between it and its authority behind it, and its key.
        client_authorities: who vouches for clients (PEM); when given, nobody gets in without a certificate of theirs,
            and TLS 1.3 is the only version: sessions of 1.2 are resumed by their number too. Where two of them have
            one name, OpenSSL tells them apart only for clients whose certificate has an authority key identifier.
        where: what certificate and key are called in messages.

    Raises:
        CertificateError: one of the two is not PEM, the key is encrypted, they do not belong together, or OpenSSL
            refuses them.
    """
    checked = checked_pair(pair, where)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _Alerting
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    if client_authorities:
        found = certificates(client_authorities, "client authorities")
        context.load_verify_locations(cadata="".join(map(_pem, found)))
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    with as_file(checked.key + checked.certificate) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            reason = (error.reason or "no reason given").lower().replace("_", " ")
            raise CertificateError(f"{where[0]}, {where[1]}: OpenSSL refuses them: {reason}") from None
    return context


def self_test(pair: KeyPair, bundle: bytes, name: str, now: dt.datetime) -> None:
    """Try what a client would find that trusts a bundle: the chain, the name and the dates, and a handshake.

    Args:
        pair: what is to be served with.
        bundle: what the client trusts, PEM.
        name: the DNS name or IP address that it asks for.
        now: the time by which dates are judged, with its zone.

    Raises:
        CertificateError: the client would refuse it; says why.
    """
    authorities = split(bundle)
    if not authorities:
        raise CertificateError("the bundle holds no certificate")
    leaf, *between = certificates(pair.certificate, "certificate")
    wanted = alternative(name)
    if not isinstance(wanted, x509.DNSName | x509.IPAddress):
        raise CertificateError(f"{name!r} is no name of a server")
    store = Store([x509.load_pem_x509_certificate(each) for each in authorities])
    try:
        PolicyBuilder().store(store).time(now).build_server_verifier(wanted).verify(leaf, between)
    except VerificationError as error:
        raise CertificateError(f"a client that trusts the bundle refuses the certificate: {error}") from None
    _shake_hands(server_context(pair), b"".join(authorities), name)


def _shake_hands(serving: ssl.SSLContext, bundle: bytes, name: str) -> None:
    trust = ssl.create_default_context(cadata=bundle.decode("ascii"))
    trust.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        trust.wrap_bio(to_client, to_server, server_hostname=name),
        serving.wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        for _ in range(_MOST_TURNS):
            ends = [end for end in ends if not _went_through(end)]
            if not ends:
                return
    except ssl.SSLError as error:
        raise CertificateError(f"a handshake fails: {getattr(error, 'verify_message', '') or error.reason}") from None
    raise CertificateError("a handshake does not come to an end")


def _went_through(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")
