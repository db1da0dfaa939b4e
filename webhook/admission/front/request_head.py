"""What a request's head must be like, beyond what the parser demands of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.admission.front.limits import Limits

_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP status and what is wrong."""

    code: int
    message: str


@dataclass(slots=True)
class HeadSize:
    """How large a head is so far."""

    limits: Limits
    total: int = 0
    count: int = 0

    def url(self, size: int) -> Refusal | None:
        """Count the target of a request."""
        if size > self.limits.url:
            return Refusal(414, f"the URL is longer than {self.limits.url} bytes")
        return None

    def header(self, name: bytes, value: bytes) -> Refusal | None:
        """Count a header."""
        size = len(name) + len(value)
        self.total += size
        self.count += 1
        if size > self.limits.header_line:
            return Refusal(431, f"a header is longer than {self.limits.header_line} bytes")
        if self.total > self.limits.head or self.count > self.limits.headers:
            return Refusal(431, f"the headers are more than {self.limits.headers} or {self.limits.head} bytes")
        return None


def refused(method: bytes, version: str, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Say what is wrong with a head whose header names are in lower case.

    The parser has refused by then what two servers could read in two ways: both Content-Length and Transfer-Encoding,
    either of them twice, folded lines, bare line feeds, control characters.
    """
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if b"_" in name:
            # An application sees A-B and A_B as one.
            return Refusal(400, "header names have no underscore here")
        values.setdefault(name, []).append(value.strip().lower())
    return _line(method, version, url) or _framing(method, version, values)


def _line(method: bytes, version: str, url: bytes) -> Refusal | None:
    if version not in {"1.0", "1.1"}:
        return Refusal(400, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    if not url.startswith(b"/") or b"#" in url or method == b"CONNECT":
        return Refusal(400, "the request's target must be a path: this is no proxy")
    return None


def _framing(method: bytes, version: str, values: dict[bytes, list[bytes]]) -> Refusal | None:
    hosts = values.get(b"host", [])
    if len(hosts) > 1 or (version == "1.1" and not hosts):
        return Refusal(400, "exactly one Host header is needed")
    encodings = values.get(b"transfer-encoding", [])
    if encodings not in ([], [b"chunked"]):
        return Refusal(501, "the only Transfer-Encoding understood is chunked")
    if values.get(b"expect", [b"100-continue"]) != [b"100-continue"]:
        return Refusal(417, "the only expectation met is 100-continue")
    if method in _WITH_BODY and not encodings and b"content-length" not in values:
        return Refusal(411, "a Content-Length is needed")
    return None
