"""Certificates for TLS clients, as those that an API server shows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpugate.certs.pki import BACKDATED, KeyPair

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAY = dt.timedelta(days=1)


def client_certificate(
    authority: KeyPair, name: str = "kube-apiserver", alternatives: Sequence[str] = (), *, now: dt.datetime
) -> KeyPair:
    """Make one with a common name (none where empty) and alternative names that is valid for a day."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + _DAY)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    known_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    builder = builder.add_extension(known_by, critical=False)
    if alternatives:
        names = x509.SubjectAlternativeName([x509.DNSName(alternative) for alternative in alternatives])
        builder = builder.add_extension(names, critical=not name)
    pem = builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    return KeyPair(pem, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
