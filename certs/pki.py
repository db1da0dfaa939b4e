"""Create certificate authorities (CAs) and the server certificates they sign, and read PEM chains and bundles."""

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
    """An unusable certificate or key; the text names it and the cause, and contains no part of its content."""


_EXPECTED_CERTIFICATE: Final = "PEM with -----BEGIN CERTIFICATE-----"
_EXPECTED_KEY: Final = "PEM with -----BEGIN PRIVATE KEY-----"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
# DER and PKCS #12 begin with this byte.
_DER_SEQUENCE: Final = b"\x30"


def parse_certificates(pem: bytes, where: str) -> list[x509.Certificate]:
    """Parse the certificates of a PEM chain or bundle, at least one.

    Raises:
        CertificateError: no certificate, or an invalid one; begins with `where`.
    """
    begin_count, end_count = pem.count(b"-----BEGIN CERTIFICATE-----"), pem.count(b"-----END CERTIFICATE-----")
    if not begin_count:
        raise CertificateError(f"{where}: {_describe_content(pem, _EXPECTED_CERTIFICATE)}")
    if begin_count != end_count:
        raise CertificateError(f"{where}: truncated: {begin_count} certificates begin and {end_count} end")
    try:
        parsed = x509.load_pem_x509_certificates(pem)
        for certificate in parsed:
            # cryptography parses extensions and keys on access.
            certificate.extensions  # noqa: B018 -- raises if they are invalid
            certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError(f"{where}: contains an invalid certificate: write the file again") from None
    return parsed


