"""A certificate in a folder as the kubelet mounts it: links through `..data`, which one rename turns to another folder.

So does `k8s.io/kubernetes` pkg/volume/util/atomic_writer.go, v1.36.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import shutil
import ssl
from typing import TYPE_CHECKING

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
        for file in (self.certificate, self.key):
            file.symlink_to(f"..data/{file.name}")
        self.swap()

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--tls-cert", str(self.certificate), "--tls-key", str(self.key))

    def swap(self) -> str:
        """Put a new certificate of the same authority there; returns the SHA-256 of it."""
        pair = server_certificate(self._authority, ["localhost", "127.0.0.1"], now=_now(), lifetime=_LIFETIME)
        self._swaps += 1
        version = self._folder / f"..{self._swaps}"
        version.mkdir()
        (version / "tls.crt").write_bytes(pair.certificate)
        (version / "tls.key").write_bytes(pair.key)
        link = self._folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self._folder / "..data")
        shutil.rmtree(self._folder / f"..{self._swaps - 1}", ignore_errors=True)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.certificate.decode())).hexdigest()


def _now() -> dt.datetime:
    return dt.datetime.now(tz=dt.UTC)
