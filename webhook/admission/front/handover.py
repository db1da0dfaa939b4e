"""Expensive reviews go from the workers to one process, so that other reviews do not wait for them.

A worker answers in its event loop. It hands a review over that is large, or that needs more CPU time than a usual one,
and answers other reviews meanwhile. Requests and responses are HTTP/1.1 on a Unix socket, each on a connection of its
own, so a restarted process continues without a protocol for it.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_BACKLOG: Final = 128
# The seconds for the response besides those for the evaluation.
_GRACE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Response:
    """The status and the body of an HTTP response."""

    code: int
    body: bytes


# The other process ended, or did not answer in time.
_BUSY: Final = Response(429, b"")


class HandOver:
    """The socket on which one process receives the expensive reviews of all workers; create it before the fork."""

    def __init__(self, path: Path) -> None:
        """Open the socket at a path in a folder that other users cannot enter.

        Raises:
            OSError: the path exists or is too long (unix(7): 107 bytes).
        """
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        try:
            self.listener.bind(str(path))
        except OSError:
            self.listener.close()
            raise
        self.listener.listen(_BACKLOG)
        self.listener.setblocking(False)  # noqa: FBT003 -- the signature of socket

    async def send(self, target: str, traceparent: bytes, body: bytes, seconds: float) -> Response | None:
        """Return the response to a review, with status 429 if the other process ends or is late.

        Args:
            target: path and query of the review.
            traceparent: the header of that name; empty if there is none.
            body: the review.
            seconds: the time limit of the evaluation.

        Returns:
            None if the other process cannot be reached and never received the review.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(self.path)
        except OSError:
            return None
        try:
            async with asyncio.timeout(seconds + _GRACE_SECONDS):
                writer.write(_head(target, traceparent, len(body)))
                writer.write(body)
                return await _read(reader)
        except (OSError, EOFError):
            return _BUSY
        finally:
            writer.close()


def _head(target: str, traceparent: bytes, size: int) -> bytes:
    lines = [f"POST {target} HTTP/1.1", "host: gpugate", f"content-length: {size}", "connection: close"]
    if traceparent:
        lines.append(f"traceparent: {traceparent.decode('latin-1')}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def _read(reader: asyncio.StreamReader) -> Response:
    line, *headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    values = {name.lower(): value for name, _, value in (header.partition(": ") for header in headers)}
    return Response(int(line.split(" ")[1]), await reader.readexactly(int(values["content-length"])))
