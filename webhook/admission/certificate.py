"""The serving certificate: read from files and reloaded when they change, received from the keeper, or created at start.

A created key is never written to disk.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import mmap
import os
import secrets
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from gpugate.certs.checks import validate_authorities, validate_server
from gpugate.certs.files import FileError, is_world_writable, read_together
from gpugate.certs.pki import CertificateError, KeyPair, certificate_authority, expiry, server_certificate
from gpugate.certs.serving import server_context
from gpugate.policies.engine.caught_error import described
from gpugate.webhook.admission.options import ServeError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.admission.options import ServeOptions

Signature: TypeAlias = "tuple[int, ...] | None"


def signature(path: Path) -> Signature:
    """Return device, inode, size, mtime and ctime (ns) of the file at a path; None if there is none.

    Links are followed, because the kubelet changes a mounted ConfigMap or Secret by pointing a link to a new directory.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 -- the method of Path creates another object on each of many calls
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True, slots=True)
class Content:
    """The content of the files: the serving pair, None without one, and the authorities of clients (PEM)."""

    pair: KeyPair | None
    client_authorities: bytes


class CertificateFiles:
    """The certificate files that the options name; they are loaded together or not at all."""

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
        """Return the signatures of the files, which change when a file changes."""
        return tuple(map(signature, self._paths))

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each world-writable folder of the files."""
        folders = dict.fromkeys(path.parent for path in self._paths)
        return tuple(
            f"{folder}: every user can replace the files in it; remove write access for others (chmod o-w)"
            for folder in folders
            if is_world_writable(folder)
        )

    def read(self, now: dt.datetime | None) -> Content:
        """Read and check the files; if `now` is None, dates are not checked.

        Raises:
            FileError: a file cannot be read or is unsuitable.
            CertificateError: the content of a file is invalid.
        """
        content = dict(zip(self._paths, read_together(self._paths), strict=True)) if self._paths else {}
        pair, clients = None, b""
        if self._pair is not None:
            certificate, key = self._pair
            configured = KeyPair(content[certificate], content[key])
            pair = validate_server(configured, self._names, now, (str(certificate), str(key)))
        if self._client_ca is not None:
            clients = validate_authorities(content[self._client_ca], now, str(self._client_ca))
        return Content(pair, clients)


# The version, the SHA-256 of the content after the header, and the lengths of certificate and key.
_HEAD: Final = struct.Struct("=Q32sII")
_SIZE: Final = 64 * 1024


class LeafMemory:
    """A certificate and its key in shared memory: created before the fork, written by one process, read by all."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)

    def put(self, pair: KeyPair) -> None:
        """Publish a pair to all processes.

        Raises:
            ValueError: the pair is larger than the memory.
        """
        content = pair.certificate + pair.key
        if _HEAD.size + len(content) > _SIZE:
            raise ValueError(f"a certificate and key of {len(content)} bytes do not fit into the shared memory")
        head = _HEAD.pack(self.version + 1, _digest(content), len(pair.certificate), len(pair.key))
        self._memory[: _HEAD.size + len(content)] = head + content

    @property
    def version(self) -> int:
        """The number of pairs that were published so far."""
        version: int = _HEAD.unpack_from(self._memory)[0]
        return version

    def get(self) -> KeyPair | None:
        """Return the pair; None before the first one, and while it is being written."""
        _, digest, certificate, key = _HEAD.unpack_from(self._memory)
        content = self._memory[_HEAD.size : _HEAD.size + certificate + key]
        if not content or _digest(content) != digest:
            return None
        return KeyPair(content[:certificate], content[certificate:])


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


# A certificate created at start is never renewed, so it must outlive the process.
LIFETIME: Final = dt.timedelta(days=365)
_EVERY_ADDRESS: Final = {"0.0.0.0", "::", ""}  # noqa: S104 -- excluded from certificate names, not bound


@dataclass(frozen=True, slots=True)
class Identity:
    """The TLS context of the server, its expiry, and its authority (PEM) if it was created at start, else None."""

    context: ssl.SSLContext
    not_after: dt.datetime
    authority: bytes | None = None


