"""What people and programs leave in the files of a certificate and its key, good and bad."""

from __future__ import annotations

import datetime as dt

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
AUTHORITY = certificate_authority("gpugate-ca", now=NOW - 30 * DAY, lifetime=90 * DAY)
NAME = "gpugate.gpugate.svc"
PAIR = server_certificate(AUTHORITY, [NAME, "127.0.0.1"], now=NOW, lifetime=DAY)
OTHER = server_certificate(AUTHORITY, [NAME], now=NOW, lifetime=DAY)

_KEY = serialization.load_pem_private_key(PAIR.key, password=None)
_PLAIN = serialization.NoEncryption()
_SECRET = serialization.BestAvailableEncryption(b"secret")
_PEM, _DER = serialization.Encoding.PEM, serialization.Encoding.DER
_PKCS8, _SEC1 = serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL
# What `openssl ecparam -name prime256v1 -genkey` writes before the key.
_EC_PARAMETERS = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"


def _key(encoding: serialization.Encoding, form: serialization.PrivateFormat, *, encrypted: bool = False) -> bytes:
    return _KEY.private_bytes(encoding, form, _SECRET if encrypted else _PLAIN)


def _with(certificate: bytes | None = None, key: bytes | None = None) -> KeyPair:
    return KeyPair(PAIR.certificate if certificate is None else certificate, PAIR.key if key is None else key)


def _issued(lifetime: dt.timedelta, at: dt.datetime) -> KeyPair:
    return server_certificate(AUTHORITY, [NAME], now=at, lifetime=lifetime)


def _self_signed(*extensions: x509.ExtensionType) -> KeyPair:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW)
        .not_valid_after(NOW + DAY)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return KeyPair(builder.sign(key, hashes.SHA256()).public_bytes(_PEM), key.private_bytes(_PEM, _SEC1, _PLAIN))


_NAMED = x509.SubjectAlternativeName([x509.DNSName(NAME)])
_BOM = b"\xef\xbb\xbf"

GOOD = {
    "as-written-by-us": PAIR,
    "byte-order-mark": _with(_BOM + PAIR.certificate, _BOM + PAIR.key),
    "crlf": _with(PAIR.certificate.replace(b"\n", b"\r\n"), PAIR.key.replace(b"\n", b"\r\n")),
    "no-last-newline": _with(PAIR.certificate.rstrip(), PAIR.key.rstrip()),
    "text-around": _with(b"Bag Attributes\n    friendlyName: x\n" + PAIR.certificate + b"\n# end\n"),
    "sec1-key": _with(key=_key(_PEM, _SEC1)),
    "ec-parameters-first": _with(key=_EC_PARAMETERS + _key(_PEM, _SEC1)),
    "chain": _with(PAIR.certificate + AUTHORITY.certificate),
    "the-rest-of-the-chain-in-any-order": _with(PAIR.certificate + AUTHORITY.certificate + OTHER.certificate),
    "key-and-certificate-in-both": KeyPair(PAIR.certificate + PAIR.key, PAIR.certificate + PAIR.key),
    "rsa-self-signed": _self_signed(_NAMED),
    "wildcard": server_certificate(AUTHORITY, ["*.gpugate.svc"], now=NOW, lifetime=DAY),
    "clock-a-little-behind": _issued(DAY, NOW + dt.timedelta(hours=1, minutes=4)),
}

BAD = {
    "empty-certificate": (_with(b""), "tls.crt: empty"),
    "empty-key": (_with(key=b"\n"), "tls.key: empty"),
    "no-pem": (_with(b"hello"), "tls.crt: not PEM: write it as PEM with -----BEGIN CERTIFICATE-----"),
    "zeros": (_with(key=b"\0" * 4096), "tls.key: not PEM"),
    "utf-16": (_with(PAIR.certificate.decode().encode("utf-16")), "tls.crt: UTF-16"),
    "certificate-in-der": (_with(x509.load_pem_x509_certificate(PAIR.certificate).public_bytes(_DER)), "crt: binary"),
    "key-in-der": (_with(key=_key(_DER, _PKCS8)), "tls.key: binary (DER or PKCS #12)"),
    "encrypted-key": (_with(key=_key(_PEM, _PKCS8, encrypted=True)), "tls.key: the key is encrypted"),
    "encrypted-sec1-key": (_with(key=_key(_PEM, _SEC1, encrypted=True)), "tls.key: the key is encrypted"),
    "truncated-certificate": (_with(PAIR.certificate[:200]), "tls.crt: truncated"),
    "truncated-chain": (
        _with(PAIR.certificate + AUTHORITY.certificate[:200]),
        "truncated: 2 certificates begin and 1 end",
    ),
    "truncated-key": (_with(key=PAIR.key[:80]), "tls.key: truncated"),
    "damaged-certificate": (_with(PAIR.certificate.replace(b"M", b"N", 3)), "tls.crt: contains an invalid certificate"),
    "damaged-key": (_with(key=PAIR.key.replace(b"M", b"N", 3)), "tls.key: contains an invalid key"),
    "swapped": (KeyPair(PAIR.key, PAIR.certificate), "tls.crt: contains 'PRIVATE KEY'"),
    "trusted-certificate": (
        _with(PAIR.certificate.replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE")),
        "tls.crt: contains 'TRUSTED CERTIFICATE'",
    ),
    "request": (_with(b"-----BEGIN CERTIFICATE REQUEST-----\n"), "tls.crt: contains 'CERTIFICATE REQUEST'"),
    "public-key": (
        _with(key=b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"),
        "tls.key: contains 'PUBLIC KEY'",
    ),
    "parameters-without-a-key": (_with(key=_EC_PARAMETERS + PAIR.certificate), "tls.key: contains 'EC PARAMETERS'"),
    "an-endless-label-of-bytes": (
        _with(b"-----BEGIN \xe9" + b"x" * 99 + b"-----\n"),
        f"tls.crt: contains '\ufffd{'x' * 39}': write it as",
    ),
    "another-key": (_with(key=OTHER.key), "tls.key: the key does not match the certificate in"),
    "chain-in-the-wrong-order": (
        _with(AUTHORITY.certificate + PAIR.certificate),
        "tls.crt: the key matches certificate 2 of 2: put this certificate first",
    ),
    "expired": (_issued(DAY, NOW - 2 * DAY), "tls.crt: expired at 2026-11-20T12:00:00Z, by this server's clock"),
    "expires-now": (_issued(DAY, NOW - DAY), "tls.crt: expired at 2026-11-21T12:00:00Z"),
    "not-yet-valid": (_issued(DAY, NOW + DAY), "tls.crt: not valid before 2026-11-22T11:00:00Z"),
    "expired-in-the-chain": (
        _with(PAIR.certificate + _issued(DAY, NOW - 2 * DAY).certificate),
        "certificate 2 of 2: expired",
    ),
    "another-name": (
        server_certificate(AUTHORITY, ["other.svc"], now=NOW, lifetime=DAY),
        f"tls.crt: not valid for the name {NAME}",
    ),
    "wildcard-of-another-level": (
        server_certificate(AUTHORITY, ["*.svc"], now=NOW, lifetime=DAY),
        f"tls.crt: not valid for the name {NAME}",
    ),
    "common-name-only": (_self_signed(), "tls.crt: no alternative names"),
    "for-clients": (
        _self_signed(_NAMED, x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CLIENT_AUTH])),
        "tls.crt: not a server certificate",
    ),
}
assert isinstance(_KEY, ec.EllipticCurvePrivateKey)
