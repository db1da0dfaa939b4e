"""Reads PEM as people and programs leave it in files, and says in words what is wrong with what cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from gpugate.certs.errors import CertificateError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_CERTIFICATE: Final = "PEM with -----BEGIN CERTIFICATE-----"
_KEY: Final = "PEM with -----BEGIN PRIVATE KEY-----"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
# The first byte of DER, and of PKCS #12.
_SEQUENCE: Final = b"\x30"


def certificates(pem: bytes, where: str) -> list[x509.Certificate]:
    """Return the certificates of a chain or a bundle, at least one.

    Raises:
        CertificateError: there is none, or one cannot be read; begins with `where`.
    """
    begun, ended = pem.count(b"-----BEGIN CERTIFICATE-----"), pem.count(b"-----END CERTIFICATE-----")
    if not begun:
        raise CertificateError(f"{where}: {_not_pem(pem, _CERTIFICATE)}")
    if begun != ended:
        raise CertificateError(f"{where}: cut off: {begun} certificates begin and {ended} end")
    try:
        found = x509.load_pem_x509_certificates(pem)
        for each in found:
            # Read only when they are asked for.
            each.extensions  # noqa: B018 -- raises where they cannot be read
            each.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError(f"{where}: damaged: a certificate in it cannot be read: write the file again") from None
    return found


def private_key(pem: bytes, where: str) -> PrivateKeyTypes:
    """Return a private key.

    Raises:
        CertificateError: there is none, it is encrypted, or cannot be read; begins with `where`.
    """
    if b"PRIVATE KEY-----" not in pem:
        raise CertificateError(f"{where}: {_not_pem(pem, _KEY)}")
    if b"-----END " not in pem:
        raise CertificateError(f"{where}: cut off: the PEM of the key begins and does not end")
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise CertificateError(f"{where}: the key is encrypted: give one without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError(f"{where}: damaged: the key cannot be read: write the file again") from None


def _not_pem(data: bytes, wanted: str) -> str:
    if not data.strip():
        return f"empty: write it as {wanted}"
    if data.startswith(_UTF_16):
        return f"UTF-16: save it as plain text, {wanted}"
    if data.startswith(_SEQUENCE):
        return f"binary (DER or PKCS #12): write it as {wanted}, with `openssl x509`, `pkey` or `pkcs12`"
    if b"-----BEGIN " in data:
        kind = data.split(b"-----BEGIN ", 1)[1].split(b"-----", 1)[0][:40].decode("ascii", "replace")
        return f"holds {kind!r}: write it as {wanted}"
    return f"not PEM: write it as {wanted}"
