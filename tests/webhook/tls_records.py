"""Records of a TLS 1.3 client that Python's ssl module cannot send, such as key updates (RFC 8446, 4.6.3 and 7.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

if TYPE_CHECKING:
    from pathlib import Path

# The cipher suite of the records, for which a client must ask.
SUITE: Final = "TLS_AES_256_GCM_SHA384"
_HANDSHAKE, _CONTENT = b"\x16", b"\x17"
# An update that asks for none in return.
_KEY_UPDATE: Final = b"\x18\x00\x00\x01\x00"


def _expand(secret: bytes, label: bytes, length: int) -> bytes:
    label = b"tls13 " + label
    info = length.to_bytes(2) + bytes([len(label)]) + label + b"\x00"
    return HKDFExpand(SHA384(), length, info).derive(secret)


class ClientRecords:
    """Encrypts what a client sends after its handshake.

    Args:
        log: the file that `keylog_filename` of the client names.
    """

    def __init__(self, log: Path) -> None:
        (line,) = (line for line in log.read_text().splitlines() if line.startswith("CLIENT_TRAFFIC_SECRET_0 "))
        self._use(bytes.fromhex(line.split()[2]))

    def content(self, data: bytes) -> bytes:
        """Return a record with content."""
        return self._record(data + _CONTENT)

    def key_update(self) -> bytes:
        """Return a record that changes the keys, and change them."""
        record = self._record(_KEY_UPDATE + _HANDSHAKE)
        self._use(_expand(self._secret, b"traffic upd", SHA384.digest_size))
        return record

    def _use(self, secret: bytes) -> None:
        self._secret, self._sent = secret, 0
        self._key, self._iv = AESGCM(_expand(secret, b"key", 32)), _expand(secret, b"iv", 12)

    def _record(self, inner: bytes) -> bytes:
        header = _CONTENT + b"\x03\x03" + (len(inner) + 16).to_bytes(2)
        nonce = (int.from_bytes(self._iv) ^ self._sent).to_bytes(12)
        self._sent += 1
        return header + self._key.encrypt(nonce, inner, header)
