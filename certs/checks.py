"""Validate certificates and keys before they are used, with errors that say what is wrong."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from gpugate.certs.pki import CertificateError, KeyPair, covers, parse_certificates, parse_private_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

# The names in messages for a certificate and a key that are not read from files.
_DEFAULT_NAMES: Final = ("certificate", "key")
# The accepted difference between the clocks of a cluster. A CA that does not back-date issues certificates that begin
# now by its own clock.
_CLOCK_TOLERANCE: Final = dt.timedelta(minutes=5)


def validate_pair(pair: KeyPair, where: tuple[str, str] = _DEFAULT_NAMES) -> KeyPair:
    """Normalize a pair: PEM, the certificate of the key first, the key unencrypted and in PKCS #8.

    Args:
        pair: a chain and a key as users supply them: any PEM format, with a byte order mark, CRLF or surrounding text.
        where: the names of certificate and key in messages.

    Raises:
        CertificateError: one of them is not PEM, truncated or encrypted, or the key does not match the first
            certificate.
    """
    chain, key = parse_certificates(pair.certificate, where[0]), parse_private_key(pair.key, where[1])
    public = _encode_public_key(key.public_key())
    if _encode_public_key(chain[0].public_key()) != public:
        for number, certificate in enumerate(chain[1:], 2):
            if _encode_public_key(certificate.public_key()) == public:
                raise CertificateError(
                    f"{where[0]}: the key matches certificate {number} of {len(chain)}: put this certificate first"
                )
        raise CertificateError(
            f"{where[1]}: the key does not match the certificate in {where[0]}: replace both together"
        )
    return KeyPair(
        b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chain),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def validate_authority(pair: KeyPair) -> KeyPair:
    """Validate and normalize a CA that signs serving certificates; its dates are not checked.

    Raises:
        CertificateError: as `validate_pair`, or gpugate did not create the CA: it cannot sign certificates, may sign
            other CAs, or has no key identifier.
    """
    checked = validate_pair(pair)
    chain = parse_certificates(checked.certificate, _DEFAULT_NAMES[0])
    if len(chain) > 1:
        raise CertificateError(f"certificate: contains {len(chain)} certificates; expected one CA certificate")
    try:
        constraints = chain[0].extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = chain[0].extensions.get_extension_for_class(x509.KeyUsage).value
        chain[0].extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        raise CertificateError(
            "certificate: not created by gpugate (basic constraints, key usage or key identifier missing)"
        ) from None
    if not constraints.ca or not usage.key_cert_sign:
        raise CertificateError("certificate: not a CA certificate (CA:TRUE and keyCertSign required)")
    if constraints.path_length != 0:
        raise CertificateError("certificate: may sign other CAs (pathlen is not 0)")
    return checked


def validate_server(
    pair: KeyPair, names: Sequence[str], now: dt.datetime | None, where: tuple[str, str] = _DEFAULT_NAMES
) -> KeyPair:
    """Validate and normalize a serving certificate and its key, as an API server requires them.

    Args:
        pair: the serving certificate, followed by its intermediate certificates, and its key.
        names: the names and addresses that clients connect to; each must be a subject alternative name.
        now: the current time, with a time zone; None skips the check of the dates.
        where: the names of certificate and key in messages.

    Raises:
        CertificateError: as `validate_pair`; or a certificate of the chain has expired or begins more than five minutes
            from now, or the first is not a server certificate or not valid for one of the names.
    """
    checked = validate_pair(pair, where)
    chain = parse_certificates(checked.certificate, where[0])
    for number, certificate in enumerate(chain, 1):
        label = where[0] if len(chain) == 1 else f"{where[0]}: certificate {number} of {len(chain)}"
        if now is not None:
            _check_dates(certificate, now, label)
    _check_names(chain[0], names, where[0])
    return checked


def validate_authorities(pem: bytes, now: dt.datetime | None, where: str) -> bytes:
    """Validate a CA bundle with at least one unexpired certificate, and normalize it to plain PEM.

    Raises:
        CertificateError: the bundle contains no certificate or an invalid one, or all have expired; begins with `where`.
    """
    bundle = parse_certificates(pem, where)
    if now is not None and all(certificate.not_valid_after_utc <= now for certificate in bundle):
        latest = max(certificate.not_valid_after_utc for certificate in bundle)
        raise CertificateError(f"{where}: all CAs expired, the last at {_format_time(latest)} by this server's clock")
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in bundle)


def _check_dates(certificate: x509.Certificate, now: dt.datetime, where: str) -> None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if ends <= now:
        raise CertificateError(f"{where}: expired at {_format_time(ends)}, by this server's clock: renew it")
    if begins > now + _CLOCK_TOLERANCE:
        raise CertificateError(
            f"{where}: not valid before {_format_time(begins)}, by this server's clock: check the clock"
        )


def _check_names(certificate: x509.Certificate, names: Sequence[str], where: str) -> None:
    extensions = certificate.extensions
    try:
        alternatives = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise CertificateError(
            f"{where}: no alternative names (subjectAltName), the only names that clients check: issue it with them"
        ) from None
    missing = [name for name in names if not covers(alternatives, name)]
    if missing:
        raise CertificateError(f"{where}: not valid for the name {missing[0]}: issue it with this alternative name")
    try:
        usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usage):
        raise CertificateError(f"{where}: not a server certificate: issue it with the extended key usage serverAuth")


def _encode_public_key(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _format_time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
