from __future__ import annotations

import datetime as dt
import ipaddress
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


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


def verifies_with_openssl(leaf: KeyPair, bundle: bytes, name: str, folder: Path) -> bool:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl")
    (folder / "bundle").write_bytes(bundle)
    (folder / "leaf").write_bytes(leaf.certificate)
    flag = "-verify_ip" if name[0].isdigit() or ":" in name else "-verify_hostname"
    command = [openssl, "verify", "-x509_strict", "-attime", str(int(NOW.timestamp())), flag, name]
    command += ["-CAfile", str(folder / "bundle"), str(folder / "leaf")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 -- fixed arguments


def verifies(leaf: KeyPair, authority: KeyPair, name: str) -> bool:
    try:
        verify(leaf, authority, name, NOW)
    except VerificationError:
        return False
    return True


# The name constraints of a CA, the names that a stolen key signs for, and whether a client accepts the certificate.
CASES = [
    pytest.param(("gpugate.ns.svc", "gpugate"), ("gpugate.ns.svc", "gpugate"), True, id="its-names"),
    pytest.param(("gpugate.ns.svc",), ("a.gpugate.ns.svc",), True, id="subdomain"),
    pytest.param(("*.ns.svc",), ("*.ns.svc",), True, id="wildcard"),
    pytest.param(("gpugate.ns.svc",), ("other.ns.svc",), False, id="another-service"),
    pytest.param(("gpugate.ns.svc",), ("kubernetes.default.svc",), False, id="the-api-server"),
    pytest.param(("gpugate.ns.svc",), ("notgpugate.ns.svc",), False, id="same-suffix"),
    pytest.param(("gpugate.ns.svc",), ("10.0.0.1",), False, id="address-with-name-constraints"),
    pytest.param(("gpugate.ns.svc",), ("::1",), False, id="v6-address-with-name-constraints"),
    pytest.param(("gpugate.ns.svc",), ("gpugate.ns.svc", "10.0.0.1"), False, id="additional-address"),
    pytest.param(("127.0.0.1", "::1"), ("127.0.0.1", "::1"), True, id="addresses"),
    pytest.param(("127.0.0.1",), ("127.0.0.2",), False, id="another-address"),
    pytest.param(("127.0.0.1",), ("::1",), False, id="address-of-the-other-family"),
    pytest.param(("127.0.0.1",), ("gpugate.ns.svc",), False, id="name-with-address-constraints"),
    pytest.param(("127.0.0.1", "gpugate.ns.svc"), ("gpugate.ns.svc", "127.0.0.1"), True, id="both"),
]


def stolen(permitted: tuple[str, ...]) -> tuple[KeyPair, KeyPair]:
    """Return a CA, and its key with a certificate of the same name but without constraints, as a thief would sign."""
    honest = certificate_authority("gpugate-ca", now=NOW, lifetime=DAY, names=permitted)
    certificate, key = parsed(honest), serialization.load_pem_private_key(honest.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = x509.CertificateBuilder(
        certificate.issuer,
        certificate.subject,
        key.public_key(),
        certificate.serial_number,
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
    )
    for extension in certificate.extensions:
        if not isinstance(extension.value, x509.NameConstraints):
            builder = builder.add_extension(extension.value, extension.critical)
    free = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return honest, KeyPair(free, honest.key)


@pytest.mark.parametrize(("permitted", "signed", "accepted"), CASES)
def test_a_stolen_key_cannot_sign_for_other_names(
    permitted: tuple[str, ...],
    signed: tuple[str, ...],
    accepted: bool,  # noqa: FBT001 -- a table's column
) -> None:
    honest, free = stolen(permitted)
    leaf = server_certificate(free, signed, now=NOW, lifetime=DAY)
    assert verifies(leaf, honest, signed[0].replace("*", "any")) is accepted


@pytest.mark.parametrize(("permitted", "signed", "accepted"), CASES)
def test_openssl_enforces_the_same_constraints(
    permitted: tuple[str, ...],
    signed: tuple[str, ...],
    accepted: bool,  # noqa: FBT001 -- a table's column
    tmp_path: Path,
) -> None:
    honest, free = stolen(permitted)
    leaf = server_certificate(free, signed, now=NOW, lifetime=DAY)
    name = signed[0].replace("*", "any")
    assert verifies_with_openssl(leaf, honest.certificate, name, tmp_path) is accepted


@pytest.mark.parametrize(("permitted", "signed", "accepted"), CASES)
def test_names_outside_the_constraints_are_not_signed(
    permitted: tuple[str, ...],
    signed: tuple[str, ...],
    accepted: bool,  # noqa: FBT001 -- a table's column
) -> None:
    authority = certificate_authority("gpugate-ca", now=NOW, lifetime=DAY, names=permitted)
    if accepted:
        server_certificate(authority, signed, now=NOW, lifetime=DAY)
    else:
        with pytest.raises(ValueError, match="name constraints of the CA exclude"):
            server_certificate(authority, signed, now=NOW, lifetime=DAY)


def test_openssl_distinguishes_authorities_of_one_name(tmp_path: Path) -> None:
    pairs = [certificate_authority("gpugate-ca", now=NOW, lifetime=DAY) for _ in range(4)]
    bundle = b"".join(pair.certificate for pair in pairs)
    leaves = [server_certificate(pair, ["a.svc"], now=NOW, lifetime=DAY) for pair in pairs]
    assert all(verifies_with_openssl(leaf, bundle, "a.svc", tmp_path) for leaf in leaves)
