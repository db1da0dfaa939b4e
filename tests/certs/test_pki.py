from __future__ import annotations

import datetime as dt
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import given
from hypothesis import strategies as st

from gpugate.certs.pki import (
    CertificateError,
    KeyPair,
    certificate_authority,
    common_name,
    fingerprint,
    join,
    parse_certificates,
    server_certificate,
    split,
    validity,
)

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
NAMES = ("gpugate.gpugate.svc", "localhost", "127.0.0.1", "::1")
AUTHORITY = certificate_authority("ca", now=NOW, lifetime=30 * DAY)


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return certificate_authority("gpugate-ca", now=NOW, lifetime=10 * DAY)


@pytest.fixture(scope="module")
def leaf(authority: KeyPair) -> KeyPair:
    return server_certificate(authority, NAMES, now=NOW, lifetime=5 * DAY)


def parsed(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def verify(leaf: KeyPair, authority: KeyPair, name: str, at: dt.datetime) -> None:
    subject: x509.DNSName | x509.IPAddress
    try:
        subject = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    store = Store([parsed(authority)])
    PolicyBuilder().store(store).time(at).build_server_verifier(subject).verify(parsed(leaf), [])


@pytest.mark.parametrize("name", NAMES)
def test_every_name_verifies(leaf: KeyPair, authority: KeyPair, name: str) -> None:
    verify(leaf, authority, name, NOW)


@pytest.mark.parametrize("at", [NOW - dt.timedelta(minutes=59), NOW + 5 * DAY], ids=["clock-behind", "last-moment"])
def test_a_certificate_is_valid_in_its_period(leaf: KeyPair, authority: KeyPair, at: dt.datetime) -> None:
    verify(leaf, authority, "localhost", at)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        pytest.param("other.svc", NOW, id="another-name"),
        pytest.param("127.0.0.2", NOW, id="another-address"),
        pytest.param("localhost", NOW - dt.timedelta(hours=2), id="too-early"),
        pytest.param("localhost", NOW + 6 * DAY, id="expired"),
    ],
)
def test_a_certificate_is_invalid_otherwise(leaf: KeyPair, authority: KeyPair, name: str, at: dt.datetime) -> None:
    with pytest.raises(VerificationError):
        verify(leaf, authority, name, at)


def test_another_authority_of_the_same_name_does_not_verify(leaf: KeyPair) -> None:
    other = certificate_authority("gpugate-ca", now=NOW, lifetime=10 * DAY)
    with pytest.raises(VerificationError):
        verify(leaf, other, "localhost", NOW)


def test_a_certificate_never_outlives_its_authority(authority: KeyPair) -> None:
    leaf = server_certificate(authority, NAMES, now=NOW, lifetime=100 * DAY)
    assert parsed(leaf).not_valid_after_utc == parsed(authority).not_valid_after_utc


def test_an_authority_signs_only_server_certificates(authority: KeyPair) -> None:
    constraints = parsed(authority).extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)


def test_identifiers_link_leaf_to_authority(leaf: KeyPair, authority: KeyPair) -> None:
    subject = parsed(authority).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer = parsed(leaf).extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert issuer.key_identifier == subject.key_identifier


def test_keys_are_p256(leaf: KeyPair) -> None:
    key = parsed(leaf).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_serial_numbers_differ(authority: KeyPair) -> None:
    leaves = [server_certificate(authority, NAMES, now=NOW, lifetime=DAY) for _ in range(5)]
    assert len({parsed(leaf).serial_number for leaf in leaves}) == 5


def test_the_repr_contains_no_key(authority: KeyPair) -> None:
    assert repr(authority) == "KeyPair(...)"


IMPOSSIBLE = ["", "bücher.example", "two words", "a..b", ".svc", "svc.", "-a.svc", "a" * 64, "a." * 127 + "b", "a*.svc"]
# 254 characters; tests/certs/test_names.py has the longest name.
IMPOSSIBLE.append(".".join(["a" * 63] * 3 + ["a" * 62]))