class Certificate:
    """The certificate in use; an invalid new certificate does not replace it."""

    def __init__(self, options: ServeOptions, now: Callable[[], dt.datetime], leafs: LeafMemory | None = None) -> None:
        """Read the certificate that the options name, or create one to use until `leafs` contains one.

        Raises:
            ServeError: a file cannot be read or written, or its content is invalid.
        """
        self._now = now
        self._files = CertificateFiles(options)
        self._created = None if options.tls_cert else _created(options, now())
        self._leafs = leafs
        self._signatures_in_use = self._signatures()
        self._refused = ""
        try:
            self._identity = self._read(now())
        except (CertificateError, FileError) as error:
            raise ServeError(str(error)) from None

    @property
    def identity(self) -> Identity:
        """The identity in use; read it again for each new connection."""
        return self._identity

    @property
    def is_behind(self) -> bool:
        """Whether the shared memory contains a pair that is not in use yet; cheap enough for each connection."""
        return self._leafs is not None and self._leafs.version != self._version_in_use

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems with the files that do not prevent their use."""
        return self._files.warnings()

    def poll(self) -> str | None:
        """Load changed files; return None if nothing changed, an empty text on success, or the error.

        After an error, each call tries again, because the cause can end without a change to a file, such as a wrong
        clock or a full disk. The same error is returned once.
        """
        signatures = self._signatures()
        if signatures == self._signatures_in_use:
            if not self._refused:
                return None
            previous_error = self._refused
            error = self.reload()
            return None if error == previous_error else error
        self._signatures_in_use = signatures
        return self.reload()

    def reload(self) -> str | None:
        """Load the files and the memory again; return None if there are none, an empty text on success, or the error."""
        if not self._files and not self._has_published:
            return None
        try:
            now = self._now()
            # If the certificate in use has expired too, dates are not checked, because the clock may be wrong.
            self._identity = self._read(now if now < self._identity.not_after else None)
        except (CertificateError, FileError) as error:
            self._refused = str(error)
            # An invalid file of client authorities must not delay a new pair from memory.
            if self._has_published:
                with contextlib.suppress(CertificateError):
                    self._identity = self._identity_from(self._content)
        except Exception as error:  # noqa: BLE001 -- no error may end the process or replace the certificate in use
            self._refused = f"{self._files}: cannot be used ({described(error)})"
        else:
            self._refused = ""
        return self._refused

    @property
    def _has_published(self) -> bool:
        return self._leafs is not None and self._leafs.version > 0

    def _signatures(self) -> object:
        self._version_in_use = self._leafs.version if self._leafs else 0
        return self._files.signatures(), self._version_in_use

    def _read(self, now: dt.datetime | None) -> Identity:
        self._content = self._files.read(now)
        return self._identity_from(self._content)

    def _identity_from(self, content: Content) -> Identity:
        authority, pair = self._created or (None, content.pair)
        if self._leafs is not None and self._has_published:
            authority, pair = None, self._leafs.get()
        if pair is None:
            raise CertificateError("the certificate is being written")
        return Identity(server_context(pair, content.client_authorities), expiry(pair.certificate), authority)


def names(options: ServeOptions) -> tuple[str, ...]:
    """Return the names of a certificate created at start; the first is used in the server's URL."""
    host = () if options.host in _EVERY_ADDRESS else (options.host,)
    return tuple(dict.fromkeys((*options.tls_san, *host, "localhost", "127.0.0.1", "::1")))


def _created(options: ServeOptions, now: dt.datetime) -> tuple[bytes, KeyPair]:
    name = f"gpugate-{secrets.token_hex(4)}"
    try:
        authority = certificate_authority(name, now=now, lifetime=LIFETIME, names=names(options))
        pair = server_certificate(authority, names(options), now=now, lifetime=LIFETIME)
    except ValueError as error:
        raise ServeError(f"certificate: {error}") from None
    if options.ca_file is not None:
        _write(options.ca_file, authority.certificate)
    return authority.certificate, pair


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ServeError(f"{path}: {(error.strerror or 'cannot be used').lower()}") from None
