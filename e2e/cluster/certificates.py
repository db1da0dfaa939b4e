"""The certificates of a control plane: two authorities, made for one run, and what they sign."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpugate.certs.pki import BACKDATED, KeyPair, certificate_authority, server_certificate

if TYPE_CHECKING:
    from pathlib import Path

_LIFETIME = dt.timedelta(days=1)
# What the API server calls itself where it passes requests on; only a client of this name may say who asked.
PROXY: Final = "front-proxy-client"
_SERVER_NAMES = ("127.0.0.1", "localhost", "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class Files:
    """A certificate and its private key, PEM, on disk."""

    certificate: Path
    key: Path


class Certificates:
    """Made and written into a folder: authorities, a serving certificate and a key that signs ServiceAccount tokens.

    All components serve with the one certificate, so that clients can check whom they ask. The API server passes requests
    on with a certificate of an authority that signs nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._now = dt.datetime.now(dt.UTC)
        self._authority = certificate_authority("gpugate-e2e", now=self._now, lifetime=_LIFETIME)
        self.authority = self._written("ca", self._authority).certificate
        served = server_certificate(self._authority, _SERVER_NAMES, now=self._now, lifetime=_LIFETIME)
        self.server = self._written("server", served)
        proxies = certificate_authority("gpugate-e2e-front-proxy", now=self._now, lifetime=_LIFETIME)
        self.proxy_authority = self._written("front-proxy-ca", proxies).certificate
        self.proxy = self._written(PROXY, client_certificate(proxies, PROXY, now=self._now))
        signing = ec.generate_private_key(ec.SECP256R1())
        self.service_account_key = folder / "service-account.key"
        self.service_account_key.write_bytes(_pem(signing))
        # The API server does not read a public key out of a private one in PKCS #8.
        self.service_account_public_key = folder / "service-account.pub"
        self.service_account_public_key.write_bytes(
            signing.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    def client(self, user: str, group: str = "") -> Files:
        """Make a client certificate: the API server reads the user from CN and the group from O."""
        return self._written(user.replace(":", "-"), client_certificate(self._authority, user, group, now=self._now))

    def _written(self, name: str, pair: KeyPair) -> Files:
        files = Files(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        files.certificate.write_bytes(pair.certificate)
        files.key.write_bytes(pair.key)
        return files


def client_certificate(authority: KeyPair, user: str, group: str = "", *, now: dt.datetime) -> KeyPair:
    """Make a certificate for a client, which is valid as long as that of its authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(issuer.not_valid_after_utc)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
