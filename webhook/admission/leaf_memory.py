"""How a certificate gets from the process that makes it to those that serve with it: memory that all of them see.

Never a file: keys that are on no disk cannot be read from one.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from typing import Final

from gpugate.certs.pki import KeyPair

# How often a pair was put, the SHA-256 of all that follows, and the lengths of certificate and key.
_HEAD: Final = struct.Struct("=Q32sII")
_SIZE: Final = 64 * 1024


class LeafMemory:
    """One certificate and its key; made before processes are forked, written by one of them, read by all."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)

    def put(self, pair: KeyPair) -> None:
        """Let everybody take up this pair.

        Raises:
            ValueError: it is larger than any that is made here.
        """
        content = pair.certificate + pair.key
        if _HEAD.size + len(content) > _SIZE:
            raise ValueError(f"a certificate and key of {len(content)} bytes have no place")
        head = _HEAD.pack(self.version + 1, _digest(content), len(pair.certificate), len(pair.key))
        self._memory[: _HEAD.size + len(content)] = head + content

    @property
    def version(self) -> int:
        """How often a pair was put."""
        version: int = _HEAD.unpack_from(self._memory)[0]
        return version

    def get(self) -> KeyPair | None:
        """Return the pair; None when there is none yet, or while it is written."""
        _, digest, certificate, key = _HEAD.unpack_from(self._memory)
        content = self._memory[_HEAD.size : _HEAD.size + certificate + key]
        if not content or _digest(content) != digest:
            return None
        return KeyPair(content[:certificate], content[certificate:])


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
