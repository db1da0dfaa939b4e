"""A certificate in a folder as the kubelet mounts it: links through `..data`, which a rename points to another folder.

The procedure is that of `k8s.io/kubernetes` pkg/volume/util/atomic_writer.go, v1.36.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import shutil
import ssl
from typing import TYPE_CHECKING

from client_certificates import client_certificate

from gpugate.certs.pki import certificate_authority, server_certificate

if TYPE_CHECKING:
    from pathlib import Path

_LIFETIME = dt.timedelta(days=1)


class CertificateFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._swaps = 0
        self._authority = certificate_authority("slow-tests", now=_now(), lifetime=_LIFETIME)
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(self._authority.certificate)
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.client_ca = folder / "clients.crt"
        for file in (self.certificate, self.key, self.client_ca):
            file.symlink_to(f"..data/{file.name}")
        self.swap()

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--tls-cert", str(self.certificate), "--tls-key", str(self.key))

    def swap(self, client_authorities: bytes = b"") -> str:
        """Write a new certificate of the same authority; return its SHA-256.

        `client_authorities` (PEM) are written to the same folder.
        """
        pair = server_certificate(self._authority, ["localhost", "127.0.0.1"], now=_now(), lifetime=_LIFETIME)
        self._swaps += 1
        version = self._folder / f"..{self._swaps}"
        version.mkdir()
        (version / "tls.crt").write_bytes(pair.certificate)
        (version / "tls.key").write_bytes(pair.key)
        (version / "clients.crt").write_bytes(client_authorities)
        link = self._folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self._folder / "..data")
        shutil.rmtree(self._folder / f"..{self._swaps - 1}", ignore_errors=True)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.certificate.decode())).hexdigest()


class ClientCertificate:
    """A client certificate in a file with its key; each `renew` uses a new authority of the same name."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "client.pem"
        self._made = self._following = certificate_authority("clients", now=_now(), lifetime=_LIFETIME)
        self.renew()

    def prepare(self) -> bytes:
        """Create the next authority; return it together with the one in use."""
        self._following = certificate_authority("clients", now=_now(), lifetime=_LIFETIME)
        return self.authority + self._following.certificate

    def renew(self) -> None:
        """Write a certificate of the prepared authority."""
        self._made = self._following
        pair = client_certificate(self._made, now=_now())
        new = self.file.with_suffix(".new")
        new.write_bytes(pair.certificate + pair.key)
        new.rename(self.file)

    @property
    def authority(self) -> bytes:
        """The authority of the certificate in use."""
        return self._made.certificate


def _now() -> dt.datetime:
    return dt.datetime.now(tz=dt.UTC)
