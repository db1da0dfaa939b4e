"""Methods, targets and queries that no API server sends."""

from __future__ import annotations

from typing import Any

import pytest

REVIEW_PATHS = [b"/mutate", b"/validate"]


@pytest.mark.parametrize("path", REVIEW_PATHS)
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(method.encode(), id=f"9-{method}")
        for method in ("GET", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS")
    ],
)
def test_other_methods(wire: Any, method: bytes, path: bytes) -> None:
    request = wire.post(path=path).replace(b"POST", method, 1)
    answer = wire.refused(405, "method", request)
    assert answer.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", REVIEW_PATHS)
def test_HEAD_has_no_body(wire: Any, path: bytes) -> None:  # noqa: N802 -- the method's name
    (answer,) = wire.to_the_end(b"HEAD %s HTTP/1.1\r\nHost: gpugate\r\n\r\n" % path, head=True)
    assert (answer.status, answer.headers["Allow"], answer.headers["Connection"]) == (405, "POST", "close")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"CONNECT gpugate:443 HTTP/1.1", id="connect"),
        pytest.param(b"POST https://gpugate/validate HTTP/1.1", id="absolute-form"),
        pytest.param(b"OPTIONS * HTTP/1.1", id="asterisk"),
        pytest.param(b"POST * HTTP/1.1", id="asterisk-post"),
        pytest.param(b"POST validate HTTP/1.1", id="no-slash"),
        pytest.param(b"POST  HTTP/1.1", id="no-target"),
    ],
)
def test_targets_that_are_no_path(wire: Any, line: bytes) -> None:
    wire.refused(400, "target|HTTP/1.1|URL|method|invalid", line + b"\r\nHost: gpugate\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(b"post", id="lower-case"),
        pytest.param(b"BREW", id="unknown"),
        pytest.param(b"POSTX", id="longer"),
        pytest.param(b"P\x00ST", id="with-NUL"),
    ],
)
def test_methods_that_do_not_exist(wire: Any, method: bytes) -> None:
    wire.refused({400, 405}, "method", wire.post().replace(b"POST", method, 1))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(b"/", id="root"),
        pytest.param(b"/nowhere", id="unknown"),
        pytest.param(b"/validate/", id="13-slash-at-the-end"),
        pytest.param(b"/mutate/", id="13-slash-at-the-end-of-mutate"),
        pytest.param(b"//validate", id="two-slashes"),
        pytest.param(b"/x/../validate", id="dots"),
        pytest.param(b"/./validate", id="dot"),
        pytest.param(b"/x/%2e%2e/validate", id="escaped-dots"),
        pytest.param(b"/%2e%2e/%2e%2e/etc/passwd", id="escaped-dots-to-a-file"),
        pytest.param(b"/validate%2f", id="escaped-slash"),
        pytest.param(b"/validate%00", id="escaped-NUL"),
        pytest.param(b"/validate%", id="half-an-escape"),
        pytest.param(b"/validate;a=1", id="parameter"),
        pytest.param(b"/Validate", id="upper-case"),
        pytest.param(b"/%ff", id="no-UTF-8"),
    ],
)
def test_paths_match_exactly_and_are_never_redirected(wire: Any, path: bytes) -> None:
    wire.refused(404, "not found", wire.post(path=path))


@pytest.mark.parametrize(
    "path",
    [pytest.param(b"/validate#x", id="fragment"), pytest.param(b"/vali\x00date", id="NUL")],
)
def test_targets_that_may_not_be_sent(wire: Any, path: bytes) -> None:
    wire.refused({400, 404}, "target|URL|invalid|not found", wire.post(path=path))


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"?", id="empty"),
        pytest.param(b"?timeout=", id="no-value"),
        pytest.param(b"?timeout=abc", id="no-number"),
        pytest.param(b"?timeout=-1s", id="negative"),
        pytest.param(b"?timeout=1e9s", id="exponent"),
        pytest.param(b"?timeout=999999999999999999999s", id="huge"),
        pytest.param(b"?timeout=nan", id="nan"),
        pytest.param(b"?timeout=10s&timeout=1s", id="twice"),
        pytest.param(b"?timeout=%31%30s", id="escaped"),
        pytest.param(b"?timeout=\xd9\xa1s".replace(b"\xd9\xa1", b"%D9%A1"), id="digit-of-another-script"),
        pytest.param(b"?" + b"a=b&" * 1000, id="many"),
    ],
)
def test_timeouts_that_make_no_sense_are_not_taken(wire: Any, query: bytes) -> None:
    wire.allowed(wire.post(path=b"/validate" + query))


@pytest.mark.parametrize(
    "size",
    [pytest.param(9 * 1024, id="query-of-9-KB"), pytest.param(1024 * 1024, id="query-of-1-MB")],
)
def test_long_urls(wire: Any, size: int) -> None:
    wire.refused(414, "URL", wire.post(path=b"/validate?timeout=" + b"1" * size))
