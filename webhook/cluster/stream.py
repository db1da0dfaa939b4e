"""An answer of the API server that is read line by line while it comes, as a watch is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from gpugate.webhook.cluster.errors import UnreachableError
from gpugate.webhook.cluster.unreachable import explained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from urllib3 import BaseHTTPResponse

_CHUNK: Final = 64 * 1024


class Stream:
    """The lines of one answer; leaving its context closes the connection."""

    def __init__(self, response: BaseHTTPResponse, host: str) -> None:
        self._response = response
        self._host = host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def lines(self) -> Iterator[bytes]:
        """Yield each line as soon as it is whole.

        Raises:
            UnreachableError: the connection broke, fell silent, or ended within a line.
        """
        rest = b""
        while True:
            with explained(self._host):
                chunk = self._response.read1(_CHUNK)
            if not chunk:
                break
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line for line in whole if line)
        if rest:
            raise UnreachableError(f"{self._host}: the watch ended within an event")

    def shutdown(self) -> None:
        """End the stream from another thread, which may be waiting in `lines`."""
        with suppress(OSError, ValueError, RuntimeError):  # it may be closed or at its end already
            self._response.shutdown()
