"""Create certificate authorities and the server certificates they sign, and read PEM bundles.

Reads certificates as well: what is in a bundle, what each is called, and how long it is valid.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509.general_name import GeneralName


class CertificateError(ValueError):
    """A certificate and key that cannot be used; the text says which of them and why, and shows nothing of either."""


_EXPECTED_CERTIFICATE: Final = "PEM with -----BEGIN CERTIFICATE-----"
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
        raise CertificateError(f"{where}: {_not_pem(pem, _EXPECTED_CERTIFICATE)}")
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


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL: Final = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DNS_NAME: Final = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_LONGEST_DNS_NAME: Final = 253
# No server has a name below it (RFC 6761, 6.4); an empty subtree says the same, but not every verifier reads it.
_NO_DNS_NAME: Final = "invalid"
_NO_ADDRESS: Final = ("0.0.0.0/0", "::/0")


def alternative(name: str) -> GeneralName:
    """Read a name as a certificate says it in its alternative names.

    Raises:
        ValueError: it is neither an IP address nor an ASCII DNS name, which may begin with `*.`.
    """
    address = address_of(name)
    if address is not None:
        return x509.IPAddress(address)
    if len(name) > _LONGEST_DNS_NAME or not _DNS_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is neither an IP address nor a DNS name")
    return x509.DNSName(name)


def address_of(name: str) -> Address | None:
    """Return the IP address that a name is, if it is one."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def constraints(names: Sequence[str]) -> x509.NameConstraints:
    """Hold an authority to these names: the DNS names and what is below them, and exactly the addresses.

    A constraint of one form of names says nothing about the other (RFC 5280, 4.2.1.10), so that where there are no
    addresses all of them are excluded, and where there are no DNS names one is permitted that nobody can have.
    """
    addresses = [found for found in map(address_of, names) if found is not None]
    suffixes = [name.removeprefix("*.") for name in names if address_of(name) is None] or [_NO_DNS_NAME]
    permitted: list[GeneralName] = [x509.DNSName(suffix) for suffix in dict.fromkeys(suffixes)]
    permitted += [x509.IPAddress(ipaddress.ip_network(address)) for address in dict.fromkeys(addresses)]
    excluded = None if addresses else [x509.IPAddress(ipaddress.ip_network(network)) for network in _NO_ADDRESS]
    return x509.NameConstraints(permitted, excluded)


def permits(authority: x509.Certificate, names: Sequence[str]) -> bool:
    """Tell whether an authority with constraints as `constraints` makes them, or none, may sign for all these names."""
    try:
        held_to = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    except x509.ExtensionNotFound:
        return True
    trees = held_to.permitted_subtrees or ()
    suffixes = [tree.value.lower() for tree in trees if isinstance(tree, x509.DNSName)]
    networks = [tree.value for tree in trees if isinstance(tree, x509.IPAddress)]

    def one(name: str) -> bool:
        address = address_of(name)
        if address is not None:
            return ipaddress.ip_network(address) in networks
        below = "." + name.lower().removeprefix("*.")
        return any(below.endswith("." + suffix) for suffix in suffixes)

    return all(map(one, names))


def covers(alternatives: x509.SubjectAlternativeName, name: str) -> bool:
    """Tell whether a client that reaches a server by this name takes a certificate with these alternative names.

    A name `*.svc` is for every name with one more label (RFC 9525, 6.3).
    """
    address = address_of(name)
    if address is not None:
        return address in alternatives.get_values_for_type(x509.IPAddress)
    wanted = name.lower().removesuffix(".")
    either = {wanted, "*." + wanted.partition(".")[2]}
    return not either.isdisjoint(each.lower() for each in alternatives.get_values_for_type(x509.DNSName))


