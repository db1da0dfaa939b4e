"""Turns a certificate and its key into what a TLS server needs."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpugate.certs.pki import KeyPair


class CertificateError(ValueError):
    """A certificate and key that no server can use; the text says why, without either."""


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """Make a context for a TLS 1.2 and 1.3 server that speaks HTTP/1.1 and asks for no client certificate.

    The certificate may be a chain, the server's own first. A new pair needs a new context: loading one into a context
    in use that turns out not to match breaks every later handshake.

    Raises:
        CertificateError: one of the two is not PEM, the key is encrypted, or they do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # The ssl module reads from files only; these are ours alone and gone at once.
    with tempfile.TemporaryDirectory(prefix="gpugate-") as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        try:
            context.load_cert_chain(certificate, key, password=_refuse_encrypted)
        except ssl.SSLError as error:
            raise CertificateError(_reason(error)) from None
    return context


def _refuse_encrypted() -> str:
    raise CertificateError("the key is encrypted: give one without a passphrase")


def _reason(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key does not belong to the certificate"
    return "the certificate and the key must both be PEM (-----BEGIN CERTIFICATE-----, -----BEGIN PRIVATE KEY-----)"
