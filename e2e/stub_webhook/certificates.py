"""Certificate authorities for stub webhooks, also such that may sign for some names only."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gpugate.certs.pki import certificate_authority, server_certificate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpugate.certs.pki import KeyPair

_DAY = dt.timedelta(days=1)


class Authority:
    """An authority.

    Args:
        name: its common name.
        permitted: the networks and DNS suffixes that it may sign for (X.509 name constraints); any where empty.
    """

    def __init__(self, name: str, permitted: Sequence[str] = ()) -> None:
        self._now = dt.datetime.now(tz=dt.UTC)
        # The same authority without constraints signs also what it must not.
        self._signing = certificate_authority(name, now=self._now, lifetime=_DAY)
        self._certificate = _constrained(self._signing, permitted) if permitted else self._signing.certificate

    @property
    def bundle(self) -> str:
        """The `caBundle` that trusts it."""
        return base64.b64encode(self._certificate).decode()

    def server_pair(self, folder: Path, names: Sequence[str]) -> Path:
        """Write a certificate for these names with its key, and return the file."""
        pair = server_certificate(self._signing, names, now=self._now, lifetime=_DAY)
        file = folder / "server.pem"
        file.write_bytes(pair.certificate + pair.key)
        return file


def _constrained(pair: KeyPair, permitted: Sequence[str]) -> bytes:
    plain = x509.load_pem_x509_certificate(pair.certificate)
    key = serialization.load_pem_private_key(pair.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = (
        x509.CertificateBuilder()
        .subject_name(plain.subject)
        .issuer_name(plain.issuer)
        .public_key(key.public_key())
        .serial_number(plain.serial_number)
        .not_valid_before(plain.not_valid_before_utc)
        .not_valid_after(plain.not_valid_after_utc)
    )
    for extension in plain.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    subtrees = [_subtree(text) for text in permitted]
    signed = builder.add_extension(x509.NameConstraints(subtrees, None), critical=True).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def _subtree(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_network(text))
    except ValueError:
        return x509.DNSName(text)