# A client whose clock is behind still finds the certificate valid.
BACKDATED: Final = dt.timedelta(hours=1)
# X.520 allows a common name no more characters than this.
_LONGEST_COMMON_NAME: Final = 64
_PEM_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key (PKCS #8, unencrypted), both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


def certificate_authority(name: str, *, now: dt.datetime, lifetime: dt.timedelta, names: Sequence[str] = ()) -> KeyPair:
    """Make a self-signed authority that may sign server certificates and no further authority.

    Args:
        name: the common name; give each authority its own, at most 64 characters.
        now: the time, with its zone; the certificate is valid from an hour before.
        lifetime: from `now` to the end of its validity.
        names: the DNS names and IP addresses that it may sign for (critical name constraints, to which Go, OpenSSL and
            rustls hold it): whoever steals its key can pose as nobody else. Without any it may sign for all.

    Raises:
        ValueError: a name is neither an IP address nor an ASCII DNS name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _started(subject, subject, key.public_key(), now - BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(identifier, critical=False)
        # With it, verifiers tell authorities of one name apart; OpenSSL tries the wrong key without.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    if names:
        for each in names:
            alternative(each)
        builder = builder.add_extension(constraints(names), critical=True)
    return _pem(builder.sign(key, hashes.SHA256()), key)


def server_certificate(
    authority: KeyPair, names: Sequence[str], *, now: dt.datetime, lifetime: dt.timedelta
) -> KeyPair:
    """Make a certificate for a TLS server; it is valid at no time at which its authority is not.

    Args:
        authority: what signs it.
        names: every DNS name and IP address that clients reach the server by; at least one. The API server looks at
            these only, never at the common name (`k8s.io/apiserver` pkg/util/webhook/client.go, v1.36).
        now: the time, with its zone; the certificate is valid from an hour before.
        lifetime: from `now` to the end of its validity.

    Raises:
        ValueError: there is no name, one is neither an IP address nor an ASCII DNS name, or the authority may not sign
            for it, or is not valid now.
    """
    if not names:
        raise ValueError("a server certificate needs at least one DNS name or IP address")
    alternatives = [alternative(name) for name in dict.fromkeys(names)]
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    if not permits(issuer, names):
        raise ValueError("the authority may not sign for all of these names")
    begin = max(now - BACKDATED, issuer.not_valid_before_utc)
    end = min(now + lifetime, issuer.not_valid_after_utc)
    if end <= begin:
        raise ValueError("the authority is not valid at this time")
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not an elliptic curve key")
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    # A common name that is an address would be held to what the authority may sign for DNS (OpenSSL 3).
    common_name = next((name for name in names if address_of(name) is None), f"address {names[0]}")
    certificate = (
        _started(_named(common_name), issuer.subject, key.public_key(), begin)
        .not_valid_after(end)
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


def split(pem: bytes) -> list[bytes]:
    """Return the certificates of a bundle, each as PEM of its own; what is none is passed over.

    So does an API server with a `caBundle` (Go crypto/x509 CertPool.AppendCertsFromPEM).
    """
    return [one.public_bytes(serialization.Encoding.PEM) for one in map(_read, _PEM_BLOCK.findall(pem)) if one]


def joined(certificates: Iterable[bytes]) -> bytes:
    """Return a bundle of certificates (PEM): each once, oldest first, so that the same ones are always the same bytes."""
    once = {fingerprint(one): one for one in certificates}
    order = sorted(once, key=lambda key: (validity(once[key]), key))
    return b"".join(once[key] for key in order)


def fingerprint(pem: bytes) -> str:
    """Return the SHA-256 of a certificate, 64 hexadecimal digits.

    Raises:
        ValueError: it is none.
    """
    return x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex()


def common_name(pem: bytes) -> str:
    """Return the common name of the first certificate of a PEM chain, empty where it has none.

    Raises:
        ValueError: there is no certificate in it.
    """
    found = x509.load_pem_x509_certificate(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def validity(pem: bytes) -> tuple[dt.datetime, dt.datetime]:
    """Return from when and until when the first certificate of a PEM chain is valid, in UTC.

    Raises:
        ValueError: there is no certificate in it.
    """
    first = x509.load_pem_x509_certificate(pem)
    return first.not_valid_before_utc, first.not_valid_after_utc


def expiry(pem: bytes) -> dt.datetime:
    """Return until when the first certificate of a PEM chain is valid, in UTC.

    Raises:
        ValueError: there is no certificate in it.
    """
    return validity(pem)[1]


def _read(encoded: bytes) -> x509.Certificate | None:
    try:
        return x509.load_der_x509_certificate(base64.b64decode(b"".join(encoded.split()), validate=True))
    except (ValueError, binascii.Error):
        return None


def _started(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, begin: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])])


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
