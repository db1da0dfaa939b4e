from __future__ import annotations

import datetime as dt

import pytest
from certificate_files import AUTHORITY, BAD, DAY, GOOD, NAME, NOW, OTHER, PAIR
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gpugate.certs.checks import validate_authorities, validate_authority, validate_pair, validate_server
from gpugate.certs.pki import CertificateError, KeyPair, certificate_authority, server_certificate
from gpugate.certs.serving import server_context

WHERE = ("tls.crt", "tls.key")


@pytest.mark.parametrize("pair", GOOD.values(), ids=GOOD)
def test_valid_pairs_are_accepted(pair: KeyPair) -> None:
    checked = validate_server(pair, [NAME], NOW, WHERE)
    assert server_context(checked).cert_store_stats()["x509"] == 0


@pytest.mark.parametrize(("pair", "message"), BAD.values(), ids=BAD)
def test_invalid_pairs_are_rejected(pair: KeyPair, message: str) -> None:
    with pytest.raises(CertificateError) as raised:
        validate_server(pair, [NAME], NOW, WHERE)
    assert message in str(raised.value)


@pytest.mark.parametrize("pair", [pair for pair, _ in BAD.values()], ids=BAD)
def test_errors_contain_no_part_of_the_key(pair: KeyPair) -> None:
    with pytest.raises(CertificateError) as raised:
        validate_server(pair, [NAME], NOW, WHERE)
    assert not any(line in str(raised.value).encode() for line in PAIR.key.splitlines()[1:-1])


def test_dates_are_not_checked_without_a_time() -> None:
    expired = BAD["expired"][0]
    assert validate_server(expired, [NAME], None) == expired


def test_all_formats_are_normalized_to_one() -> None:
    assert {validate_pair(GOOD[name]) for name in ("byte-order-mark", "crlf", "sec1-key", "ec-parameters-first")} == {
        PAIR
    }


def _rekeyed() -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    plain = serialization.NoEncryption()
    return KeyPair(
        AUTHORITY.certificate, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        pytest.param(PAIR, "not a CA certificate (CA:TRUE and keyCertSign required)", id="server"),
        pytest.param(_rekeyed(), "does not match", id="another-key"),
        pytest.param(
            KeyPair(AUTHORITY.certificate + PAIR.certificate, AUTHORITY.key), "contains 2 certificates", id="two"
        ),
        pytest.param(KeyPair(b"x" * 1024 * 1024, b""), "certificate: not PEM", id="junk"),
        pytest.param(KeyPair(AUTHORITY.certificate, b""), "key: empty", id="no-key"),
        pytest.param(GOOD["rsa-self-signed"], "not created by gpugate", id="without-constraints"),
    ],
)
def test_invalid_authorities_are_rejected(pair: KeyPair, message: str) -> None:
    with pytest.raises(CertificateError) as raised:
        validate_authority(pair)
    assert message in str(raised.value)


def _create_authority(
    *, ca: bool = True, path_length: int | None = 0, signs: bool = True, identified: bool = True
) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
    )
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=path_length), critical=True)
        .add_extension(
            x509.KeyUsage(digital_signature=True, key_cert_sign=signs, crl_sign=False, decipher_only=False, **usage),
            critical=True,
        )
    )
    if identified:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return KeyPair(
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def test_authorities_of_other_tools_are_accepted() -> None:
    pair = _create_authority()
    assert validate_authority(pair) == pair


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        pytest.param(
            _create_authority(ca=False, path_length=None),
            "not a CA certificate (CA:TRUE and keyCertSign required)",
            id="no CA",
        ),
        pytest.param(
            _create_authority(signs=False), "not a CA certificate (CA:TRUE and keyCertSign required)", id="cannot sign"
        ),
        pytest.param(_create_authority(path_length=1), "may sign other CAs", id="one below"),
        pytest.param(_create_authority(path_length=None), "may sign other CAs", id="any number below"),
        pytest.param(_create_authority(identified=False), "not created by gpugate", id="without an identifier"),
    ],
)
def test_authorities_with_other_extensions_are_rejected(pair: KeyPair, message: str) -> None:
    with pytest.raises(CertificateError) as raised:
        validate_authority(pair)
    assert str(raised.value).startswith(f"certificate: {message}")