@pytest.mark.parametrize("names", [(), *((name,) for name in IMPOSSIBLE)], ids=repr)
def test_invalid_names_are_rejected(authority: KeyPair, names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="DNS name"):
        server_certificate(authority, names, now=NOW, lifetime=DAY)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_invalid_name_constraints_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="DNS name"):
        certificate_authority("ca", now=NOW, lifetime=DAY, names=[name])


def test_a_certificate_never_begins_before_its_authority() -> None:
    young = certificate_authority("young", now=NOW + dt.timedelta(minutes=30), lifetime=DAY)
    assert (
        validity(server_certificate(young, NAMES, now=NOW, lifetime=DAY).certificate)[0]
        == (validity(young.certificate)[0])
    )


@pytest.mark.parametrize(
    "at", [NOW + 10 * DAY + dt.timedelta(hours=1), NOW - 30 * DAY], ids=["expired", "not-yet-valid"]
)
def test_an_invalid_authority_does_not_sign(authority: KeyPair, at: dt.datetime) -> None:
    with pytest.raises(ValueError, match="not valid at this time"):
        server_certificate(authority, NAMES, now=at, lifetime=DAY)


def test_critical_extensions(authority: KeyPair, leaf: KeyPair) -> None:
    critical = [{e.value.oid._name for e in parsed(pair).extensions if e.critical} for pair in (authority, leaf)]
    assert critical == [{"basicConstraints", "keyUsage"}] * 2


def test_a_certificate_is_only_for_servers(leaf: KeyPair) -> None:
    usage = parsed(leaf).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.ExtendedKeyUsageOID.SERVER_AUTH]


hours = st.integers(-100, 1000).map(lambda number: dt.timedelta(hours=number))
labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
dns_names = st.lists(labels, min_size=1, max_size=5).map(".".join).filter(lambda name: not name[-1].isdigit())
addresses = st.ip_addresses().map(str)


@given(hours, hours.filter(bool))
def test_the_validity_is_within_that_of_the_authority(after: dt.timedelta, lifetime: dt.timedelta) -> None:
    authority = AUTHORITY.certificate
    try:
        leaf = server_certificate(AUTHORITY, NAMES, now=NOW + after, lifetime=lifetime).certificate
    except ValueError:
        return
    (begin, end), (first, last) = validity(leaf), validity(authority)
    assert first <= begin < end <= last


@given(st.lists(dns_names | addresses, min_size=1, max_size=5))
def test_a_certificate_contains_exactly_its_names(names: list[str]) -> None:
    authority = certificate_authority("ca", now=NOW, lifetime=DAY, names=names)
    leaf = server_certificate(authority, names, now=NOW, lifetime=DAY)
    for name in names:
        verify(leaf, authority, name, NOW)
    alternatives = parsed(leaf).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(alternative.value) for alternative in alternatives} == set(names)


def test_an_authority_with_another_key_type_does_not_sign(authority: KeyPair) -> None:
    key = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(TypeError, match="not an elliptic curve key"):
        server_certificate(KeyPair(authority.certificate, key), NAMES, now=NOW, lifetime=DAY)


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("10.0.0.1", "localhost", "other"), "localhost"), (("10.0.0.1", "::1"), "address 10.0.0.1")],
    ids=["the first DNS name", "addresses only"],
)
def test_the_common_name_is_a_dns_name_if_there_is_one(
    authority: KeyPair, names: tuple[str, ...], expected: str
) -> None:
    assert common_name(server_certificate(authority, names, now=NOW, lifetime=DAY).certificate) == expected


def test_a_common_name_is_truncated_to_64_characters() -> None:
    assert common_name(certificate_authority("a" * 65, now=NOW, lifetime=DAY).certificate) == "a" * 64


