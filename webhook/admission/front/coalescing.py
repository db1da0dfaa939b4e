"""A transport that sends what is written in one go together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class CoalescingTransport(asyncio.Transport):
    """Holds back what is written until the event loop comes round, which is before anybody could wait for it.

    Head and body of an answer are written apart; a TLS record and a system call for each would be a tenth of the cost
    of a review.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send soon."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send several parts soon."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """Send what was written, and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._parts.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Read nothing for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Return what is known of the connection."""
        return self._transport.get_extra_info(name, default)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))
