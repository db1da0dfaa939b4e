"""Says in words what is wrong with a certificate and its key, before anything depends on them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from gpugate.certs.pki import CertificateError, KeyPair, certificates, covers, private_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

# What the two are called in messages when they are no files.
_NO_FILES: Final = ("certificate", "key")
# How far clocks of one cluster differ at most; an authority that does not back-date is younger than that at first.
_CLOCKS_DIFFER: Final = dt.timedelta(minutes=5)


def checked_pair(pair: KeyPair, where: tuple[str, str] = _NO_FILES) -> KeyPair:
    """Return the same in one form: PEM, the certificate of the key first, the key unencrypted and in PKCS #8.

    Args:
        pair: a chain and a key as somebody wrote them: with a byte order mark, CRLF or text around, of any format of PEM.
        where: what certificate and key are called in messages.

    Raises:
        CertificateError: one of them is not PEM, is cut off or encrypted, or the key does not belong to the first
            certificate.
    """
    chain, key = certificates(pair.certificate, where[0]), private_key(pair.key, where[1])
    public = _public(key.public_key())
    if _public(chain[0].public_key()) != public:
        for number, certificate in enumerate(chain[1:], 2):
            if _public(certificate.public_key()) == public:
                raise CertificateError(
                    f"{where[0]}: certificate {number} of {len(chain)} belongs to the key: put it first"
                )
        raise CertificateError(
            f"{where[1]}: the key does not belong to the certificate in {where[0]}: replace both together"
        )
    return KeyPair(
        b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chain),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def checked_authority(pair: KeyPair) -> KeyPair:
    """Return an authority that may sign servers' certificates, as `checked_pair` does; dates are not looked at.

    Raises:
        CertificateError: as `checked_pair`, or it is no authority of ours: it may sign no certificates, or further
            authorities too, or has no key identifier.
    """
    checked = checked_pair(pair)
    chain = certificates(checked.certificate, _NO_FILES[0])
    if len(chain) > 1:
        raise CertificateError(f"certificate: there are {len(chain)}, an authority that signs is one")
    try:
        constraints = chain[0].extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = chain[0].extensions.get_extension_for_class(x509.KeyUsage).value
        chain[0].extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        raise CertificateError(
            "certificate: it is no authority of ours (no constraints, usage or identifier)"
        ) from None
    if not constraints.ca or not usage.key_cert_sign:
        raise CertificateError("certificate: it is no authority (CA:TRUE, keyCertSign)")
    if constraints.path_length != 0:
        raise CertificateError("certificate: it may sign further authorities (pathlen is not 0)")
    return checked


def checked_server(
    pair: KeyPair, names: Sequence[str], now: dt.datetime | None, where: tuple[str, str] = _NO_FILES
) -> KeyPair:
    """Return a server's pair that an API server can trust, as `checked_pair` does.

    Args:
        pair: the server's certificate, with those between it and its authority behind it, and its key.
        names: what clients reach the server by; each must be among its alternative names.
        now: the time, with its zone; None if dates are not to be looked at.
        where: what certificate and key are called in messages.

    Raises:
        CertificateError: as `checked_pair`; or one of the chain expired or begins more than five minutes from now, or
            the first is for no server, or not for one of the names.
    """
    checked = checked_pair(pair, where)
    chain = certificates(checked.certificate, where[0])
    for number, certificate in enumerate(chain, 1):
        which = where[0] if len(chain) == 1 else f"{where[0]}: certificate {number} of {len(chain)}"
        if now is not None:
            _check_dates(certificate, now, which)
    _check_names(chain[0], names, where[0])
    return checked


def checked_authorities(pem: bytes, now: dt.datetime | None, where: str) -> bytes:
    """Return a bundle of authorities, at least one of which has not expired, as plain PEM.

    Raises:
        CertificateError: there is none, one cannot be read, or all expired; begins with `where`.
    """
    found = certificates(pem, where)
    if now is not None and all(each.not_valid_after_utc <= now for each in found):
        latest = max(each.not_valid_after_utc for each in found)
        raise CertificateError(f"{where}: every authority in it expired by this server's clock, at {_time(latest)}")
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in found)


def _check_dates(certificate: x509.Certificate, now: dt.datetime, which: str) -> None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if ends <= now:
        raise CertificateError(f"{which}: expired at {_time(ends)}, by this server's clock: renew it")
    if begins > now + _CLOCKS_DIFFER:
        raise CertificateError(f"{which}: not valid before {_time(begins)}, by this server's clock: is that right?")


def _check_names(certificate: x509.Certificate, names: Sequence[str], where: str) -> None:
    extensions = certificate.extensions
    try:
        alternatives = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise CertificateError(
            f"{where}: no alternative names (subjectAltName), and clients look at nothing else: issue it with them"
        ) from None
    missing = [name for name in names if not covers(alternatives, name)]
    if missing:
        raise CertificateError(f"{where}: not for the name {missing[0]}: issue it with that alternative name")
    try:
        usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usage):
        raise CertificateError(f"{where}: not for servers: issue it with the extended key usage serverAuth")


def _public(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