def test_a_missing_common_name_is_empty(authority: KeyPair) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    nameless = (
        x509.CertificateBuilder(subject_name=x509.Name([]), issuer_name=parsed(authority).subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + DAY)
        .sign(key, hashes.SHA256())
    )
    assert common_name(nameless.public_bytes(serialization.Encoding.PEM)) == ""


def usage(pair: KeyPair) -> set[str]:
    usage_extension = parsed(pair).extensions.get_extension_for_class(x509.KeyUsage).value
    kinds = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
    )
    return {kind for kind in kinds if getattr(usage_extension, kind)}


def test_key_usages(authority: KeyPair, leaf: KeyPair) -> None:
    assert usage(authority) == {"key_cert_sign", "crl_sign"}
    assert usage(leaf) == {"digital_signature"}


def test_a_server_certificate_is_not_an_authority(leaf: KeyPair) -> None:
    constraints = parsed(leaf).extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (False, None)


def test_an_authority_is_self_signed(authority: KeyPair) -> None:
    identifier = parsed(authority).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.key_identifier
    issuer = parsed(authority).extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert (issuer.key_identifier, parsed(authority).issuer) == (identifier, parsed(authority).subject)


def test_certificates_are_backdated_by_an_hour() -> None:
    ca = certificate_authority("ca", now=NOW, lifetime=DAY)
    assert validity(ca.certificate) == (NOW - dt.timedelta(hours=1), NOW + DAY)
    leaf = server_certificate(
        certificate_authority("ca", now=NOW - DAY, lifetime=9 * DAY), NAMES, now=NOW, lifetime=DAY
    )
    assert validity(leaf.certificate) == (NOW - dt.timedelta(hours=1), NOW + DAY)


def test_duplicate_names_are_removed(authority: KeyPair) -> None:
    leaf = server_certificate(authority, ("b", "a", "b"), now=NOW, lifetime=DAY)
    alternatives = parsed(leaf).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [alternative.value for alternative in alternatives] == ["b", "a"]


def test_a_bundle_is_sorted_without_duplicates() -> None:
    old = certificate_authority("old", now=NOW - DAY, lifetime=3 * DAY).certificate
    long, short = (certificate_authority("ca", now=NOW, lifetime=days * DAY).certificate for days in (3, 2))
    assert join([long, short, old, long]) == old + short + long
    assert join([short, old, long]) == join([old, long, short])
    assert split(join([long, short, old])) == [old, short, long]


def test_certificates_of_the_same_time_have_a_fixed_order() -> None:
    both = [certificate_authority("ca", now=NOW, lifetime=DAY).certificate for _ in range(2)]
    assert join(both) == join(both[::-1]) == b"".join(sorted(both, key=fingerprint))


USAGES = [name for name in dir(x509.KeyUsage) if name.endswith(("_sign", "_signature", "_commitment", "_encipherment"))]


@pytest.mark.parametrize(
    ("pair", "usages"),
    [("authority", {"key_cert_sign", "crl_sign"}), ("leaf", {"digital_signature"})],
)
def test_a_key_may_only_be_used_for_its_purpose(pair: str, usages: set[str], request: pytest.FixtureRequest) -> None:
    usage = parsed(request.getfixturevalue(pair)).extensions.get_extension_for_class(x509.KeyUsage)
    allowed = {name for name in USAGES if getattr(usage.value, name)}
    assert (allowed, usage.value.key_agreement, usage.critical) == (usages, False, True)


def test_a_certificate_with_an_unknown_kind_of_key_is_invalid(leaf: KeyPair) -> None:
    der = parsed(leaf).public_bytes(serialization.Encoding.DER)
    # The object identifier of the curve P-256 (RFC 5480, 2.1.1.1), and one that names no curve.
    changed = der.replace(bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d03017f"))
    pem = ssl.DER_cert_to_PEM_cert(changed).encode()
    with pytest.raises(CertificateError, match=r"tls\.crt: contains an invalid certificate"):
        parse_certificates(pem, "tls.crt")
