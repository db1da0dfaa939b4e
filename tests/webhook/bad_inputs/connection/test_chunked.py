"""Transfer codings: what one server reads as the end of a body, another may read as the next request."""

from __future__ import annotations

from typing import Any

import pytest

CHUNKED = b"Transfer-Encoding: chunked"


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["length-first", "transfer-encoding-first"])
def test_both_a_length_and_chunks(wire: Any, order: slice) -> None:
    headers = [b"Content-Length: %d" % len(wire.good), CHUNKED][order]
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(wire.good), wire.good)
    wire.refused(400, "Content-Length|Transfer-Encoding", wire.post(*headers, body=body))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([b"Transfer-Encoding: xchunked"], id="xchunked"),
        pytest.param([b"Transfer-Encoding: gzip, chunked"], id="gzip-then-chunked"),
        pytest.param([b"Transfer-Encoding: chunked, chunked"], id="chunked-twice"),
        pytest.param([b"Transfer-Encoding: chunked, gzip"], id="gzip-last"),
        pytest.param([b"Transfer-Encoding: identity"], id="identity"),
        pytest.param([b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"], id="two-headers"),
        pytest.param([b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"], id="the-same-header-twice"),
        pytest.param([b"Transfer-Encoding: \x0bchunked"], id="vertical-tab"),
        pytest.param([b"Transfer-Encoding:"], id="empty"),
    ],
)
def test_other_codings(wire: Any, headers: list[bytes]) -> None:
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(wire.good), wire.good)
    wire.refused({400, 501}, "Transfer-Encoding|HTTP/1.1", wire.post(*headers, body=body))


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(b"%x\r\n%s\r\n0\r\n\r\n", id="one-chunk"),
        pytest.param(b"%X\r\n%s\r\n0\r\n\r\n", id="upper-case"),
        pytest.param(b"0%x\r\n%s\r\n000\r\n\r\n", id="leading-zeros"),
        pytest.param(b"%x;a=b\r\n%s\r\n0\r\n\r\n", id="extension"),
        pytest.param(b"%x\r\n%s\r\n0\r\nX-Trailer: a\r\n\r\n", id="trailer"),
    ],
)
def test_chunks(wire: Any, pattern: bytes) -> None:
    wire.allowed(wire.post(CHUNKED, body=pattern % (len(wire.good), wire.good)))


def test_many_chunks_that_come_one_by_one(wire: Any) -> None:
    parts = [wire.good[start : start + 100] for start in range(0, len(wire.good), 100)]
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
    wire.allowed(wire.post(CHUNKED, body=b""), *chunks, b"0\r\n\r\n")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"zz\r\n{}\r\n0\r\n\r\n", id="no-number"),
        pytest.param(b"-2\r\n{}\r\n0\r\n\r\n", id="negative"),
        pytest.param(b"+2\r\n{}\r\n0\r\n\r\n", id="plus"),
        pytest.param(b"0x2\r\n{}\r\n0\r\n\r\n", id="prefix"),
        pytest.param(b"2 \r\n{}\r\n0\r\n\r\n", id="space"),
        pytest.param(b"\r\n{}\r\n0\r\n\r\n", id="no-size"),
        pytest.param(b"1" + b"0" * 30 + b"\r\n{}\r\n0\r\n\r\n", id="25-10^30"),
        pytest.param(b"2;" + b"a" * 1024 * 1024 + b"\r\n{}\r\n0\r\n\r\n", id="extension-of-1-MB"),
        pytest.param(b"2\r\n{}0\r\n\r\n", id="no-line-end-after-a-chunk"),
        pytest.param(b"2\n{}\n0\n\n", id="bare-line-feeds"),
        pytest.param(b"2\r\n{}\n0\r\n\r\n", id="bare-line-feed-after-a-chunk"),
        pytest.param(b"1;a=b\r\n \r\n" * 100_000, id="more-about-chunks-than-in-them"),
        pytest.param(b"2\r\n{}\r\n0\r\n" + b"X-Trailer: a\r\n" * 10_000 + b"\r\n", id="trailers-without-end"),
        pytest.param(b"2\r\n{}\r\n0\r\nX: " + b"x" * 1024 * 1024 + b"\r\n\r\n", id="trailer-of-1-MB"),
    ],
)
def test_chunks_that_are_none(wire: Any, body: bytes) -> None:
    wire.refused({400, 413, 431}, "chunk|HTTP/1.1|header|head|large", wire.post(CHUNKED, body=body))


def test_last_line_end_missing(wire: Any) -> None:
    assert wire.to_the_end(wire.post(CHUNKED, body=b"2\r\n{}\r\n0\r\n"), half_close=True) == []