def parse_private_key(pem: bytes, where: str) -> PrivateKeyTypes:
    """Parse a private key in PEM.

    Raises:
        CertificateError: no key, or an encrypted or invalid one; begins with `where`.
    """
    if b"PRIVATE KEY-----" not in pem:
        raise CertificateError(f"{where}: {_describe_content(pem, _EXPECTED_KEY)}")
    if b"-----END " not in pem:
        raise CertificateError(f"{where}: truncated: the END line of the key is missing")
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise CertificateError(f"{where}: the key is encrypted: use a key without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError(f"{where}: contains an invalid key: write the file again") from None


def _describe_content(data: bytes, expected: str) -> str:
    if not data.strip():
        return f"empty: write it as {expected}"
    if data.startswith(_UTF_16):
        return f"UTF-16: save it as plain text, {expected}"
    if data.startswith(_DER_SEQUENCE):
        return f"binary (DER or PKCS #12): write it as {expected}, with `openssl x509`, `pkey` or `pkcs12`"
    if b"-----BEGIN " in data:
        kind = data.partition(b"-----BEGIN ")[2].partition(b"-----")[0][:40].decode("ascii", "replace")
        return f"contains {kind!r}: write it as {expected}"
    return f"not PEM: write it as {expected}"


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL: Final = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DNS_NAME: Final = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_MAX_DNS_NAME: Final = 253
# No server has a name in this domain (RFC 6761, 6.4). An empty subtree means the same, but some verifiers ignore it.
_NO_DNS_NAME: Final = "invalid"
_NO_ADDRESS: Final = ("0.0.0.0/0", "::/0")


def parse_general_name(name: str) -> GeneralName:
    """Convert a name to the general name of a subject alternative name.

    Raises:
        ValueError: the name is neither an IP address nor an ASCII DNS name, which may begin with `*.`.
    """
    address = parse_address(name)
    if address is not None:
        return x509.IPAddress(address)
    if len(name) > _MAX_DNS_NAME or not _DNS_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is neither an IP address nor a DNS name")
    return x509.DNSName(name)


def parse_address(name: str) -> Address | None:
    """Parse a name as an IP address; None for any other name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def build_constraints(names: Sequence[str]) -> x509.NameConstraints:
    """Build the name constraints of a CA: the DNS names and their subdomains, and exactly the addresses.

    A constraint on one form of names does not restrict the other (RFC 5280, 4.2.1.10). Without addresses, all addresses
    are therefore excluded; without DNS names, only a name that no server can have is permitted.
    """
    addresses = [address for address in map(parse_address, names) if address is not None]
    suffixes = [name.removeprefix("*.") for name in names if parse_address(name) is None] or [_NO_DNS_NAME]
    permitted: list[GeneralName] = [x509.DNSName(suffix) for suffix in dict.fromkeys(suffixes)]
    permitted += [x509.IPAddress(ipaddress.ip_network(address)) for address in dict.fromkeys(addresses)]
    excluded = None if addresses else [x509.IPAddress(ipaddress.ip_network(network)) for network in _NO_ADDRESS]
    return x509.NameConstraints(permitted, excluded)


def permits(authority: x509.Certificate, names: Sequence[str]) -> bool:
    """Whether a CA may sign for all names; it has the constraints that `build_constraints` builds, or none."""
    try:
        constraints = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    except x509.ExtensionNotFound:
        return True
    trees = constraints.permitted_subtrees or ()
    suffixes = [tree.value.lower() for tree in trees if isinstance(tree, x509.DNSName)]
    networks = [tree.value for tree in trees if isinstance(tree, x509.IPAddress)]

    def is_permitted(name: str) -> bool:
        address = parse_address(name)
        if address is not None:
            return ipaddress.ip_network(address) in networks
        below = "." + name.lower().removeprefix("*.")
        return any(below.endswith("." + suffix) for suffix in suffixes)

    return all(map(is_permitted, names))


def covers(alternatives: x509.SubjectAlternativeName, name: str) -> bool:
    """Whether subject alternative names match the name that a client connects to.

    `*.svc` matches every name with one more label (RFC 9525, 6.3).
    """
    address = parse_address(name)
    if address is not None:
        return address in alternatives.get_values_for_type(x509.IPAddress)
    normalized = name.lower().removesuffix(".")
    candidates = {normalized, "*." + normalized.partition(".")[2]}
    return not candidates.isdisjoint(
        alternative.lower() for alternative in alternatives.get_values_for_type(x509.DNSName)
    )


# Clients whose clock is behind must accept a new certificate.
BACKDATED: Final = dt.timedelta(hours=1)
# X.520 limits a common name to 64 characters.
_MAX_COMMON_NAME: Final = 64
_PEM_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key (PKCS #8, unencrypted), both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


def certificate_authority(name: str, *, now: dt.datetime, lifetime: dt.timedelta, names: Sequence[str] = ()) -> KeyPair:
    """Create a self-signed CA that may sign server certificates but not other CAs.

    Args:
        name: the common name, unique for each CA, at most 64 characters.
        now: the current time, with a time zone; the certificate is valid from one hour earlier.
        lifetime: from `now` to the end of its validity.
        names: the DNS names and IP addresses that it may sign for, as critical name constraints. Go, OpenSSL and rustls
            enforce them, so a stolen key cannot sign for other names. Without names, it may sign for all.

    Raises:
        ValueError: a name is neither an IP address nor an ASCII DNS name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _build_name(name)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _start_builder(subject, subject, key.public_key(), now - BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_build_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(identifier, critical=False)
        # Verifiers distinguish CAs of the same name by it. Without it, OpenSSL tries the wrong key.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    if names:
        for permitted_name in names:
            parse_general_name(permitted_name)
        builder = builder.add_extension(build_constraints(names), critical=True)
    return _encode_pair(builder.sign(key, hashes.SHA256()), key)


def server_certificate(
    authority: KeyPair, names: Sequence[str], *, now: dt.datetime, lifetime: dt.timedelta
) -> KeyPair:
    """Create a certificate for a TLS server; its validity is within that of its CA.

    Args:
        authority: the CA that signs it.
        names: every DNS name and IP address that clients connect to; at least one. The API server checks only these,
            never the common name (`k8s.io/apiserver` pkg/util/webhook/client.go, v1.36).
        now: the current time, with a time zone; the certificate is valid from one hour earlier.
        lifetime: from `now` to the end of its validity.

    Raises:
        ValueError: no name, a name is neither an IP address nor an ASCII DNS name, or the CA may not sign for
            it or is not valid now.
        TypeError: the key of the CA is not an elliptic curve key.
    """
    if not names:
        raise ValueError("a server certificate needs at least one DNS name or IP address")
    alternatives = [parse_general_name(name) for name in dict.fromkeys(names)]
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    if not permits(issuer, names):
        raise ValueError("the name constraints of the CA exclude one of the names")
    begin = max(now - BACKDATED, issuer.not_valid_before_utc)
    end = min(now + lifetime, issuer.not_valid_after_utc)
    if end <= begin:
        raise ValueError("the CA is not valid at this time")
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the key of the CA is not an elliptic curve key")
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    # OpenSSL 3 applies the DNS name constraints of the CA to a common name that is an address.
    common_name = next((name for name in names if parse_address(name) is None), f"address {names[0]}")
    certificate = (
        _start_builder(_build_name(common_name), issuer.subject, key.public_key(), begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_build_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_identifier), critical=False
        )
        .sign(issuer_key, hashes.SHA256())
    )
    return _encode_pair(certificate, key)


def split(pem: bytes) -> list[bytes]:
    """Split a bundle into certificates, each as PEM; invalid blocks are skipped.

    An API server reads a `caBundle` the same way (Go crypto/x509 CertPool.AppendCertsFromPEM).
    """
    return [
        certificate.public_bytes(serialization.Encoding.PEM)
        for certificate in map(_parse_der, _PEM_BLOCK.findall(pem))
        if certificate
    ]


def join(certificates: Iterable[bytes]) -> bytes:
    """Join certificates (PEM) into a bundle, without duplicates and oldest first: equal sets give equal bytes."""
    by_fingerprint = {fingerprint(pem): pem for pem in certificates}
    order = sorted(by_fingerprint, key=lambda key: (validity(by_fingerprint[key]), key))
    return b"".join(by_fingerprint[key] for key in order)


def fingerprint(pem: bytes) -> str:
    """Compute the SHA-256 fingerprint of a certificate (PEM), 64 hexadecimal digits.

    Raises:
        ValueError: it is not a certificate.
    """
    return x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex()


def common_name(pem: bytes) -> str:
    """Return the common name of the first certificate of a PEM chain, empty if it has none.

    Raises:
        ValueError: no certificate in it.
    """
    attributes = x509.load_pem_x509_certificate(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(attributes[0].value) if attributes else ""


def validity(pem: bytes) -> tuple[dt.datetime, dt.datetime]:
    """Return the start and the end of the validity of the first certificate of a PEM chain, in UTC.

    Raises:
        ValueError: no certificate in it.
    """
    first = x509.load_pem_x509_certificate(pem)
    return first.not_valid_before_utc, first.not_valid_after_utc


def expiry(pem: bytes) -> dt.datetime:
    """Return the end of the validity of the first certificate of a PEM chain, in UTC.

    Raises:
        ValueError: no certificate in it.
    """
    return validity(pem)[1]


def _parse_der(encoded: bytes) -> x509.Certificate | None:
    try:
        return x509.load_der_x509_certificate(base64.b64decode(b"".join(encoded.split()), validate=True))
    except (ValueError, binascii.Error):
        return None


def _start_builder(
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


def _build_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_MAX_COMMON_NAME])])


def _build_usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
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


def _encode_pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
