"""Makes a certificate authority and the server certificates that it signs: ECDSA P-256, PEM out, time passed in."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence

# A client whose clock is behind still finds the certificate valid.
BACKDATED: Final = dt.timedelta(hours=1)
# X.520 allows a common name no more characters than this.
_LONGEST_COMMON_NAME: Final = 64


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key (PKCS #8, unencrypted), both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


def certificate_authority(name: str, *, now: dt.datetime, lifetime: dt.timedelta) -> KeyPair:
    """Make a self-signed authority that may sign server certificates and no further authority.

    Args:
        name: the common name; give each authority its own, at most 64 characters.
        now: the time, with its zone; the certificate is valid from an hour before.
        lifetime: from `now` to the end of its validity.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    usage = _usage(key_cert_sign=True, crl_sign=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _started(subject, subject, key.public_key(), now)
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate, key)


def server_certificate(
    authority: KeyPair, names: Sequence[str], *, now: dt.datetime, lifetime: dt.timedelta
) -> KeyPair:
    """Make a certificate for a TLS server; it never outlives its authority.

    Args:
        authority: what signs it.
        names: every DNS name and IP address that clients reach the server by; at least one. The API server looks at
            these only, never at the common name (`k8s.io/apiserver` pkg/util/webhook/client.go, v1.36).
        now: the time, with its zone; the certificate is valid from an hour before.
        lifetime: from `now` to the end of its validity.

    Raises:
        ValueError: there is no name, or one is neither an IP address nor an ASCII DNS name.
    """
    if not names:
        raise ValueError("a server certificate needs at least one DNS name or IP address")
    alternatives = [_alternative(name) for name in names]
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not an elliptic curve key")
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        _started(_named(names[0]), issuer.subject, key.public_key(), now)
        .not_valid_after(min(now + lifetime, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_identifier), critical=False
        )
        .sign(issuer_key, hashes.SHA256())
    )
    return _pem(certificate, key)


def _started(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        if not name or not name.isascii() or any(c.isspace() for c in name):
            raise ValueError(f"{name!r} is neither an IP address nor a DNS name") from None
        return x509.DNSName(name)


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def expiry(certificate: bytes) -> dt.datetime:
    """Return until when the first certificate of a PEM chain is valid, in UTC.

    Raises:
        ValueError: there is no certificate in it.
    """
    return x509.load_pem_x509_certificates(certificate)[0].not_valid_after_utc
