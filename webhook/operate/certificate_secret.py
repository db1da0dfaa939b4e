"""The Secret that holds the certificate authorities, without what is private in it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpugate.certs import authority_secret
from gpugate.certs.authority_secret import CorruptSecretError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.certs.authorities import Authorities


@dataclass(frozen=True, slots=True)
class CertificateSecret:
    """What may be known of it.

    Attributes:
        public: key -> content of everything but private keys: `active.crt`, `previous.crt`, `state.json` ...
        corrupt: why there is nothing in it to go on with, empty where there is.
        active: the authority that signs, PEM.
        next: the one that will sign, PEM; empty where none can be used.
        bundle: every authority that clients are to trust, PEM.
        answered: the annotations by which people asked for something, as they were answered last.
        annotations: those of its metadata.
    """

    public: Mapping[str, bytes]
    corrupt: str = ""
    active: bytes = b""
    next: bytes = b""
    bundle: bytes = b""
    answered: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def public_parts(secret: Mapping[str, Any]) -> CertificateSecret:
    """Read a Secret as the API server returns it; private keys are compared with their certificates and dropped."""
    annotations = (secret.get("metadata") or {}).get("annotations") or {}
    data = {name: _decoded(content) for name, content in (secret.get("data") or {}).items()}
    public = {name: content for name, content in data.items() if not _is_private(name, content)}
    try:
        return _usable(authority_secret.read(data), public, annotations)
    except CorruptSecretError as error:
        return CertificateSecret(public, str(error), annotations=annotations)


def _usable(found: Authorities, public: Mapping[str, bytes], annotations: Mapping[str, str]) -> CertificateSecret:
    return CertificateSecret(
        public,
        active=found.active.certificate,
        next=found.next.certificate if found.next else b"",
        bundle=found.bundle,
        answered=found.answered,
        annotations=annotations,
    )


def _is_private(name: str, content: bytes) -> bool:
    return name.endswith(".key") or b"PRIVATE KEY" in content


def _decoded(content: object) -> bytes:
    try:
        return base64.b64decode(str(content), validate=True)
    except binascii.Error:
        return b""
