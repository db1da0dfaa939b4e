"""The files that the server's certificate, its key and who vouches for clients are read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.certs.checks import checked_authorities, checked_server
from gpugate.certs.files import open_to_all, read_together
from gpugate.certs.pki import KeyPair
from gpugate.webhook.admission.file_signature import signature

if TYPE_CHECKING:
    import datetime as dt
    from pathlib import Path

    from gpugate.webhook.admission.file_signature import Signature
    from gpugate.webhook.admission.options import ServeOptions


@dataclass(frozen=True, slots=True)
class Content:
    """What the files hold: the pair to serve with, None where none is given, and the authorities of clients (PEM)."""

    pair: KeyPair | None
    client_authorities: bytes


class CertificateFiles:
    """Those of them that the options name; all are taken up together or not at all."""

    def __init__(self, options: ServeOptions) -> None:
        self._pair = (options.tls_cert, options.tls_key) if options.tls_cert and options.tls_key else None
        self._client_ca = options.client_ca
        self._names = options.tls_san
        self._paths: list[Path] = [*(self._pair or ()), *([self._client_ca] if self._client_ca else ())]

    def __bool__(self) -> bool:
        return bool(self._paths)

    def __str__(self) -> str:
        return ", ".join(map(str, self._paths))

    def signatures(self) -> tuple[Signature, ...]:
        """Return what changes when one of the files does."""
        return tuple(map(signature, self._paths))

    def warnings(self) -> tuple[str, ...]:
        """Name the folders in which anybody can replace the files."""
        folders = dict.fromkeys(path.parent for path in self._paths)
        return tuple(
            f"{folder}: everybody can replace the files in it: take the right to write from others (chmod o-w)"
            for folder in folders
            if open_to_all(folder)
        )

    def read(self, now: dt.datetime | None) -> Content:
        """Read and check them; without a time, dates are not looked at.

        Raises:
            FileError: one of them cannot be read, or is none that should be.
            CertificateError: what is in one of them cannot be used.
        """
        content = dict(zip(self._paths, read_together(self._paths), strict=True)) if self._paths else {}
        pair, clients = None, b""
        if self._pair is not None:
            certificate, key = self._pair
            given = KeyPair(content[certificate], content[key])
            pair = checked_server(given, self._names, now, (str(certificate), str(key)))
        if self._client_ca is not None:
            clients = checked_authorities(content[self._client_ca], now, str(self._client_ca))
        return Content(pair, clients)