def test_a_key_mismatch_names_both_files() -> None:
    with pytest.raises(CertificateError) as raised:
        validate_pair(KeyPair(PAIR.certificate, OTHER.key), WHERE)
    message = "tls.key: the key does not match the certificate in tls.crt: replace both together"
    assert str(raised.value) == message


def test_text_between_certificates_is_removed() -> None:
    chain = PAIR.certificate + AUTHORITY.certificate
    assert validate_pair(KeyPair(b"text" + PAIR.certificate + b"text" + AUTHORITY.certificate, PAIR.key)) == KeyPair(
        chain, PAIR.key
    )
    assert validate_authorities(AUTHORITY.certificate + b"\n" + PAIR.certificate, NOW, "ca.crt") == (
        AUTHORITY.certificate + PAIR.certificate
    )


def test_an_authority_expires_at_the_end_of_its_validity() -> None:
    ends = (
        certificate_authority("old", now=NOW - 2 * DAY, lifetime=DAY),
        certificate_authority("ends", now=NOW - DAY, lifetime=DAY),
    )
    with pytest.raises(CertificateError) as raised:
        validate_authorities(ends[0].certificate + ends[1].certificate, NOW, "ca.crt")
    assert str(raised.value).endswith("all CAs expired, the last at 2026-11-21T12:00:00Z by this server's clock")


@pytest.mark.parametrize(
    ("name", "message"),
    [("expired", "tls.crt: expired at"), ("expired-in-the-chain", "tls.crt: certificate 2 of 2: expired at")],
)
def test_errors_name_the_expired_certificate(name: str, message: str) -> None:
    with pytest.raises(CertificateError) as raised:
        validate_server(BAD[name][0], [NAME], NOW, WHERE)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("ahead", [DAY, dt.timedelta(hours=1, minutes=5, seconds=1)])
def test_clocks_may_differ_by_five_minutes(ahead: dt.timedelta) -> None:
    begins = server_certificate(AUTHORITY, [NAME], now=NOW + ahead, lifetime=DAY)
    with pytest.raises(CertificateError, match="not valid before"):
        validate_server(begins, [NAME], NOW, WHERE)
    level = server_certificate(AUTHORITY, [NAME], now=NOW + dt.timedelta(hours=1, minutes=5), lifetime=DAY)
    assert validate_server(level, [NAME], NOW, WHERE) == level


def test_every_name_is_checked() -> None:
    with pytest.raises(CertificateError, match="not valid for the name other: issue it"):
        validate_server(PAIR, [NAME, "other", "another"], NOW, WHERE)


def test_an_expired_authority_is_valid_as_an_authority() -> None:
    expired = certificate_authority("old", now=NOW - 100 * DAY, lifetime=DAY, names=[NAME])
    assert validate_authority(expired) == expired


def test_a_bundle_with_an_expired_authority_is_accepted() -> None:
    expired = certificate_authority("old", now=NOW - 2 * DAY, lifetime=DAY)
    both = expired.certificate + AUTHORITY.certificate
    assert validate_authorities(both, NOW, "ca.crt") == both


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        pytest.param(b"", "ca.crt: empty", id="empty"),
        pytest.param(OTHER.key, "ca.crt: contains 'PRIVATE KEY'", id="key"),
        pytest.param(AUTHORITY.certificate + AUTHORITY.certificate[:99], "ca.crt: truncated", id="truncated"),
        pytest.param(
            certificate_authority("old", now=NOW - 2 * DAY, lifetime=DAY).certificate,
            "ca.crt: all CAs expired",
            id="expired",
        ),
    ],
)
def test_unusable_bundles_are_rejected(pem: bytes, message: str) -> None:
    with pytest.raises(CertificateError) as raised:
        validate_authorities(pem, NOW, "ca.crt")
    assert message in str(raised.value)
