from __future__ import annotations

import pytest

from gpugate.webhook.admission.front.connection import HeadSize, find_head_error
from gpugate.webhook.admission.front.limits import Limits

HOST = (b"host", b"gpugate.gpugate.svc")
LENGTH = (b"content-length", b"2")


@pytest.mark.parametrize(
    ("method", "version", "url", "headers"),
    [
        pytest.param(b"POST", "1.1", b"/validate?timeout=10s", (HOST, LENGTH), id="as-the-API-server"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST, (b"transfer-encoding", b"Chunked")), id="chunked"),
        pytest.param(b"POST", "1.0", b"/validate", (LENGTH,), id="1.0-without-host"),
        pytest.param(b"GET", "1.1", b"/readyz", (HOST,), id="no-body"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST, LENGTH, (b"expect", b"100-Continue")), id="expect"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST, LENGTH, (b"upgrade", b"h2c")), id="upgrade"),
    ],
)
def test_heads_that_are_taken(
    method: bytes, version: str, url: bytes, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    assert find_head_error(method, version, url, headers) is None


@pytest.mark.parametrize(
    ("method", "version", "url", "headers", "code"),
    [
        pytest.param(b"POST", "2.0", b"/validate", (HOST, LENGTH), 400, id="version"),
        pytest.param(b"CONNECT", "1.1", b"h:443", (HOST,), 400, id="connect"),
        pytest.param(b"CONNECT", "1.1", b"/validate", (HOST,), 400, id="connect-to-a-path"),
        pytest.param(b"POST", "1.1", b"https://h/validate", (HOST, LENGTH), 400, id="absolute"),
        pytest.param(b"OPTIONS", "1.1", b"*", (HOST,), 400, id="asterisk"),
        pytest.param(b"POST", "1.1", b"/validate#x", (HOST, LENGTH), 400, id="fragment"),
        pytest.param(b"POST", "1.1", b"/validate", (LENGTH,), 400, id="no-host"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST, HOST, LENGTH), 400, id="two-hosts"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST, LENGTH, (b"content_type", b"x")), 400, id="underscore"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST, (b"transfer-encoding", b"gzip, chunked")), 501, id="gzip"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST, LENGTH, (b"expect", b"a-miracle")), 417, id="expect"),
        pytest.param(b"POST", "1.1", b"/validate", (HOST,), 411, id="no-length"),
        pytest.param(b"PUT", "1.1", b"/validate", (HOST,), 411, id="no-length-of-a-put"),
        pytest.param(b"PATCH", "1.1", b"/validate", (HOST,), 411, id="no-length-of-a-patch"),
    ],
)
def test_heads_that_are_refused(
    method: bytes, version: str, url: bytes, headers: tuple[tuple[bytes, bytes], ...], code: int
) -> None:
    refusal = find_head_error(method, version, url, headers)
    assert refusal is not None
    assert refusal.code == code


def test_a_url_within_the_limit() -> None:
    assert HeadSize(Limits(url=10)).url(10) is None


def test_a_url_above_the_limit() -> None:
    refusal = HeadSize(Limits(url=10)).url(11)
    assert refusal is not None
    assert refusal.code == 414


@pytest.mark.parametrize(
    ("limits", "taken", "value"),
    [
        pytest.param(Limits(header_line=10), 1, b"longer!", id="a-line"),
        pytest.param(Limits(head=20), 2, b"short", id="all-lines"),
        pytest.param(Limits(headers=2), 2, b"", id="their-number"),
    ],
)
def test_one_header_above_the_limit(limits: Limits, taken: int, value: bytes) -> None:
    size = HeadSize(limits)
    assert [size.header(b"name", b"short!") for _ in range(taken)] == [None] * taken
    refusal = size.header(b"name", value)
    assert refusal is not None
    assert refusal.code == 431
