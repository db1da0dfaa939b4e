"""Heads that are too large, or that two servers could read in two ways."""

from __future__ import annotations

from typing import Any

import pytest

KIB = 1024


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([b"X-Long: " + b"x" * 9 * KIB], id="header-line-of-9-KB"),
        pytest.param([b"X" * 9 * KIB + b": x"], id="name-of-9-KB"),
        pytest.param([b"X-%d: x" % number for number in range(200)], id="200-headers"),
        pytest.param([b"X-Long: " + b"x" * KIB * KIB], id="header-of-1-MB"),
        pytest.param([b"X-%d: %s" % (number, b"x" * KIB) for number in range(20)], id="20-headers-of-1-KB"),
        pytest.param([b"x" * KIB * KIB], id="1-MB-and-no-colon"),
        pytest.param([b"X-Tiny:"] * 10_000, id="10000-empty-headers"),
    ],
)
def test_large_heads(wire: Any, headers: list[bytes]) -> None:
    wire.refused(431, "head", wire.post(*headers))


def test_heads_within_the_bounds(wire: Any) -> None:
    wire.allowed(wire.post(b"X-Long: " + b"x" * 7 * KIB, *[b"X-%d: x" % number for number in range(90)]))


def test_request_line_without_end(wire: Any) -> None:
    wire.refused({400, 414, 431}, "URL|head", b"POST /" + b"a" * KIB * KIB)


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"", id="no-host"),
        pytest.param(b"Host: a\r\nHost: b\r\n", id="two-hosts"),
        pytest.param(b"Host: a\r\nHost: a\r\n", id="the-same-host-twice"),
    ],
)
def test_hosts(wire: Any, head: bytes) -> None:
    request = wire.post().replace(b"Host: gpugate\r\n", head, 1)
    wire.refused(400, "Host", request)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"X-A: a\r\n b", id="folded"),
        pytest.param(b"X-A: a\r\n\tb", id="folded-with-a-tab"),
        pytest.param(b"Content-Length : 2", id="space-before-the-colon"),
        pytest.param(b"X-A\t: a", id="tab-before-the-colon"),
        pytest.param(b" X-A: a", id="space-before-the-name"),
        pytest.param(b"X-A: a\x00b", id="NUL"),
        pytest.param(b"X-A: a\rb", id="CR"),
        pytest.param(b"X-A: a\x01b", id="control-character"),
        pytest.param(b"X\x00A: a", id="NUL-in-a-name"),
        pytest.param(b"Content_Length: 2", id="underscore"),
        pytest.param(b"X-A", id="no-colon"),
        pytest.param(b": a", id="no-name"),
        pytest.param("X-\u00c4: a".encode(), id="name-not-in-ASCII"),
    ],
)
def test_headers_that_are_none(wire: Any, header: bytes) -> None:
    wire.refused(400, "HTTP/1.1|header", wire.post(header))


@pytest.mark.parametrize(
    ("line_end", "instead", "count"),
    [
        pytest.param(b"\r\n", b"\n", -1, id="everywhere"),
        pytest.param(b"HTTP/1.1\r\n", b"HTTP/1.1\n", 1, id="after-the-request-line"),
        pytest.param(b"gpugate\r\n", b"gpugate\n", 1, id="after-a-header"),
        pytest.param(b"\r\n\r\n", b"\r\n\n", 1, id="at-the-end-of-the-head"),
        pytest.param(b"\r\n\r\n", b"\n\r\n", 1, id="before-the-end-of-the-head"),
        pytest.param(b"gpugate\r\n", b"gpugate\r", 1, id="carriage-return-alone"),
    ],
)
def test_bare_line_feeds(wire: Any, line_end: bytes, instead: bytes, count: int) -> None:
    head, end, body = wire.post().partition(b"\r\n\r\n")
    wire.refused(400, "HTTP/1.1", (head + end).replace(line_end, instead, count) + body)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x00" * 1000, id="NUL"),
        pytest.param(bytes(range(128, 256)) * 1000, id="high-bytes"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 600, id="TLS-in-TLS"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", id="an-answer"),
        pytest.param(b'{"kind":"AdmissionReview"}\r\n\r\n', id="JSON-alone"),
    ],
)
def test_garbage(wire: Any, sent: bytes) -> None:
    wire.refused(400, "HTTP/1.1", sent)
